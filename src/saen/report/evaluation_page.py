"""The page about a training or an evaluation: data, compression, curves, predictions.

The page does not grow with the data: curves and clouds of points are thinned out, and of classes
and hard examples only so many are listed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saen._util.arrays import Array, Floats
from saen._util.atomic import check_output
from saen._util.strings import plural, short_label
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.explanations.dataset import DatasetExplanation
from saen.explanations.explanation import Explanation
from saen.explanations.molecules import as_molecule
from saen.learning.metrics import classification_scores, log_losses, regression_scores
from saen.report.charts import (
    describe_curves,
    plot_calibration,
    plot_confusion,
    plot_curves,
    plot_distribution,
    plot_predictions,
    plot_residuals,
    plot_roc,
    plot_sizes,
)
from saen.report.explanation_drawing import draw_as_molecule
from saen.report.explanation_page import dataset_table
from saen.report.figures import new_figure
from saen.report.graph_drawing import draw_graphs
from saen.report.molecule_drawing import SMALL_SIZE, draw_molecule
from saen.report.page import Picture, Table, in_words, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Data = Graphs | Documents | NestedData
Curves = Mapping[str, Mapping[str, ArrayLike]]
"""By unit and name, such as `{"cross entropy": {"training": loss}}`: shape (epochs, networks)."""

MAX_CLASSES = 50  # listed in tables
MAX_OUTPUTS = 4  # numbers per example whose predictions are drawn
MAX_HARDEST = 9  # examples drawn or listed
MAX_WORDS = 30  # of a document or of the labels of an example


@dataclass(frozen=True)
class Predictions:
    """Predictions for m examples that the networks did not train on.

    - `classes` (C,), or None for numbers;
    - `targets` (m,): indices of the true classes; or true numbers, (m,) or (m, k);
    - `outputs` (repeats, m, C): probabilities; or predicted numbers, (m,) or (m, k);
    - `indices` (m,): which examples of the data were tested, if not all in order;
    - `unique` (m,): examples with identical parts have the same number here;
    - `radius`: of intervals around predicted numbers, shaped as `outputs`, if there are any.
    """

    classes: Array | None
    targets: Array
    outputs: Floats
    indices: NDArray[np.int64] | None = None
    unique: NDArray[np.int64] | None = None
    radius: Floats | None = None


@dataclass(frozen=True)
class Report:
    """What the page shows.

    - `title`, and `summary`: what stands on top;
    - `data`: all examples; `levels`: what `Compressed.levels()` returns;
    - `curves`: the learning curves;
    - `predictions`: None where nothing was held out;
    - `command`, `settings`, `versions`: how to get the same again;
    - `headline`: the number that matters most, and what it is, shown large;
    - `target`: the name of what is predicted, of several targets their names;
    - `tried`: the candidates of a blend, each with its inner score and its weight;
    - `telling`: what the parts contribute to all predictions of a model;
    - `explain`: explains the prediction for an example by its index, and `explain_command` is what
      to type to do so, before the id.
    """

    title: str
    summary: Mapping[str, str]
    data: Data
    levels: Sequence[dict[str, Any]]
    curves: Curves
    predictions: Predictions | None
    command: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    headline: tuple[str, str] | None = None
    target: str | Sequence[str] = "target"
    tried: Table | None = None
    telling: DatasetExplanation | None = None
    explain: Callable[[int], Explanation] | None = None
    explain_command: str = ""


def check_report(path: str | Path, *, force: bool, inputs: Iterable[object] = ()) -> None:
    """Raise before the work if `write_report` could not, or must not, write the file.

    `MissingExtraError` without matplotlib, `FileError` as of `check_output`.
    """
    new_figure(1, 1)
    check_output(path, force=force, inputs=inputs)


def write_report(path: str | Path, report: Report) -> None:
    """Write the page atomically; equal reports give equal bytes.

    Parameters
    ----------
    path : str | Path
        The .html file.
    report : Report
        What the page shows.

    Raises
    ------
    MissingExtraError
        Without matplotlib.
    FileError
        Where the file cannot be written.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(40, seed=1)
    >>> model = saen.SAENClassifier(epochs=2).fit(threads[:30], threads.targets[:30])
    >>> predictions = Predictions(
    ...     model.classes_,
    ...     np.searchsorted(model.classes_, threads.targets[30:]),
    ...     model.predict_proba(threads[30:])[None],
    ...     np.arange(30, 40),
    ... )
    >>> report = Report(
    ...     title="threads",
    ...     summary={"accuracy": "good"},
    ...     data=threads,
    ...     levels=model.compress(threads).levels(),
    ...     curves={"cross entropy": {"training": model.history_.loss}},
    ...     predictions=predictions,
    ...     command="saen train threads",
    ...     settings=model.get_params(),
    ...     versions={"saen": saen.__version__},
    ... )
    >>> write_report(getfixture("tmp_path") / "report.html", report)
    """
    predictions = report.predictions
    names = [report.target] if isinstance(report.target, str) else list(report.target)
    write_page(
        path,
        "evaluation.html",
        report.title,
        report=report,
        statistics=_statistics(report.data),
        data=_data_section(report.data, names),
        levels=_level_section(report.levels),
        curves={unit: _curve_picture(unit, lines) for unit, lines in report.curves.items()},
        predictions=None if predictions is None else _prediction_section(predictions, names),
        telling=None if report.telling is None else dataset_table(report.telling),
        noun=_noun(report.data),
        hardest=None if predictions is None else _hardest_section(report, predictions),
        settings={name: in_words(value) for name, value in report.settings.items()},
    )


# -- the sections ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Section:
    table: Table | None
    pictures: Sequence[Picture]


def _statistics(data: Data) -> dict[str, str]:
    if isinstance(data, NestedData):
        statistics: dict[str, Any] = dict(zip(data.levels, data.hierarchy.sizes, strict=True))
    else:
        statistics = data.summary()
        statistics.pop("classes", None)
    return {name.replace("_", " "): in_words(value) for name, value in statistics.items()}


def _data_section(data: Data, names: Sequence[str]) -> _Section:
    return _Section(_class_table(data), [*_target_pictures(data, names), *_size_pictures(data)])


def _target_pictures(data: Data, names: Sequence[str]) -> list[Picture]:
    """How targets that are numbers are distributed."""
    if data.targets is None or data.targets.dtype.kind != "f":
        return []
    pictures = []
    for values, name in zip(_columns(data.targets).T[:MAX_OUTPUTS], _names(names), strict=False):
        known = values[np.isfinite(values)]
        if len(known):
            low, median, high = np.quantile(known, (0, 0.5, 1)).tolist()
            caption = f"{name}: {low:.4g} to {high:.4g}, median {median:.4g}"
            pictures.append(Picture(plot_distribution(known, name, f"{_noun(data)}s"), caption))
    return pictures


def _class_table(data: Data) -> Table | None:
    """How many examples there are of each class; None where targets are numbers."""
    targets = data.targets
    if targets is None or targets.dtype.kind == "f" or targets.ndim == 2:
        return None
    classes, counts = np.unique(targets, return_counts=True)
    rows = [
        (short_label(name, 40), count, round(100 * count / len(targets), 1))
        for name, count in zip(classes.tolist(), counts.tolist(), strict=True)
    ]
    return _first_rows(["class", f"{_noun(data)}s", "share (%)"], rows)


def _size_pictures(data: Data) -> list[Picture]:
    if isinstance(data, Graphs):
        sizes, unit = data.sizes, "nodes per graph"
    elif isinstance(data, Documents):
        sizes, unit = np.diff(data.word_offsets), "words per document"
    else:
        sizes = np.diff(data.starts[0])
        unit = f"distinct {short_label(data.levels[0], 24)} per example"
    if len(sizes) == 0:
        return []
    low, median, high = np.quantile(sizes, (0, 0.5, 1)).tolist()
    caption = f"{unit}: {low:,.0f} to {high:,.0f}, median {median:,.0f}"
    return [Picture(plot_sizes(sizes, unit, f"{_noun(data)}s"), caption)]


def _level_section(levels: Sequence[dict[str, Any]]) -> _Section:
    rows = []
    for level in levels:
        entries = (level["entries"], level["entries_compressed"]) if level["level"] else (None,) * 2
        rows.append((level["name"], level["objects"], level["unique"], *entries))
    columns = ["level", "objects", "unique", "entries", "entries after"]
    return _Section(Table(columns, rows), [])


def _curve_picture(unit: str, lines: Mapping[str, ArrayLike]) -> Picture | None:
    """Learning curves of one unit; None where no epoch was trained."""
    curves = {name: np.asarray(values, dtype=np.float64) for name, values in lines.items()}
    curves = {name: values for name, values in curves.items() if values.size}
    if not curves:
        return None
    caption = f"{unit} of {describe_curves(next(iter(curves.values())))}"
    return Picture(plot_curves(curves, unit), caption)


@dataclass(frozen=True)
class _PredictionSection(_Section):
    calibration: Picture | None = None
    calibration_error: str = ""


def _prediction_section(predictions: Predictions, names: Sequence[str]) -> _PredictionSection:
    if predictions.classes is None:
        return _regression_section(predictions, names)
    classes, repeats = predictions.classes, len(predictions.outputs)
    scores = classification_scores(classes[predictions.targets], predictions.outputs, classes)
    rows = [
        (
            short_label(name, 40),
            int(scores.confusion[code].sum()),
            _percent(scores.recall[code]),
            _percent(scores.precision[code]),
        )
        for code, name in enumerate(classes)
    ]
    confusion = Picture(
        plot_confusion(scores.confusion, classes),
        "Confusion matrix: predicted class (column) by true class (row), in percent of the row"
        + (f", over {plural(repeats, 'repeat')}." if repeats > 1 else "."),
    )
    roc = Picture(
        plot_roc(predictions.targets, predictions.outputs.mean(axis=0), classes),
        "ROC curves with the area under each: "
        + (f"{classes[1]} against {classes[0]}." if len(classes) == 2 else "one against the rest."),
    )
    calibration = Picture(
        plot_calibration(scores.calibration),
        "Observed accuracy by confidence. Bars below the diamonds: overconfident; above: "
        "underconfident.",
    )
    return _PredictionSection(
        _first_rows(["class", "tests", "recall (%)", "precision (%)"], rows),
        [confusion, roc],
        calibration,
        f"{100 * scores.calibration.error:.1f} %",
    )


def _regression_section(predictions: Predictions, names: Sequence[str]) -> _PredictionSection:
    true, predicted = _columns(predictions.targets).T, _columns(predictions.outputs).T
    radii: list[Any] = [None] * len(true)
    if predictions.radius is not None:
        radii = list(_columns(predictions.radius).T)
    columns = list(zip(_names(names), true, predicted, radii, strict=False))
    scores = [regression_scores(true, predicted) for _, true, predicted, _ in columns]
    around = "" if predictions.radius is None else " Bars: 90 % intervals."
    return _PredictionSection(
        _first_rows(
            ["all tests together", "root mean squared error", "mean absolute error", "R²"],
            [
                (name, each.rmse, each.mae, each.r2)
                for (name, *_), each in zip(columns, scores, strict=True)
            ],
            "targets",
        ),
        [
            picture
            for name, true, predicted, radius in columns[:MAX_OUTPUTS]
            for picture in (
                Picture(
                    plot_predictions(true, predicted, name, radius),
                    f"Predicted against observed {name}; on the line they agree.{around}",
                ),
                Picture(
                    plot_residuals(true, predicted, name), f"Residuals: errors of predicted {name}."
                ),
            )
        ],
    )


def _names(names: Sequence[str]) -> Iterator[str]:
    """The names of targets; without enough of them, numbers."""
    return chain(names, map("target {}".format, count(len(names)))) if names else iter(())


def _hardest_section(report: Report, predictions: Predictions) -> _Section:
    """The examples of highest loss, identical ones once: drawn if they are graphs, else listed."""
    data = report.data
    noun, losses = _noun(data), _losses(predictions)
    tests = np.argsort(-losses, kind="stable")
    if predictions.unique is not None:
        _, first = np.unique(predictions.unique[tests], return_index=True)
        tests = tests[np.sort(first)]
    tests = tests[:MAX_HARDEST]
    indices = tests if predictions.indices is None else predictions.indices[tests]
    verdicts = [_verdict(predictions, test, losses[test], noun) for test in tests.tolist()]
    pairs = list(zip(indices.tolist(), verdicts, strict=True))
    found = [None if report.explain is None else report.explain(i) for i in indices.tolist()]
    if isinstance(data, Graphs):
        drawn = _drawings(data[indices], found)
        pictures = [
            Picture(drawing, f"{noun} {data.ids[index]}: {verdict}", SMALL_SIZE[0], more)
            for drawing, (index, verdict), more in zip(
                drawn, pairs, [_more(report, each) for each in found], strict=True
            )
        ]
        return _Section(None, pictures)
    rows: list[tuple[str, ...]] = [
        (str(data.ids[i]), verdict, _first_words(data[i])) for i, verdict in pairs
    ]
    columns = [noun, "prediction", "first words"]
    if report.explain is not None:
        columns.append("explanation")
        rows = [(*row, each.sentence) for row, each in zip(rows, found, strict=True) if each]
    return _Section(Table(columns, rows), [])


def _more(report: Report, found: Explanation | None) -> tuple[str, str] | None:
    """What the model says of an example, and how to see everything."""
    if found is None:
        return None
    ids = getattr(report.data, "ids", None)
    unique = ids is None or np.count_nonzero(ids == found.id) == 1
    name = shlex.quote(str(found.id if unique else found.index))
    return found.sentence, f"{report.explain_command} {name} --out why.html"


def _drawings(graphs: Graphs, found: Sequence[Explanation | None]) -> Sequence[Figure | bytes]:
    """Small drawings: of molecules, where all are some, as chemists draw them, in colour."""
    molecules = [as_molecule(one) for one in graphs]
    if any(each is None for each in molecules):
        return draw_graphs(graphs)
    return [
        draw_molecule(molecule, np.zeros(one.n_nodes), np.zeros(one.n_edges), small=True)
        if explanation is None
        else draw_as_molecule(explanation, small=True) or b""
        for molecule, one, explanation in zip(molecules, graphs, found, strict=True)
    ]


# -- words and numbers -------------------------------------------------------------------------


def _noun(data: Data) -> str:
    if isinstance(data, Graphs):
        return "graph"
    return "document" if isinstance(data, Documents) else "example"


def _losses(predictions: Predictions) -> Floats:
    """Of every test; for numbers, the distance in units of each target's standard deviation."""
    if predictions.classes is not None:
        return log_losses(predictions.targets, predictions.outputs)
    true, predicted = _columns(predictions.targets), _columns(predictions.outputs)
    spread = np.nanstd(true, axis=0)
    misses = np.nan_to_num((predicted - true) / np.where(spread > 0, spread, 1))
    distance: Floats = np.linalg.norm(misses, axis=1)
    return distance


