"""Train a model on a dataset, with an estimate of how good it is, and write it to one file."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from saen._util.arrays import Array, Floats, Ints
from saen._util.atomic import atomic_write, check_output, is_special, remove_folder
from saen._util.json_files import read_json, write_json
from saen._util.progress import bar
from saen._util.seeds import derive_seed
from saen.data._collection import class_counts
from saen.errors import FileError, InputError
from saen.io.loading import input_files
from saen.io.records import targets_for
from saen.learning.blend import BlendEstimator
from saen.learning.candidates import too_many
from saen.learning.jobs.compress import known_ceiling
from saen.learning.jobs.job import Job, check_targets, named_targets
from saen.learning.jobs.predict import model_facts
from saen.learning.metrics import (
    classification_scores,
    find_metric,
    regression_scores,
    several_scores,
)
from saen.learning.network_estimator import NetworkEstimator, fit_or_interrupt
from saen.learning.preparation import (
    CompressedExamples,
    Preparations,
    Prepared,
    is_compressed,
    load_compressed,
    same_data,
)
from saen.learning.presets import Classifier, Model
from saen.learning.runs import RESUME, digest, has_begun, open_run, versions
from saen.learning.splits import SmallClassWarning, hold_out_splitter
from saen.learning.targets import encode_classes, target_names
from saen.learning.unused import unused_by

FINISHED = "finished.json"
"""What a run writes into its work folder before it writes the model."""


@dataclass(frozen=True)
class DataFacts:
    """What is learned from: the data, their decomposition, and what compression made of it.

    A blend tries several `candidates`: decomposition and levels are those of the first one, the
    ceiling is that of all.
    """

    name: str
    task: str
    structures: int
    classes: dict[str, int] | None
    decomposition: dict[str, Any] | None
    levels: list[dict[str, Any]]
    ceiling: float | None
    description: str
    candidates: int = 1

    def to_json(self) -> dict[str, Any]:
        """All but the one-line description."""
        return {key: value for key, value in vars(self).items() if key != "description"}


@dataclass(frozen=True)
class HoldOut:
    """How good a model is that learned from everything but a test part.

    - `takes`: the kind of data, such as graphs;
    - `test` (m,): the test examples; `duplicates` of them are identical to a training example, and
      `alike` look identical to one for the model;
    - `predictions`: probabilities (m, classes), or numbers (m,) or (m, k); of several targets, the
      probabilities of their second classes (m, t);
    - `scores`: accuracy or errors with intervals and baselines, as JSON; of several targets, means,
      and `targets` with those of each.
    """

    takes: str
    test: NDArray[np.int64]
    duplicates: int
    predictions: Floats
    scores: dict[str, Any]
    alike: int = 0

    def to_json(self) -> dict[str, Any]:
        """Scores, test examples and duplicates."""
        counts = {"duplicates": self.duplicates, "look_identical": self.alike}
        return {**self.scores, "test": self.test.tolist(), **counts}


@dataclass(frozen=True)
class FitReport:
    """A training: the model and the data, what is known about them, and where the model is.

    `rows` (n,) are equal where examples look identical to the model.
    """

    facts: DataFacts
    held_out: HoldOut | None
    model: Model
    data: Any
    rows: Ints
    path: Path
    bytes: int
    settings: dict[str, Any]
    seed: int
    seconds: dict[str, float]

    @property
    def inner_metric(self) -> str:
        """What the inner scores of a blend's candidates are."""
        name = self.model.metric if isinstance(self.model, BlendEstimator) else None
        return find_metric(name, regression=self.facts.task == "regression").title

    def to_json(self) -> dict[str, Any]:
        """Facts about the data, scores on the held-out part, the model, and times."""
        return {
            **self.facts.to_json(),
            "settings": self.settings,
            "seed": self.seed,
            **({} if self.held_out is None else {"held_out": self.held_out.to_json()}),
            "model": str(self.path),
            "bytes": self.bytes,
            **model_facts(self.model),
            "seconds": self.seconds,
        }


