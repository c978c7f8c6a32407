"""`saen evaluate`: repeated stratified cross-validation, all trainings at once."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import saen
from saen.cli.app import AsJson, Name, console, heading, print_json
from saen.datasets import find_entry, load_structures
from saen.decompositions.registry import named_decomposition, parse_decomposition
from saen.errors import InputError
from saen.progress import bar
from saen.vocabulary import Vocabulary

if TYPE_CHECKING:
    from saen.evaluation import Evaluation
    from saen.presets import Preset


class Stop(StrEnum):
    """How the number of epochs is decided."""

    fixed = "fixed"
    nested = "nested"
    peek = "peek"


def command(
    name: Name,
    preset: Annotated[str, typer.Option(help="modern, paper, or a .toml file.")] = "modern",
    decomposition: Annotated[
        str | None,
        typer.Option(
            "--decomposition",
            "-d",
            help="Instead of the preset's: a name or name(parameter=value, …), as listed by "
            "saen decompositions.",
        ),
    ] = None,
    labels: Annotated[str | None, typer.Option(help="Vertex labels instead of the preset's.")] = (
        None
    ),
    stop: Annotated[
        Stop,
        typer.Option(
            help="fixed: epochs set in advance; nested: settings chosen inside each training part; "
            "peek: best epoch on the test folds, for comparison with papers that do so."
        ),
    ] = Stop.fixed,
    repeats: Annotated[int, typer.Option(help="Cross-validations with other folds.")] = 10,
    folds: Annotated[int, typer.Option(help="Parts of each cross-validation.")] = 10,
    seed: Annotated[int, typer.Option(help="Decides folds, weights and batches.")] = 0,
    splits: Annotated[
        Path | None, typer.Option(help="Folds from a JSON file, as a run directory keeps them.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Instead of the preset's.")] = None,
    n_models: Annotated[
        int | None, typer.Option(help="Networks per fold whose answers are averaged.")
    ] = None,
    at_once: Annotated[
        int | None, typer.Option(help="Networks trained side by side. [default: timed]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory: keeps everything, and goes on from there.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    plot: Annotated[Path | None, typer.Option(help="Draw curves and confusion here.")] = None,
    json: AsJson = False,
) -> None:
    """Estimate the accuracy of a classifier on a dataset by repeated cross-validation.

    Example: saen evaluate MUTAG --repeats 3 --out runs/mutag
    """
    from saen.charts import plot_evaluation
    from saen.plots import save_figure

    report, found = evaluate_dataset(
        name,
        preset=preset,
        stop=stop,
        repeats=repeats,
        folds=folds,
        seed=seed,
        splits=splits,
        overrides={
            "decomposition": decomposition,
            "labels": labels,
            "epochs": epochs,
            "n_models": n_models,
        },
        at_once=at_once,
        out=out,
        device=device,
    )
    if plot is not None:
        protocol = report["protocol"]
        title = f"{report['dataset']}: {protocol['repeats']} × {protocol['folds']}-fold"
        save_figure(plot_evaluation(found, title), plot)
    if json:
        print_json(report)
    else:
        _print(report)


def evaluate_dataset(
    name: str,
    *,
    preset: str = "modern",
    stop: str = "fixed",
    repeats: int = 10,
    folds: int = 10,
    seed: int = 0,
    splits: Path | None = None,
    overrides: dict[str, Any] | None = None,
    at_once: int | None = None,
    out: Path | None = None,
    device: str = "auto",
) -> tuple[dict[str, Any], Evaluation]:
    """Cross-validate a preset on a dataset, in a run directory if there is to be one."""
    from saen.presets import load_preset
    from saen.runs import open_run, splits_from_json, write_json

    chosen = load_preset(preset)
    entry = find_entry(name)
    settings = chosen.settings(entry.name if entry is not None else name)
    settings |= {key: value for key, value in (overrides or {}).items() if value is not None}
    start = perf_counter()
    structures = load_structures(name, _takes(settings))
    loaded = perf_counter() - start
    if structures.targets is None or structures.targets.dtype.kind == "f":
        raise InputError(f"{name} has no classes to predict")
    given = None if splits is None else splits_from_json(splits, len(structures))
    protocol = {
        "repeats": repeats if given is None else len(given),
        "folds": folds if given is None else len(given[0]),
        "stop": str(stop),
    }
    recorded = {
        "dataset": structures.name or name,
        "preset": chosen.name,
        "settings": settings,
        "grid": chosen.grid if stop == "nested" else {},
        "protocol": protocol,
        "seed": seed,
        "at_once": at_once,
        "data": _digest(structures, given),
        "versions": _versions(),
    }
    with open_run(out, recorded) if out is not None else nullcontext() as folder:
        found = _evaluate(
            structures, chosen, settings, protocol, seed, given, at_once, folder, device
        )
        report = _report(recorded, found, loaded, device)
        if folder is not None:
            write_json(folder / "summary.json", report)
    return report, found


def _takes(settings: dict[str, Any]) -> str:
    """What the decomposition that the settings name takes apart."""
    name, _ = parse_decomposition(settings.get("decomposition", "ego"))
    return named_decomposition(name).takes


def _evaluate(
    structures: Any,
    preset: Preset,
    settings: dict[str, Any],
    protocol: dict[str, Any],
    seed: int,
    splits: Any,
    at_once: int | None,
    folder: Path | None,
    device: str,
) -> Evaluation:
    from saen.estimators import SAENClassifier
    from saen.evaluation import cross_validate

    with bar("networks × epochs", 1) as update:
        return cross_validate(
            SAENClassifier(**settings, device=device),
            structures,
            structures.targets,
            repeats=protocol["repeats"],
            folds=protocol["folds"],
            seed=seed,
            stop=protocol["stop"],
            grid=preset.choices(),
            splits=splits,
            models_at_once=at_once,
            folder=folder,
            progress=lambda done, total: update(done, total=total),
        )


def _digest(structures: Any, splits: Any) -> str:
    """What a run is about: the structures, their targets and the splits that were given."""
    digest = hashlib.blake2b(digest_size=16)
    folds = [part for parts in splits or [] for fold in parts for part in fold]
    for column in [*_columns(structures), *folds]:
        digest.update(f"{column.dtype.str} {column.shape}".encode())
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def _columns(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays of a collection, and its labels and roles."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Vocabulary | Sequence) and not isinstance(value, str):
        for item in value:
            yield from _columns(item)
    elif is_dataclass(value):
        for field in fields(value):
            if field.name != "name":
                yield from _columns(getattr(value, field.name))
    elif isinstance(value, str | int):
        yield np.array(value)


def _versions() -> dict[str, str]:
    libraries = ("torch", "numpy", "scipy", "scikit-learn")
    return {
        "python": platform.python_version(),
        "saen": saen.__version__,
        **{library: version(library) for library in libraries},
    }


def _report(
    recorded: dict[str, Any], found: Evaluation, loaded: float, device: str
) -> dict[str, Any]:
    from saen.estimators import chosen_device, device_name

    report = {**recorded, **found.report(), "device": device_name(chosen_device(device))}
    report["seconds"] = {"load": loaded, **report["seconds"]}
    return report


def _print(report: dict[str, Any]) -> None:
    protocol, accuracy = report["protocol"], report["accuracy"]
    ways = {
        "fixed": "epochs set in advance",
        "nested": "settings chosen inside each training part",
        "peek": f"stopped at the test folds' best epoch {_epoch(report)}",
    }
    heading(
        f"{report['dataset']}, preset {report['preset']}, {protocol['repeats']} × "
        f"{protocol['folds']}-fold, {protocol['stop']}: {ways[protocol['stop']]}"
    )
    twins = report["duplicates"]
    lines = [
        f"accuracy   {100 * accuracy['mean']:.2f} ± {100 * accuracy['std']:.2f} % "
        f"(over repeats; ± {100 * accuracy['std_folds']:.2f} over folds)",
        f"ceiling    {100 * report['ceiling']:.2f} % for one fixed model, "
        f"{100 * report['ceiling_folds']:.2f} % for one model per fold",
        f"twins      {100 * twins['share']:.1f} % of the test graphs stand in training too"
        + _share(", accuracy on them", twins["accuracy"])
        + _share(", on the rest", twins["accuracy_rest"]),
        "time       "
        + ", ".join(f"{step} {seconds:.1f} s" for step, seconds in report["seconds"].items())
        + f" on {report['device']}",
    ]
    if protocol["stop"] == "peek":
        lines.append(
            "warning    the test folds chose the epoch: this number flatters, compare it only "
            "with others that were made so"
        )
    console().print("\n".join(lines), soft_wrap=True)


def _epoch(report: dict[str, Any]) -> str:
    return str(report["chosen"][0]["epoch"]) if report["protocol"]["stop"] == "peek" else ""


def _share(words: str, value: float | None) -> str:
    return "" if value is None else f"{words} {100 * value:.1f} %"
