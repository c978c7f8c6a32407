"""Beside other ways: a GIN of PyTorch Geometric, SAEN written the obvious way, GraKeL's WL kernel.

All see the same graphs and the same ten folds, the networks train for the same number of epochs,
one network per fold, on the same cores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.commands import command
from benchmarks.data import THREADS, at_hand, classifier, collection
from benchmarks.machine import installed
from benchmarks.measure import MeasurementError, Stopwatch, measure
from benchmarks.report import check, quantity, table
from benchmarks.settings import Settings
from saen import Graphs

TITLE = "Beside other ways"

DATASETS = ("REDDIT-BINARY", "NCI1", "MUTAG")
WHOLE = ("MUTAG", THREADS)  # where the peers finish their ten folds
WHOLE_FULL = (*WHOLE, "NCI1")
TIMED = 3  # epochs that a run is extrapolated from otherwise
FOLDS, EPOCHS = 10, 40  # as the modern preset
SAEN = "saen evaluate {name} --preset modern --repeats 1 --folds 10 --n-models 1 --at-once 10"

GIN_LAYERS, GIN_WIDTH, GIN_BATCH = 5, 64, 128
WL_ROUNDS = 5

FASTER_EPOCH, FASTER_EVALUATION = {"REDDIT-BINARY": 100}, {"REDDIT-BINARY": 30}


# -- what is measured, each in its own process -------------------------------------------------


def evaluation(line: str, folder: str) -> dict[str, Any]:
    """A `saen evaluate`, after the imports, as for the peers."""
    import saen.learning.cross_validation  # noqa: F401

    return command(line, folder)


def gin(dataset: str, epochs: int, whole: bool) -> dict[str, Any]:
    """PyTorch Geometric's GIN with sum pooling and a two-layer head."""
    import torch
    from torch_geometric.loader import DataLoader  # type: ignore[import-untyped]
    from torch_geometric.nn import GIN, MLP, global_add_pool  # type: ignore[import-untyped]

    from saen.io.pyg import to_pyg

    graphs = labelled(collection(dataset))
    items = to_pyg(graphs)
    n_classes = len(np.unique(np.asarray(graphs.targets)))
    for item in items:
        item.edge_attr = None
    classes = np.unique(np.asarray(graphs.targets), return_inverse=True)[1]
    for item, target in zip(items, classes.tolist(), strict=True):
        item.y = torch.tensor([target])

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = GIN(items[0].x.shape[1], GIN_WIDTH, GIN_LAYERS, norm="batch_norm")
            self.head = MLP([GIN_WIDTH, GIN_WIDTH, n_classes], norm=None)

        def forward(self, batch: Any) -> torch.Tensor:
            nodes = self.body(batch.x, batch.edge_index)
            return self.head(global_add_pool(nodes, batch.batch, batch.num_graphs))

    def loader(rows: Sequence[int], shuffle: bool) -> Iterable[Any]:
        chosen = [items[row] for row in rows]
        return DataLoader(chosen, batch_size=GIN_BATCH, shuffle=shuffle)

    def targets(batch: Any) -> torch.Tensor:
        return batch.y

    torch.manual_seed(0)
    return _trained(Network, loader, targets, classes, epochs, whole)


def obvious(dataset: str, epochs: int, whole: bool) -> dict[str, Any]:
    """SAEN as one would write it: rows gathered and added up, role by role, nothing collapsed."""
    import torch

    graphs = collection(dataset)
    estimator = classifier(dataset, "modern")
    decomposition = estimator._chosen_decomposition(graphs).fit(graphs)
    hierarchy = decomposition.decompose(graphs)
    classes = np.unique(np.asarray(graphs.targets), return_inverse=True)[1]
    n_classes = int(classes.max()) + 1
    architecture = estimator._network(hierarchy, n_classes, [0]).architecture
    size = estimator._settings(len(graphs), 0).batch_size or len(graphs)

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
                    x = torch.nn.functional.leaky_relu(x, architecture.slope)
            return x

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = architecture.layers
            self.table = torch.nn.Embedding(architecture.labels + 1, layers[0][0])
            self.levels = torch.nn.ModuleList(
                Level(layers[i][-1], n_roles, layers[i + 1], i + 1 == len(architecture.roles))
                for i, n_roles in enumerate(architecture.roles)
            )

        def forward(self, batch: Mapping[str, Any]) -> torch.Tensor:
            h = torch.nn.functional.leaky_relu(self.table(batch["codes"]), architecture.slope)
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
        batches = [cut(np.sort(part)) for part in parts]

        class Loader:
            def __iter__(self) -> Any:
                order = np.random.default_rng(0).permutation(len(batches))
                return (batches[i] for i in (order if shuffle else range(len(batches))))

        return Loader()

    torch.manual_seed(0)
    return _trained(Network, loader, lambda batch: batch["y"], classes, epochs, whole)


