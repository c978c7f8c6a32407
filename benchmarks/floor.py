"""How far the kernels of a training step are from what the machine can do at all.

The floor of a kernel is the largest of three times: of the bytes that it must read and write once,
at the rate at which this machine copies as many; of the rows that it gathers, at the rate at which
rows of a table in the cache are added up; of its operations, at the rate of a large matrix product.
The rates are measured with the functions of torch, so a share may come out above one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.data import at_hand, classification, classifier, collection
from benchmarks.measure import MeasurementError, measure
from benchmarks.report import check, table
from benchmarks.settings import Settings

if TYPE_CHECKING:
    import torch

    from saen.network.model import SAEN
    from saen.network.sparse import UnrolledRelation

TITLE = "Kernels against the floor"

DATASETS = ("COLLAB", "REDDIT-BINARY", "NCI1")
NETWORKS = {"cpu": 10, "cuda": 100}  # at once, as they are usually trained there
KERNELS = (
    "aggregate",
    "aggregate, backward",
    "linear map",
    "linear map, backward",
    "moments",
    "moments, backward",
)
SHARE = {"cpu": 0.4, "cuda": 0.3}  # of the floor in the measured time
SIZE = {"cpu": 1024, "cuda": 8192}  # of the matrices whose product is timed
TABLE = {"cpu": 1 << 18, "cuda": 1 << 23}  # bytes of the table that rows are gathered from
COPIED = {"cpu": (1 << 20, 1 << 29), "cuda": (1 << 24, 1 << 32)}  # bytes, least and most


# -- what is measured, in its own process ------------------------------------------------------


def kernels(datasets: list[str], device: str, runs: int) -> dict[str, Any]:
    """Rates of the machine, then seconds and floor of every kernel for a mini-batch and for all."""
    import torch

    import saen.network.model  # noqa: F401 (first: it decides how torch makes tensors)
    from saen.network.memory import kept_memory

    start = perf_counter()
    with kept_memory():  # as in training
        machine = _Machine(torch.device(device), runs)
        rows = [row for dataset in datasets for row in _rows(machine, dataset)]
    return {"seconds": {"kernels": perf_counter() - start}, "rates": machine.rates(), "rows": rows}


def _rows(machine: _Machine, dataset: str) -> Iterator[dict[str, Any]]:
    """Seconds, floor and share of every kernel, all levels together."""
    for name, network, batch in _batches(dataset, machine.device.type):
        found: dict[str, dict[str, float]] = {}
        below = len(batch.unrolled.codes)
        for level, relation in enumerate(batch.unrolled.relations, start=1):
            measured = _level(machine, network, level, relation, below, batch.uses[level])
            for kernel, entry in measured.items():
                total = found.setdefault(kernel, dict.fromkeys(entry, 0.0))
                for key, value in entry.items():
                    total[key] += value
            below = relation.n_parents
        for entry in found.values():
            entry["share"] = entry["floor"] / entry["seconds"]
        yield {"dataset": dataset, "batch": name, "kernels": found}


def _batches(dataset: str, device: str) -> Any:
    """A mini-batch and the full batch, as training cuts them."""
    from saen.data.compression import compress_graphs
    from saen.network.batches import cut_batches

    graphs = collection(dataset)
    estimator = classifier(dataset, "modern", device=device)
    decomposition = estimator._chosen_decomposition(graphs).fit(graphs)
    compressed = compress_graphs(graphs, decomposition, lower_inverse=False)
    networks = NETWORKS[device]
    task = classification(graphs, networks)
    network = estimator._network(compressed.hierarchy, task.n_outputs, list(range(networks)))
    size = estimator._settings(len(graphs), 0).batch_size
    for name, chosen in (("mini-batch", size), ("all", None)):
        yield name, network.train(), cut_batches(network, compressed, task, chosen, 0)[0]


def _level(
    machine: _Machine,
    network: SAEN,
    level: int,
    relation: UnrolledRelation,
    n_below: int,
    uses: torch.Tensor,
) -> dict[str, dict[str, float]]:
    """Seconds and floor of the kernels that training takes at one level.

    Where parts are mapped before they are aggregated, the map and the moments are of a few parts
    only and are left out.
    """
    import torch

    module: Any = network.levels[level]
    parts_first = module._parts_first(relation)
    product = relation.joined if parts_first else relation.by_role
    width = module.weight.shape[2] if parts_first else module.below
    rows, columns = product.matrix.shape
    numbers = torch.randn(columns, network.n_models * width, device=machine.device)
    g = torch.randn(rows, network.n_models * width, device=machine.device)
    entries = product.matrix.values().numel()
    work = (
        numbers.numel() + g.numel() + 2 * entries + rows,  # numbers that are read or written
        4 * entries * numbers.shape[1],  # bytes of rows that are gathered
        2 * entries * numbers.shape[1],  # operations
    )
    steps: dict[str, tuple[Callable[[], object], float, float, float]] = {
        "aggregate": (lambda: product @ numbers, *work),
        "aggregate, backward": (lambda: product.T @ g, *work),
    }
    # On a GPU these alone: they are recorded, as training steps are, and gradients cannot be.
    if not parts_first and machine.device.type == "cpu":
        h = torch.randn(n_below, network.n_models, module.below, device=machine.device)
        steps |= _of_aggregates(module, relation, module._aggregate(relation, h), uses)
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
    module: Any, relation: UnrolledRelation, aggregates: torch.Tensor, uses: torch.Tensor
) -> dict[str, tuple[Callable[[], object], float, float, float]]:
    """The first layer after the aggregation, and the moments that normalise it."""
    import torch

    a = aggregates.detach().requires_grad_()
    shape = (len(module.bias), module.n_roles, module.below, -1)
    weight = module.weight.detach().view(shape).transpose(0, 1).contiguous().requires_grad_()

    def linear() -> torch.Tensor:
        x: torch.Tensor = module._first_layer(relation, a, weight, module.bias)
        return x

    def moments() -> tuple[torch.Tensor, torch.Tensor]:
        found: tuple[torch.Tensor, torch.Tensor] = module._statistics(relation, a, a, uses)
        return found

    x, made = linear(), moments()
    gx, gm = torch.randn_like(x), tuple(torch.randn_like(moment) for moment in made)
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
        "moments, backward": (gradients(made, a, gm), 2 * n, 0, 4 * n),
    }


class _Machine:
    """What a device can do, and a clock for what runs on it."""

    def __init__(self, device: torch.device, runs: int) -> None:
        self.device, self.runs = device, runs
        self.copying = cache(self._copying)
        self.gathering, self.multiplying = self._gathering(), self._multiplying()

    def seconds(self, function: Callable[[], object]) -> float:
        """The median time of a call, over runs of several calls where they are short."""
        return median(self._runs(function))

    def _best(self, function: Callable[[], object]) -> float:
        """The least time of a call: what the machine can do when nothing disturbs it."""
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
        """The least time of a kernel, in seconds."""
        return max(
            moved / self.copying(self._size(moved)),
            gathered / self.gathering,
            operations / self.multiplying,
        )

    def rates(self) -> dict[str, Any]:
        """Bytes and operations a second."""
        return {
            "device": self._name(),
            "copy": self.copying(COPIED[self.device.type][1]),
            "gather": self.gathering,
            "multiply": self.multiplying,
        }

    def _name(self) -> str:
        from saen.learning.estimators import device_name

        return device_name(self.device)

    def _size(self, moved: float) -> int:
        """A round number of bytes like these: small arrays stay in the cache, for copies too."""
        least, most = COPIED[self.device.type]
        size = least
        while size < min(moved, most):
            size *= 2
        return size

    def _copying(self, size: int) -> float:
        """Bytes read and written a second in copying half as many."""
        import torch

        source = torch.ones(size // 8, device=self.device)
        target = torch.zeros_like(source)
        return size / self._best(lambda: target.copy_(source))

    def _gathering(self) -> float:
        """Bytes of rows a second that are added up from a table in the cache, or copied there."""
        import torch

        width = 32 * NETWORKS[self.device.type]
        rows = TABLE[self.device.type] // (4 * width)
        numbers = torch.randn(rows, width, device=self.device)
        n = 1 << 14 if self.device.type == "cpu" else 1 << 19
        order = torch.randint(rows, (n,), device=self.device)
        starts = torch.arange(0, n, 16, device=self.device)
        bags = torch.nn.functional.embedding_bag
        rate = 4 * n * width / self._best(lambda: bags(order, numbers, starts, mode="sum"))
        return max(rate, self.copying(COPIED[self.device.type][0]))

    def _multiplying(self) -> float:
        """Operations a second of a product of large matrices."""
        import torch

        size = SIZE[self.device.type]
        square = torch.randn(size, size, device=self.device)
        return 2 * size**3 / self._best(lambda: square @ square)


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """The GPU where there is one, else the CPU."""
    import torch

    names, skipped = at_hand(DATASETS, settings)
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
    """The least share of the kernels that aggregate."""
    checks = []
    for kernel in KERNELS[:2] if part["rows"] else ():
        row = min(part["rows"], key=lambda row: row["kernels"][kernel]["share"])
        what = f"{kernel} ({part['device']}), {row['dataset']}, {row['batch']}: share of the floor"
        measured = row["kernels"][kernel]["share"]
        checks.append(check(what, measured, SHARE[part["device"]], "", at_least=True))
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
            f"The kernels of a training step of {networks} networks of the modern shape, both "
            "levels together: how much of the measured time (median) the floor is. The floor is "
            "the largest of the bytes that must move over the rate of copying as many, the rows "
            "that are gathered over the rate of adding up rows of a table in the cache (or of "
            "copying there), and the operations over the rate of a large product of matrices. "
            "Where parts are mapped before they are aggregated, the map and the moments are of a "
            "few parts only and left out.\n",
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
    found = (row["kernels"].get(kernel) for kernel in kernels)
    shares = (
        f"{entry['share']:.2f} of {1e3 * entry['seconds']:.2f} ms" if entry else ""
        for entry in found
    )
    return (row["dataset"], row["batch"], *shares)