def _verdict(predictions: Predictions, test: int, loss: float, noun: str) -> str:
    """The truth about a test and its prediction."""
    if predictions.classes is None:
        true, predicted = _columns(predictions.targets)[test], _columns(predictions.outputs)[test]
        return f"true {_numbers(true)}, predicted {_numbers(predicted)}"
    target, outputs = predictions.targets[test], predictions.outputs[:, test]
    mean = outputs.mean(axis=0)
    predicted = int(mean.argmax())
    words = (
        f"true {short_label(predictions.classes[target], 40)}, "
        f"predicted {short_label(predictions.classes[predicted], 40)} "
        f"({100 * mean[predicted]:.0f}\u00a0%), loss {loss:.2f}"
    )
    if len(outputs) > 1:
        wrong = int((outputs.argmax(axis=1) != target).sum())
        words += f", wrong in {wrong} of {len(outputs)} repeats"
    if predictions.unique is not None:
        same = predictions.targets[predictions.unique == predictions.unique[test]]
        others = int((same != target).sum())
        if others:
            words += f"; {others} of {len(same)} {noun}s with identical parts have another class"
    return words


def _first_words(example: Documents | NestedData) -> str:
    """The first words of a document, or the first labels of nested data."""
    if isinstance(example, Documents):
        labels = example.words[: MAX_WORDS + 1].tolist()
    else:
        attributes = example.hierarchy.attributes
        assert attributes.codes is not None
        assert attributes.vocabulary is not None
        codes = attributes.codes[: MAX_WORDS + 1].tolist()
        labels = [attributes.vocabulary[code] for code in codes]
    words = [short_label(label, 24) for label in labels[:MAX_WORDS]]
    return " ".join([*words, "…"] if len(labels) > MAX_WORDS else words)


def _columns(values: ArrayLike) -> Floats:
    """Numbers of shape (n,) or (n, k) as (n, k)."""
    rows = np.asarray(values, dtype=np.float64)
    return rows.reshape(len(rows), -1)


def _numbers(values: Floats) -> str:
    shown = ", ".join(f"{value:.4g}" for value in values[:MAX_OUTPUTS].tolist())
    return f"{shown}, …" if len(values) > MAX_OUTPUTS else shown


def _percent(share: float) -> float | None:
    return None if np.isnan(share) else round(100 * float(share), 1)


def _first_rows(columns: list[str], rows: Sequence[Any], what: str = "classes") -> Table:
    """A table of the first rows, whose caption says what it leaves out."""
    more = f"the first {MAX_CLASSES} of {len(rows):,} {what}" if len(rows) > MAX_CLASSES else ""
    return Table(columns, rows[:MAX_CLASSES], more)
