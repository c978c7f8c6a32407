"""How sizes grow with the number of graphs, and what that means for far more of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from time import process_time
from typing import Any

import numpy as np

from benchmarks.cluster import NODES
from benchmarks.measure import measure, measured, peak_memory, say
from benchmarks.report import quantity, table
from benchmarks.settings import Settings

TITLE = "Growth"

COUNTS = (3_000, 6_000, 12_000, 24_000, 48_000, 150_000, 480_000)
FITTED = 48_000
"""Rows up to here predict the last one: a decade beyond."""
AHEAD = (10**7, 10**9)
MACHINE = 64 * 10**9
"""Bytes of memory."""


def growth(counts: list[int]) -> dict[str, Any]:
    """Unique objects and entries after every number of generated threads, one shard at a time.

    Every shard has a seed of its own; CPU seconds are those up to there.
    """
    from saen import Compressed, generate_threads, merge
    from saen.data.compression import compress_stream
    from saen.decompositions import Ego

    start, ego, rows, done = process_time(), Ego(), list[dict[str, Any]](), 0
    total: list[Compressed] = []
    for count in counts:
        size = min(count - done, 1_000)
        threads = (
            generate_threads(size, average_nodes=NODES, seed=seed)
            for seed in range(done, count, size)
        )
        new = compress_stream((ego.decompose(part) for part in threads), lower_inverse=False)
        total, done = [merge([*total, new])], count
        hierarchy = total[0].hierarchy
        row = {
            "graphs": len(total[0]),
            "unique": list(hierarchy.sizes),
            "entries": [relation.n_entries for relation in hierarchy.relations],
            "cpu_seconds": process_time() - start,
            "peak_memory_bytes": peak_memory(),
        }
        rows.append(row)
        say(f"    {json.dumps(row)}")
    return {"seconds": {"growth": process_time() - start}, "rows": rows}


def run(settings: Settings) -> dict[str, Any]:
    """One row per number of graphs, all of one process."""
    counts = [100, 200, 400] if settings.quick else list(COUNTS)
    skipped: list[dict[str, Any]] = []
    results = measured({"growth": lambda: measure(growth, counts=counts)}, skipped)
    rows = results[0]["rows"] if results else []
    known = [row for row in rows if row["graphs"] <= (200 if settings.quick else FITTED)]
    return {
        "rows": rows,
        "predicted": _extrapolate(known, rows[-1]["graphs"]) if rows else None,
        "ahead": [_extrapolate(rows[-3:], n) for n in AHEAD] if rows else [],
        "checks": [],
        "skipped": skipped,
    }


def _extrapolate(rows: list[dict[str, Any]], n: int) -> dict[str, Any]:
    """What some rows give for n graphs: powers fitted in logarithms."""
    graphs = np.log([row["graphs"] for row in rows])

    def power(values: list[float]) -> tuple[float, float]:
        exponent, constant = np.polyfit(graphs, np.log(values), 1)
        return float(exponent), float(np.exp(constant + exponent * np.log(n)))

    laws = {
        "unique": power([row["unique"][1] for row in rows]),
        "entries_1": power([row["entries"][0] for row in rows]),
        "entries_2": power([row["entries"][1] for row in rows]),
    }
    values = {key: value for key, (_, value) in laws.items()}
    # A part (4 or 8 bytes), a role and a count per entry; keys and offsets per object.
    size = 8 * (values["entries_1"] + values["entries_2"]) + 24 * (values["unique"] + n)
    # In proportion to the graphs, from the last row: the first ones are mostly starting up.
    share = n / rows[-1]["graphs"]
    return {
        "graphs": n,
        **values,
        "exponents": {key: exponent for key, (exponent, _) in laws.items()},
        "bytes": size,
        "cpu_seconds": rows[-1]["cpu_seconds"] * share,
        "peak_memory_bytes": rows[-1]["peak_memory_bytes"] * share,
    }


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    rows, predicted = document["rows"], document["predicted"]
    if not rows:
        return ""
    last = rows[-1]
    cells = [
        (
            f"{row['graphs']:,}",
            f"{row['unique'][1]:,}",
            f"{row['entries'][0]:,}",
            f"{row['entries'][1]:,}",
            f"{row['cpu_seconds']:.0f} s",
            quantity(row["peak_memory_bytes"], "bytes"),
        )
        for row in rows
    ]
    headings = (
        "graphs",
        "unique ego graphs",
        "their entries",
        "entries of graphs",
        "CPU",
        "memory",
    )
    off = [
        predicted[key] / true - 1
        for key, true in (
            ("unique", last["unique"][1]),
            ("entries_1", last["entries"][0]),
            ("entries_2", last["entries"][1]),
        )
    ]
    ahead = [
        (
            f"{row['graphs']:.0e}",
            f"{row['unique']:.1e}",
            f"{row['entries_1'] + row['entries_2']:.1e}",
            quantity(row["bytes"], "bytes"),
            f"{row['cpu_seconds'] / 3600:,.1f}",
            quantity(row["peak_memory_bytes"], "bytes"),
            f"{-(-row['peak_memory_bytes'] // MACHINE):,.0f}",
        )
        for row in document["ahead"]
    ]
    laws = document["ahead"][0]["exponents"]
    limit = int(MACHINE / last["peak_memory_bytes"] * last["graphs"])
    return "\n".join(
        [
            f"Generated threads of {NODES} nodes, a thousand at a time with a seed of their own, "
            "compressed (ego graphs of radii 0, 1) and merged in one process:\n",
            table(headings, cells, words=0),
            f"Powers of the number of graphs fitted to the rows up to {FITTED:,} predict the last "
            f"row to {off[0]:+.1%} (unique ego graphs), {off[1]:+.1%} (their entries) and "
            f"{off[2]:+.1%} (entries of graphs). Those fitted to the last three rows have the "
            f"exponents {laws['unique']:.2f}, {laws['entries_1']:.2f} and {laws['entries_2']:.2f}; "
            "extrapolated with them, CPU time and memory in proportion to the graphs:\n",
            table(
                (
                    "graphs",
                    "unique ego graphs",
                    "entries",
                    "bytes",
                    "core hours",
                    "memory of one merge",
                    "machines of 64 GB",
                ),
                ahead,
                words=0,
            ),
            "What ends first is the memory of the process that merges everything: at about "
            f"{limit:.0e} graphs on a machine of 64 GB. From there on, merge by ranges "
            "(`--partitions`), with several times as many ranges as machines.\n",
        ]
    )
