"""`saen train`: a model of one's own data, with an estimate of how good it is."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen._util.progress import bar
from saen._util.strings import human_bytes, plural
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
    SkipBad,
    command_line,
    console,
    described,
    heading,
    level_table,
    parse_radii,
    print_json,
    read_input,
)
from saen.data.compression import ceiling
from saen.decompositions.registry import named_decomposition, parse_decomposition
from saen.errors import FileError, InputError
from saen.io.catalog import find_entry
from saen.learning.runs import versions

if TYPE_CHECKING:
    from saen.learning.estimators import Prepared, SAENClassifier, SAENRegressor

    Model = SAENClassifier | SAENRegressor

_MOST_CLASSES = 8  # that are listed with their sizes
_ADVICE = "repeat its command to go on with it, or begin anew with --force"


@dataclass(frozen=True)
class Trained:
    """What a training made: the model, what it learned from, and what is known about it."""

    model: Model
    structures: Any
    prepared: Prepared
    report: dict[str, Any]
    answers: NDArray[np.float64] | None
    """For the part that was held out: probabilities (m, classes), or numbers (m,) or (m, k)."""


def command(
    data: Name,
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the model here.")],
    preset: PresetName = "modern",
    decomposition: OtherDecomposition = None,
    node_labels: OtherNodeLabels = None,
    radii: OtherRadii = None,
    epochs: Epochs = None,
    models: Annotated[
        int | None,
        typer.Option(help="Networks whose answers are averaged. [default: the preset's]"),
    ] = None,
    test_size: Annotated[
        float, typer.Option(help="Share that is held out to estimate how good the model is.")
    ] = 0.1,
    holdout: Annotated[
        bool, typer.Option(help="Hold a part out first; the model learns from everything anyhow.")
    ] = True,
    target: Annotated[
        str | None, typer.Option(help="What to learn, where the data have several targets.")
    ] = None,
    skip_bad: SkipBad = False,
    seed: Seed = 0,
    device: Device = "auto",
    force: Annotated[
        bool, typer.Option("--force", help="Write over OUT; drop an interrupted run of others.")
    ] = False,
    page: ReportPage = None,
    json: AsJson = False,
) -> None:
    """Train a model on your data, estimate how good it is, and write it to one file.

    Classes are predicted where targets are classes, numbers where they are real numbers. A run
    that was killed goes on where it stopped when its command is repeated, and ends with the same
    model.

    Example: saen train MUTAG --out mutag.saen --models 5
    """
    from saen.report.evaluation_page import check_report

    if page is not None:
        check_report(page)
    trained = train_model(
        data,
        out,
        preset=preset,
        overrides={
            "decomposition": decomposition,
            "node_labels": node_labels,
            "radii": None if radii is None else parse_radii(radii),
            "epochs": epochs,
            "n_models": models,
        },
        test_size=test_size if holdout else None,
        target=target,
        skip_bad=skip_bad,
        seed=seed,
        device=device,
        force=force,
        show=not json,
    )
    if page is not None:
        _write_page(page, trained, preset)
    if json:
        print_json(trained.report)


def train_model(
    data: str,
    out: Path,
    *,
    preset: str = "modern",
    overrides: dict[str, Any] | None = None,
    test_size: float | None = 0.1,
    target: str | None = None,
    skip_bad: bool = False,
    seed: int = 0,
    device: str = "auto",
    force: bool = False,
    show: bool = True,
) -> Trained:
    """Train on a part, test on the rest, train on everything, write the model."""
    from saen.learning.presets import load_preset
    from saen.learning.runs import digest

    _check_place(out, force)
    entry = find_entry(data)
    settings = load_preset(preset).settings(entry.name if entry is not None else data)
    settings |= {key: value for key, value in (overrides or {}).items() if value is not None}
    start = perf_counter()
    takes = named_decomposition(parse_decomposition(settings.get("decomposition", "ego"))[0]).takes
    structures = read_input(data, takes, target=target, skip_bad=skip_bad)
    times = {"load": perf_counter() - start}
    name = structures.name or data
    y = _checked_targets(structures, name)
    estimator = _estimator(y, settings, seed, device)
    test = None if test_size is None else _held_out(y, test_size, seed, takes)
    recorded = {
        "data": digest(structures),
        "settings": settings,
        "seed": seed,
        "test_size": test_size,
        "device": device,
        "versions": versions(),
    }
    with _resumable(out, recorded, force) as folder:
        start = perf_counter()
        with bar("decomposing and collapsing", len(structures)) as update:
            prepared = estimator.prepare(structures, progress=update)
        times["compress"] = perf_counter() - start
        report = _about_data(structures, name, y, prepared) | {"settings": settings, "seed": seed}
        if show:
            _show_data(report, structures)
        answers = None
        if test is not None:
            start = perf_counter()
            report["held_out"] = _estimate(estimator, prepared, y, test, folder)
            answers = np.array(report["held_out"].pop("answers"))
            times["hold out"] = perf_counter() - start
            if show:
                _show_estimate(report["held_out"], takes)
        start = perf_counter()
        model = _fitted(estimator, prepared, y, None, folder / "model.checkpoint")
        times["train"] = perf_counter() - start
        size = model.save(out)
    report |= {
        "model": str(out),
        "bytes": size,
        "networks": model.network_.n_models,
        "epochs": len(model.history_.loss),
        "seconds": times,
    }
    if show:
        _show_model(report)
    return Trained(model, structures, prepared, report, answers)


# -- what is asked for -------------------------------------------------------------------------


def _check_place(out: Path, force: bool) -> None:
    """Raise before the work for a place that a model cannot, or must not, be written to."""
    if out.is_dir():
        raise FileError("a folder, not a file to write", path=out)
    if not out.parent.is_dir():
        raise FileError("cannot be written (there is no such folder)", path=out)
    if out.exists() and not force:
        raise FileError(
            "is there already: choose another name, or write over it with --force", path=out
        )


def _checked_targets(structures: Any, name: str) -> Array:
    """Classes (n,), or real numbers (n,) or (n, k); an error where there is nothing to learn."""
    y: Array | None = structures.targets
    n = len(structures)
    if n == 0:
        raise InputError(f"{name} is empty: there is nothing to learn from")
    if y is None:
        raise InputError(
            f"{name} has no targets to learn: they are read from what is named 'label'"
        )
    if y.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(y).reshape(n, -1).all(axis=1))
        if len(wrong):
            raise InputError(
                f"{name}: target {wrong[0]} is not a finite number (and {len(wrong) - 1:,} others)"
            )
        if (y == y[0]).all():
            raise InputError(f"{name}: all {n:,} targets are {y[0]}, there is nothing to learn")
        return y
    if y.ndim != 1:
        raise InputError(f"{name} has {y.shape[1]} classes per structure: choose one of them")
    if len(np.unique(y)) == 1:
        raise InputError(
            f"{name}: all {n:,} targets are of class {y[0]}, there is nothing to tell apart"
        )
    return y


def _estimator(y: Array, settings: dict[str, Any], seed: int, device: str) -> Model:
    from saen.learning.estimators import SAENClassifier, SAENRegressor, chosen_device

    if y.dtype.kind == "f" and "class_weight" in settings:
        raise InputError("the preset sets class_weight, but the targets are real numbers")
    kind: type[Model] = SAENRegressor if y.dtype.kind == "f" else SAENClassifier
    estimator = kind(**settings, random_state=seed, device=device)
    estimator._check_arguments()
    chosen_device(device)
    return estimator


def _held_out(y: Array, share: float, seed: int, takes: str) -> NDArray[np.int64]:
    """The structures to test on, drawn class by class."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    from saen.network.model import derive_seed

    if not 0 < share < 1:
        raise InputError(f"--test-size is a share between 0 and 1, not {share:g}")
    state = derive_seed(seed, "hold out") % 2**31
    n, n_test = len(y), int(np.ceil(share * len(y)))
    helps = "choose another --test-size, or --no-holdout"
    if y.dtype.kind == "f":
        if n_test < 2 or n - n_test < 2:
            raise InputError(f"{n_test} of {n} {takes} cannot be held out: {helps}")
        split = ShuffleSplit(1, test_size=n_test, random_state=state)
    else:
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            raise InputError(
                f"class {classes[counts.argmin()]} has 1 member, but a part that is held out needs "
                "one and training another: leave the class out, or use --no-holdout"
            )
        if min(n_test, n - n_test) < len(classes):
            raise InputError(
                f"{n_test} of {n} {takes} cannot be held out with some of each of the "
                f"{len(classes)} classes on both sides: {helps}"
            )
        split = StratifiedShuffleSplit(1, test_size=n_test, random_state=state)
    test: NDArray[np.int64] = next(split.split(np.empty(n), y))[1]
    return np.sort(test)


