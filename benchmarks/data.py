"""The collections that are trained on, by name, and how they are prepared."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.settings import Settings
from saen import Graphs, catalog, generate_threads, load_dataset
from saen.io.loading import locate

if TYPE_CHECKING:
    from saen.learning.estimators import SAENClassifier
    from saen.network.loss import Task

THREADS = "threads"  # small, for quick runs
STAND_IN = "like REDDIT-MULTI-12K"


def collection(name: str) -> Graphs:
    """A dataset of the catalog or a generated collection."""
    if name == THREADS:
        return generate_threads(60, seed=0)
    if name != STAND_IN:
        return load_dataset(name)
    entry = catalog()["REDDIT-MULTI-12K"]
    assert entry.paper is not None
    size = {"n_classes": entry.classes, "average_nodes": entry.paper.average_nodes}
    return generate_threads(entry.graphs, **size)


def at_hand(names: Sequence[str], settings: Settings) -> tuple[list[str], list[dict[str, Any]]]:
    """Those that can be measured here, and a line for each of the others; quick runs have one."""
    if settings.quick:
        return [THREADS], []
    found = [name for name in names if name == STAND_IN or locate(name)]
    skipped = [
        {"what": name, "reason": f"not at hand: set SAEN_DATA to the folder of {name}.zip"}
        for name in names
        if name not in found
    ]
    return found, skipped


def classifier(name: str, preset: str, **changes: Any) -> SAENClassifier:
    """The classifier of a preset, on the CPU unless `changes` say otherwise."""
    from saen.learning.estimators import SAENClassifier
    from saen.learning.presets import load_preset

    # Quick runs stand in for a dataset whose preset has mini-batches.
    settings = load_preset(preset).settings("IMDB-BINARY" if name == THREADS else name)
    return SAENClassifier(**{**settings, "device": "cpu", **changes})


def classification(graphs: Graphs, n_models: int) -> Task:
    """Learn the classes of all graphs with every network."""
    from saen.network.loss import Task

    classes, targets = np.unique(np.asarray(graphs.targets), return_inverse=True)
    return Task(
        "binary" if len(classes) == 2 else "classes",
        targets,
        np.ones((len(graphs), n_models)),
        n_classes=len(classes),
    )


def typical_step(moments: Sequence[float]) -> float:
    """The median time between moments, after the first step, which builds what others use."""
    return median(np.diff(moments)[1:].tolist())
