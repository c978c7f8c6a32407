"""What a training or an evaluation found, as one HTML page to read, to mail and to keep.

The page does not grow with the collection: curves and clouds of points are thinned out, and of
classes and hard structures only so many are listed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from saen._util.arrays import Array
from saen._util.strings import plural, short_label
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.errors import FileError
from saen.learning.metrics import classification_scores, log_losses, regression_scores
from saen.report.charts import (
    plot_calibration,
    plot_confusion,
    plot_curves,
    plot_predictions,
    plot_sizes,
)
from saen.report.page import Page
from saen.report.plots import draw_graphs, new_figure, plot_level_sizes

Floats = NDArray[np.float64]
NestedData = Any
"""`Graphs`, `Documents` or `NestedData`."""
Curves = Mapping[str, Mapping[str, ArrayLike]]
"""By unit and name, such as `{"cross entropy": {"training": loss}}`: shape (epochs, networks)."""

MOST_CLASSES = 50  # listed in tables
MOST_OUTPUTS = 4  # numbers per structure whose predictions are drawn
HARDEST = 9  # structures drawn or listed
MOST_WORDS = 30  # of a document or of the labels of a structure
_LEFT_OUT = ("device", "checkpoint", "checkpoint_every", "progress", "random_state")


@dataclass(frozen=True)
class Predictions:
    """Predictions for structures that the networks did not train on.

    - `classes` (C,), `targets` (m,): codes into them; `answers` (repeats, m, C): probabilities;
    - or, where `classes` is None, numbers: `targets` and `answers` (m,) or (m, k);
    - `places` (m,): which structures of the collection were tested, if not all in order;
    - `rows` (m,): equal structures have equal rows.
    """

    classes: Array | None
    targets: Array
    answers: Floats
    places: NDArray[np.int64] | None = None
    rows: NDArray[np.int64] | None = None


def check_report(path: str | Path) -> None:
    """Raise what `write_report` would, before the work that it is to tell of.

    `MissingExtraError` without matplotlib, `FileError` for a folder or a place that is not there.
    """
    new_figure(1, 1)
    target = Path(path)
    if target.is_dir():
        raise FileError("is a folder: name a file, such as report.html in it", path=path)
    if not target.parent.is_dir():
        raise FileError(f"cannot be written (there is no folder {target.parent})", path=path)


def settings_of(estimator: BaseEstimator) -> dict[str, Any]:
    """The arguments of an estimator that decide what it learns, apart from its seed."""
    return {name: value for name, value in estimator.get_params().items() if name not in _LEFT_OUT}


def write_report(
    path: str | Path,
    *,
    title: str,
    summary: Mapping[str, str],
    structures: NestedData,
    levels: Sequence[dict[str, Any]],
    curves: Curves,
    found: Predictions | None,
    command: str,
    settings: Mapping[str, Any],
    versions: Mapping[str, str],
) -> None:
    """Write the page, whole or not at all.

    `summary` stands on top. `levels` is what `Compressed.levels()` gives. `found` is None where
    nothing was tested. `command`, `settings` and `versions` say how to get the same again. Equal
    arguments give equal bytes.

    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = saen.SAENClassifier(epochs=2).fit(threads[:30], threads.targets[:30])
    >>> found = Predictions(
    ...     model.classes_,
    ...     np.searchsorted(model.classes_, threads.targets[30:]),
    ...     model.predict_proba(threads[30:])[None],
    ...     np.arange(30, 40),
    ... )
    >>> write_report(
    ...     getfixture("tmp_path") / "report.html",
    ...     title="threads",
    ...     summary={"accuracy": "good"},
    ...     structures=threads,
    ...     levels=model.prepare(threads).compressed.levels(),
    ...     curves={"cross entropy": {"training": model.history_.loss}},
    ...     found=found,
    ...     command="saen train threads",
    ...     settings=model.get_params(),
    ...     versions={"saen": saen.__version__},
    ... )
    """
    page = Page(title)
    page.add_pairs(summary)
    _add_data(page, structures)
    _add_levels(page, levels)
    _add_curves(page, curves)
    if found is None:
        page.add_heading("Predictions")
        page.add_paragraph("Nothing was held out: how good the predictions are is not known.")
    else:
        (_add_numbers if found.classes is None else _add_classes)(page, found)
        _add_hardest(page, structures, found)
    page.add_heading("To reproduce")
    page.add_code(command)
    page.add_pairs({name: _shown(value) for name, value in settings.items()}, short=True)
    page.add_paragraph(
        "Made with " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."
    )
    page.write(path)


# -- the sections ------------------------------------------------------------------------------


def _add_data(page: Page, structures: NestedData) -> None:
    page.add_heading("Data")
    if isinstance(structures, Graphs | Documents):
        said = structures.summary()
        said.pop("classes", None)
    else:
        said = dict(zip(structures.levels, structures.hierarchy.sizes, strict=True))
    pairs = {name.replace("_", " "): _shown(value) for name, value in said.items()}
    page.add_pairs(pairs, short=True)
    noun = _noun(structures)
    targets = structures.targets
    if targets is not None and targets.dtype.kind != "f":
        values, counts = np.unique(targets, return_counts=True)
        rows = [
            (short_label(value, 40), count, _percent(count, len(targets)))
            for value, count in zip(values.tolist(), counts.tolist(), strict=True)
        ]
        page.add_table(["class", f"{noun}s", "share (%)"], rows[:MOST_CLASSES], _first(rows))
    sizes, unit = _sizes(structures)
    if len(sizes):
        low, middle, high = np.quantile(sizes, (0, 0.5, 1)).tolist()
        caption = f"{unit}: {low:,.0f} to {high:,.0f}, half of them at most {middle:,.0f}"
        page.add_figure(plot_sizes(sizes, unit, f"{noun}s"), caption)


def _add_levels(page: Page, levels: Sequence[dict[str, Any]]) -> None:
    page.add_heading("Hierarchy before and after collapsing equal objects")
    columns = ["level", "objects", "unique", "entries", "after"]
    rows = [
        (
            level["name"],
            level["objects"],
            level["unique"],
            *((level["entries"], level["entries_compressed"]) if level["level"] else (None, None)),
        )
        for level in levels
    ]
    page.add_table(columns, rows)
    page.add_paragraph("Equal objects are one class; entries say what is part of what.", note=True)
    page.add_figure(plot_level_sizes(levels, "objects"), "Objects of every level, and classes.")
    if len(levels) > 1:
        page.add_figure(plot_level_sizes(levels, "entries"), "Entries of every relation.")


def _add_curves(page: Page, curves: Curves) -> None:
    page.add_heading("Learning curves")
    for unit, lines in curves.items():
        drawn = {name: np.asarray(values, dtype=np.float64) for name, values in lines.items()}
        drawn = {name: values for name, values in drawn.items() if values.size}
        if not drawn:
            page.add_paragraph(f"No epoch was trained: there is no {unit} to show.", note=True)
            continue
        epochs, networks = next(iter(drawn.values())).shape
        spread = "" if networks == 1 else ": the median, and the range from 10 % to 90 %"
        caption = f"{unit} of {plural(networks, 'network')} over {plural(epochs, 'epoch')}{spread}"
        page.add_figure(plot_curves(drawn, unit), caption)


def _add_classes(page: Page, found: Predictions) -> None:
    assert found.classes is not None
    page.add_heading("Predictions")
    scores = classification_scores(found.classes[found.targets], found.answers, found.classes)
    repeats = len(found.answers)
    page.add_figure(
        plot_confusion(scores.confusion, found.classes),
        "How each true class (row) is predicted, in per cent of the row"
        + (f", over {plural(repeats, 'repeat')}." if repeats > 1 else "."),
    )
    rows = [
        (
            short_label(name, 40),
            int(scores.confusion[code].sum()),
            _rounded(scores.recall[code]),
            _rounded(scores.precision[code]),
        )
        for code, name in enumerate(found.classes)
    ]
    columns = ["class", "tests", "recall (%)", "precision (%)"]
    page.add_table(columns, rows[:MOST_CLASSES], _first(rows))
    page.add_heading("Calibration")
    page.add_paragraph(
        f"Expected calibration error: {100 * scores.calibration.error:.1f} %. That far, in the "
        "mean, the probability of the predicted class is from the share of such predictions that "
        "are right."
    )
    page.add_figure(
        plot_calibration(scores.calibration),
        "Predictions by the probability of the predicted class. Bars below the diamonds: too sure; "
        "above: not sure enough.",
    )


def _add_numbers(page: Page, found: Predictions) -> None:
    page.add_heading("Predictions")
    true, made = _columns(found.targets), _columns(found.answers)
    each = [regression_scores(*columns) for columns in zip(true.T, made.T, strict=True)]
    rows = [(output, scores.rmse, scores.mae, scores.r2) for output, scores in enumerate(each)]
    columns = ["target", "root mean square error", "mean absolute error", "R²"]
    page.add_table(columns, rows[:MOST_CLASSES], _first(rows, "targets"))
    for output in range(min(true.shape[1], MOST_OUTPUTS)):
        caption = f"Predicted against true values of target {output}; on the line they agree."
        page.add_figure(plot_predictions(true[:, output], made[:, output]), caption)


def _add_hardest(page: Page, structures: NestedData, found: Predictions) -> None:
    """The structures of highest loss, equal ones once: drawn where they are graphs, else listed."""
    noun = _noun(structures)
    page.add_heading(f"Hardest {noun}s")
    losses = _losses(found)
    order = np.argsort(-losses, kind="stable")
    if found.rows is not None:
        _, first = np.unique(found.rows[order], return_index=True)
        order = order[np.sort(first)]
    order = order[:HARDEST]
    places = order if found.places is None else found.places[order]
    way = "farthest from the truth" if found.classes is None else "wrong with most confidence"
    page.add_paragraph(
        f"The tested {noun}s that were predicted worst, {way} first; of those with equal parts, "
        "one.",
        note=True,
    )
    told = [_verdict(found, int(test), losses) for test in order]
    if isinstance(structures, Graphs):
        for place, words, figure in zip(
            places.tolist(), told, draw_graphs(structures[places]), strict=True
        ):
            page.add_figure(figure, f"{noun} {place}: {words}")
        return
    rows = [
        (str(place), words, _beginning(structures[place]))
        for place, words in zip(places.tolist(), told, strict=True)
    ]
    page.add_table([noun, "prediction", "begins with"], rows)


# -- words and numbers -------------------------------------------------------------------------


def _noun(structures: NestedData) -> str:
    if isinstance(structures, Graphs):
        return "graph"
    return "document" if isinstance(structures, Documents) else "structure"


def _sizes(structures: NestedData) -> tuple[NDArray[np.int64], str]:
    """How large every structure is, and in what."""
    if isinstance(structures, Graphs):
        return structures.sizes, "nodes per graph"
    if isinstance(structures, Documents):
        return np.diff(structures.word_offsets), "words per document"
    labels = short_label(structures.levels[0], 24)
    return np.diff(structures.starts[0]), f"distinct {labels} per structure"


def _losses(found: Predictions) -> Floats:
    """Of every test; for numbers, the distance in units of each target's standard deviation."""
    if found.classes is not None:
        return log_losses(found.targets, found.answers)
    true, made = _columns(found.targets), _columns(found.answers)
    spread = true.std(axis=0)
    distance: Floats = np.linalg.norm((made - true) / np.where(spread > 0, spread, 1), axis=1)
    return distance


