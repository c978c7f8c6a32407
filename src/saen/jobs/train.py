"""Train a model on a dataset, with an estimate of how good it is, and write it to one file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from saen._util.arrays import Ints
from saen._util.atomic import atomic_write, check_output, is_special, remove_folder
from saen._util.digests import file_checksum
from saen._util.json_files import read_json, write_json
from saen._util.progress import bar, timed
from saen._util.seeds import derive_seed
from saen.data.collection import class_counts
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.formats.registry import check_options
from saen.io.parsing.records import targets_for
from saen.io.sources.local import input_files
from saen.jobs.compress import known_ceiling
from saen.jobs.job import Job, LoadedJob, forecast_line
from saen.jobs.notes import stereo_lines
from saen.jobs.predict import model_facts
from saen.jobs.store import RESUME, RESUMING, digest, has_begun, open_run, versions
from saen.learning.decomposing import (
    CompressedExamples,
    Decompositions,
    is_compressed,
    load_compressed,
)
from saen.learning.estimators import Estimator, fit_problem
from saen.learning.evaluation import Evaluation, cross_validate
from saen.learning.files import Origin
from saen.learning.metrics import Metric
from saen.learning.models.base import Learner, Study
from saen.learning.overlap import TrainingGraphs
from saen.learning.parameters import clone_with
from saen.learning.problem import Problem
from saen.learning.splits import make_splits
from saen.network.devices import CPU, choose_device

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
class FitReport:
    """A training: the model and the data, what is known about them, and where the model is.

    - `job`: as it was done, which for compressed data is not as it was given;
    - `held_out`: on a part that was held out from another training, if that was asked for.
    """

    job: Job
    facts: DataFacts
    held_out: Evaluation | None
    model: Estimator
    data: Any
    path: Path
    bytes: int
    seconds: dict[str, float]

    @property
    def evaluation(self) -> Evaluation | None:
        """On what inner folds held out, None without any."""
        return self.model.evaluation_

    @property
    def takes(self) -> str:
        """The kind of data that the model reads: graphs, documents or nested."""
        return self.model.fitted_.takes

    @property
    def inner_metric(self) -> Metric:
        """What the inner scores of a blend's candidates are."""
        return self.model.learner().metric or self.model.fitted_.targets.metric()

    def to_json(self) -> dict[str, Any]:
        """Facts about the data, scores, the model, and times."""
        scores = {"out_of_fold": self.evaluation, "held_out": self.held_out}
        return {
            **self.facts.to_json(),
            "settings": self.job.settings(),
            "seed": self.job.seed,
            **{key: each.pooled_json() for key, each in scores.items() if each is not None},
            "model": str(self.path),
            "bytes": self.bytes,
            **model_facts(self.model),
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Estimate:
    """How good a model is, as soon as that is known: on held-out examples of this `kind`."""

    kind: str
    takes: str
    evaluation: Evaluation


Notify = Callable[[str | DataFacts | Estimate], object]
"""Called with messages, and with results as soon as they are known."""


def train_model(
    job: Job,
    out: str | Path,
    *,
    groups: str | None = None,
    hold_out: float | None = None,
    nearest: bool = False,
    force: bool = False,
    notify: Notify | None = None,
) -> FitReport:
    """Train on all data, estimate how good the model is, and write it to a file.

    The estimate comes from the training itself: what its inner folds hold out is predicted by
    models that have not seen it.

    Parameters
    ----------
    job : what to learn from, and how; data that `saen compress` wrote stay in their file, and
        batches are cut from it.
    out : the file to write the model to; what an interrupted run has done is kept beside it.
    groups : as for `Protocol`: examples of one group stay together in inner folds.
    hold_out : also train on all but this share of the data, and test on it.
    nearest : keep what the model needs to find the nearest training graph, see `saen.overlap`.
    force : overwrite `out`, and discard an interrupted run with other settings.
    notify : called with messages, and with results as soon as they are known.

    >>> out = getfixture("tmp_path") / "threads.saen"
    >>> report = train_model(Job("threads", "counts"), out)
    >>> report.evaluation.fold_of.shape, out.exists()
    ((1, 300), True)
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
    with timed(seconds, "load"):
        loaded = job.read(_load_compressed(job) if compressed else None)
    data, estimator = loaded.data, loaded.estimator
    group_of = loaded.groups(groups)
    problem = loaded.problem(group_of)
    test = None if hold_out is None else _draw_test(problem, hold_out, job.seed)
    recorded = {
        "data": digest(data, *([] if group_of is None else [group_of])),
        "settings": job.settings(),
        "seed": job.seed,
        "hold_out": hold_out,
        "nearest": nearest,
        "device": job.device,
        "versions": versions(),
    }
    learner = estimator.learner()
    prepared = estimator.prepare(data)
    with _work_folder(out, recorded, force, say) as folder:
        resumed, estimator = has_begun(folder), clone_with(estimator, run_dir=folder)
        with timed(seconds, "compress"), bar("compressing", len(data)) as update:
            prepared.progress = update
            facts = _describe(loaded, learner, prepared)
            prepared.progress = None
        say(facts)
        partial_model = out.with_suffix(".partial.saen")
        first = None if is_special(out) else learner.first_stage(prepared, np.arange(len(data)))
        if first is not None and not resumed:
            check_output(partial_model, force=force)
        if group_of is not None:
            sizes = np.unique(group_of, return_counts=True)[1]
            say(
                f"groups by {groups}: {len(sizes):,}, the largest {sizes.max():,} of {len(data):,} "
                "examples; no fold divides one"
            )
        if not compressed:
            for line in loaded.notes(groups, "saen train" if groups is None else ""):
                say(f"note: {line}")
        tried = learner.candidates(prepared, np.arange(len(data)))
        if all(each.learner.device == CPU for each in tried) and choose_device(job.device) != CPU:
            say("note: no networks are tried; part counts are trained on the CPU")
        with timed(seconds, "compress"):
            expected = forecast_line(learner, Study(prepared, problem, job.seed))
        if expected is not None:
            say(expected)
        held_out = None
        if test is not None:
            with timed(seconds, "hold out"), bar("training", 1) as update:
                held_out = cross_validate(
                    estimator,
                    prepared,
                    problem,
                    random_state=job.seed,
                    splits=[[(np.setdiff1d(np.arange(len(data)), test), test)]],
                    run_dir=folder,
                    progress=lambda done, total: update(done, total=total),
                )
            say(Estimate("held out", learner.spec.takes, held_out))
        known = None
        if nearest:
            with timed(seconds, "nearest"):
                known = TrainingGraphs.of(data)

        def fit(stage: Learner) -> Estimator:
            model: Estimator = clone_with(estimator)
            fit_problem(model, prepared, problem, stage, last=stage is learner)
            if model.evaluation_ is not None:
                same = prepared.same_data().astype(np.int64)
                model.evaluation_ = replace(model.evaluation_, same=same)
            about = _about(job.data, loaded, model.evaluation_)
            model.origin_ = Origin(read, about, known)
            return model

        def fit_first(stage: Learner) -> None:
            with timed(seconds, "part counts"):
                model = fit(stage)
            model.save(partial_model)
            say(_partial_line(model, partial_model))

        if first is not None:
            fit_first(first)
        try:
            with timed(seconds, "train"):
                estimator = fit(learner)
        except (KeyboardInterrupt, SystemExit):
            if first is not None:
                say(f"{partial_model} holds the model so far")
            raise
        if isinstance(data, Graphs):
            members = [each.model.decomposition for each in estimator.fitted_.members]
            labels = [getattr(each, "node_labels", "") for each in members]
            for line in stereo_lines(data, labels):
                say(f"note: {line}")
        if estimator.evaluation_ is not None:
            say(Estimate("out of fold", learner.spec.takes, estimator.evaluation_))
        size = out.stat().st_size if done else _write_model(estimator, out, folder)
        if first is not None:
            partial_model.unlink(missing_ok=True)
    return FitReport(job, facts, held_out, estimator, data, out, size, seconds)


def _partial_line(model: Estimator, path: Path) -> str:
    """The score of the first stage, and where its model is."""
    score = ""
    if model.evaluation_ is not None:
        metric = model.evaluation_.metrics[model.evaluation_.metric]
        mean = model.evaluation_.summary()["mean"]
        shown = "?" if mean is None else metric.show(mean) + metric.unit
        score = f": {metric.title} {shown} on inner folds"
    return f"part counts alone{score} ({path} until the rest is trained)"


def _about(source: str, loaded: LoadedJob, evaluation: Evaluation | None) -> dict[str, Any]:
    """What one looks up a model for: its data, their size, when it was made, and its score."""
    about = {
        "data": loaded.name,
        "examples": len(loaded.data),
        "checksum": digest(loaded.data),
        "date": datetime.now(UTC).date().isoformat(),
    }
    if Path(source).is_file():
        about["file"] = file_checksum(Path(source))
    if evaluation is not None:
        scores = evaluation.pooled()
        keys = ("accuracy", "roc_auc", "mae", "interval")
        about["out_of_fold"] = {key: scores[key] for key in keys if key in scores}
    return about


def _job_on_compressed(job: Job, say: Callable[[str], object]) -> Job:
    """The job on a compressed hierarchy, whose parts are what they are: a blend needs others."""
    for key in ("decomposition", "radii", "node_labels"):
        if job.overrides.get(key) is not None:
            raise InputError(
                f"{job.data} is compressed already: leave out {key.replace('_', '-')}, or give it "
                "to saen compress"
            )
    check_options(job.data, job.reading)
    if not job.load_preset().accepts("budget"):
        return job
    say("note: blends try several decompositions, these data have one: preset network is used")
    overrides = {key: value for key, value in job.overrides.items() if key != "budget"}
    return replace(job, preset="network", overrides=overrides)


def _load_compressed(job: Job) -> CompressedExamples:
    data = load_compressed(job.data)
    if job.reading.task is not None and data.targets is not None:
        data.targets = targets_for(data.targets, job.reading.task)
    return data


def _write_model(model: Estimator, out: Path, folder: Path) -> int:
    """Write the model, and return its size.

    A run that is stopped between that and its end finds it done when it is repeated.
    """
    made = folder / "model.saen"
    size = model.save(made)
    write_json(folder / FINISHED, {"model": file_checksum(made)}, sealed=True)
    with atomic_write(out) as temporary:
        shutil.copyfile(made, temporary)
    return size


def _is_finished(out: Path) -> bool:
    """Whether OUT is the model of a run that was stopped between writing it and its end."""
    marker = _work_place(out) / FINISHED
    try:
        known = read_json(marker, sealed=True) if marker.is_file() else {}
        return out.is_file() and known.get("model") == file_checksum(out)
    except (FileError, OSError):
        return False


def _work_place(out: Path) -> Path:
    return out.parent / f".{out.name}.run"  # `with_name` would refuse . and /


def _draw_test(problem: Problem, share: float, seed: int) -> Ints:
    """The examples to test on, stratified by class, and whole groups if there are any."""
    if not 0 < share < 1:
        raise InputError(f"hold_out must be between 0 and 1, not {share:g}")
    state = derive_seed(seed, "hold out") % 2**31
    try:
        [[(_, test)]] = make_splits(
            problem.targets.named(problem.values),
            1,
            1,
            state,
            test_size=share,
            groups=problem.groups,
        )
    except InputError as error:
        raise InputError(f"{error}: choose another hold_out=…, or leave it out") from None
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
    advice = "repeat its command to resume it, or start over with force=True"
    entered = finished = False
    try:
        with open_run(place, recorded, anew=force, advice=advice) as folder:
            entered = True
            if has_begun(folder):
                say(RESUMING)
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


def _describe(loaded: LoadedJob, learner: Learner, prepared: Decompositions) -> DataFacts:
    """Decomposition and levels of the first candidate, and the ceiling of all together."""
    every, y = np.arange(len(prepared)), loaded.targets
    candidates = learner.candidates(prepared, every)
    first = prepared.decomposed(candidates[0].learner.spec, every)
    rows = learner.identical(prepared, every)
    return DataFacts(
        name=loaded.name,
        task="regression" if y.dtype.kind == "f" else "classification",
        structures=len(prepared),
        classes=class_counts(y).get("classes"),
        decomposition=None if first.decomposition is None else first.decomposition.settings(),
        levels=first.compressed.levels(),
        ceiling=known_ceiling(rows, y),
        description=loaded.data.description,
        candidates=len(candidates),
    )
