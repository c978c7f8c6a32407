"""One graph with a hub, paths around hubs, large call graphs, part counts of a large dataset."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import not_available
from benchmarks.measure import Stopwatch, measure, measured
from benchmarks.report import GB, check, quantity, table
from benchmarks.settings import Settings
from saen import Graphs, PartCounts, compress_graphs, load_dataset
from saen.decompositions import Ego, Neighbourhoods, Paths
from saen.io.sources.local import locate

TITLE = "Very large graphs"

HUB_NODES = (125_000, 250_000, 500_000, 1_000_000)  # five times as many edges, half at one hub
CALL_GRAPHS = 5_000
QUICK_DIVISOR = 500
PATHS: dict[str, dict[str, Any]] = {
    "REDDIT-BINARY": {"radii": [1], "max_length": 2, "rank": 0},
    "COLLAB": {"radii": [1, 2], "max_length": 3, "rank": 100},
}
COUNTED = "REDDIT-MULTI-12K"

MAX_MEMORY = 8 * GB
MAX_COUNTING_SECONDS, MAX_COUNTING_MEMORY = 30, 4 * GB


# -- what is measured, each in its own process -------------------------------------------------


def hub(n_nodes: int) -> dict[str, Any]:
    """A random graph whose first node is joined to half of the others, radii 0, 1 and 2."""
    rng = np.random.default_rng(0)
    leaves = rng.choice(np.arange(1, n_nodes), n_nodes // 2, replace=False)
    others = rng.integers(0, n_nodes, (5 * n_nodes - len(leaves), 2))
    edges = np.vstack([others, np.column_stack([np.zeros_like(leaves), leaves])])
    graph = Graphs.from_edges(edges, [n_nodes], duplicates="merge")
    return _compressed(graph, Ego((0, 1, 2)))


def paths(dataset: str, radii: list[int], max_length: int, rank: int) -> dict[str, Any]:
    """The graph of a dataset with nearly the most paths; `rank` graphs have more."""
    graphs = load_dataset(dataset)
    decomposition = Paths(tuple(radii), max_length)
    graph = int(np.argsort(-decomposition.costs(graphs), kind="stable")[rank])
    return _compressed(graphs[graph : graph + 1], decomposition)


def call_graphs(n_graphs: int) -> dict[str, Any]:
    """Random directed graphs, few nodes of which are called by many, to depth 4."""
    rng = np.random.default_rng(0)
    sizes = np.maximum(rng.lognormal(np.log(1400) - 0.32, 0.8, n_graphs), 5).astype(np.int64)
    size = np.repeat(sizes, 2 * sizes)
    start = np.repeat(np.cumsum(sizes) - sizes, 2 * sizes)
    ends = (rng.random((len(size), 2)) ** (1, 3) * size[:, None]).astype(np.int64)
    edges = (ends + start[:, None])[ends[:, 0] != ends[:, 1]]
    graphs = Graphs.from_edges(edges, sizes, directed=True, duplicates="merge")
    return _compressed(graphs, Neighbourhoods(depth=4))


def counted(dataset: str) -> dict[str, Any]:
    """Part counts at depth 3."""
    graphs, watch = load_dataset(dataset), Stopwatch()
    features = watch("count", PartCounts("neighbourhoods(depth=3)").fit_transform, graphs)
    return {"seconds": watch.seconds, "entries": int(features.nnz), **_sizes(graphs)}


def _compressed(graphs: Graphs, decomposition: Any) -> dict[str, Any]:
    watch = Stopwatch()
    fitted = watch("fit", decomposition.fit, graphs)
    compressed = watch("compress", partial(compress_graphs, graphs, fitted, lower_inverse=False))
    cut = fitted.cut(graphs)
    return {
        "seconds": watch.seconds,
        "entries": sum(compressed.entries),
        "made": None if cut is None else int(cut.costs.sum()),
        **_sizes(graphs),
    }


def _sizes(graphs: Graphs) -> dict[str, int]:
    return {"graphs": len(graphs), "nodes": graphs.n_nodes, "edges": graphs.n_edges}


# -- the part ----------------------------------------------------------------------------------


def run(settings: Settings) -> dict[str, Any]:
    """One row per case."""
    skipped: list[dict[str, Any]] = []
    divisor = QUICK_DIVISOR if settings.quick else 1
    cases: dict[str, Any] = {
        f"hub, {n // divisor:,} nodes": partial(measure, hub, n_nodes=n // divisor)
        for n in (HUB_NODES[:2] if settings.quick else HUB_NODES)
    }
    cases["call graphs"] = partial(measure, call_graphs, n_graphs=CALL_GRAPHS // divisor)
    datasets: dict[str, Any] = {
        name: {f"{name}, paths": partial(measure, paths, dataset=name, **options)}
        for name, options in PATHS.items()
    }
    datasets[COUNTED] = {f"{COUNTED}, part counts": partial(measure, counted, dataset=COUNTED)}
    for name, own in datasets.items():
        if settings.quick:
            skipped.append({"what": name, "reason": "too large for a quick run"})
        elif locate(name) is None:
            skipped.append(not_available(name))
        else:
            cases |= own
    rows = measured({name: partial(_row, name, case) for name, case in cases.items()}, skipped)
    document: dict[str, Any] = {"rows": rows, "checks": [], "skipped": skipped}
    if not settings.quick:
        document["checks"] = [check for row in rows for check in _checks(row)]
    return document


def _row(name: str, case: Any) -> dict[str, Any]:
    return {"case": name, **case()}


def _checks(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    memory = row["peak_memory_bytes"]
    if "made" in row:
        return [check(f"{row['case']}: peak memory", memory, MAX_MEMORY, "bytes")]
    return [
        check(row["case"], row["seconds"]["total"], MAX_COUNTING_SECONDS, "s"),
        check(f"{row['case']}: peak memory", memory, MAX_COUNTING_MEMORY, "bytes"),
    ]


def markdown(document: Mapping[str, Any]) -> str:
    """The table of cases."""
    return "\n".join(
        [
            "One run each. `hub`: one random graph with five times as many edges as nodes, half of "
            "the nodes around one hub, ego graphs of radius 0, 1 and 2. `call graphs`: random "
            "directed graphs, neighbourhoods of depth 4. `paths`: one graph of the dataset with "
            "large hubs. Entries are those of the whole hierarchy (of part counts: numbers in the "
            "matrix); `made` is about how many are made where the graph is cut, since what is "
            "equal is made once.\n",
            table(
                ("case", "nodes", "edges", "entries", "made", "seconds", "CPU", "peak memory"),
                [
                    (
                        row["case"],
                        f"{row['nodes']:,}",
                        f"{row['edges']:,}",
                        f"{row['entries']:,}",
                        f"{row['made']:,}" if row.get("made") else "",
                        quantity(row["seconds"]["total"], "s"),
                        quantity(row["cpu_seconds"], "s"),
                        quantity(row["peak_memory_bytes"], "bytes"),
                    )
                    for row in document["rows"]
                ],
            ),
        ]
    )
