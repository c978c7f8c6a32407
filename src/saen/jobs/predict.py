"""Predict or embed a dataset with a saved model, a few examples at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from saen._util.arrays import Array, Floats
from saen._util.atomic import check_output
from saen._util.digests import file_checksum
from saen._util.progress import bar
from saen._util.strings import plural
from saen.data.collection import concatenate_values, known_targets, n_targets
from saen.errors import FileError
from saen.io.embeddings import FORMATS as EMBEDDING_FORMATS
from saen.io.embeddings import Embedded, write_embeddings
from saen.io.options import ReadOptions
from saen.io.result_tables import FORMATS, beside, check_format, open_table
from saen.io.sources.local import input_files
from saen.io.store import container
from saen.jobs.job import kept_columns, load_input, stream_input
from saen.jobs.store import digest, versions
from saen.learning.estimators import Estimator
from saen.learning.files import load_estimator
from saen.learning.metrics import prediction_scores, several_scores
from saen.learning.models.networks import NotFiniteError
from saen.learning.prediction import Predicted, embed_chunks, level_number, predict_chunks
from saen.learning.problem import Targets
from saen.network.devices import choose_device

SHARES = ("overlaps_training", "unlike_training")
"""Columns of which a report has the shares."""


@dataclass(frozen=True)
class PredictionReport:
    """What `predict_dataset` wrote.

    - `unseen`: share of the bottom objects, called `bottom`, with labels unknown to the model;
    - `scores`: how well predictions match targets, empty where there are none; of several targets
      means, and under `targets` those of each by name;
    - `scored`: how many examples these are about;
    - `not_scored`: which targets were not compared, and why, in one line;
    - `training`: whether the model was trained on these examples, so that scores are no estimate;
      of files that are read in parts, this is not known;
    - `nearest`: the shares of examples that have all parts of a training graph (`identical`), that
      overlap with training graphs, and that are unlike them, of a model that knows these;
    - `seconds`: what reading, predicting and writing took.
    """

    out: str
    structures: int
    takes: str
    bottom: str
    unseen: float
    scores: dict[str, Any]
    seconds: float
    not_scored: str = ""
    scored: int = 0
    training: bool = False
    nearest: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Output, number of examples, share of unseen labels, seconds and scores."""
        counts = {"out": self.out, "structures": self.structures, "unseen": self.unseen}
        scores = {**self.scores, "scored": self.scored} if self.scores else {}
        scores |= {"training": True} if self.training else {}
        reason = {"not_scored": self.not_scored} if self.not_scored else {}
        return {**counts, "seconds": self.seconds, **scores, **reason, **self.nearest}


@dataclass(frozen=True)
class EmbeddingReport:
    """What `embed_dataset` wrote: `rows` vectors of `width`, of the objects of a level."""

    out: str
    level: int
    name: str
    rows: int
    width: int

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))


def load_model(
    path: str | Path, device: str = "auto", *, vectors: str | Path | None = None
) -> Estimator:
    """A saved model, moved to a device; `vectors` as for `saen.load`."""
    if Path(path).is_file() and not container.is_container(path):
        raise FileError("not a saen file: the model comes first, then the data", path=path)
    model: Estimator = load_estimator(path, vectors=vectors)
    if model.decomposition_ is None:
        raise FileError(
            "this model was fitted on hierarchies, not on data that can be decomposed: use it in "
            "Python",
            path=path,
        )
    model.fitted_.to(choose_device(device))
    return model


def model_facts(model: Estimator) -> dict[str, Any]:
    """What a fitted model consists of: networks and epochs, or columns, depth and C of part counts.

    Of a blend: its members, and all candidates that were tried.
    """
    return model.fitted_.describe() | ({"tried": model.tried_} if model.tried_ else {})


def describe_use(model: Estimator, file: Path, data: str) -> dict[str, Any]:
    """Which model looks at which data: its file, its facts, and the versions of the libraries."""
    about = {"model": file.name, "data": data, "estimator": type(model).__name__}
    return {**about, **model_facts(model), **versions()}


