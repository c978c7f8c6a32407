"""What a training step of a hundred networks on a GPU consists of, and the floor of each part.

Kernels are counted where they were started: the parts of a step are marked while one epoch is
profiled, and a kernel of the backward pass belongs to the part whose gradient it computes. What a
replayed step takes beyond the sum of its kernels are the gaps between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.data import available, load_problem, typical_step
from benchmarks.floor import Machine
from benchmarks.measure import Stopwatch, measure, measured
from benchmarks.report import check, table
from benchmarks.settings import Settings

if TYPE_CHECKING:
    import torch

TITLE = "A training step on the GPU"

DATASETS = ("COLLAB", "REDDIT-BINARY", "NCI1", "DD")
NETWORKS = 100
MIN_SHARE = 0.4
PARTS = ("aggregation", "moments", "dense layers", "loss", "optimiser", "rest")
EPOCHS = 6  # that are timed, after one eager and one recorded
MARK = "saen: "


# -- what is measured, in its own process ------------------------------------------------------


def step(dataset: str) -> dict[str, Any]:
    """Milliseconds of a step by part, its gaps, and the floor of every part."""
    import torch

    from saen.network.ensemble import choose_group_size

    watch = Stopwatch()
    problem = watch("load", lambda: load_problem(dataset, "paper", device="cuda"))
    size = choose_group_size(problem.plan, NETWORKS, problem.n_batches)
    replayed = watch("replay", _replayed, problem, size)
    kernels, work, steps = watch("profile", _profiled, problem, size)
    machine = Machine(torch.device("cuda"), runs=9)
    floors = {
        part: sum(machine.floor(*call) for call in calls) / steps for part, calls in work.items()
    }
    return {
        "seconds": watch.seconds,
        "dataset": dataset,
        "networks": size,
        "steps": steps,
        "step": replayed / steps,
        "kernels": {part: kernels.get(part, 0.0) / steps for part in PARTS},
        "floors": {part: floors.get(part, 0.0) for part in PARTS},
        "device": torch.cuda.get_device_name(),
    }


def _train(problem: Any, size: int, until: int, done: Callable[..., object]) -> None:
    from saen.network.training import train

    plan = problem.plan
    task = problem.task(size)
    network = plan.network(range(size))
    train(
        network,
        plan.compressed,
        task,
        plan.settings,
        min_count=plan.min_count,
        until=until,
        n_batches=problem.n_batches,
        progress=done,
    )


def _replayed(problem: Any, size: int) -> float:
    """Seconds of an epoch of recorded steps."""
    import torch

    moments: list[float] = []

    def done(*_: object) -> None:
        torch.cuda.synchronize()
        moments.append(perf_counter())

    _train(problem, size, 2 + EPOCHS, done)
    return typical_step(moments[1:])


def _profiled(problem: Any, size: int) -> tuple[dict[str, float], dict[str, list[Any]], int]:
    """Seconds of kernels by part, and the work of all calls, of one epoch of eager steps."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from saen.network.cuda_graphs import Recorder

    work: dict[str, list[Any]] = defaultdict(list)
    steps = 0

    def eager(_: Recorder, number: int, run: Callable[[], None]) -> None:
        nonlocal steps
        steps += 1
        run()

    profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])

    def done(epoch: int, *_: object) -> None:
        nonlocal steps
        torch.cuda.synchronize()
        if epoch == 2:
            work.clear()
            steps = 0
            profiler.start()
        if epoch == 3:
            profiler.stop()

    with patch.object(Recorder, "step", eager), _marked(work):
        _train(problem, size, 3, done)
    return _by_part(profiler.events()), work, steps


def _by_part(events: Any) -> dict[str, float]:
    """Seconds of kernels by the innermost mark around what started them."""
    of_sequence: dict[int, str] = {}
    backward = []
    seconds: dict[str, float] = defaultdict(float)
    for event in events:
        ancestors = list(_ancestors(event))
        marks = [a.name.removeprefix(MARK) for a in ancestors if a.name.startswith(MARK)]
        is_backward = any(a.name.startswith("autograd::engine") for a in ancestors)
        if marks and not is_backward and event.sequence_nr >= 0:
            of_sequence.setdefault(event.sequence_nr, marks[0])
        taken = sum(kernel.duration for kernel in event.kernels) / 1e6
        if not taken:
            continue
        if marks and not is_backward:
            seconds[marks[0]] += taken
        else:
            numbers = [a.sequence_nr for a in ancestors if a.name.startswith("autograd::engine")]
            backward.append((numbers[0] if numbers else -1, taken))
    for number, taken in backward:
        seconds[of_sequence.get(number, "rest")] += taken
    return dict(seconds)


def _ancestors(event: Any) -> Iterator[Any]:
    while event is not None:
        yield event
        event = event.cpu_parent