Notify = Callable[[str | DataFacts | HoldOut], object]
"""Called with messages, and with results as soon as they are known."""


def train_model(
    job: Job,
    out: str | Path,
    *,
    test_size: float | None = 0.1,
    force: bool = False,
    limited: bool = False,
    notify: Notify | None = None,
) -> FitReport:
    """Train on a part and test on the rest, then train on everything and write the model.

    Parameters
    ----------
    job : what to learn from, and how; data that `saen compress` wrote stay in their file, and
        batches are cut from it.
    out : the file to write the model to; what an interrupted run has done is kept beside it.
    test_size : share of the data to hold out for the estimate, None for no estimate.
    force : overwrite `out`, and discard an interrupted run with other settings.
    limited : train preset `modern` in place of a blend on large data.
    notify : called with messages, and with results as soon as they are known.

    >>> out = getfixture("tmp_path") / "threads.saen"
    >>> report = train_model(Job("threads", overrides={"epochs": 1}), out)
    >>> report.held_out.test.shape, out.exists()
    ((30,), True)
    """
    say = notify or (lambda _: None)
    out = Path(out)
    done = not force and _is_finished(out)
    check_output(out, force=force or done, inputs=input_files(job.data))
    seconds: dict[str, float] = {}
    compressed = is_compressed(job.data)
    if compressed:
        job = _job_on_compressed(job, say)
    read: dict[str, str] = {}
    job = replace(job, reading=replace(job.reading, remember=read.__setitem__))
    with _timed(seconds, "load"):
        data = _load_compressed(job) if compressed else job.load()
    name = data.name or job.data
    y = check_targets(data, name)
    if limited and job.load_preset().model == "blend" and (much := too_many(data)):
        say(f"note: {much}: preset modern is used, --preset best would try many models")
        job = replace(job, preset="modern", overrides={**job.overrides, "budget": None})
    settings = job.settings()
    estimator: Model = job.estimator(y)
    named = named_targets(y, data.target_names)
    test = None if test_size is None else _draw_test(y, test_size, job.seed, estimator.spec.takes)
    recorded = {
        "data": digest(data),
        "settings": settings,
        "seed": job.seed,
        "test_size": test_size,
        "device": job.device,
        "versions": versions(),
    }
    run = digest(json.dumps(recorded, sort_keys=True))
    with _work_folder(out, recorded, force, say) as folder:
        with _timed(seconds, "compress"), bar("compressing", len(data)) as update:
            prepared = estimator.prepare(data, progress=update)
            main, rows, n_candidates = _seen(estimator, prepared)
        facts = _describe(data, name, y, main, rows, n_candidates)
        say(facts)
        for line in unused_by(estimator, data, smiles=job.reading.smiles):
            say(f"note: {line}")
        held_out = None
        if test is not None:
            with _timed(seconds, "hold out"):
                ready = _fitted_without(estimator, prepared, data, test)
                kinds = same_data(data, rows), rows
                held_out = _hold_out(estimator, ready, named, test, kinds, folder, run)
            say(held_out)
        with _timed(seconds, "train"):
            model = _fit_resumable(estimator, prepared, named, None, folder / "model.checkpoint")
        model.reading_ = read
        size = out.stat().st_size if done else _write_model(model, out, folder)
    return FitReport(facts, held_out, model, data, rows, out, size, settings, job.seed, seconds)


def _job_on_compressed(job: Job, say: Callable[[str], object]) -> Job:
    """The job on a compressed hierarchy, whose parts are what they are: a blend needs others."""
    for key in ("decomposition", "radii", "node_labels"):
        if job.overrides.get(key) is not None:
            raise InputError(
                f"{job.data} is compressed already: leave out {key.replace('_', '-')}, or give it "
                "to saen compress"
            )
    job.reading.only(job.data)
    if job.load_preset().model != "blend":
        return job
    say("note: blends try several decompositions, these data have one: preset modern is used")
    return replace(job, preset="modern")