# -- the run -----------------------------------------------------------------------------------


@contextmanager
def _resumable(out: Path, recorded: dict[str, Any], force: bool) -> Iterator[Path]:
    """A folder beside OUT for what an interrupted run has done, gone when the run is over."""
    from saen.learning.runs import open_run

    place = out.with_name(f".{out.name}.run")
    entered = over = False
    try:
        with open_run(place, recorded, anew=force, advice=_ADVICE) as folder:
            entered = True
            if _has_begun(folder):
                _say("going on where an earlier run stopped")
            try:
                yield folder
            except InputError:  # repeating the command would only repeat it
                over = True
                raise
            over = True
    finally:
        # Once the lock is let go: some systems do not remove what is open.
        if entered and (over or not _has_begun(place)):
            shutil.rmtree(place, ignore_errors=True)
        elif entered:
            _say("the same command goes on from here")


def _has_begun(folder: Path) -> bool:
    return any(file.suffix == ".checkpoint" for file in folder.iterdir())


def _say(line: str) -> None:
    typer.echo(f"saen: {line}", err=True)


def _fitted(
    estimator: Model,
    prepared: Prepared,
    y: Array,
    weights: NDArray[np.float64] | None,
    checkpoint: Path,
) -> Model:
    """A fitted copy; Ctrl-C is passed on, where the estimator alone would keep what it has."""
    from sklearn.base import clone

    from saen.learning.estimators import InterruptedTrainingWarning

    model: Model = clone(estimator).set_params(checkpoint=checkpoint, checkpoint_every=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterruptedTrainingWarning)
        model.fit(prepared, y, sample_weight=weights)
    if model.history_.interrupted:
        raise KeyboardInterrupt
    return model


