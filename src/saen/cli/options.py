"""Options that several commands share."""

from __future__ import annotations

import inspect
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer

from saen._util.remote import is_remote
from saen._util.strings import did_you_mean
from saen.cli.output import report_skipped, say
from saen.errors import FileError, InputError
from saen.io.options import ReadOptions

PRESETS = ("best", "network", "paper", "counts")
DEVICES = ("auto", "cpu", "cuda", "mps", "xpu")


def import_module_named(name: str) -> None:
    """Import a module that the user names, from the working directory too."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        import_module(name)
    except Exception as error:
        raise InputError(f"cannot import {name}: {error}") from None


def _import_class(decomposition: str | None) -> str | None:
    """Import the module of a decomposition that is given as package.module:Class."""
    name, reference, _ = (decomposition or "").partition("(")[0].partition(":")
    if reference:
        import_module_named(name.strip())
    return decomposition


Name = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A dataset's name, or a file or folder: TUDataset, JSON lines, tables, GraphML, GML, "
        "edge lists, SMILES, SDF, .saen; or - for JSON lines on standard input.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
DecompositionName = Annotated[
    str | None,
    typer.Option(
        "--decomposition",
        "-d",
        callback=_import_class,
        help="How to decompose the data: a name or name(parameter=value, …), as listed by "
        "saen decompositions, or package.module:Class.",
        show_default="by the kind of data, ego for graphs",
    ),
]
NODE_LABELS = (
    "Node labels: node, degree, core, triangles (or log-degree:b and so on), rings, hub, element, "
    "attributes, attribute-bins:b, or several separated by commas."
)
Radii = Annotated[
    str | None, typer.Option(help="Radii of ego graphs, such as 0,1.", show_default="the paper's")
]
NodeLabels = Annotated[
    str | None,
    typer.Option(
        help=NODE_LABELS,
        show_default="the paper's, else node labels, else the degree",
    ),
]
OtherDecomposition = Annotated[
    str | None,
    typer.Option(
        "--decomposition",
        "-d",
        callback=_import_class,
        help="How to decompose the data: a name or name(parameter=value, …), as listed by "
        "saen decompositions, or package.module:Class.",
        show_default="the preset's",
    ),
]
OtherNodeLabels = Annotated[
    str | None,
    typer.Option(
        help=NODE_LABELS,
        show_default="the preset's",
    ),
]
OtherRadii = Annotated[
    str | None,
    typer.Option("--radii", help="Radii of ego graphs, such as 0,1.", show_default="the preset's"),
]
PresetName = Annotated[
    str,
    typer.Option(
        help="best: several models, weighted by cross-validation; counts: a linear model over part "
        "counts; network; paper; or a .toml file."
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        help="Keep groups on one side of every split: a column of the table or key of JSON "
        "lines, a file with one line per graph, scaffold (molecules), overlap (graphs that share "
        "rare parts) or duplicates.",
        show_default="no groups",
    ),
]
Budget = Annotated[
    Literal["quick", "normal", "thorough"] | None,
    typer.Option(help="How many candidates preset best tries.", show_default="normal"),
]
Metric = Annotated[
    Literal[
        "accuracy",
        "balanced_accuracy",
        "f1",
        "roc_auc",
        "average_precision",
        "log_loss",
        "mcc",
        "mae",
        "rmse",
        "r2",
    ]
    | None,
    typer.Option(
        help="The metric shown first; it also selects settings under nested and decides the "
        "weights of preset best, which otherwise come from the log loss (squared error).",
        show_default="accuracy; regression: mae",
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(min=0, help="Epochs of training networks.", show_default="the preset's"),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Device = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu or cuda.")]
ReportPage = Annotated[
    Path | None,
    typer.Option("--report", help="Write an HTML report here."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        envvar="SAEN_CLUSTER",
        help="Run tasks on serial, local:N (processes), ray or ray://HOST:PORT.",
        show_default="this process",
    ),
]
ClusterTimeout = Annotated[
    float,
    typer.Option(min=0, help="Seconds to wait for workers while a Ray cluster has no CPUs."),
]
ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A file that saen train wrote.", readable=False),
]
VectorsFile = Annotated[
    Path | None,
    typer.Option("--vectors", help="The file of word vectors that the model was trained with."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="<str>",
        help="Columns of the input to copy to the table, separated by commas or one by one, or "
        "all; as input_NAME where the table has a NAME of its own.",
    ),
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


READING: dict[str, Any] = {
    "target": Annotated[
        list[str] | None,
        typer.Option(
            metavar="<str>",
            help="What to learn: columns of a table or keys of JSON lines, separated by commas or "
            "one by one; all (every numeric column); labels or attributes of TUDataset files.",
            show_default="target",
        ),
    ],
    "id": Annotated[
        str | None,
        typer.Option(
            help="The column or key with the ids.", show_default="id; in tables also name"
        ),
    ],
    "smiles": Annotated[
        str | None, typer.Option(help="The column with molecules.", show_default="smiles")
    ],
    "features": Annotated[
        list[str] | None,
        typer.Option(
            metavar="<str>",
            help="Numeric columns or keys that models read in addition to the parts, separated "
            "by commas; rdkit adds descriptors of molecules.",
            show_default="none, or the model's",
        ),
    ],
    "node_label": Annotated[
        str | None,
        typer.Option(
            help="Columns of nodes, or attributes of GraphML and GML, that are labels, separated "
            "by commas; each is a label of its own.",
            show_default="label, and all text",
        ),
    ],
    "node_attribute": Annotated[
        str | None,
        typer.Option(
            help="Columns of nodes that are real attributes.", show_default="all other numbers"
        ),
    ],
    "edge_label": Annotated[
        str | None,
        typer.Option(help="Columns of edges that are labels.", show_default="label, and all text"),
    ],
    "edge_weight": Annotated[
        str | None,
        typer.Option(
            help="Numeric columns of edges that are weights.", show_default="all other numbers"
        ),
    ],
    "task": Annotated[
        Literal["classification", "regression"] | None,
        typer.Option(
            help="Classification or regression.",
            show_default="classification for integers and text",
        ),
    ],
    "directed": Annotated[
        bool,
        typer.Option(
            "--directed", help="Read edge lists, tables of edges and TUDataset text as directed."
        ),
    ],
    "atom_labels": Annotated[
        Literal["smiles", "element"] | None,
        typer.Option(
            help="Node labels of molecules: atoms with charge, aromaticity and stereochemistry "
            "(smiles), of which models read what helps, or the element alone.",
            show_default="smiles, or the model's",
        ),
    ],
    "largest_fragment": Annotated[
        bool,
        typer.Option(
            "--largest-fragment", help="Read only the largest fragment of salts and mixtures."
        ),
    ],
    "word": Annotated[
        Literal["form", "lemma", "upos"] | None,
        typer.Option(
            help="What the words of CoNLL-U are: forms, lemmas or parts of speech.",
            show_default="form, or the model's",
        ),
    ],
    "nodes_file": Annotated[
        Path | None, typer.Option(help="The table of nodes that belongs to a table of edges.")
    ],
    "targets_file": Annotated[
        Path | None,
        typer.Option(
            help="The table of targets of graphs.", show_default="targets.csv next to them"
        ),
    ],
    "skip_bad": Annotated[
        bool, typer.Option("--skip-bad", help="Skip unreadable records and list them.")
    ],
}
"""The options of `ReadOptions`, by the names of its fields."""


def reads_data(command: Callable[..., None], without: str = "") -> Callable[..., None]:
    """Give a command the options of `READING`, or all but one, in place of its parameter `reading`.

    What it reads is looked for at once: mistakes are reported before anything large is imported.
    Standard input (`-`) is saved to a file for as long as the command runs.
    """
    own = inspect.signature(command, eval_str=True)
    parameters = [each for name, each in own.parameters.items() if name != "reading"]
    parameters += [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(ReadOptions, name),
            annotation=kind,
        )
        for name, kind in READING.items()
        if name != without
    ]

    def run(**values: Any) -> None:
        chosen = {name: values.pop(name) for name in READING if name != without}
        from saen.io.parsing.tables import join_names  # imports numpy

        for name in ("target", "features"):
            chosen[name] = join_names(chosen[name]) if chosen[name] else None
        source = next(name for name in ("data", "name", "source") if name in values)
        _check_early(values, values[source])
        with report_skipped() as report, _saved(values[source]) as values[source]:
            command(**values, reading=ReadOptions(**chosen, report=report, notify=_note))

    run.__doc__ = command.__doc__
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


@contextmanager
def _saved(source: str) -> Iterator[str]:
    """The source, or for `-` a file with the JSON lines of standard input."""
    if source != "-":
        yield source
        return
    with TemporaryDirectory(prefix="saen-") as folder:
        file = Path(folder) / "standard-input.jsonl"
        with file.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        try:
            yield str(file)
        except FileError as error:
            if error.path != file:
                raise
            raise FileError(error.reason, path="standard input", line=error.line) from None


def _check_early(values: dict[str, Any], source: str) -> None:
    """Raise for mistakes that can be seen without reading anything."""
    from saen.io.sources.local import check_source

    if "model" in values and not (values["model"].exists() or is_remote(values["model"])):
        raise FileError("no such file", path=values["model"])
    if source != "-":
        check_source(source)
    preset, device = values.get("preset"), values.get("device", "auto")
    if preset is not None and preset not in PRESETS and Path(preset).suffix != ".toml":
        raise InputError(
            f"unknown preset {preset!r}{did_you_mean(preset, PRESETS)}: "
            f"choose from {', '.join(PRESETS)}, or give a .toml file"
        )
    if device.partition(":")[0] not in DEVICES:
        raise InputError(f"unknown device {device!r}: use auto, cpu or cuda")
    if values.get("decomposition") is not None:
        from saen.decompositions import make_decomposition

        make_decomposition(values["decomposition"])


def _note(line: str) -> None:
    say(f"note: {line}")


def import_estimators() -> None:
    """Import the base of estimators without pandas and scipy.stats, half of what it takes."""
    from saen.cli.lazy import import_without

    import_without("sklearn.base", "pandas", "scipy.stats")
