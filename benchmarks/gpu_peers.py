"""Ten folds of a GIN in PyTorch Geometric beside ten folds of networks here, on the same GPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.commands import evaluated
from benchmarks.data import LARGEST, available
from benchmarks.machine import installed
from benchmarks.measure import measure, measured
from benchmarks.peers import (
    EPOCHS,
    FOLDS,
    GIN_BATCH,
    GIN_LAYERS,
    GIN_WIDTH,
    TIMED_EPOCHS,
    WORKERS,
    evaluation,
    gins,
)
from benchmarks.report import quantity, table
from benchmarks.settings import Settings

TITLE = "PyTorch Geometric on the same GPU"

DATASETS = ("REDDIT-BINARY", "COLLAB", "NCI1", LARGEST)
COMPLETE = ("REDDIT-BINARY", "NCI1")
"""Where the peer runs all epochs of all folds in a full run, if its batches stay on the GPU."""
OURS = (  # from the root of the repository
    "saen evaluate {name} --preset benchmarks/uncalibrated.toml --repeats 1 "
    f"--folds {FOLDS} --epochs {{epochs}} --device {{device}}"
)
GIN = f"GIN, {GIN_LAYERS} × {GIN_WIDTH}"
WAYS = {
    "saen": "saen, ten folds at once",
    "workers": f"{GIN}, loader with {WORKERS} workers and pinned memory",
    "resident": f"{GIN}, all batches on the GPU",
}


def run(settings: Settings) -> dict[str, Any]:
    """Only where there is a GPU; a quick run is a test of the code on any machine."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    document: dict[str, Any] = {"rows": [], "checks": [], "skipped": []}
    if device == "cpu" and not settings.quick:
        document["skipped"] = [{"what": TITLE, "reason": "no GPU"}]
        return {**document, "left_to_full_runs": True}
    names, document["skipped"] = available(DATASETS, settings)
    peer = installed("torch-geometric") is not None
    if not peer:
        reason = "torch-geometric is not installed: pip install 'saen[bench]'"
        document["skipped"].append({"what": GIN, "reason": reason})
    epochs = 2 if settings.quick else EPOCHS
    for name in names:
        cases = {f"{name}, {WAYS['saen']}": partial(_ours, name, epochs, device)}
        document["rows"] += measured(cases, document["skipped"])
        if peer:
            complete = settings.full and name in COMPLETE
            cases = {f"{name}, {GIN}": partial(_theirs, name, epochs, device, complete)}
            for both in measured(cases, document["skipped"]):
                document["rows"] += both["rows"]
    return document


def _ours(name: str, epochs: int, device: str) -> dict[str, Any]:
    result = evaluated(OURS.format(name=name, epochs=epochs, device=device), evaluation)
    return {
        "dataset": name,
        "way": "saen",
        **result,
        "model_epoch": result["train"] / (FOLDS * epochs),
        "evaluation": result["seconds"]["total"],
    }


def _theirs(name: str, epochs: int, device: str, complete: bool) -> dict[str, Any]:
    """Both ways of loading in one process, which loads the graphs once."""
    loadings = {"workers": False, "resident": complete}
    result = measure(gins, dataset=name, epochs=epochs, loadings=loadings, device=device)
    ways = result.pop("ways")
    return {"rows": [{"dataset": name, "way": way, **result, **ways[way]} for way in ways]}


def markdown(document: Mapping[str, Any]) -> str:
    """The part's text."""
    if not document["rows"]:
        return ""
    ours = {row["dataset"]: row for row in document["rows"] if row["way"] == "saen"}
    rows = []
    for row in document["rows"]:
        base = ours.get(row["dataset"]) if row["way"] != "saen" else None
        times = [
            quantity(row[key] / base[key], "times") if base else ""
            for key in ("model_epoch", "evaluation")
        ]
        complete = "accuracy" in row
        rows.append(
            (
                row["dataset"],
                WAYS[row["way"]],
                f"{1e3 * row['model_epoch']:.1f} ms",
                times[0],
                quantity(row["evaluation"], "s") + ("" if complete else " (extrapolated)"),
                times[1],
                f"{100 * row['accuracy']:.1f} %" if complete else "",
            )
        )
    return "\n".join(
        [
            f"Ten folds, {EPOCHS} epochs, one network per fold, the same folds for all, float32. "
            f"saen is `{OURS.format(name='NAME', epochs=EPOCHS, device='cuda')}` from start to "
            "end without imports: loading, compressing, starting the GPU, all networks side by "
            "side. The GIN has batch normalisation, sums its nodes and trains one fold after the "
            f"other in batches of {GIN_BATCH}; loading its graphs and starting the GPU are left "
            "out. Its batches are assembled in every epoch by a loader with workers that stay and "
            "with pinned memory, copied without waiting; or they are made once and stay on the "
            "GPU, in another order in every epoch. Extrapolated: from the median of "
            f"{TIMED_EPOCHS} epochs and the test of the first fold.\n",
            table(
                (
                    "dataset",
                    "method",
                    "epoch of a model",
                    "× saen",
                    "ten folds",
                    "× saen",
                    "accuracy",
                ),
                rows,
                words=2,
            ),
        ]
    )