def load_for_model(model: Estimator, data: str, reading: ReadOptions, model_file: Path) -> Any:
    """Data for a model, read as those that it was trained on."""
    like = replace(reading, like=model.origin_.reading)
    return load_input(data, model.fitted_.takes, like, str(model_file))


def _stream_examples(
    model: Estimator,
    data: str,
    reading: ReadOptions | None,
    model_file: Path,
    *,
    keep: bool = False,
) -> Iterator[Any]:
    """What `load_for_model` loads, in parts if the format allows it, or whole to keep columns."""
    like = replace(
        reading or ReadOptions(), like=model.origin_.reading, partial_targets=True, all_columns=keep
    )
    return stream_input(data, model.fitted_.takes, like, str(model_file), whole=keep)


def predict_dataset(
    model_file: Path,
    data: str,
    out: Path | None,
    reading: ReadOptions | None = None,
    *,
    device: str = "auto",
    keep: Sequence[str] = (),
    force: bool = False,
    vectors: Path | None = None,
) -> PredictionReport:
    """Predict a dataset and write one row per example to `out`, or to standard output as CSV.

    A row has the example's id, and the columns of `predict_chunks`. `keep` names columns of the
    input to copy, after the id; `["all"]` copies all of them. `vectors` is the file of word vectors
    of a model that was trained with one. An existing file is overwritten only with `force`.
    """
    if out is not None:
        check_format(out, FORMATS)
        check_output(out, force=force, inputs=input_files(model_file, data, vectors))
    model = load_model(model_file, device, vectors=vectors)
    parts = _stream_examples(model, data, reading, model_file, keep=bool(keep))
    known: list[bool] = []
    parts = (_noted(part, model, known) for part in parts)
    with bar("predicting", None) as update:
        report = write_predictions(
            model, out, _predicted_rows(model, parts, keep, reading or ReadOptions(), update)
        )
    own_file = Path(data).is_file() and file_checksum(Path(data)) == model.origin_.about.get("file")
    report = replace(report, training=own_file or known == [True])
    wanted = reading.target if reading is not None else None
    if wanted and not report.scores and not report.not_scored:
        return replace(report, not_scored=f"the data have no values of target {wanted!r}")
    return report


def _noted(part: Any, model: Estimator, known: list[bool]) -> Any:
    """The part, once it is noted whether it is what the model was trained on."""
    known.append(_trained_on(model, part))
    return part


def _trained_on(model: Estimator, data: Any) -> bool:
    size, checksum = (model.origin_.about.get(key) for key in ("examples", "checksum"))
    return len(data) == size and digest(data) == checksum


def own_score(model: Estimator, data: Any) -> str:
    """Where the model was trained on these data, its score on inner folds and what that is."""
    scores = model.origin_.about.get("out_of_fold", {})
    if not _trained_on(model, data):
        return ""
    if "accuracy" in scores:
        return f"{100 * scores['accuracy']:.1f} %, accuracy out of fold"
    return f"{scores['mae']:.3g}, mean absolute error out of fold" if "mae" in scores else ""


