"""Comparison with a GIN of PyTorch Geometric, a straightforward SAEN, and GraKeL's WL kernel.

All use the same graphs, the same ten folds and the same cores; networks train for the same number
of epochs, one network per fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.commands import command, evaluated
from benchmarks.data import THREADS, available, dataset_graphs, load_problem
from benchmarks.machine import installed
from benchmarks.measure import Stopwatch, measure, measured
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings
from saen import Graphs
from saen.network.devices import CPU

TITLE = "Comparison with other methods"

DATASETS = ("REDDIT-BINARY", "MUTAG")
FURTHER = ("NCI1",)  # in a full run
COMPLETE = ("MUTAG", THREADS)  # where the peers run all ten folds
COMPLETE_FULL = (*COMPLETE, *FURTHER)
TIMED_EPOCHS = 3  # from which the others are extrapolated
FOLDS, EPOCHS = 10, 40  # as in the preset network
SAEN = (  # from the root of the repository
    "saen evaluate {name} --preset benchmarks/uncalibrated.toml --repeats 1 --folds 10 "
    "--parallel-models 10"
)

GIN_LAYERS, GIN_WIDTH, GIN_BATCH = 5, 64, 128
WORKERS = 4  # of a loader
WL_ROUNDS = 5

MIN_SPEEDUP_EPOCH, MIN_SPEEDUP_EVALUATION = {"REDDIT-BINARY": 100}, {"REDDIT-BINARY": 30}


# -- what is measured, each in its own process -------------------------------------------------


def evaluation(line: str, folder: str) -> dict[str, Any]:
    """A `saen evaluate`, without imports, as for the peers."""
    import saen.learning.evaluation  # noqa: F401

    return command(line, folder)


def gin(dataset: str, epochs: int, complete: bool) -> dict[str, Any]:
    """PyTorch Geometric's GIN on the CPU, its batches assembled by a plain loader."""
    return gins(dataset, epochs, {"plain": complete}, CPU)["ways"]["plain"]


def gins(dataset: str, epochs: int, loadings: Mapping[str, bool], device: str) -> dict[str, Any]:
    """PyTorch Geometric's GIN with sum pooling and a two-layer head, once for every loading.

    Batches are assembled by a plain loader; or by one with `workers`, pinned memory and copies that
    do not wait; or once, and all stay on the device (`resident`). All folds are trained if the
    loading's value is true.
    """
    import torch
    from torch_geometric.data import Data  # type: ignore[import-untyped]
    from torch_geometric.loader import DataLoader  # type: ignore[import-untyped]
    from torch_geometric.nn import GIN, MLP, global_add_pool  # type: ignore[import-untyped]

    graphs = labelled(dataset_graphs(dataset))
    classes = np.unique(np.asarray(graphs.targets), return_inverse=True)[1]
    n_classes = int(classes.max()) + 1
    labels = np.unique(graphs.node_labels, axis=0, return_inverse=True)[1].reshape(-1)
    n_labels = int(labels.max()) + 1
    starts, entries = graphs.node_offsets, graphs.indptr[graphs.node_offsets]
    rows = np.repeat(np.arange(graphs.n_nodes), np.diff(graphs.indptr))
    ends = torch.from_numpy(np.stack([rows, graphs.indices]).astype(np.int64))
    codes = torch.from_numpy(labels.astype(np.int64))
    items = [
        Data(
            x=codes[first:last],  # one-hot on the device: a loader moves one number per node
            edge_index=ends[:, begin:end] - first,
            y=torch.tensor([target]),
        )
        for (first, last), (begin, end), target in zip(
            pairwise(starts.tolist()), pairwise(entries.tolist()), classes.tolist(), strict=True
        )
    ]

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = GIN(n_labels, GIN_WIDTH, GIN_LAYERS, norm="batch_norm")
            self.head = MLP([GIN_WIDTH, GIN_WIDTH, n_classes], norm=None)

        def forward(self, batch: Any) -> torch.Tensor:
            x = torch.nn.functional.one_hot(batch.x, n_labels).float()
            nodes = self.body(x, batch.edge_index)
            return self.head(global_add_pool(nodes, batch.batch, batch.num_graphs))

    def loader(loading: str, rows: Sequence[int], shuffle: bool) -> Iterable[Any]:
        options: dict[str, Any] = {}
        if loading == "workers" and shuffle:
            options = {"num_workers": WORKERS, "persistent_workers": True, "pin_memory": True}
        own = [items[row] for row in rows]
        batches = DataLoader(own, batch_size=GIN_BATCH, shuffle=shuffle, **options)
        if loading == "resident":
            return _Kept([batch.to(device) for batch in batches], shuffle)
        return _Moved(batches, device)

    def targets(batch: Any) -> torch.Tensor:
        return batch.y

    def network() -> Any:
        return Network().to(device)

    torch.manual_seed(0)
    if device != CPU:  # starting the device is left out, as imports are
        network()(next(iter(loader("plain", range(GIN_BATCH), False)))).sum().backward()
    ways = {
        loading: _trained(network, partial(loader, loading), targets, classes, epochs, complete)
        for loading, complete in loadings.items()
    }
    seconds = {loading: way["seconds"]["run"] for loading, way in ways.items()}
    return {"seconds": seconds, "ways": ways}