def _estimate(
    estimator: Model, prepared: Prepared, y: Array, test: NDArray[np.int64], folder: Path
) -> dict[str, Any]:
    """How well a model does that learned from all but the test part; remembered in the folder."""
    from saen._util.json_files import read_json, write_json
    from saen.learning.metrics import classification_scores, regression_scores

    kept = folder / "held_out.json"
    if kept.exists():
        known: dict[str, Any] = read_json(kept)
        return known
    weights = np.ones(len(y))
    weights[test] = 0.0
    model = _fitted(estimator, prepared, y, weights, folder / "held_out.checkpoint")
    rows = prepared.compressed.top
    if y.dtype.kind == "f":
        answers = model.predict(prepared)[test]
        found = regression_scores(y[test], answers, y[weights > 0].mean(axis=0)).to_json()
    else:
        answers = model.predict_proba(prepared)[test]
        found = classification_scores(y[test], answers, model.classes_).to_json()
    found["test"] = test.tolist()
    found["answers"] = answers.tolist()
    found["duplicates"] = int(np.isin(rows[test], rows[weights > 0]).sum())
    write_json(kept, found)
    return found


# -- what is said ------------------------------------------------------------------------------


def _about_data(structures: Any, name: str, y: Array, prepared: Prepared) -> dict[str, Any]:
    real = y.dtype.kind == "f"
    classes, counts = (None, None) if real else np.unique(y, return_counts=True)
    decomposition = prepared.decomposition
    return {
        "name": name,
        "task": "regression" if real else "classification",
        "structures": len(structures),
        "classes": None
        if classes is None or counts is None
        else {str(c): int(n) for c, n in zip(classes, counts, strict=True)},
        "decomposition": None if decomposition is None else decomposition.settings(),
        "levels": prepared.compressed.levels(),
        "ceiling": None if real else ceiling(prepared.compressed.top, y),
    }


