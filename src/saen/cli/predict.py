"""`saen predict`: what a trained model says of graphs or other structures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from saen._util.arrays import Array
from saen._util.progress import bar
from saen.cli.app import AsJson, Device, Name, SkipBad, console, print_json, read_input
from saen.errors import FileError, InputError
from saen.io.result_tables import FORMATS, check_format, open_table

if TYPE_CHECKING:
    from saen.learning.prediction import Model

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that saen train wrote.")]


def command(
    model: ModelFile,
    data: Name,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", help=f"A file ({', '.join(FORMATS)}), or - for CSV on standard output."
        ),
    ] = "-",
    skip_bad: SkipBad = False,
    device: Device = "auto",
    json: AsJson = False,
) -> None:
    """Predict graphs or other structures, with or without targets, by a trained model.

    Writes one row per structure: its number, the prediction, one probability per class, and the
    agreement, which is the share of the model's networks that say the same alone; or for numbers
    the prediction and its standard deviation over the networks. Where the data have targets, how
    many are met is told on standard error.

    Example: saen predict mutag.saen new-molecules.saen --out predictions.csv
    """
    from saen.learning.metrics import prediction_scores
    from saen.learning.prediction import predict_chunks

    place = None if out == "-" else Path(out)
    if place is not None:
        check_format(place, FORMATS)
    elif json:
        raise InputError("--json needs --out FILE: predictions go to standard output")
    loaded = load_model(model, device)
    structures = read_input(data, takes(loaded), skip_bad=skip_bad, taker=str(model))
    predicted: list[Array] = []
    unseen = objects = 0
    with bar("predicting", len(structures)) as update, open_table(place) as write:
        for part in predict_chunks(loaded, structures):
            first = next(iter(part.columns.values()))
            numbers = np.arange(part.start, part.start + len(first))
            write({"graph": numbers, **part.columns})
            update(part.start + len(first))
            unseen, objects = unseen + part.unseen, objects + part.objects
            if structures.targets is not None and "prediction" in part.columns:
                predicted.append(first)
    warn_unseen(loaded, unseen, objects)
    answers = np.concatenate(predicted) if predicted else np.empty(0)
    score = prediction_scores(getattr(loaded, "classes_", None), structures.targets, answers)
    if json:
        print_json(
            {
                "out": out,
                "structures": len(structures),
                "unseen": unseen / objects if objects else 0.0,
                **score,
            }
        )
        return
    if score:
        told = ", ".join(
            _WORDS[key].format(100 * value if key == "accuracy" else value)
            for key, value in score.items()
        )
        typer.echo(f"saen: {told} on {len(structures):,} {takes(loaded)} with targets", err=True)
    if place is not None:
        console().print(f"written    {out}", soft_wrap=True)


_WORDS = {"accuracy": "accuracy {:.1f} %", "r2": "R² {:.3f}", "mae": "mean absolute error {:.4g}"}


def load_model(path: Path, device: str) -> Model:
    """A model that was saved, on a device."""
    from saen.learning.estimators import chosen_device
    from saen.learning.persistence import load_estimator

    loaded: Model = load_estimator(path)
    if loaded.decomposition_ is None:
        raise FileError(
            "this model was fitted on hierarchies, which nothing takes apart: use it in Python",
            path=path,
        )
    loaded.network_.to(chosen_device(device))
    return loaded


def takes(model: Model) -> str:
    """What a model's decomposition takes apart."""
    assert model.decomposition_ is not None
    return model.decomposition_.takes


def warn_unseen(model: Model, unseen: int, objects: int) -> None:
    """Say on standard error which share of the bottom objects has labels that are new."""
    if not unseen:
        return
    share = 100 * unseen / objects
    words = "all" if unseen == objects else f"{share:.0f} %" if share >= 1 else "less than 1 %"
    name = model.schema_.names[0]
    typer.echo(
        f"saen: warning: {words} of the {name} have labels that the model has not seen", err=True
    )