def _verdict(found: Predictions, test: int, losses: Floats) -> str:
    """What is true of a test and what was predicted."""
    if found.classes is None:
        true, made = _columns(found.targets)[test], _columns(found.answers)[test]
        return f"true {_numbers(true)}, predicted {_numbers(made)}"
    answers = found.answers[:, test]
    mean = answers.mean(axis=0)
    guess = int(mean.argmax())
    words = (
        f"true {short_label(found.classes[int(found.targets[test])], 40)}, "
        f"predicted {short_label(found.classes[guess], 40)} ({100 * mean[guess]:.0f}\u00a0%), "
        f"loss {losses[test]:.2f}"
    )
    if len(answers) > 1:
        wrong = int((answers.argmax(axis=1) != found.targets[test]).sum())
        words += f", wrong in {wrong} of {len(answers)} repeats"
    if found.rows is not None:
        equal = found.targets[found.rows == found.rows[test]]
        others = (equal != found.targets[test]).sum()
        if others:
            words += f"; {others} of {len(equal)} with equal parts are of another class"
    return words


def _beginning(structure: NestedData) -> str:
    """The first words of a document, or the first labels of another structure."""
    if isinstance(structure, Documents):
        labels = structure.words[: MOST_WORDS + 1].tolist()
    else:
        attributes = structure.hierarchy.attributes
        codes = attributes.codes[: MOST_WORDS + 1].tolist()
        labels = [attributes.vocabulary[code] for code in codes]
    words = [short_label(label, 24) for label in labels[:MOST_WORDS]]
    return " ".join([*words, "…"] if len(labels) > MOST_WORDS else words)


def _columns(values: ArrayLike) -> Floats:
    """Numbers of shape (n,) or (n, k) as (n, k)."""
    rows = np.asarray(values, dtype=np.float64)
    return rows.reshape(len(rows), -1)


def _numbers(values: Floats) -> str:
    shown = ", ".join(f"{value:.4g}" for value in values[:MOST_OUTPUTS].tolist())
    return f"{shown}, …" if len(values) > MOST_OUTPUTS else shown


def _percent(part: int, whole: int) -> float | None:
    return round(100 * float(part) / float(whole), 1) if whole else None


def _rounded(share: float) -> float | None:
    return None if np.isnan(share) else round(100 * float(share), 1)


def _first(rows: Sequence[Any], what: str = "classes") -> str:
    """A caption that says what a table leaves out, or nothing."""
    return f"the first {MOST_CLASSES} of {len(rows):,} {what}" if len(rows) > MOST_CLASSES else ""


def _shown(value: Any) -> str:
    """A setting or a statistic as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else json.dumps(value, default=str)
