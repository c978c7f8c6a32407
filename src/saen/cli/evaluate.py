"""`saen evaluate`: repeated stratified cross-validation, all trainings at once."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from saen.cli.app import AsJson, Labels, Name, Radii, console, heading, parse_radii, print_json
from saen.datasets import load_dataset
from saen.errors import InputError
from saen.progress import bar


def command(
    name: Name,
    repeats: Annotated[int, typer.Option(help="Cross-validations with other folds.")] = 10,
    folds: Annotated[int, typer.Option(help="Parts of each cross-validation.")] = 10,
    seed: Annotated[int, typer.Option(help="Decides folds, weights and batches.")] = 0,
    radii: Radii = None,
    labels: Labels = None,
    epochs: Annotated[int, typer.Option(help="Passes over the training part, fixed.")] = 40,
    n_models: Annotated[int, typer.Option(help="Networks whose answers are averaged.")] = 3,
    at_once: Annotated[
        int | None, typer.Option(help="Networks trained side by side. [default: by the device]")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    plot: Annotated[Path | None, typer.Option(help="Draw curves and confusion here.")] = None,
    json: AsJson = False,
) -> None:
    """Estimate the accuracy of the default classifier on a dataset by cross-validation.

    The number of epochs is fixed beforehand; test folds are looked at once, at the end.

    Example: saen evaluate MUTAG --repeats 3
    """
    from saen.charts import plot_evaluation
    from saen.estimators import SAENClassifier, chosen_device
    from saen.evaluation import cross_validate
    from saen.plots import save_figure

    start = perf_counter()
    graphs = load_dataset(name)
    loaded = perf_counter() - start
    if graphs.targets is None or graphs.targets.dtype.kind == "f":
        raise InputError(f"{name} has no classes to predict")
    estimator = SAENClassifier(
        radii="auto" if radii is None else parse_radii(radii),
        labels=labels or "auto",
        epochs=epochs,
        n_models=n_models,
        device=device,
    )
    total = repeats * folds * n_models * epochs
    with bar("trainings × epochs", total) as update:

        def epoch_done(finished: int, epoch: int, history: Any) -> None:
            update(finished * epochs + epoch * len(history.loss[-1]))

        found = cross_validate(
            estimator,
            graphs,
            graphs.targets,
            repeats=repeats,
            folds=folds,
            seed=seed,
            models_at_once=at_once,
            progress=epoch_done,
        )
    report = {
        "dataset": graphs.name or name,
        "preset": "modern",
        "protocol": {"repeats": repeats, "folds": folds, "stop": "fixed", "epochs": epochs},
        **found.report(),
        "device": str(chosen_device(device)),
        "versions": {
            "python": platform.python_version(),
            **{library: version(library) for library in ("saen", "torch", "numpy", "scikit-learn")},
        },
    }
    report["seconds"] = {"load": loaded, **report["seconds"]}
    if plot is not None:
        save_figure(plot_evaluation(found, f"{graphs.name or name}: {folds}-fold"), plot)
    if json:
        print_json(report)
    else:
        _print(report)


def _print(report: dict[str, Any]) -> None:
    protocol, accuracy = report["protocol"], report["accuracy"]
    heading(
        f"{report['dataset']}, {protocol['repeats']} × {protocol['folds']}-fold, "
        f"{protocol['epochs']} epochs fixed beforehand"
    )
    twins = report["duplicates"]
    lines = [
        f"accuracy   {100 * accuracy['mean']:.2f} ± {100 * accuracy['std']:.2f} % "
        f"(over repeats; ± {100 * accuracy['std_folds']:.2f} over folds)",
        f"ceiling    {100 * report['ceiling']:.2f} % for one fixed model, "
        f"{100 * report['ceiling_folds']:.2f} % for one model per fold",
        f"twins      {100 * twins['share']:.1f} % of the test graphs stand in training too"
        + (f", accuracy on them {100 * twins['accuracy']:.1f} %" if twins["accuracy"] else "")
        + (f", on the rest {100 * twins['accuracy_rest']:.1f} %" if twins["accuracy_rest"] else ""),
        "time       "
        + ", ".join(f"{step} {seconds:.1f} s" for step, seconds in report["seconds"].items())
        + f" on {report['device']}",
    ]
    console().print("\n".join(lines), soft_wrap=True)
