"""Charts of what training and evaluation found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from saen.datasets import catalog
from saen.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from saen.evaluation import Evaluation

_BLUE = "#0072B2"
_SLANTED: dict[str, Any] = {"rotation": 20, "ha": "right", "rotation_mode": "anchor"}
_ORANGE, _GREEN = "#E69F00", "#009E73"
# Where a method's accuracy stands in the row of a dataset, and its colour.
_METHODS = {
    "DGK": ("published", "DGK", "#BBBBBB"),
    "PATCHY-SAN": ("published", "PATCHY-SAN", "#888888"),
    "SAEN, paper": ("published", "SAEN", _ORANGE),
    "preset paper": ("paper", "accuracy", _BLUE),
    "preset modern": ("modern", "accuracy", _GREEN),
    "modern, nested": ("nested", "accuracy", "#56B4E9"),
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
    figure = new_figure(max(7.5, 1.4 * len(data)), 4.2)
    axes = figure.subplots()
    width = 0.84 / len(_METHODS)
    for number, (method, (_, _, colour)) in enumerate(_METHODS.items()):
        found = [(x, _accuracy(row, method)) for x, row in enumerate(data.values())]
        points = [(x, pair) for x, pair in found if pair is not None]
        if points:
            axes.bar(
                [x + (number - (len(_METHODS) - 1) / 2) * width for x, _ in points],
                [pair[0] for _, pair in points],
                width,
                yerr=[pair[1] for _, pair in points],
                color=colour,
                label=method,
                error_kw={"elinewidth": 0.8},
            )
    axes.set_xticks(range(len(data)), list(data), **_SLANTED)
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
            [p[0] for p in points], [p[1] for p in points], color=_METHODS[method][2], label=method
        )
        if method == "preset paper":
            for x, y, name in points:
                # On the left where another point is close on the right.
                crowded = any(x < u < 1.3 * x and abs(y - v) < 1 for u, v, _ in points)
                axes.annotate(
                    name,
                    (x, y),
                    xytext=(-5 if crowded else 5, 4),
                    textcoords="offset points",
                    ha="right" if crowded else "left",
                    fontsize=8,
                )
    axes.margins(x=0.14)
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.set(xscale="log", xlabel="average maximum degree", ylabel="gain over PATCHY-SAN (points)")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def plot_compression(data: dict[str, Any]) -> Figure:
    """File sizes and runtimes before and after compression, the paper's beside ours, as bars.

    `data` is that of the table of sizes and runtimes of `saen reproduce`. What ran out of time or
    memory has that word in place of a bar. The scales are logarithmic.
    """
    figure = new_figure(max(9.0, 2.4 * len(data)), 4.2)
    sizes, speeds = figure.subplots(1, 2, width_ratios=(2, 3))
    published = [row["published"] for row in data.values()]
    shares = [row["bytes"]["compressed"] / row["bytes"]["original"] for row in data.values()]
    ratios = {
        "paper": [(row["ratio"], f"{row['ratio']:.2f}") for row in published],
        "saen": [(share, f"{share:.2f}") for share in shares],
    }
    _draw_bars(sizes, list(data), ratios, (_ORANGE, _BLUE))
    sizes.set(ylim=(min(shares) / 2, 2), ylabel="bytes after / before")
    sizes.set_title("Size of the file: less is better", size=10, loc="left")
    timings = {
        f"preset {preset}": [_speedup(row["timings"][preset]) for row in data.values()]
        for preset in ("paper", "modern")
    }
    speedups = {"paper": [_speedup(row) for row in published], **timings}
    _draw_bars(speeds, list(data), speedups, (_ORANGE, _BLUE, _GREEN))
    heights = [height or 1 for bars in speedups.values() for height, _ in bars]
    speeds.set(ylim=(min(1, *heights), 4 * max(heights)), ylabel="seconds before / after")
    speeds.set_title("Speed-up of training: more is better", size=10, loc="left")
    figure.tight_layout()
    return figure


def _speedup(timing: dict[str, Any]) -> tuple[float | None, str]:
    """The height of a bar, if there is one, and the words on it; of a row of ours or the paper."""
    words, speedup = timing.get("shown", timing.get("seconds")), timing.get("speedup")
    if speedup is None:
        return None, str(words)
    return speedup, f"≥ {speedup:.1f}" if words == "TO" else f"{speedup:.1f}"


def _draw_bars(
    axes: Axes,
    names: list[str],
    series: dict[str, list[tuple[float | None, str]]],
    colours: tuple[str, ...],
) -> None:
    """Bars with words on them, side by side for each name, on a logarithmic scale."""
    from matplotlib import ticker

    axes.set(yscale="log", xlim=(-0.6, len(names) - 0.4))
    width = 0.84 / len(series)
    for number, (label, bars) in enumerate(series.items()):
        places = [x + (number - (len(series) - 1) / 2) * width for x in range(len(names))]
        heights = [np.nan if height is None else height for height, _ in bars]
        axes.bar(places, heights, width, color=colours[number], label=label)
        for x, (height, words) in zip(places, bars, strict=True):
            axes.annotate(
                words,
                (x, height or 0),
                xycoords="data" if height else ("data", "axes fraction"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                size=8,
            )
    axes.set_xticks(range(len(names)), names, **_SLANTED)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.legend(frameon=False, fontsize=9, ncols=len(series), loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)


def _accuracy(row: dict[str, Any], method: str) -> tuple[float, float] | None:
    """Mean and standard deviation in percent of one method on one dataset."""
    group, key, _ = _METHODS[method]
    found = row[group].get(key)
    if group == "published":
        return None if found is None else (found[0], found[1])
    return 100 * found["mean"], 100 * found["std"]