def _trained(
    make: Callable[[], Any],
    loader: Callable[[Sequence[int], bool], Iterable[Any]],
    targets: Callable[[Any], Any],
    classes: Any,
    epochs: int,
    whole: bool,
) -> dict[str, Any]:
    """Ten folds of a network, or a few epochs of the first fold and what ten folds would take."""
    import torch

    from saen.learning.splits import make_splits

    start, steps, scores, tests = perf_counter(), [], [], []
    for train, test in make_splits(classes, 1, FOLDS, seed=0)[0]:
        network = make()
        optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
        batches, later = loader(train.tolist(), True), loader(test.tolist(), False)
        begin = perf_counter()
        for _ in range(epochs if whole else TIMED):
            network.train()
            moment = perf_counter()
            for batch in batches:
                optimiser.zero_grad()
                loss = torch.nn.functional.cross_entropy(network(batch), targets(batch))
                loss.backward()
                optimiser.step()
            steps.append(perf_counter() - moment)
        network.eval()
        moment = perf_counter()
        with torch.no_grad():
            right = [(network(b).argmax(1) == targets(b)).sum().item() for b in later]
        tests.append(perf_counter() - moment)
        scores.append(sum(right) / len(test))
        prepared = begin - start
        if not whole:
            break
    epoch = median(steps)
    total = perf_counter() - start
    result = {"seconds": {"run": total}, "model_epoch": epoch, "epochs": len(steps)}
    if whole:
        return {**result, "evaluation": total, "accuracy": float(np.mean(scores))}
    return {**result, "evaluation": FOLDS * (prepared + epochs * epoch + tests[0])}


def weisfeiler_lehman(dataset: str) -> dict[str, Any]:
    """GraKeL's WL subtree kernel, and a support vector machine with C = 1 for every fold."""
    from grakel import Graph  # type: ignore[import-untyped]
    from grakel.kernels import VertexHistogram, WeisfeilerLehman  # type: ignore[import-untyped]
    from sklearn.svm import SVC

    from saen.learning.splits import make_splits

    graphs = labelled(collection(dataset))
    items = []
    for graph in graphs:
        ends = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
        edges = set(zip(ends.tolist(), graph.indices.tolist(), strict=True))
        items.append(Graph(edges, node_labels=dict(enumerate(graph.node_labels.tolist()))))
    classes = np.unique(np.asarray(graphs.targets), return_inverse=True)[1]
    kernel = WeisfeilerLehman(n_iter=WL_ROUNDS, normalize=True, base_graph_kernel=VertexHistogram)
    watch = Stopwatch()
    gram = watch("kernel", kernel.fit_transform, items)

    def score(train: Any, test: Any) -> float:
        machine = SVC(kernel="precomputed").fit(gram[np.ix_(train, train)], classes[train])
        return float(machine.score(gram[np.ix_(test, train)], classes[test]))

    folds = make_splits(classes, 1, FOLDS, seed=0)[0]
    scores = watch("machines", lambda: [score(train, test) for train, test in folds])
    return {
        "seconds": watch.seconds,
        "evaluation": sum(watch.seconds.values()),
        "accuracy": float(np.mean(scores)),
    }