@contextmanager
def _marked(work: dict[str, list[Any]]) -> Iterator[None]:
    """Mark the parts of a step for the profiler, and note bytes and operations of every call."""
    from saen.network.aggregation import (
        Aggregation,
        DenseRows,
        NonEmptyRows,
        ProjectFirst,
        RunningMoments,
    )
    from saen.network.loss import Task
    from saen.network.model import SAEN, LaterLayers, Level
    from saen.network.sparse import SparseMatrix
    from saen.network.training import Adam

    marks: list[tuple[Any, str, str, Callable[..., Any] | None]] = [
        (SAEN, "forward", "dense layers", None),
        (SparseMatrix, "__matmul__", "aggregation", _product_work),
        (LaterLayers, "forward", "dense layers", _layers_work),
        (RunningMoments, "forward", "moments", None),
        (Level, "first_layer", "dense layers", None),
        (Task, "losses", "loss", None),
        (Task, "correct", "loss", None),
        (Adam, "step", "optimiser", _adam_work),
    ]
    aggregation: type[Aggregation]
    for aggregation in (DenseRows, NonEmptyRows, ProjectFirst):
        marks += [
            (aggregation, "moments", "moments", _moments_work),
            (aggregation, "linear", "dense layers", _linear_work),
        ]
    patches = [
        patch.object(owner, name, _marking(getattr(owner, name), part, count, work))
        for owner, name, part, count in marks
    ]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def _marking(function: Any, part: str, count: Any, work: dict[str, list[Any]]) -> Any:
    from torch.profiler import record_function

    @wraps(function)
    def marked(*arguments: Any, **options: Any) -> Any:
        with record_function(MARK + part):
            result = function(*arguments, **options)
        if count is not None:
            work[part] += count(result, *arguments)
        return result

    return marked


# Bytes that move, bytes of rows that are gathered, operations: forward and backward together,
# except for products.


def _product_work(product: torch.Tensor, matrix: Any, dense: torch.Tensor) -> list[Any]:
    entries = matrix.csr.values().numel()
    rows = matrix.csr.shape[0]
    moved = 4 * (dense.numel() + product.numel() + 2 * entries + rows)
    gathered = 4 * entries * dense.shape[1]
    return [(moved, gathered, 2 * entries * dense.shape[1])]  # the gradient is another product


def _moments_work(_: Any, __: Any, a: torch.Tensor, ___: Any) -> list[Any]:
    n = a.numel()
    return [(4 * n, 0, 4 * n), (8 * n, 0, 4 * n)]


def _linear_work(
    x: torch.Tensor, _: Any, a: torch.Tensor, weight: torch.Tensor, bias: Any
) -> list[Any]:
    n, operations = a.numel(), 2 * a.numel() * weight.shape[-1]
    return [(4 * (n + x.numel()), 0, operations), (4 * (2 * n + x.numel()), 0, 2 * operations)]


def _layers_work(_: Any, layers: Any, x: torch.Tensor, *__: Any) -> list[Any]:
    calls, sizes = [], [x.numel()]
    for weight in layers.weights:
        operations = 2 * sizes[-1] * weight.shape[-1]
        sizes.append(sizes[-1] // weight.shape[-2] * weight.shape[-1])
        n, m = sizes[-2:]
        calls += [(4 * (n + m), 0, operations), (4 * (2 * n + m), 0, 2 * operations)]
    return calls


def _adam_work(_: None, adam: Any, *__: Any) -> list[Any]:
    return [(4 * 7 * adam.mean.numel(), 0, 12 * adam.mean.numel())]


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """Only where there is a GPU."""
    import torch

    if not torch.cuda.is_available():
        return {"rows": [], "checks": [], "skipped": [{"what": TITLE, "reason": "no GPU"}]}
    names, skipped = available(DATASETS, settings)
    rows = measured({name: partial(measure, step, dataset=name) for name in names}, skipped)
    checks = [
        check(
            f"{row['dataset']}, a step of {row['networks']} networks: share of the floor",
            _share(row),
            MIN_SHARE,
            "",
            at_least=True,
        )
        for row in rows
    ]
    return {"rows": rows, "checks": [] if settings.quick else checks, "skipped": skipped}


def _share(row: Mapping[str, Any]) -> float:
    return sum(row["floors"].values()) / row["step"]


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    if not document["rows"]:
        return ""
    rows = []
    for row in document["rows"]:
        kernels = sum(row["kernels"].values())
        cells = [
            f"{1e3 * row['kernels'][part]:.3f} ({1e3 * row['floors'][part]:.3f})" for part in PARTS
        ]
        gaps = 1e3 * (row["step"] - kernels)
        rows.append(
            (
                row["dataset"],
                str(row["networks"]),
                f"{1e3 * row['step']:.3f}",
                *cells,
                f"{gaps:.3f}",
                f"{_share(row):.2f}",
            )
        )
    return "\n".join(
        [
            "Milliseconds of a step of the preset `paper`, forward and backward pass together, as "
            "recorded and replayed; of its kernels by part, with the floor in brackets; of the "
            "gaps between kernels; and the share of the step that all floors are.\n",
            table(("dataset", "networks", "step", *PARTS, "gaps", "share"), rows),
        ]
    )
