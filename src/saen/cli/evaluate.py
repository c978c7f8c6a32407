"""`saen evaluate`: repeated stratified cross-validation, all trainings at once."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saen._util.progress import bar
from saen.cli.app import (
    AsJson,
    Device,
    Epochs,
    Name,
    OtherDecomposition,
    OtherNodeLabels,
    OtherRadii,
    PresetName,
    ReportPage,
    Seed,
    command_line,
    console,
    described,
    heading,
    parse_radii,
    print_json,
)
from saen.decompositions.registry import named_decomposition, parse_decomposition
from saen.errors import InputError
from saen.io.catalog import find_entry
from saen.io.loading import load_data

if TYPE_CHECKING:
    from saen.learning.cross_validation import Evaluation
    from saen.learning.presets import Preset


class Stop(StrEnum):
    """How the number of epochs is decided."""

    fixed = "fixed"
    nested = "nested"
    peek = "peek"


def command(
    name: Name,
    preset: PresetName = "modern",
    decomposition: OtherDecomposition = None,
    node_labels: OtherNodeLabels = None,
    radii: OtherRadii = None,
    stop: Annotated[
        Stop,
        typer.Option(
            help="fixed: epochs set in advance; nested: settings chosen inside each training part; "
            "peek: best epoch on the test folds, for comparison with papers that do so."
        ),
    ] = Stop.fixed,
    repeats: Annotated[int, typer.Option(help="Cross-validations with other folds.")] = 10,
    folds: Annotated[int, typer.Option(help="Parts of each cross-validation.")] = 10,
    seed: Seed = 0,
    splits: Annotated[
        Path | None, typer.Option(help="Folds from a JSON file, as a run directory keeps them.")
    ] = None,
    epochs: Epochs = None,
    n_models: Annotated[
        int | None,
        typer.Option(
            "--models", "--n-models", help="Networks per fold whose answers are averaged."
        ),
    ] = None,
    at_once: Annotated[
        int | None, typer.Option(help="Networks trained side by side. [default: timed]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Run directory: keeps everything, and goes on from there."
        ),
    ] = None,
    device: Device = "auto",
    plot: Annotated[Path | None, typer.Option(help="Draw curves and confusion here.")] = None,
    page: ReportPage = None,
    json: AsJson = False,
) -> None:
    """Estimate the accuracy of a classifier on a dataset by repeated cross-validation.

    Example: saen evaluate MUTAG --repeats 3 --out runs/mutag
    """
    from saen.report.charts import plot_evaluation
    from saen.report.figures import save_figure

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
            "node_labels": node_labels,
            "radii": None if radii is None else parse_radii(radii),
            "epochs": epochs,
            "n_models": n_models,
        },
        at_once=at_once,
        out=out,
        device=device,
        page=page,
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
    page: Path | None = None,
) -> tuple[dict[str, Any], Evaluation]:
    """Cross-validate a preset on a dataset, in a run directory and with a page, if asked for."""
    from saen._util.json_files import write_json
    from saen.learning.presets import load_preset
    from saen.learning.runs import digest, open_run, splits_from_json, versions
    from saen.report.evaluation_page import check_report

    if page is not None:
        check_report(page)
    chosen = load_preset(preset)
    entry = find_entry(name)
    settings = chosen.settings(entry.name if entry is not None else name)
    settings |= {key: value for key, value in (overrides or {}).items() if value is not None}
    start = perf_counter()
    structures = load_data(name, _takes(settings))
    loaded = perf_counter() - start
    if structures.targets is None or structures.targets.dtype.kind == "f":
        raise InputError(
            f"{name} has no classes to predict (saen train learns numbers as well as classes)"
        )
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
        "data": digest(structures, given),
        "versions": versions(),
    }
    with open_run(out, recorded) if out is not None else nullcontext() as folder:
        found = _evaluate(
            structures, chosen, settings, protocol, seed, given, at_once, folder, device
        )
        report = _report(recorded, found, loaded, device)
        if folder is not None:
            write_json(folder / "summary.json", report)
    if page is not None:
        _write_page(page, structures, report, found, splits)
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
    from saen.learning.cross_validation import cross_validate
    from saen.learning.estimators import SAENClassifier

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


def _report(
    recorded: dict[str, Any], found: Evaluation, loaded: float, device: str
) -> dict[str, Any]:
    from saen.learning.estimators import chosen_device, device_name

    report = {**recorded, **found.report(), "device": device_name(chosen_device(device))}
    report["seconds"] = {"load": loaded, **report["seconds"]}
    return report


def _print(report: dict[str, Any]) -> None:
    protocol = report["protocol"]
    ways = {
        "fixed": "epochs set in advance",
        "nested": "settings chosen inside each training part",
        "peek": f"stopped at the test folds' best epoch {_epoch(report)}",
    }
    heading(
        f"{report['dataset']}, preset {report['preset']}, {protocol['repeats']} × "
        f"{protocol['folds']}-fold, {protocol['stop']}: {ways[protocol['stop']]}"
    )
    lines = [f"{name:<11}{words}" for name, words in _summary(report).items()]
    console().print("\n".join(lines), soft_wrap=True)


def _summary(report: dict[str, Any]) -> dict[str, str]:
    accuracy, duplicates = report["accuracy"], report["duplicates"]
    lines = {
        "accuracy": f"{100 * accuracy['mean']:.2f} ± {100 * accuracy['std']:.2f} % "
        f"(over repeats; ± {100 * accuracy['std_folds']:.2f} over folds)",
        "ceiling": f"{100 * report['ceiling']:.2f} % for one fixed model, "
        f"{100 * report['ceiling_folds']:.2f} % for one model per fold",
        "duplicates": f"{100 * duplicates['share']:.1f} % of the tests have a duplicate in training"
        + _share(", accuracy on them", duplicates["accuracy"])
        + _share(", on the rest", duplicates["accuracy_rest"]),
        "time": ", ".join(f"{step} {seconds:.1f} s" for step, seconds in report["seconds"].items())
        + f" on {report['device']}",
    }
    if report["protocol"]["stop"] == "peek":
        lines["warning"] = (
            "the test folds chose the epoch: this number flatters, compare it only with others "
            "that were made so"
        )
    return lines


def _write_page(
    page: Path, structures: Any, report: dict[str, Any], found: Evaluation, splits: Path | None
) -> None:
    from saen.learning.estimators import SAENClassifier
    from saen.report.evaluation_page import Predictions, Report, settings_of, write_report

    protocol, seed = report["protocol"], report["seed"]
    classifier = SAENClassifier(**report["settings"])
    last = seed + protocol["repeats"] - 1
    report_page = Report(
        title=f"{report['dataset']}: {protocol['repeats']} × {protocol['folds']}-fold "
        f"cross-validation of preset {report['preset']}",
        summary=_summary(report),
        data=structures,
        levels=found.levels,
        curves={"cross entropy": {"training": found.loss}},
        predictions=Predictions(
            found.classes, found.targets, found.probabilities, unique=found.rows
        ),
        command=command_line(),
        settings={
            "dataset": report["dataset"],
            "preset": report["preset"],
            "parts": described(classifier._chosen_decomposition(structures).settings()),
            "epochs are": protocol["stop"],
            "seed": seed,
            "splits": f"stratified, seeds {seed} … {last}" if splits is None else str(splits),
            "checksum of data": report["data"],
            **settings_of(classifier),
        },
        versions=report["versions"],
    )
    write_report(page, report_page)


def _epoch(report: dict[str, Any]) -> str:
    return str(report["chosen"][0]["epoch"]) if report["protocol"]["stop"] == "peek" else ""


def _share(words: str, value: float | None) -> str:
    return "" if value is None else f"{words} {100 * value:.1f} %"