def _show_data(report: dict[str, Any], structures: Any) -> None:
    heading(repr(structures).partition("(")[2][:-1])
    classes = report["classes"]
    lines = []
    if classes is not None:
        listed = [f"{name}: {count:,}" for name, count in list(classes.items())[:_MOST_CLASSES]]
        more = len(classes) - len(listed)
        lines.append(f"classes    {', '.join(listed)}{f' and {more} more' if more else ''}")
    lines.append(f"parts      {described(report['decomposition'])}")
    if report["ceiling"] is not None and report["ceiling"] < 1:
        lines.append(
            f"ceiling    {100 * report['ceiling']:.1f} % accuracy: no single fixed model that sees "
            "these parts can do better"
        )
    console().print("\n".join(lines), soft_wrap=True)
    console().print(level_table(report["levels"]))


def _show_estimate(found: dict[str, Any], takes: str) -> None:
    lines = [f"{name:<11}{words}" for name, words in _estimate_in_words(found, takes).items()]
    console().print("\n".join(lines), soft_wrap=True)


def _estimate_in_words(found: dict[str, Any], takes: str) -> dict[str, str]:
    n = len(found["test"])
    if "accuracy" in found:
        low, high = found["interval"]
        words = (
            f"{100 * found['accuracy']:.1f} % accuracy on {n:,} {takes} (95 % interval "
            f"{100 * low:.1f} to {100 * high:.1f} %; the most frequent class alone: "
            f"{100 * found['majority']:.1f} %)"
        )
    else:
        r2 = "" if found["r2"] is None else f"R² {found['r2']:.3f}, "
        words = (
            f"{r2}mean absolute error {found['mae']:.4g} ± {found['mae_error']:.2g} on {n:,} "
            f"{takes} (the mean alone: {found['mae_of_mean']:.4g})"
        )
    lines = {"held out": words}
    if found["duplicates"]:
        lines["duplicates"] = f"{found['duplicates']:,} of these have an equal in training"
    return lines


def _show_model(report: dict[str, Any]) -> None:
    networks, epochs = plural(report["networks"], "network"), plural(report["epochs"], "epoch")
    times = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in report["seconds"].items())
    console().print(
        f"written    {report['model']} ({human_bytes(report['bytes'])}): {networks}, {epochs}, "
        f"trained on all {report['structures']:,}\ntime       {times}",
        soft_wrap=True,
    )


def _write_page(page: Path, trained: Trained, preset: str) -> None:
    from saen.learning.runs import digest
    from saen.report.evaluation_page import Predictions, Report, settings_of, write_report

    model, report, history = trained.model, trained.report, trained.model.history_
    classes = None if report["classes"] is None else model.classes_
    summary = {"parts": described(report["decomposition"])}
    found = None
    if trained.answers is not None:
        test = np.array(report["held_out"]["test"])
        assert model.decomposition_ is not None
        summary |= _estimate_in_words(report["held_out"], model.decomposition_.takes)
        y, answers = trained.structures.targets[test], trained.answers
        if classes is not None:
            y, answers = np.searchsorted(classes, y), answers[None]
        rows = trained.prepared.compressed.top[test].astype(np.int64)
        found = Predictions(classes, y, answers, test, rows)
    if report["ceiling"] is not None:
        summary["ceiling"] = f"{100 * report['ceiling']:.2f} % for one fixed model"
    curves = {"loss": {"training": history.loss, "held out": history.validation_loss}}
    if classes is not None:
        lines = {"training": history.accuracy, "held out": history.validation_accuracy}
        curves["accuracy"] = lines
    report_page = Report(
        title=f"{report['name']}: {report['task']}, trained on {report['structures']:,}",
        summary=summary,
        data=trained.structures,
        levels=report["levels"],
        curves=curves,
        predictions=found,
        command=command_line(),
        settings={
            "dataset": report["name"],
            "preset": preset,
            "seed": report["seed"],
            "splits": "nothing held out"
            if found is None
            else f"{len(found.targets):,} held out, by the seed",
            "checksum of data": digest(trained.structures),
            **settings_of(model),
        },
        versions=versions(),
    )
    write_report(page, report_page)
