"""`saen compress`: merge the identical objects of a dataset and report how much that saves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saen._util.strings import human_bytes
from saen.cli import options
from saen.cli.output import heading, print_json, print_levels, print_lines
from saen.errors import InputError
from saen.io.options import ReadOptions

if TYPE_CHECKING:
    from saen.jobs.compress import CompressionReport


@options.reads_data
def command(
    name: options.Name,
    decomposition: options.DecompositionName = None,
    radii: options.Radii = None,
    node_labels: options.NodeLabels = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the compressed hierarchy here.")
    ] = None,
    cluster: options.Cluster = None,
    cluster_timeout: options.ClusterTimeout = 300,
    partitions: Annotated[
        int | None,
        typer.Option(
            help="Merge shards by this many ranges of keys into a folder: no task holds everything."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot objects before and after.")] = None,
    force: options.Force = False,
    json: options.AsJson = False,
    *,
    reading: ReadOptions,
) -> None:
    """Decompose a dataset and merge identical objects on every level, without loss.

    A folder of shards (saen convert --shards) is compressed shard by shard, on a cluster if you
    like; the file is the same.

    Example: saen compress IMDB-MULTI --radii 0,1,2 --out imdb.saen
    """
    from saen.cluster.compress import compress_into_partitions, compress_shards
    from saen.cluster.executors import open_executor
    from saen.io.store.shards import is_shards
    from saen.jobs.compress import compress_dataset, dataset_decomposition
    from saen.report.charts import plot_levels
    from saen.report.figures import check_figure, save_figure

    if plot is not None:
        check_figure(plot, force=force, inputs=[name, out])
    asked = dataset_decomposition(
        name, decomposition, radii=options.parse_radii(radii), node_labels=node_labels
    )
    report: CompressionReport
    if cluster is None and partitions is None and not is_shards(name):
        report = compress_dataset(name, asked, out, reading, force=force)
    elif partitions is not None and out is None:
        raise InputError("partitions need a folder to be written to: --out FOLDER")
    else:
        with open_executor(cluster or "serial", cluster_timeout) as executor:
            report = (
                compress_shards(name, asked, executor, out, force=force)
                if partitions is None or out is None
                else compress_into_partitions(name, asked, executor, out, partitions, force=force)
            )
    document = report.to_json()
    if json:
        print_json(document)
    else:
        _print(document, out)
    if plot is not None:
        title = f"{report.name}: objects before and after merging duplicates"
        save_figure(plot_levels(document["levels"], title), plot)


def _print(report: dict[str, Any], out: Path | None) -> None:
    from saen.report.summaries import describe_ceiling, describe_decomposition

    heading(f"{report['name']}, {describe_decomposition(report['decomposition'])}")
    print_levels(report["levels"])
    size, top = report["bytes"], report["levels"][-1]
    before = f"{human_bytes(size['original'])} → " if "original" in size else ""
    ratio = f" ({1 / size['ratio']:.1f} × smaller)" if size.get("ratio") else ""
    lines = {
        "size": f"{before}{human_bytes(size['compressed'])}{ratio}",
        "distinct": f"{report['distinct_graphs']:,} of {top['objects']:,} {top['name']}",
    }
    if report["ceiling"] is not None:
        lines["ceiling"] = describe_ceiling(report["ceiling"], report["decomposition"])
    seconds = report["seconds"]
    rate = top["objects"] / max(sum(seconds.values()), 1e-9)
    steps = ", ".join(f"{step} {s:.1f} s" for step, s in seconds.items() if step != "fit")
    lines["time"] = f"{steps}: {rate:,.0f} {top['name']} per second"
    if report["peak_memory_bytes"] is not None:
        lines["memory"] = f"peak {human_bytes(report['peak_memory_bytes'])}"
    if out is not None:
        lines["saved"] = str(out)
    print_lines(lines)
