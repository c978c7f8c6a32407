"""The datasets that are trained on, by name, and how training on them is planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.settings import Settings
from saen import Graphs, generate_threads, load_dataset
from saen.io.sources.local import locate

if TYPE_CHECKING:
    from saen.learning.estimators import SAENClassifier
    from saen.network import Task
    from saen.network.ensemble import Plan

THREADS = "threads"  # generated and small, for quick runs
LARGEST = "REDDIT-MULTI-12K"


def dataset_graphs(name: str) -> Graphs:
    """A dataset of the catalog, or generated graphs."""
    return generate_threads(60, seed=0) if name == THREADS else load_dataset(name)


def not_available(name: str) -> dict[str, str]:
    """Why a dataset is skipped."""
    return {"what": name, "reason": f"not available: set SAEN_DATA to the folder of {name}.zip"}


def available(
    names: Iterable[str], settings: Settings, *, further: Iterable[str] = ()
) -> tuple[list[str], list[dict[str, Any]]]:
    """Those that can be measured here, and a reason for each of the others.

    `further` are measured in full runs only; quick runs have one dataset.
    """
    if settings.quick:
        return [THREADS], []
    names = [*names, *(further if settings.full else ())]
    found = [name for name in names if locate(name)]
    skipped = [not_available(name) for name in names if name not in found]
    long = [{"what": name, "reason": "takes long: --full"} for name in further]
    return found, skipped + ([] if settings.full else long)


def empty_cache(name: str, folder: str | Path) -> dict[str, str]:
    """An environment whose cache is a folder, in which a dataset is found all the same."""
    place = locate(name)
    found = {} if place is None else {"SAEN_DATA": str(place.resolve().parent)}
    return {"SAEN_CACHE": str(folder), **found}


@dataclass(frozen=True)
class Problem:
    """Graphs, the codes of their classes (n,), and how a classifier trains on them.

    `n_batches` are the steps of an epoch over all graphs.
    """

    graphs: Graphs
    codes: Any
    decomposition: Any
    plan: Plan
    n_batches: int

    def task(self, n_models: int) -> Task:
        """Learn the classes of all graphs with every network."""
        from saen.network import Task

        return Task.classification(self.codes, n_models=n_models)


def classifier(name: str, preset: str, **changes: Any) -> SAENClassifier:
    """The classifier of a preset, on the CPU unless `changes` say otherwise."""
    from saen.learning.estimators import SAENClassifier
    from saen.learning.presets import load_preset

    # Quick runs take the place of a dataset whose preset has mini-batches.
    settings = load_preset(preset).settings("IMDB-BINARY" if name == THREADS else name)
    return SAENClassifier(**{**settings, "device": "cpu", **changes})


def load_problem(name: str, preset: str, **changes: Any) -> Problem:
    """A dataset, with the plan of `classifier`."""
    from saen.learning.models.networks import NetworkLearner
    from saen.learning.splits import Fold
    from saen.network import Task

    estimator, graphs = classifier(name, preset, **changes), dataset_graphs(name)
    learner, every = estimator.learner(), np.arange(len(graphs))
    assert isinstance(learner, NetworkLearner)
    codes = np.unique(np.asarray(graphs.targets), return_inverse=True)[1]
    decomposed = estimator.prepare(graphs).decomposed(learner.spec, every)
    plan = learner.plan(decomposed.compressed, Task.classification(codes).n_outputs, 0)
    [run, *_] = learner._runs(Fold(every, every[:0], inner=()), 0)
    return Problem(graphs, codes, decomposed.decomposition, plan, run.n_batches)


def typical_step(moments: Sequence[float]) -> float:
    """The median time between moments, after the first step, which builds what others reuse."""
    return median(np.diff(moments)[1:].tolist())