def _load_compressed(job: Job) -> CompressedExamples:
    data = load_compressed(job.data)
    if job.reading.task is None or data.targets is None:
        return data
    return replace(data, targets=targets_for(data.targets, job.reading.task))


def _seen(estimator: Model, prepared: Prepared | Preparations) -> tuple[Prepared, Ints, int]:
    """What facts are about, equal numbers for identical examples, and the number of candidates.

    The only decomposition; or that of a blend's first candidate, to all of which examples must
    look identical.
    """
    if isinstance(prepared, Prepared):
        return prepared, prepared.compressed.top, 1
    assert isinstance(estimator, BlendEstimator)
    candidates = estimator.listed(prepared.data)
    main = prepared.of(candidates[0].estimator)
    return main, estimator.identical(prepared), len(candidates)


def _fitted_without(
    estimator: Model, prepared: Prepared | Preparations, data: Any, test: NDArray[np.int64]
) -> Prepared | Preparations:
    """The data as prepared, but with bins of attributes that have not seen the test part."""
    if isinstance(prepared, Preparations) or not estimator.spec.learns_bins:
        return prepared
    train = np.setdiff1d(np.arange(len(data)), test)
    return Preparations(data).fitted_on(estimator, train)


def _write_model(model: Model, out: Path, folder: Path) -> int:
    """Write the model, and return its size.

    A run that is stopped between that and its end finds it done when it is repeated.
    """
    made = folder / "model.saen"
    size = model.save(made)
    write_json(folder / FINISHED, {"model": _file_digest(made)}, sealed=True)
    with atomic_write(out) as temporary:
        shutil.copyfile(made, temporary)
    return size


def _is_finished(out: Path) -> bool:
    """Whether OUT is the model of a run that was stopped between writing it and its end."""
    marker = _work_place(out) / FINISHED
    try:
        known = read_json(marker, sealed=True) if marker.is_file() else {}
        return out.is_file() and known.get("model") == _file_digest(out)
    except (FileError, OSError):
        return False


def _work_place(out: Path) -> Path:
    return out.parent / f".{out.name}.run"  # `with_name` would refuse . and /


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _draw_test(y: Array, share: float, seed: int, takes: str) -> NDArray[np.int64]:
    """The examples to test on, stratified by class if each class can be on both sides.

    Otherwise they are random ones, after one of each class, which training keeps.
    """
    if not 0 < share < 1:
        raise InputError(f"test_size must be between 0 and 1, not {share:g}")
    state = derive_seed(seed, "hold out") % 2**31
    n, n_test = len(y), int(np.ceil(share * len(y)))
    advice = "choose another --test-size, or --no-holdout"
    refusal = InputError(f"cannot hold out {n_test} of {n} {takes}: {advice}")
    stratified = y.dtype.kind != "f" and y.ndim == 1
    if not stratified and min(n_test, n - n_test) < 2:
        raise refusal
    if stratified:
        classes, counts = np.unique(y, return_counts=True)
        if counts.max() < 2:
            raise InputError(
                f"every class has 1 member ({n:,} {takes}, as many classes), so none can be held "
                "out: check the targets, or use --no-holdout"
            )
        if counts.min() < 2 or min(n_test, n - n_test) < len(classes):
            shuffled = np.random.default_rng(state).permutation(n)
            rest = np.delete(shuffled, np.unique(y[shuffled], return_index=True)[1])
            if len(rest) < n_test:
                raise refusal
            reason = (
                f"class {str(classes[counts.argmin()])!r} has 1 member"
                if counts.min() < 2
                else f"{len(classes)} classes, but {n_test} of {n} {takes} are held out"
            )
            message = f"{reason}: the held-out part is random, not stratified by class"
            warnings.warn(message, SmallClassWarning, stacklevel=2)
            return np.sort(rest[:n_test])
    split = hold_out_splitter(n_test, state, stratified)
    test: NDArray[np.int64] = next(split.split(np.empty(n), y))[1]
    return np.sort(test)


