"""The runtime of one training with and without compression, each in a process of its own.

    python -m saen.paper.timing '{"dataset": …, "preset": …, "collapsed": …, "epochs": …}'

prints one JSON object. `measure` calls it with a time limit and a memory limit, and tells running
out of either apart from other failures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np

OUT_OF_MEMORY = 77
"""Exit code of a training that ran into its memory limit."""


def measure(
    dataset: str,
    preset: str,
    *,
    collapsed: bool,
    epochs: int,
    time_limit: float | None,
    memory_limit: int,
) -> dict[str, Any]:
    """Seconds and entries of one training, or `{"failed": "TO"}` or `{"failed": "OOM"}`."""
    request = {
        "dataset": dataset,
        "preset": preset,
        "collapsed": collapsed,
        "epochs": epochs,
        "memory_limit": memory_limit,
    }
    command = [sys.executable, "-m", "saen.paper.timing", json.dumps(request)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return {"failed": "TO"}
    if done.returncode == OUT_OF_MEMORY or done.returncode == -9:
        return {"failed": "OOM"}
    if done.returncode:
        return {"failed": f"exit code {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _train(dataset: str, preset: str, collapsed: bool, epochs: int) -> dict[str, Any]:
    """One network of the preset on the whole dataset at once: seconds of the epochs."""
    from saen.compression import compress_graphs
    from saen.datasets import load_dataset
    from saen.estimators import SAENClassifier
    from saen.presets import load_preset
    from saen.tasks import Task
    from saen.training import train

    graphs = load_dataset(dataset)
    assert graphs.targets is not None
    settings = load_preset(preset).settings(dataset) | {"n_models": 1, "batch_size": "all"}
    estimator = SAENClassifier(**settings, device="cpu")
    decomposition = estimator._chosen_decomposition(graphs).fit(graphs)
    structures: Any = (
        compress_graphs(graphs, decomposition, lower_classes=False)
        if collapsed
        else decomposition.decompose(graphs)
    )
    hierarchy = structures.hierarchy if collapsed else structures
    classes, targets = np.unique(graphs.targets, return_inverse=True)
    loss = "binary" if len(classes) == 2 else "classes"
    weights = np.ones((len(graphs), 1))
    task = Task(loss, targets, weights, n_classes=len(classes))  # type: ignore[arg-type]
    network = estimator._network(hierarchy, task.n_outputs, [0])
    moments: list[float] = []
    train(
        network,
        structures,
        task,
        estimator._settings(len(graphs), 0),
        min_count=estimator.min_count,
        until=epochs + 1,
        progress=lambda epoch, history: moments.append(perf_counter()),
    )
    # The first epoch builds the matrices and is not counted, in either case.
    return {
        "seconds": moments[-1] - moments[0],
        "epochs": epochs,
        "entries": sum(relation.n_entries for relation in hierarchy.relations),
    }


def main() -> None:
    """Train as the argument says and print what was measured."""
    request = json.loads(sys.argv[1])
    limit = request.pop("memory_limit")
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except ImportError:  # Windows has no such limit
        pass
    try:
        print(json.dumps(_train(**request)))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or "memory" in str(error).lower():
            sys.exit(OUT_OF_MEMORY)
        raise


if __name__ == "__main__":
    main()