def write_predictions(
    model: Estimator,
    out: Path | None,
    rows: Iterable[tuple[Predicted, Array | None, tuple[str, ...]]],
) -> PredictionReport:
    """Write predictions as they come, with ids; they are compared with targets, if known.

    `rows` are predictions, the targets of these examples and the names of targets.
    """
    start = perf_counter()
    compared = model.fitted_.targets.compared()
    predicted: list[dict[str, Array]] = []
    targets: list[Array] = []
    names: tuple[str, ...] = ()
    done = unseen = objects = 0
    nearest: Counter[str] = Counter()
    with open_table(out) as write:
        for each, known, own_names in rows:
            write(each.columns, each.copied)
            done += len(each.columns["id"])
            unseen, objects = unseen + each.unseen, objects + each.objects
            if "similarity" in each.columns:
                nearest["identical"] += int((each.columns["similarity"] == 1).sum())
                nearest.update({key: int(each.columns[key].sum()) for key in SHARES})
            if known is not None and {*compared} <= {*each.columns}:
                some = known_targets(known).any(axis=tuple(range(1, known.ndim)))
                if some.any() and (not targets or known.shape[1:] == targets[0].shape[1:]):
                    predicted.append({key: each.columns[key][some] for key in compared})
                    targets.append(known[some])
                    names = own_names
    scored = Scored({}, "")
    if predicted:
        joined = {key: np.concatenate([part[key] for part in predicted]) for key in compared}
        scored = score_predictions(
            model.fitted_.targets, joined, concatenate_values(targets), names
        )
    return PredictionReport(
        "-" if out is None else str(out),
        done,
        model.fitted_.takes,
        model.schema_.names[0],
        unseen / objects if objects else 0.0,
        scored.scores,
        perf_counter() - start,
        scored.not_scored,
        scored.n_scored,
        nearest={key: nearest[key] / done for key in sorted(nearest)},
    )


def _predicted_rows(
    model: Estimator,
    parts: Iterable[Any],
    keep: Sequence[str],
    reading: ReadOptions,
    update: Callable[[int], object],
) -> Iterator[tuple[Predicted, Array | None, tuple[str, ...]]]:
    done = 0
    for part in parts:
        kept = kept_columns(part, keep, reading)
        try:
            for chunk in predict_chunks(model.fitted_, part):
                stop = chunk.start + len(next(iter(chunk.columns.values())))
                rows = slice(chunk.start, stop)
                copied = {name: column[rows] for name, column in kept.items()}
                targets = None if part.targets is None else part.targets[rows]
                nearest = nearest_columns(model, part[rows])
                computed = {"id": part.ids[rows], **chunk.columns, **nearest}
                columns = beside(copied, computed)
                own = tuple(columns.keys() - computed.keys())
                yield replace(chunk, columns=columns, copied=own), targets, part.target_names
                update(done + stop)
        except NotFiniteError as error:  # numbered within the part
            raise NotFiniteError(done + error.first, error.count) from None
        done += len(part)


def nearest_columns(model: Estimator, examples: Any) -> dict[str, Array]:
    """The nearest training graph of each of some examples, if the model knows these."""
    return (
        {} if model.origin_.training is None else model.origin_.training.nearest(examples).columns()
    )


def chosen_level(model: Estimator, level: str | None) -> tuple[int, str, bool]:
    """The number and the name of a level, None for the top, and whether it lies below the top."""
    schema = model.schema_
    number = schema.depth if level is None else level_number(schema, level)
    return number, schema.names[number], number < schema.depth


def embed_dataset(
    model_file: Path,
    data: str,
    out: Path,
    reading: ReadOptions | None = None,
    *,
    level: str | None = None,
    device: str = "auto",
    force: bool = False,
    vectors: Path | None = None,
) -> EmbeddingReport:
    """Write the learned vectors of the objects of a level: its number or name, None for the top.

    An existing file is overwritten only with `force`.
    """
    check_format(out, EMBEDDING_FORMATS)
    check_output(out, force=force, inputs=input_files(model_file, data, vectors))
    model = load_model(model_file, device, vectors=vectors)
    number, name, lower = chosen_level(model, level)
    parts = list(_stream_examples(model, data, reading, model_file))

    def chunks() -> Iterator[Embedded]:
        start = 0
        with bar("embedding", sum(map(len, parts))) as update:
            for part in parts:
                for chunk in embed_chunks(model.fitted_, part, number):
                    yield replace(chunk, graphs=chunk.graphs + start)
                    update(start + int(chunk.graphs[-1]) + 1 if len(chunk.graphs) else start)
                start += len(part)

    ids = concatenate_values([part.ids for part in parts])
    targets = [part.targets for part in parts if part.targets is not None]
    rows, width = write_embeddings(
        out,
        chunks(),
        ids,
        concatenate_values(targets) if len(targets) == len(parts) else None,
        name,
        lower=lower,
    )
    return EmbeddingReport(str(out), number, name, rows, width)


