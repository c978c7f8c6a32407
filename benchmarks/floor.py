"""How close the kernels of a training step come to the limits of the machine (a roofline).

The floor of a kernel is the largest of three times: for the bytes that it must read and write once,
at the rate at which this machine copies as many; for the rows that it gathers, at the rate at which
rows of a table in the cache are summed; for its operations, at the rate of a large matrix product.
The rates are measured with functions of torch, so a share can exceed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.data import available, load_problem
from benchmarks.measure import MeasurementError, measure
from benchmarks.report import check, table
from benchmarks.settings import Settings

if TYPE_CHECKING:
    import torch

    from saen.network.aggregation import Aggregation
    from saen.network.model import SAEN
    from saen.network.tensors import RelationTensors

TITLE = "Kernels against the roofline"

DATASETS = ("COLLAB", "REDDIT-BINARY", "NCI1")
NETWORKS = {"cpu": 10, "cuda": 100}  # trained at once
KERNELS = (
    "aggregate",
    "aggregate, backward",
    "linear map",
    "linear map, backward",
    "moments",
    "moments, backward",
)
MIN_SHARE = {"cpu": 0.4, "cuda": 0.3}  # of the measured time that the floor is
MATRIX_SIZE = {"cpu": 1024, "cuda": 8192}  # of the product that is timed
TABLE_BYTES = {"cpu": 1 << 18, "cuda": 1 << 23}  # of the table that rows are gathered from
COPIED_BYTES = {"cpu": (1 << 20, 1 << 29), "cuda": (1 << 24, 1 << 32)}  # minimum, maximum


# -- what is measured, in its own process ------------------------------------------------------


def kernels(datasets: list[str], device: str, runs: int) -> dict[str, Any]:
    """Rates of the machine, then seconds and floor of every kernel for a mini-batch and for all."""
    import torch

    from saen.network.memory import reused_memory

    start = perf_counter()
    with reused_memory():  # as in training
        machine = Machine(torch.device(device), runs)
        rows = [row for dataset in datasets for row in _rows(machine, dataset)]
    return {"seconds": {"kernels": perf_counter() - start}, "rates": machine.rates(), "rows": rows}


def _rows(machine: Machine, dataset: str) -> Iterator[dict[str, Any]]:
    """Seconds, floor and share of every kernel, all levels together."""
    for name, network, batch in _batches(dataset, machine.device.type):
        totals: dict[str, dict[str, float]] = {}
        for level, relation in enumerate(batch.tensors.relations, start=1):
            measured = _level(machine, network, level, relation, batch.uses[level])
            for kernel, entry in measured.items():
                total = totals.setdefault(kernel, dict.fromkeys(entry, 0.0))
                for key, value in entry.items():
                    total[key] += value
        for entry in totals.values():
            entry["share"] = entry["floor"] / entry["seconds"]
        yield {"dataset": dataset, "batch": name, "kernels": totals}


def _batches(dataset: str, device: str) -> Any:
    """A mini-batch and the full batch, as training cuts them."""
    from saen.network.batches import cut_batches

    problem = load_problem(dataset, "network", device=device)
    plan, task = problem.plan, problem.task(NETWORKS[device])
    network = plan.network(range(NETWORKS[device])).train()
    for name, number in (("mini-batch", problem.n_batches), ("all", 1)):
        yield name, network, cut_batches(network, plan.compressed, task, number, 0).kept[0]


def _level(
    machine: Machine,
    network: SAEN,
    level: int,
    relation: RelationTensors,
    uses: torch.Tensor,
) -> dict[str, dict[str, float]]:
    """Seconds and floor of the kernels that training runs at one level.

    Where parts are projected before they are aggregated, the linear map and the moments concern
    only a few parts and are left out.
    """
    import torch

    module = network.level(level)
    aggregation: Any = module.aggregation(relation)
    projects_first = aggregation is relation.project_first
    matrix = aggregation.matrix
    width = module.weight.shape[2] if projects_first else module.below
    rows, columns = matrix.csr.shape
    numbers = torch.randn(columns, network.n_models * width, device=machine.device)
    g = torch.randn(rows, network.n_models * width, device=machine.device)
    entries = matrix.csr.values().numel()
    work = (
        numbers.numel() + g.numel() + 2 * entries + rows,  # numbers that are read or written
        4 * entries * numbers.shape[1],  # bytes of rows that are gathered
        2 * entries * numbers.shape[1],  # operations
    )
    steps: dict[str, tuple[Callable[[], object], float, float, float]] = {
        "aggregate": (lambda: matrix @ numbers, *work),
        "aggregate, backward": (lambda: matrix.T @ g, *work),
    }
    # On a GPU only these: they are recorded, as training steps are, and gradients cannot be.
    if not projects_first and machine.device.type == "cpu":
        h = numbers.view(columns, network.n_models, width)
        weight = module.first_layer()[0].detach().contiguous().requires_grad_()
        steps |= _of_aggregates(aggregation, aggregation.aggregate(h), weight, module.bias, uses)
    return {
        name: {
            "seconds": machine.seconds(function),
            "floor": machine.floor(4 * moved, gathered, operations),
            "bytes": 4 * moved,
            "gathered": gathered,
            "operations": operations,
        }
        for name, (function, moved, gathered, operations) in steps.items()
    }


def _of_aggregates(
    aggregation: Aggregation,
    aggregates: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    uses: torch.Tensor,
) -> dict[str, tuple[Callable[[], object], float, float, float]]:
    """The first layer after the aggregation, and the moments that normalise it."""
    import torch

    a = aggregates.detach().requires_grad_()

    def linear() -> torch.Tensor:
        return aggregation.linear(a, weight, bias)

    def moments() -> tuple[torch.Tensor, torch.Tensor]:
        return aggregation.moments(a, uses)

    x, m = linear(), moments()
    gx, gm = torch.randn_like(x), tuple(torch.randn_like(moment) for moment in m)
    n, multiplied = a.numel(), 2 * a.numel() * weight.shape[-1]

    def gradients(outputs: Any, inputs: Any, grads: Any) -> Callable[[], object]:
        return lambda: torch.autograd.grad(outputs, inputs, grads, retain_graph=True)

    return {
        "linear map": (torch.no_grad()(linear), n + x.numel(), 0, multiplied),
        "linear map, backward": (
            gradients(x, (a, weight), gx),
            2 * n + x.numel(),
            0,
            2 * multiplied,
        ),
        "moments": (torch.no_grad()(moments), n + uses.numel(), 0, 4 * n),
        "moments, backward": (gradients(m, a, gm), 2 * n, 0, 4 * n),
    }


class Machine:
    """The rates of a device, and a clock for what runs on it."""

    def __init__(self, device: torch.device, runs: int) -> None:
        self.device, self.runs = device, runs
        self.copying = cache(self._copying)
        self.gathering, self.multiplying = self._gathering(), self._multiplying()

    def seconds(self, function: Callable[[], object]) -> float:
        """The median time of a call, over runs of several calls where they are short."""
        return median(self._runs(function))

    def _best(self, function: Callable[[], object]) -> float:
        """The minimum time of a call: without disturbance by other processes."""
        return min(min(self._runs(function)) for _ in range(10))

    def _runs(self, function: Callable[[], object]) -> list[float]:
        import torch

        cuda = self.device.type == "cuda"

        def timed(run: Callable[[], object]) -> float:
            start = perf_counter()
            run()
            if cuda:
                torch.cuda.synchronize()
            return perf_counter() - start

        def repeated() -> None:
            for _ in range(calls):
                function()

        timed(function)
        calls = max(int(2e-3 / timed(function)), 1)
        run: Callable[[], object] = repeated
        if cuda:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                repeated()
            run = graph.replay
        return [timed(run) / calls for _ in range(self.runs)]

    def floor(self, moved: float, gathered: float, operations: float) -> float:
        """The minimum time of a kernel, in seconds."""
        return max(
            moved / self.copying(self._size(moved)),
            gathered / self.gathering,
            operations / self.multiplying,
        )

    def rates(self) -> dict[str, Any]:
        """Bytes and operations per second."""
        return {
            "device": self._name(),
            "copy": self.copying(COPIED_BYTES[self.device.type][1]),
            "gather": self.gathering,
            "multiply": self.multiplying,
        }

    def _name(self) -> str:
        from saen.network.devices import device_name

        return device_name(self.device)

    def _size(self, moved: float) -> int:
        """The next power of two: copies of small arrays stay in the cache too."""
        size, largest = COPIED_BYTES[self.device.type]
        while size < min(moved, largest):
            size *= 2
        return size

    def _copying(self, size: int) -> float:
        """Bytes read and written per second when copying half as many."""
        import torch

        source = torch.ones(size // 8, device=self.device)
        target = torch.zeros_like(source)
        return size / self._best(lambda: target.copy_(source))

    def _gathering(self) -> float:
        """Bytes of rows per second that are summed from a table in the cache, or copied there."""
        import torch

        width = 32 * NETWORKS[self.device.type]
        rows = TABLE_BYTES[self.device.type] // (4 * width)
        numbers = torch.randn(rows, width, device=self.device)
        n = 1 << 14 if self.device.type == "cpu" else 1 << 19
        order = torch.randint(rows, (n,), device=self.device)
        starts = torch.arange(0, n, 16, device=self.device)
        bags = torch.nn.functional.embedding_bag
        rate = 4 * n * width / self._best(lambda: bags(order, numbers, starts, mode="sum"))
        return max(rate, self.copying(COPIED_BYTES[self.device.type][0]))

    def _multiplying(self) -> float:
        """Operations per second of a product of large matrices."""
        import torch

        size = MATRIX_SIZE[self.device.type]
        square = torch.randn(size, size, device=self.device)
        return 2 * size**3 / self._best(lambda: square @ square)


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """The GPU if there is one, else the CPU."""
    import torch

    names, skipped = available(DATASETS, settings)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    document: dict[str, Any] = {"device": device, "checks": [], "skipped": skipped}
    try:
        runs = 3 if settings.quick else 9
        document |= measure(kernels, datasets=names, device=device, runs=runs)
    except MeasurementError as error:
        skipped.append({"what": device, "reason": f"failed: {error}"})
    if not settings.quick and "rows" in document:
        document["checks"] = _checks(document)
    return document


def _checks(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The smallest share of the aggregation kernels."""
    checks = []
    for kernel in KERNELS[:2] if part["rows"] else ():
        row = min(part["rows"], key=lambda row: row["kernels"][kernel]["share"])
        what = f"{kernel} ({part['device']}), {row['dataset']}, {row['batch']}: share of the floor"
        measured = row["kernels"][kernel]["share"]
        checks.append(check(what, measured, MIN_SHARE[part["device"]], "", at_least=True))
    return checks


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    if "rows" not in document:
        return ""
    rates, networks = document["rates"], NETWORKS[document["device"]]
    made = {name for row in document["rows"] for name in row["kernels"]}
    kernels = [name for name in KERNELS if name in made]
    return "\n".join(
        [
            f"The kernels of a training step of {networks} networks with the preset network, both "
            "levels together: the floor as a share of the measured time (median). The floor is "
            "the largest of three times: the bytes that must move at the rate of copying as many, "
            "the gathered rows at the rate of summing rows of a table in the cache (or of copying "
            "there), and the operations at the rate of a large matrix product. Where parts are "
            "projected before they are aggregated, the linear map and the moments concern only a "
            "few parts and are left out.\n",
            f"{rates['device']}: copies {rates['copy'] / 1e9:.0f} GB/s (large arrays), gathers "
            f"{rates['gather'] / 1e9:.0f} GB/s, multiplies {rates['multiply'] / 1e9:,.0f} "
            "GFLOP/s.\n",
            table(
                ("dataset", "batch", *kernels),
                [_cells(row, kernels) for row in document["rows"]],
                words=2,
            ),
        ]
    )


def _cells(row: Mapping[str, Any], kernels: Sequence[str]) -> tuple[str, ...]:
    entries = (row["kernels"].get(kernel) for kernel in kernels)
    shares = (
        f"{entry['share']:.2f} of {1e3 * entry['seconds']:.2f} ms" if entry else ""
        for entry in entries
    )
    return (row["dataset"], row["batch"], *shares)
