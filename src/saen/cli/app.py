"""The application, and the options that stand before a command."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

from saen._version import __version__
from saen.cli.lazy import LazyGroup
from saen.cli.options import import_module_named


class Commands(LazyGroup):
    """The commands, in the order of `saen --help`; their help starts with the line given here."""

    panels: ClassVar = {
        "Learn": {
            "demo": "Make a small example and walk through it: validate, train, predict, explain, "
            "evaluate.",
            "train": "Train a model on your data, estimate its accuracy, and save it to one file.",
            "predict": "Predict graphs or other data, with or without targets, with a trained "
            "model.",
            "explain": "Explain a model's prediction for one example by the contributions of its "
            "parts.",
            "evaluate": "Cross-validate a model and report its scores.",
            "explore": "Explore a dataset with a model: one page with a map, all graphs and all "
            "unique parts.",
            "serve": "Serve a trained model over HTTP: predictions and explanations as JSON.",
        },
        "Data and files": {
            "validate": "Check a file: describe its content and list its problems with their "
            "lines.",
            "convert": "Convert data from any format that can be read, or any JSON to nested data.",
            "compress": "Decompose a dataset and merge identical objects on every level, without "
            "loss.",
            "inspect": "Describe a file: its kind, versions, sizes and settings.",
            "datasets": "List the catalog, or print the statistics of one dataset next to the "
            "paper's.",
            "decompositions": "List the decompositions, installed ones included, and their "
            "parameters.",
        },
        "Vectors and figures": {
            "embed": "Write the learned vectors (embeddings) of graphs or other data, or of their "
            "parts.",
            "plot": "Plot what other commands wrote.",
            "draw": "Draw one example next to its decomposition, or its hierarchy before and after "
            "compression.",
        },
        "The paper": {
            "reproduce": "Regenerate the paper's tables side by side with the published numbers.",
        },
    }


FIRST_STEPS = """\
Learn from graphs and other structured data. What one needs first:

  saen validate graphs.jsonl                           check a file, and see what is in it
  saen train graphs.jsonl --out model.saen             train a model, and estimate how good it is
  saen predict model.saen new.jsonl --out new.csv      predict other data
  saen explain model.saen new.jsonl --graph 0          see why it predicts what it does
  saen evaluate graphs.jsonl                           measure accuracy by cross-validation

saen demo makes a small example and walks through these in less than a minute.
saen --help lists all commands, saen COMMAND --help their options."""


app: typer.Typer = typer.Typer(
    cls=Commands,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn from graphs and other structured data: decompose, compress, train, explain.",
    epilog="Exit codes: 0 success, 2 invalid input or too little memory (one line on stderr), 130 "
    "interrupted by Ctrl-C, 141 the reader of standard output has left (as in saen … | head -1), "
    "143 terminated. An interrupted command leaves no half-written file.",
)


def _version(show: bool) -> None:
    if show:
        print(f"saen {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module with a decomposition of your own, for models that use it.",
        ),
    ] = None,
) -> None:
    """Options that stand before the command."""
    for module in modules or []:
        import_module_named(module)
    if context.invoked_subcommand is None:
        print(FIRST_STEPS)