@contextmanager
def _work_folder(
    out: Path, recorded: dict[str, Any], force: bool, say: Callable[[str], object]
) -> Iterator[Path]:
    """A folder beside OUT for what an interrupted run has done, removed when the run is over."""
    if is_special(out):  # there is no place beside a device
        with TemporaryDirectory() as scratch:
            yield Path(scratch)
        return
    place = _work_place(out)
    advice = "repeat its command to resume it, or start over with --force"
    entered = finished = False
    try:
        with open_run(place, recorded, anew=force, advice=advice) as folder:
            entered = True
            if has_begun(folder):
                say("resuming an interrupted run")
            try:
                yield folder
            except InputError:  # repeating the command would only repeat it
                finished = True
                raise
            finished = True
    finally:
        # After the lock is released: some systems do not remove what is open.
        if entered and (finished or not has_begun(place)):
            remove_folder(place)
        elif entered:
            say(RESUME)


def _fit_resumable(
    estimator: Model,
    prepared: Prepared | Preparations,
    y: Any,
    weights: Floats | None,
    checkpoint: Path,
) -> Model:
    """A fitted copy."""
    model: Model = clone(estimator)
    if isinstance(model, BlendEstimator):
        model.set_params(checkpoint=checkpoint)
    elif isinstance(model, NetworkEstimator):
        model.set_params(checkpoint=checkpoint, checkpoint_every=1)
    fit_or_interrupt(model, prepared, y, weights)
    return model


def _hold_out(
    estimator: Model,
    prepared: Prepared | Preparations,
    named: Any,
    test: NDArray[np.int64],
    kinds: tuple[Ints, Ints],
    folder: Path,
    run: str,
) -> HoldOut:
    """How good a model is that learned from all but the test part.

    `kinds` are equal for examples that are identical, and for those that look so to the model. It
    is kept in the folder with `run`, a digest of the data and settings that it belongs to.
    """
    file = folder / "held_out.json"
    known = read_json(file, sealed=True) if file.exists() else {}
    if known.pop("run", None) == run:
        known |= {key: np.array(known[key]) for key in ("test", "predictions")}
        return HoldOut(takes=estimator.spec.takes, **known)
    y = np.asarray(named)
    weights = np.ones(len(y))
    weights[test] = 0.0
    model = _fit_resumable(estimator, prepared, named, weights, folder / "held_out.checkpoint")
    if isinstance(model, Classifier):
        predictions = model.predict_proba(prepared)[test]
        scores = (
            classification_scores(y[test], predictions, model.classes_).to_json()
            if y.ndim == 1
            else several_scores(encode_classes(y)[1][test], predictions, target_names(named))
        )
    else:
        predictions = model.predict(prepared)[test]
        baseline = np.nanmean(y[weights > 0], axis=0)
        scores = regression_scores(y[test], predictions, baseline).to_json()
        if y.ndim == 2:
            scores |= several_scores(y[test], predictions, target_names(named))
    duplicates, alike = (int(np.isin(each[test], each[weights > 0]).sum()) for each in kinds)
    result = HoldOut(estimator.spec.takes, test, duplicates, predictions, scores, alike)
    kept = {"test": test.tolist(), "predictions": predictions.tolist()}
    kept |= {"run": run, "duplicates": duplicates, "alike": alike, "scores": scores}
    write_json(file, kept, sealed=True)
    return result


def _describe(
    data: Any, name: str, y: Array, prepared: Prepared, rows: Ints, candidates: int
) -> DataFacts:
    decomposition = prepared.decomposition
    return DataFacts(
        name=name,
        task="regression" if y.dtype.kind == "f" else "classification",
        structures=len(data),
        classes=class_counts(y).get("classes"),
        decomposition=None if decomposition is None else decomposition.settings(),
        levels=prepared.compressed.levels(),
        ceiling=known_ceiling(rows, y),
        description=repr(data).partition("(")[2][:-1],
        candidates=candidates,
    )


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    start = perf_counter()
    yield
    seconds[step] = perf_counter() - start
