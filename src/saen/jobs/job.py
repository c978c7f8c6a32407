"""`Job`: a dataset, and how to learn from it; `LoadedJob`: the job, once its data are read."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.base import is_regressor

from saen._util.arrays import Array
from saen._util.memory import peak_memory, resident_memory
from saen._util.strings import did_you_mean, some_of
from saen.data.collection import target_facts
from saen.errors import InputError
from saen.io.formats.molecules import SMILES
from saen.io.loading import data_kind, load_data, stream_data
from saen.io.options import ReadOptions
from saen.io.parsing.records import skipped_records
from saen.io.parsing.tables import split_names
from saen.io.sources.local import catalog_entry
from saen.jobs.groups import load_groups
from saen.jobs.notes import molecule_lines, name_lines, unused_by
from saen.learning.auto import DECOMPOSITION_OF
from saen.learning.estimators import Estimator
from saen.learning.models.base import Learner, Study
from saen.learning.parameters import arguments, validate
from saen.learning.presets import NAMES, Preset, load_preset
from saen.learning.problem import Problem
from saen.learning.splits import Fold

MANY_CLASSES, MIN_CLASS_SIZE = 20, 5
"""At least so many different integers with fewer examples each, on average, may be numbers."""
LONG = 10.0
"""Seconds from which on a training is announced."""
GAIN_PER_CORE = 0.6
"""Of twice as many cores, as a power: steps of networks and fits of counts do not all share."""


class ManyClassesWarning(UserWarning):
    """Integers that are read as classes look like numbers to predict."""


@dataclass(frozen=True)
class Job:
    """What to learn from, and how.

    Parameters
    ----------
    data : name of a dataset, or path of a file or folder.
    preset : name of a preset, or a .toml file.
    overrides : arguments of the estimator that replace the preset's; None changes nothing.
    seed : decides splits, initial weights and batches.
    device : `auto`, `cpu`, `cuda`, ….
    reading : how to read the data, such as which targets to learn.
    """

    data: str
    preset: str = "best"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    device: str = "auto"
    reading: ReadOptions = field(default_factory=ReadOptions)

    def load_preset(self) -> Preset:
        """The preset by its name."""
        return load_preset(self.preset)

    def settings(self) -> dict[str, Any]:
        """Arguments of the estimator: the preset's for this dataset, then the overrides.

        Where neither names a decomposition, it follows the kind of data.
        """
        entry = catalog_entry(self.data)
        preset = self.load_preset()
        settings = preset.settings("" if entry is None else entry.name)
        overrides = {key: value for key, value in self.overrides.items() if value is not None}
        for key in overrides:
            if not preset.accepts(key):
                others = [name for name in NAMES if load_preset(name).accepts(key)]
                raise InputError(
                    f"{key} does not apply to preset {preset.name}: choose preset "
                    f"{' or '.join(others)}"
                )
        follows = DECOMPOSITION_OF.get(data_kind(self.data))
        default = {} if follows is None else {"decomposition": follows}
        return default | settings | overrides

    def estimator(self, y: Array) -> Estimator:
        """The model to fit, for classes or for numbers."""
        preset, settings = self.load_preset(), self.settings()
        numbers = y.dtype.kind == "f"
        if numbers and "class_weight" in settings:
            raise InputError("the preset sets class_weight, but the targets are real numbers")
        kind: type[Any] = preset.regressor if numbers else preset.classifier
        names = {argument.name for argument in arguments(kind)}
        how = {"random_state": self.seed, "device": self.device}
        estimator: Estimator = kind(
            **settings, **{name: value for name, value in how.items() if name in names}
        )
        validate(estimator)
        return estimator

    def read(self, data: Any = None, *, all_columns: bool = False) -> LoadedJob:
        """The job with its data, which are loaded unless they are there already."""
        skipped: list[int | None] = []
        if data is None:
            with skipped_records(self.reading) as (reading, skipped):
                reading = replace(reading, all_columns=reading.all_columns or all_columns)
                data = replace(self, reading=reading).load()
        targets = check_targets(data, data.name or self.data, self.reading.target)
        return LoadedJob(self, data, targets, self.estimator(targets), skipped)

    def load(self) -> Any:
        """The data, of the kind that the decomposition reads."""
        takes = self.load_preset().classifier(**self.settings()).learner().spec.takes
        return load_input(self.data, takes, self.reading)


@dataclass(frozen=True)
class LoadedJob:
    """A job whose data are read: what is learned from which examples, by which estimator.

    `targets` are checked; `skipped` are the records of the source that are not among the data.
    """

    job: Job
    data: Any
    targets: Array
    estimator: Estimator
    skipped: Sequence[int | None]

    @property
    def name(self) -> str:
        """What the data are called."""
        return self.data.name or self.job.data

    def groups(self, by: str | None) -> Array | None:
        """The group of every example, None without any; see `load_groups`."""
        if by is None:
            return None
        return load_groups(by, self.job.data, self.data, self.job.reading, self.skipped)

    def problem(self, groups: Array | None = None) -> Problem:
        """What the estimator learns."""
        return Problem.of(
            self.targets,
            regression=is_regressor(self.estimator),
            groups=groups,
            names=self.data.target_names,
        )

    def notes(self, groups: str | None, command: str) -> list[str]:
        """What the estimator ignores of the data, and what is said of molecules.

        Scaffolds are told of where a `command` is given that has no groups.
        """
        job, data, reading = self.job, self.data, self.job.reading
        targets = ["target", "label"]
        if reading.target:  # one name, which may have commas, or several
            targets = [reading.target, *split_names(reading.target)]
        ids = ["id", "name"] if reading.id is None else [reading.id]
        read = [reading.smiles or SMILES, groups or "", *ids, *targets, *data.target_names]
        labels = str(self.estimator.get_params().get("node_labels") or "auto")
        return [
            *name_lines(data, labels),
            *unused_by(self.estimator.learner(), data, read=read),
            *molecule_lines(job.data, data, reading, self.skipped, command=command),
        ]


def load_input(
    name: str,
    takes: str,
    reading: ReadOptions | None = None,
    reader: str = "this decomposition",
) -> Any:
    """Load data of the kind that a decomposition or model reads: graphs, documents or nested.

    `reader` is what reads it, for the message where the data are of another kind.
    """
    _check_kind(name, takes, reader)
    return load_data(name, takes, reading)


def _check_kind(name: str, takes: str, reader: str) -> None:
    if takes != "graphs" and data_kind(name) != takes:
        raise InputError(f"{reader} reads {takes}, but {name} holds {data_kind(name)}")


def stream_input(
    name: str,
    takes: str,
    reading: ReadOptions | None = None,
    reader: str = "this decomposition",
    *,
    whole: bool = False,
) -> Iterator[Any]:
    """What `load_input` loads, in parts where the format allows it, unless it is wanted `whole`."""
    _check_kind(name, takes, reader)
    if whole:
        yield load_data(name, takes, reading)
    else:
        yield from stream_data(name, takes, reading)


def kept_columns(examples: Any, keep: Sequence[str], reading: ReadOptions) -> dict[str, Array]:
    """Columns of the input, by name, in any case; `["all"]` are all of them.

    A name may be several, as `split_names` reads them. A column `id` is left out where it is what
    the examples are called by.
    """
    columns = dict(getattr(examples, "extra", None) or {})
    if reading.id in (None, "id"):
        columns.pop("id", None)
    in_any_case = {name.casefold(): name for name in columns} | {name: name for name in columns}
    wanted = [*columns] if list(keep) == ["all"] else [name.strip() for name in keep]
    each = [[name] if name.casefold() in in_any_case else split_names(name) for name in wanted]
    names = [in_any_case.get(n, in_any_case.get(n.casefold(), n)) for own in each for n in own]
    names = [*dict.fromkeys(names)]
    names = [name for name in names if name in columns or name != "id"]  # which is there anyway
    for name in names:
        if name not in columns:
            known = f"choose from {', '.join(columns)}" if columns else "there are none to keep"
            raise InputError(f"no column {name!r} to keep{did_you_mean(name, columns)}: {known}")
    return {name: columns[name] for name in names}


def check_targets(data: Any, name: str, chosen: str | None) -> Array:
    """Classes or real numbers, (n,), or (n, t); an error where there is nothing to learn.

    `chosen` is what the user calls the targets.
    """
    y: Array | None = data.targets
    n = len(data)
    if n == 0:
        raise InputError(f"{name} is empty: there is nothing to learn from")
    if y is None and n == 1:
        raise InputError(
            f"{name} is a single example: models learn from many that have a target each (nodes "
            "and edges of one graph are not predicted)"
        )
    if y is None and chosen is not None:
        raise InputError(f"{name}: target {chosen!r} has no values")
    if y is None:
        columns = some_of([each for each in data.extra or {} if each.casefold() != SMILES])
        found = f" (columns: {columns})" if columns else ""
        raise InputError(f"{name} has no targets to learn: name the column with target=…{found}")
    if y.ndim == 2:
        for target, facts in target_facts(y, data.target_names).items():
            if not facts["known"]:
                raise InputError(f"{name}: target {target!r} has no values: leave it out")
        return y
    if y.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(y).reshape(n, -1).all(axis=1))
        if len(bad):
            raise InputError(
                f"{name}: target {bad[0]} is not a finite number (and {len(bad) - 1:,} others)"
            )
        if (y == y[0]).all():
            raise InputError(f"{name}: all {n:,} targets are {y[0]}, there is nothing to learn")
        return y
    n_classes = len(np.unique(y))
    if n_classes == 1:
        raise InputError(f"{name}: all {n:,} targets are {y[0]}, there is nothing to learn")
    if y.dtype.kind in "iu" and n_classes >= MANY_CLASSES and n < MIN_CLASS_SIZE * n_classes:
        warnings.warn(
            f"{name}: {n_classes:,} different integers as targets of {n:,} examples are read as "
            'classes: if they are numbers, use task="regression"',
            ManyClassesWarning,
            stacklevel=2,
        )
    return y


# -- what a training will take, told before it begins if that is long -----------------------------


def forecast(learner: Learner, study: Study, times: int = 1) -> tuple[float, int | None]:
    """Seconds, for so many folds, and peak memory in bytes, None if the system does not say.

    Of training on all examples, which this decomposes.
    """
    cost = learner.cost(study, [Fold(np.arange(len(study.data)), np.arange(0))])
    seconds = times * cost.seconds / cpu_count() ** GAIN_PER_CORE
    now, peak = resident_memory(), peak_memory()
    if now is None or peak is None:
        return seconds, None
    return seconds, max(peak, int(now + cost.kept + cost.working))


def forecast_line(learner: Learner, study: Study, times: int = 1) -> str | None:
    """The same in words, None for a short training."""
    seconds, memory = forecast(learner, study, times)
    if seconds < LONG:
        return None
    time = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
    space = "" if memory is None else f" and {max(memory / 1e9, 0.1):.1f} GB of memory"
    return f"training will take about {time}{space}"
