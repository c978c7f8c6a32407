"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from saen.errors import InputError

Name = Annotated[
    str,
    typer.Argument(
        help="A dataset's name, or a file or folder: TUDataset, JSON lines, "
        "tables, GraphML, GML, edge lists, SMILES, saen."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
DecompositionName = Annotated[
    str,
    typer.Option(
        "--decomposition",
        "-d",
        help="How to decompose the data: a name or name(parameter=value, …), as listed by "
        "saen decompositions.",
    ),
]
Radii = Annotated[
    str | None, typer.Option(help="Radii of ego graphs, such as 0,1. [default: the paper's]")
]
NodeLabels = Annotated[
    str | None,
    typer.Option(
        help="Node labels: node, degree, log-degree:b, attributes, or several separated by commas. "
        "[default: the paper's, else node labels, else the degree]"
    ),
]
OtherDecomposition = Annotated[
    str | None,
    typer.Option(
        "--decomposition",
        "-d",
        help="Instead of the preset's: a name or name(parameter=value, …), as listed by "
        "saen decompositions.",
    ),
]
OtherNodeLabels = Annotated[str | None, typer.Option(help="Node labels instead of the preset's.")]
OtherRadii = Annotated[
    str | None, typer.Option("--radii", help="Radii such as 0,1 instead of the preset's.")
]
PresetName = Annotated[str, typer.Option(help="best, modern, paper, counts, or a .toml file.")]
OptionalPreset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="best, modern, paper, counts, or a .toml file. [default: best; modern where options "
        "of networks are given]",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(help="How much preset best tries: quick, normal or thorough. [default: normal]"),
]
Target = Annotated[
    str | None,
    typer.Option(
        help="What to learn: columns of a table, separated by commas, or labels or attributes of "
        "TUDataset files."
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="What is shown first, and decides under nested: accuracy, balanced_accuracy, f1, "
        "roc_auc, average_precision, log_loss or mcc; for numbers mae, rmse or r2."
    ),
]
Epochs = Annotated[int | None, typer.Option(help="Instead of the preset's.")]
Seed = Annotated[int, typer.Option(help="Random seed of splits, weights and batches.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
ReportPage = Annotated[
    Path | None,
    typer.Option("--report", help="Write an HTML report on data, training and predictions here."),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip unreadable records and list them.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that saen train wrote.")]
NodesFile = Annotated[
    Path | None,
    typer.Option("--nodes", help="The table of nodes that belongs to a table of edges."),
]
TargetsFile = Annotated[
    Path | None,
    typer.Option("--targets", help="The table of targets of graphs. [default: targets.csv beside]"),
]
Directed = Annotated[
    bool, typer.Option(help="Read edge lists, tables of edges and TUDataset text as directed.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what already exists.")]


def parse_radii(text: str | None) -> tuple[int, ...] | None:
    """Integers separated by commas.

    >>> parse_radii("0,1")
    (0, 1)
    """
    if text is None:
        return None
    try:
        return tuple(int(radius) for radius in text.split(","))
    except ValueError:
        raise InputError(f"radii are integers such as 0,1, not {text!r}") from None


def overrides(
    decomposition: str | None,
    node_labels: str | None,
    radii: str | None,
    epochs: int | None,
    n_models: int | None,
    budget: str | None,
) -> dict[str, Any]:
    """Settings instead of a preset's, by the names of the estimators' parameters."""
    return {
        "decomposition": decomposition,
        "node_labels": node_labels,
        "radii": parse_radii(radii),
        "epochs": epochs,
        "n_models": n_models,
        "budget": budget,
    }