# -- scores of predictions, target by target -----------------------------------------------------

MAX_CLASSES = 10  # listed in one line


class Scored(NamedTuple):
    """Scores of predictions, and in one line what could not be scored, and why.

    `scores` are those of `prediction_scores`, or of several targets those of `several_scores`;
    `n_scored` is the number of examples that they are about.
    """

    scores: dict[str, Any]
    not_scored: str
    n_scored: int = 0


def score_predictions(
    model: Targets, columns: Mapping[str, Array], targets: Array, names: Sequence[str] = ()
) -> Scored:
    """Compare predictions with targets; of several targets, those of the same name.

    `columns` are those that are `compared`, (n,) each; `targets` (n,) or (n, t) with their `names`.
    """
    if not len(targets):
        return Scored({}, "")
    if model.several:
        return _several(model, columns, targets, names)
    classes, predictions = model.known_classes, columns["prediction"]
    known, unreadable = targets, 0
    if classes is None and targets.ndim == 1 and targets.dtype.kind == "U":
        numbers = _readable_numbers(targets)
        readable = np.isfinite(numbers)
        known, predictions = numbers[readable], predictions[readable]
        unreadable = len(targets) - len(known)
    scores = prediction_scores(classes, known, predictions)
    if scores:
        reason = f"{plural(unreadable, 'target')} that cannot be read as a number"
        return Scored(scores, reason if unreadable else "", len(known))
    predicted = "real numbers" if classes is None else _described(classes)
    found = _described(targets) if targets.ndim == 1 else _listed(targets, names)
    return Scored({}, f"the model predicts {predicted}, the data have {found}")


def _several(
    model: Targets, columns: Mapping[str, Array], targets: Array, names: Sequence[str]
) -> Scored:
    predicted = list(model.names)
    own = list(names) or ["target"] if targets.ndim == 1 else [*names] or _numbers(targets)
    if not {*predicted} & {*own}:
        known = _listed(targets, names)
        return Scored({}, f"the model predicts {', '.join(predicted)}, the data have {known}")
    table = targets.reshape(len(targets), -1)
    truth: dict[str, Array] = {}
    missing, other = [], []
    for place, name in enumerate(predicted):
        column = table[:, own.index(name)] if name in own else table[:0, 0]
        if not known_targets(column).any():
            missing.append(name)
            continue
        values = model.known(column, place)
        if values is None:
            other.append(name)
        else:
            truth[name] = values
    reasons = [f"{', '.join(missing)} (not in the data)"] if missing else []
    kind = model.choose("classes other than the model's", "not numbers")
    reasons += [f"{', '.join(other)} ({kind})"] if other else []
    if not truth:
        return Scored({}, "; ".join(reasons))
    outputs = dict(zip(predicted, (columns[key] for key in model.compared()), strict=True))
    scores = several_scores(
        np.column_stack([*truth.values()]),
        np.column_stack([outputs[name] for name in truth]),
        [*truth],
    )
    return Scored(scores, "; ".join(reasons), len(targets))


def _readable_numbers(texts: Array) -> Floats:
    """The numbers among some texts, NaN for the others."""
    out = np.full(len(texts), np.nan)
    for row, text in enumerate(texts.tolist()):
        with suppress(ValueError):
            out[row] = float(text)
    return out


def _described(values: Array) -> str:
    """What targets are: real numbers, or these classes."""
    if values.dtype.kind == "f":
        return "real numbers"
    classes = np.unique(values).astype(str).tolist()
    more = " …" if len(classes) > MAX_CLASSES else ""
    return f"the classes {', '.join(classes[:MAX_CLASSES])}{more}"


def _listed(targets: Array, names: Sequence[str]) -> str:
    return ", ".join(names) or f"{plural(n_targets(targets), 'target')} without names"


def _numbers(targets: Array) -> list[str]:
    """What targets without names are called."""
    return [*map(str, range(n_targets(targets)))]