@dataclass
class _Moved:
    """Batches on a device."""

    batches: Iterable[Any]
    device: str

    def __iter__(self) -> Iterator[Any]:
        return (batch.to(self.device, non_blocking=True) for batch in self.batches)


@dataclass
class _Kept:
    """Batches that are made once, in another order in every epoch if they are shuffled."""

    batches: Sequence[Any]
    shuffle: bool
    noise: Any = field(default_factory=lambda: np.random.default_rng(0))

    def __iter__(self) -> Iterator[Any]:
        n = len(self.batches)
        return (self.batches[i] for i in (self.noise.permutation(n) if self.shuffle else range(n)))


def obvious(dataset: str, epochs: int, complete: bool) -> dict[str, Any]:
    """A straightforward SAEN: rows gathered and summed, role by role, nothing compressed."""
    import torch

    problem = load_problem(dataset, "network")
    classes, architecture = problem.codes, problem.plan.architecture
    hierarchy = problem.decomposition.decompose(problem.graphs)
    size = -(-len(problem.graphs) // problem.n_batches)
    n_outputs = int(classes.max()) + 1
    layers = [*architecture.layers[:-1], (*architecture.layers[-1][:-1], n_outputs)]

    class Level(torch.nn.Module):
        def __init__(self, below: int, n_roles: int, sizes: Sequence[int], top: bool) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(n_roles * below)
            widths = [n_roles * below, *sizes]
            self.layers = torch.nn.ModuleList(torch.nn.Linear(i, o) for i, o in pairwise(widths))
            self.top = top

        def forward(self, h: torch.Tensor, level: Mapping[str, Any]) -> torch.Tensor:
            sums = [
                h.new_zeros(level["n"], h.shape[1]).index_add_(0, parents, h.index_select(0, parts))
                for parents, parts in level["roles"]
            ]
            x = self.norm(torch.cat(sums, dim=1))
            for number, layer in enumerate(self.layers):
                x = layer(x)
                if not self.top or number + 1 < len(self.layers):
                    x = torch.nn.functional.leaky_relu(x, architecture.negative_slope)
            return x

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(architecture.labels + 1, layers[0][0])
            self.levels = torch.nn.ModuleList(
                Level(layers[i][-1], n_roles, layers[i + 1], i + 1 == len(architecture.roles))
                for i, n_roles in enumerate(architecture.roles)
            )

        def forward(self, batch: Mapping[str, Any]) -> torch.Tensor:
            h = torch.nn.functional.leaky_relu(
                self.table(batch["codes"]), architecture.negative_slope
            )
            for module, level in zip(self.levels, batch["levels"], strict=True):
                h = module(h, level)
            return h

    def cut(rows: Any) -> dict[str, Any]:
        part = hierarchy[rows]
        levels = []
        for relation in part.relations:
            parents = np.repeat(np.arange(relation.n_parents), np.diff(relation.indptr))
            roles = [
                tuple(
                    torch.from_numpy(array[relation.roles == role].astype(np.int64))
                    for array in (parents, relation.parts)
                )
                for role in range(relation.n_roles)
            ]
            levels.append({"n": relation.n_parents, "roles": roles})
        codes = torch.from_numpy(part.attributes.codes.astype(np.int64))
        return {"codes": codes, "levels": levels, "y": torch.from_numpy(classes[rows])}

    def loader(rows: Sequence[int], shuffle: bool) -> Iterable[Any]:
        parts = np.array_split(np.random.default_rng(0).permutation(rows), -(-len(rows) // size))
        return _Kept([cut(np.sort(part)) for part in parts], shuffle)

    torch.manual_seed(0)
    return _trained(Network, loader, lambda batch: batch["y"], classes, epochs, complete)


def _trained(
    make: Callable[[], Any],
    loader: Callable[[Sequence[int], bool], Iterable[Any]],
    targets: Callable[[Any], Any],
    classes: Any,
    epochs: int,
    complete: bool,
) -> dict[str, Any]:
    """Ten folds of a network, or ten folds extrapolated from a few epochs of the first."""
    import torch

    from saen.learning.splits import make_splits

    def moment() -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return perf_counter()

    start, steps, scores, tests = perf_counter(), [], [], []
    for train, test in make_splits(classes, 1, FOLDS, seed=0)[0]:
        network = make()
        optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
        batches, test_batches = loader(train.tolist(), True), loader(test.tolist(), False)
        begin = moment()
        for _ in range(epochs if complete else TIMED_EPOCHS):
            network.train()
            before = moment()
            for batch in batches:
                optimiser.zero_grad()
                loss = torch.nn.functional.cross_entropy(network(batch), targets(batch))
                loss.backward()
                optimiser.step()
            steps.append(moment() - before)
        network.eval()
        before = moment()
        with torch.no_grad():
            correct = [(network(b).argmax(1) == targets(b)).sum().item() for b in test_batches]
        tests.append(moment() - before)
        scores.append(sum(correct) / len(test))
        preparation = begin - start
        if not complete:
            break
    epoch = median(steps)
    total = perf_counter() - start
    result = {"seconds": {"run": total}, "model_epoch": epoch, "epochs": len(steps)}
    if complete:
        return {**result, "evaluation": total, "accuracy": float(np.mean(scores))}
    # The first epoch also starts what a loader needs.
    return {
        **result,
        "evaluation": FOLDS * (preparation + steps[0] + (epochs - 1) * epoch + tests[0]),
    }


def weisfeiler_lehman(dataset: str) -> dict[str, Any]:
    """GraKeL's WL subtree kernel, and a support vector machine with C = 1 for every fold."""
    from grakel.kernels import VertexHistogram, WeisfeilerLehman  # type: ignore[import-untyped]
    from sklearn.svm import SVC

    from saen.learning.splits import make_splits

    graphs = labelled(dataset_graphs(dataset))
    items = grakel_graphs(graphs)
    classes = np.unique(np.asarray(graphs.targets), return_inverse=True)[1]
    kernel = WeisfeilerLehman(n_iter=WL_ROUNDS, normalize=True, base_graph_kernel=VertexHistogram)
    watch = Stopwatch()
    gram = watch("kernel", kernel.fit_transform, items)

    def score(train: Any, test: Any) -> float:
        svm = SVC(kernel="precomputed").fit(gram[np.ix_(train, train)], classes[train])
        return float(svm.score(gram[np.ix_(test, train)], classes[test]))

    folds = make_splits(classes, 1, FOLDS, seed=0)[0]
    scores = watch("svm", lambda: [score(train, test) for train, test in folds])
    return {
        "seconds": watch.seconds,
        "evaluation": sum(watch.seconds.values()),
        "accuracy": float(np.mean(scores)),
    }


def labelled(graphs: Graphs) -> Graphs:
    """Graphs with node labels: without any, degrees in four bins per doubling, as for SAEN."""
    if graphs.node_labels is not None:
        return graphs
    bins = np.floor(4 * np.log2(1 + graphs.degrees())).astype(np.int64)
    return replace(graphs, node_labels=bins)


def grakel_graphs(graphs: Graphs) -> list[Any]:
    """Graphs with node labels as GraKeL takes them."""
    from grakel import Graph  # type: ignore[import-untyped]

    items = []
    for graph in graphs:
        ends = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
        edges = set(zip(ends.tolist(), graph.indices.tolist(), strict=True))
        items.append(Graph(edges, node_labels=dict(enumerate(graph.node_labels.tolist()))))
    return items


# -- the part ----------------------------------------------------------------------------------

WAYS: dict[str, tuple[str, str | None]] = {
    "saen": ("saen, network, ten at once", None),
    "gin": (f"GIN, {GIN_LAYERS} × {GIN_WIDTH}, PyTorch Geometric", "torch-geometric"),
    "obvious": ("SAEN by gather and scatter", None),
    "weisfeiler_lehman": ("WL kernel and SVM, GraKeL", "grakel"),
}


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset and method."""
    names, skipped = available(DATASETS, settings, further=FURTHER)
    missing = {
        way: f"{library} is not installed: pip install 'saen[bench]'"
        for way, (_, library) in WAYS.items()
        if library is not None and installed(library) is None
    }
    skipped += [{"what": WAYS[way][0], "reason": reason} for way, reason in missing.items()]
    cases = {
        f"{name}, {title}": partial(_row, name, way, settings)
        for name in names
        for way, (title, _) in WAYS.items()
        if way not in missing
    }
    rows = measured(cases, skipped)
    _compare(rows)
    checks = [] if settings.quick else _checks(rows)
    return {"rows": rows, "checks": checks, "skipped": skipped}


def _row(name: str, way: str, settings: Settings) -> dict[str, Any]:
    epochs = 2 if settings.quick else EPOCHS
    if way == "saen":
        result = _saen(name, epochs)
    elif way == "weisfeiler_lehman":
        result = measure(weisfeiler_lehman, dataset=name)
    else:
        complete = name in (COMPLETE_FULL if settings.full else COMPLETE)
        function = {"gin": gin, "obvious": obvious}[way]
        result = measure(function, dataset=name, epochs=epochs, complete=complete)
    return {"dataset": name, "way": way, **result}


def _saen(name: str, epochs: int) -> dict[str, Any]:
    """The whole command, and the time of one epoch of one model."""
    line = SAEN.format(name=name) + f" --epochs {epochs}"
    result = evaluated(line, evaluation)
    model_epoch = result["train"] / (FOLDS * epochs)
    return {**result, "model_epoch": model_epoch, "evaluation": result["seconds"]["total"]}


def _compare(rows: list[dict[str, Any]]) -> None:
    """Add to every peer how many times as long as saen it takes."""
    ours = {row["dataset"]: row for row in rows if row["way"] == "saen"}
    for row in rows:
        base = ours.get(row["dataset"])
        if row["way"] == "saen" or base is None:
            continue
        for key in ("model_epoch", "evaluation"):
            if key in row:
                row[f"times_{key}"] = row[key] / base[key]


def _checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    checks = []
    for row in rows:
        if row["way"] != "gin" or "times_evaluation" not in row:
            continue
        name = row["dataset"]
        extrapolated = "" if "accuracy" in row else " (extrapolated)"
        for what, key, targets in (
            ("an epoch of a model, a tenth of ten at once", "model_epoch", MIN_SPEEDUP_EPOCH),
            (f"ten folds{extrapolated}", "evaluation", MIN_SPEEDUP_EVALUATION),
        ):
            if name in targets:
                what = f"{name}, {what}: faster than GIN"
                speedup = row[f"times_{key}"]
                checks.append(check(what, speedup, targets[name], "times", at_least=True))
    return checks


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = []
    for row in document["rows"]:
        complete = "accuracy" in row
        times = ["", ""]
        for place, key in enumerate(("model_epoch", "evaluation")):
            if f"times_{key}" in row:
                times[place] = quantity(row[f"times_{key}"], "times")
        rows.append(
            (
                row["dataset"],
                WAYS[row["way"]][0],
                f"{1e3 * row['model_epoch']:.1f} ms" if "model_epoch" in row else "",
                times[0],
                quantity(row["evaluation"], "s") + ("" if complete else " (extrapolated)"),
                times[1],
                quantity(row["peak_memory_bytes"], "bytes"),
                f"{100 * row['accuracy']:.1f} %" if complete else "",
            )
        )
    return "\n".join(
        [
            f"Ten folds, {EPOCHS} epochs, one network per fold, the same folds and cores for all; "
            "the kernel matrix is computed once for all folds, and the SVM has C = 1. saen is "
            f"`{SAEN.format(name='NAME')}` from start to end, the preset network with "
            "`inner_folds = 0`: nobody's probabilities are calibrated; the time of one of its "
            "models is a tenth of the group's. Extrapolated: from the preparation, the median of "
            f"{TIMED_EPOCHS} epochs and the test of the first fold; loading is left out for the "
            "peers. PyTorch Geometric's loader assembles its batches in every epoch, as it does by "
            "default. Accuracies are those of complete runs.\n",
            table(
                (
                    "dataset",
                    "method",
                    "epoch of a model",
                    "× saen",
                    "ten folds",
                    "× saen",
                    "peak memory",
                    "accuracy",
                ),
                rows,
                words=2,
            ),
        ]
    )
