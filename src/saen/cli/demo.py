"""`saen demo`: the usual way from a file to an answer, on an example that it makes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from saen.cli import options
from saen.cli.output import heading, print_line
from saen.errors import FileError

STEPS = (
    ("Check a file: one line of JSON per graph", "validate {data}"),
    (
        "Learn from it, and estimate how good the model is",
        "train {data} --preset counts --out {out}",
    ),
    ("Predict graphs that have no target", "predict {out} {new}"),
    ("Explain one of the predictions", "explain {out} {new} --graph new-0 --parts 5"),
    (
        "Measure accuracy by cross-validation",
        "evaluate {data} --preset counts --repeats 1 --folds 5",
    ),
)


def command(
    folder: Annotated[Path, typer.Argument(help="Where to write the example.")] = Path("saen-demo"),
    force: options.Force = False,
) -> None:
    """Make a small example and walk through it: validate, train, predict, explain, evaluate.

    The example has 120 generated discussion threads, graphs of users who reply to each other; the
    two classes are discussions and questions. It takes less than a minute.

    Example: saen demo
    """
    if folder.exists() and not force:
        raise FileError("already exists (use --force to overwrite)", path=folder)
    from saen import generate_threads
    from saen.cli.app import app
    from saen.io.writing import write_data

    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "data": folder / "threads.jsonl",
        "new": folder / "new.jsonl",
        "out": folder / "model.saen",
    }
    threads = generate_threads(125, average_nodes=30, seed=1)
    new = threads[120:].with_targets(None).with_ids([f"new-{n}" for n in range(5)])
    write_data(threads[:120], files["data"], force=force)
    write_data(new, files["new"], force=force)
    for title, step in STEPS:
        words = step.format(**{name: shlex.quote(str(file)) for name, file in files.items()})
        heading(f"\n{title}")
        print_line(f"$ saen {words}")
        again = ["--force"] if force and "--out" in words else []
        app([*shlex.split(words), *again], standalone_mode=False)
    print_line(f"\nNow with data of your own: the files in {folder} show the format.")
