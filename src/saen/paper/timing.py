"""The runtime of one training with and without compression, each in a process of its own.

    python -m saen.paper.timing '{"dataset": …, "preset": …, "compressed": …, "epochs": …}'

prints one JSON object. `measure` calls it with a time limit and a memory limit, and tells running
out of either apart from other failures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from saen.data.graphs import Graphs
    from saen.data.hierarchy import Hierarchy

OUT_OF_MEMORY = 77
"""Exit code of a training that ran into its memory limit."""


def measure(
    dataset: str,
    preset: str,
    *,
    compressed: bool,
    epochs: int,
    time_limit: float | None,
    memory_limit: int,
) -> dict[str, Any]:
    """Seconds and entries of one training, or `{"failed": "TO"}` or `{"failed": "OOM"}`.

    `time_limit`: seconds of the whole process, which ends with them. `memory_limit`: bytes that
    decomposing and training may take, on top of the libraries and the loaded dataset.
    """
    request = {
        "dataset": dataset,
        "preset": preset,
        "compressed": compressed,
        "epochs": epochs,
        "memory_limit": memory_limit,
    }
    command = [sys.executable, "-m", "saen.paper.timing", json.dumps(request)]
    try:
        # On a timeout, `run` kills the process and waits for its end.
        done = subprocess.run(command, capture_output=True, text=True, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return {"failed": "TO"}
    if _ran_out_of_memory(done.returncode, done.stderr):
        return {"failed": "OOM"}
    if done.returncode:
        sys.stderr.write(done.stderr)
        return {"failed": f"exit code {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _ran_out_of_memory(code: int, errors: str) -> bool:
    """By itself, or because the system ended it, or by aborting somewhere below Python."""
    last_words = errors.strip().rpartition("\n")[2].lower()
    aborted = code < 0 and ("memory" in last_words or "bad_alloc" in last_words)
    return code in (OUT_OF_MEMORY, -9) or aborted


def _train(
    graphs: Graphs, settings: dict[str, Any], compressed: bool, epochs: int
) -> dict[str, Any]:
    """One network on the whole dataset at once: seconds of the epochs."""
    from saen.data.chunks import compress_graphs
    from saen.data.compression import Compressed
    from saen.learning.decomposing import Decompositions
    from saen.learning.models.networks import NetworkArguments, NetworkLearner
    from saen.network.loss import Task
    from saen.network.model import SAEN
    from saen.network.training import train

    assert graphs.targets is not None
    learner = NetworkLearner(NetworkArguments(**settings, device="cpu"))
    every = np.arange(len(graphs))
    decomposition = learner.spec.resolve(Decompositions(graphs), every).fit(graphs)
    data: Hierarchy | Compressed = (
        compress_graphs(graphs, decomposition, lower_inverse=False)
        if compressed
        else decomposition.decompose(graphs)
    )
    hierarchy = data.hierarchy if isinstance(data, Compressed) else data
    task = Task.classification(np.unique(graphs.targets, return_inverse=True)[1])
    moments: list[float] = []
    train(
        SAEN(learner.architecture(hierarchy, task.n_outputs)),
        data,
        task,
        learner.settings(0),
        min_count=learner.arguments.min_count,
        until=epochs + 1,
        progress=lambda epoch, history: moments.append(perf_counter()),
    )
    # The first epoch builds the matrices and is not counted, in either case.
    return {
        # The median epoch counts: a busy machine makes some of them many times as long.
        "seconds": epochs * float(np.median(np.diff(moments))),
        "epochs": epochs,
        "entries": sum(relation.n_entries for relation in hierarchy.relations),
    }


def _limit_memory(more: int) -> None:
    """Let this process take so many more bytes; where systems have no such limit, any number."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    limit = pages * resource.getpagesize() + more
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def main() -> None:
    """Train as the argument says and print what was measured."""
    from saen.io.loading import load_dataset
    from saen.learning.presets import load_preset

    request = json.loads(sys.argv[1])
    graphs = load_dataset(request["dataset"])
    settings = load_preset(request["preset"]).settings(request["dataset"])
    settings |= {"n_models": 1, "batch_size": "all"}
    # A small training first: libraries and threads that are loaded or started where they are first
    # needed fail in their own ways without memory, and are not what is measured.
    few = graphs[np.linspace(0, len(graphs) - 1, min(20, len(graphs))).astype(np.int64)]
    _train(few, settings, request["compressed"], epochs=1)
    _limit_memory(request["memory_limit"])
    try:
        print(json.dumps(_train(graphs, settings, request["compressed"], request["epochs"])))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or "memory" in str(error).lower():
            sys.exit(OUT_OF_MEMORY)
        raise


if __name__ == "__main__":
    main()
