"""Charts of what training and evaluation found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from saen.datasets import catalog
from saen.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from saen.evaluation import Evaluation

_BLUE = "#0072B2"
_METHODS = {
    "DGK": "#BBBBBB",
    "PATCHY-SAN": "#888888",
    "SAEN, paper": "#E69F00",
    "preset paper": "#0072B2",
    "preset modern": "#009E73",
}


def plot_evaluation(found: Evaluation, title: str = "") -> Figure:
    """Learning curves of all trainings, and the confusion matrix of their tests."""
    figure = new_figure(10, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1))
    loss = found.loss
    epochs = np.arange(1, len(loss) + 1)
    low, middle, high = np.quantile(loss, (0.1, 0.5, 0.9), axis=1)
    left.fill_between(epochs, low, high, color=_BLUE, alpha=0.2, linewidth=0)
    left.plot(epochs, middle, color=_BLUE, label="loss in training")
    left.set(xlabel="epoch", ylabel="cross entropy", ylim=(0, None))
    left.set_title(f"{loss.shape[1]} trainings: median, 10 % to 90 %", size=10, loc="left")
    left.spines[["top", "right"]].set_visible(False)
    n = len(found.classes)
    counts = np.zeros((n, n))
    np.add.at(
        counts, (np.broadcast_to(found.targets, found.predictions.shape), found.predictions), 1
    )
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    right.imshow(share, cmap="Blues", vmin=0, vmax=1)
    names = [str(label) for label in found.classes]
    right.set_xticks(range(n), names, rotation=30 if n > 3 else 0)
    right.set_yticks(range(n), names)
    right.set(xlabel="predicted", ylabel="true")
    for i in range(n):
        for j in range(n):
            colour = "white" if share[i, j] > 0.5 else "black"
            right.text(j, i, f"{100 * share[i, j]:.0f} %", ha="center", va="center", color=colour)
    accuracy = found.accuracies().mean()
    right.set_title(f"accuracy {100 * accuracy:.1f} %", size=10, loc="left")
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    figure.tight_layout()
    return figure


def plot_accuracy(data: dict[str, Any]) -> Figure:
    """Accuracies with error bars, the paper's methods beside ours, for `saen reproduce`."""
    figure = new_figure(max(6.0, 1.3 * len(data)), 4.2)
    axes = figure.subplots()
    width = 0.8 / len(_METHODS)
    for number, (method, colour) in enumerate(_METHODS.items()):
        found = [(x, _accuracy(row, method)) for x, row in enumerate(data.values())]
        points = [(x, pair) for x, pair in found if pair is not None]
        if points:
            axes.bar(
                [x + (number - 2) * width for x, _ in points],
                [pair[0] for _, pair in points],
                width,
                yerr=[pair[1] for _, pair in points],
                color=colour,
                label=method,
                error_kw={"elinewidth": 0.8},
            )
    axes.set_xticks(range(len(data)), list(data), rotation=20)
    axes.set(ylabel="accuracy (%)", ylim=(20, 100))
    axes.legend(
        ncols=len(_METHODS),
        frameon=False,
        fontsize=9,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def plot_gain(data: dict[str, Any]) -> Figure:
    """Our gain over PATCHY-SAN against the average maximum degree: the paper's claim A1."""
    figure = new_figure(6, 4)
    axes = figure.subplots()
    for method in ("preset paper", "preset modern"):
        points = []
        for name, row in data.items():
            ours, theirs = _accuracy(row, method), _accuracy(row, "PATCHY-SAN")
            paper = catalog()[name].paper
            if ours is not None and theirs is not None and paper is not None:
                points.append((paper.average_max_degree, ours[0] - theirs[0], name))
        axes.scatter(
            [p[0] for p in points], [p[1] for p in points], color=_METHODS[method], label=method
        )
        if method == "preset paper":
            for x, y, name in points:
                axes.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.set(xscale="log", xlabel="average maximum degree", ylabel="gain over PATCHY-SAN (points)")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def _accuracy(row: dict[str, Any], method: str) -> tuple[float, float] | None:
    """Mean and standard deviation in percent of one method on one dataset."""
    if method.startswith("preset "):
        found = row[method.removeprefix("preset ")]["accuracy"]
        return 100 * found["mean"], 100 * found["std"]
    published = row["published"].get(method.removesuffix(", paper"))
    return None if published is None else (published[0], published[1])