def labelled(graphs: Graphs) -> Graphs:
    """With node labels: where there are none, degrees in four bins per doubling, as for SAEN."""
    if graphs.node_labels is not None:
        return graphs
    bins = np.floor(4 * np.log2(1 + graphs.degrees())).astype(np.int64)
    return replace(graphs, node_labels=bins)


# -- the part ----------------------------------------------------------------------------------

WAYS: dict[str, tuple[str, str | None]] = {
    "saen": ("saen, modern, ten at once", None),
    "gin": (f"GIN, {GIN_LAYERS} × {GIN_WIDTH}, PyTorch Geometric", "torch-geometric"),
    "obvious": ("SAEN by gather and scatter", None),
    "weisfeiler_lehman": ("WL kernel and SVM, GraKeL", "grakel"),
}


def run(settings: Settings) -> dict[str, Any]:
    """One row per dataset and way."""
    names, skipped = at_hand(DATASETS, settings)
    rows = []
    for name in names:
        for way, (words, library) in WAYS.items():
            if library is not None and installed(library) is None:
                reason = f"{library} is not installed: pip install 'saen[bench]'"
                skipped.append({"what": words, "reason": reason})
                continue
            try:
                found = _measured(name, way, settings)
                rows.append({"dataset": name, "way": way, **found})
            except MeasurementError as error:
                skipped.append({"what": f"{name}, {words}", "reason": f"failed: {error}"})
    _compare(rows)
    checks = [] if settings.quick else _checks(rows)
    return {"rows": rows, "checks": checks, "skipped": skipped}


def _measured(name: str, way: str, settings: Settings) -> dict[str, Any]:
    epochs = 2 if settings.quick else EPOCHS
    if way == "saen":
        return _saen(name, settings.quick)
    whole = name in (WHOLE_FULL if settings.full else WHOLE)
    if way == "weisfeiler_lehman":
        return measure(weisfeiler_lehman, dataset=name)
    function = {"gin": gin, "obvious": obvious}[way]
    return measure(function, dataset=name, epochs=epochs, whole=whole)


def _saen(name: str, quick: bool) -> dict[str, Any]:
    """The command as it stands, every step of it, and its pace."""
    epochs = 2 if quick else EPOCHS
    line = SAEN.format(name=name) + f" --epochs {epochs}"
    with tempfile.TemporaryDirectory() as folder:
        found = measure(evaluation, line=line, folder=folder)
    report = found.pop("printed")
    return {
        **found,
        "command": line,
        "model_epoch": report["seconds"]["train"] / (FOLDS * epochs),
        "evaluation": found["seconds"]["total"],
        "accuracy": report["accuracy"]["mean"],
    }


def _compare(rows: list[dict[str, Any]]) -> None:
    """How many times as long as ours every peer takes, beside what it took."""
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
        whole = "" if "accuracy" in row else " (extrapolated)"
        for words, key, targets in (
            ("an epoch of a model, a tenth of ten at once", "model_epoch", FASTER_EPOCH),
            (f"ten folds{whole}", "evaluation", FASTER_EVALUATION),
        ):
            if name in targets:
                what = f"{name}, {words}: faster than GIN"
                measured = row[f"times_{key}"]
                checks.append(check(what, measured, targets[name], "times", at_least=True))
    return checks


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows = []
    for row in document["rows"]:
        whole = "accuracy" in row
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
                quantity(row["evaluation"], "s") + ("" if whole else " (extrapolated)"),
                times[1],
                quantity(row["peak_memory_bytes"], "bytes"),
                f"{100 * row['accuracy']:.1f} %" if whole else "",
            )
        )
    return "\n".join(
        [
            f"Ten folds, {EPOCHS} epochs, one network per fold, the same folds and cores for all; "
            "the kernel matrix is computed once for all folds, and the machine has C = 1. "
            f"saen is `{SAEN.format(name='NAME')}` from start to end, and the time of one of its "
            "models is a tenth of the group's. Extrapolated: from the preparation, the median of "
            f"{TIMED} epochs and the test of the first fold; loading is left out for the peers. "
            "PyTorch Geometric's loader puts its batches together again in every epoch, as it does "
            "by itself. Accuracy where a run was whole.\n",
            table(
                (
                    "dataset",
                    "way",
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
