"""Charts of what training and evaluation found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen._util.strings import short_label
from saen.io.catalog import catalog
from saen.learning.metrics import Calibration, classification_scores
from saen.report.plots import NARROW, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from saen.learning.cross_validation import Evaluation

MOST_EPOCHS, MOST_POINTS, MOST_CELLS = 200, 1000, 12  # drawn of curves, clouds and matrices
_BLUE, _GREY = "#0072B2", "#888888"
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
    _draw_curves(left, {"loss in training": found.loss}, "cross entropy")
    left.set_title(f"{found.loss.shape[1]} trainings: median, 10 % to 90 %", size=10, loc="left")
    scores = classification_scores(found.classes[found.targets], found.probabilities, found.classes)
    _draw_confusion(right, scores.confusion)
    _name_classes(right, found.classes)
    right.set_title(f"accuracy {100 * scores.accuracy:.1f} %", size=10, loc="left")
    figure.suptitle(title, x=0.01, ha="left", weight="bold", parse_math=False)
    figure.tight_layout()
    return figure


def plot_curves(curves: Mapping[str, NDArray[np.float64]], unit: str) -> Figure:
    """Learning curves by name, (epochs, networks) each: the median, and 10 % to 90 %."""
    figure = new_figure(NARROW, 3)
    axes = figure.subplots()
    _draw_curves(axes, curves, unit)
    if len(curves) > 1:
        for text in axes.legend(frameon=False, fontsize=9).get_texts():
            text.set_parse_math(False)
    figure.tight_layout()
    return figure


def plot_confusion(counts: NDArray[np.int64], classes: Array) -> Figure:
    """How the structures of every class were classified, as shares of each row.

    `counts` is the confusion matrix.
    """
    size = float(np.clip(1.2 + 0.55 * len(classes), 3, NARROW))
    figure = new_figure(size, size)
    axes = figure.subplots()
    _draw_confusion(axes, counts)
    _name_classes(axes, classes)
    figure.tight_layout()
    return figure


def plot_calibration(bins: Calibration) -> Figure:
    """How often predictions of a confidence come true, and how many there are of each.

    `bins` is what `calibrate` gives.
    """
    figure = new_figure(NARROW, 4)
    top, bottom = figure.subplots(2, 1, height_ratios=(3, 1), sharex=True)
    met = bins.counts > 0
    width = 1 / len(met)
    centres = ((np.arange(len(met)) + 0.5) * width)[met]
    top.plot([0, 1], [0, 1], color=_GREY, linewidth=1, linestyle="--", label="as it should be")
    top.bar(centres, bins.accuracy[met], 0.92 * width, color=_BLUE, label="came true")
    style: dict[str, Any] = {"color": _ORANGE, "marker": "D", "markersize": 5, "linestyle": "none"}
    style |= {"markeredgecolor": "white", "label": "were expected to"}
    top.plot(bins.confidence[met], bins.confidence[met], **style)
    top.set(ylim=(0, 1), ylabel="share of predictions")
    above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1), "ncols": 3}
    top.legend(frameon=False, fontsize=8.5, columnspacing=1, handletextpad=0.5, **above)
    bottom.bar(centres, bins.counts[met], 0.92 * width, color="#BBBBBB")
    bottom.set(xlabel="confidence", ylabel="how many", xlim=(centres.min(initial=1) - width / 2, 1))
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def plot_predictions(targets: NDArray[np.float64], predictions: NDArray[np.float64]) -> Figure:
    """Predicted against true numbers, shape (n,) both; of very many, an even sample."""
    shown = _spread(len(targets), MOST_POINTS)
    x, y = targets[shown], predictions[shown]
    figure = new_figure(NARROW, NARROW)
    axes = figure.subplots()
    span = min(x.min(), y.min()), max(x.max(), y.max())
    axes.plot(span, span, color=_GREY, linewidth=1, linestyle="--")
    axes.scatter(x, y, s=14, color=_BLUE, alpha=0.5, linewidths=0)
    axes.set(xlabel="true", ylabel="predicted", aspect="equal")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def plot_sizes(sizes: NDArray[np.int64], unit: str, what: str) -> Figure:
    """How many structures there are of every size, as a histogram."""
    figure = new_figure(NARROW, 2.6)
    axes = figure.subplots()
    low, high = int(sizes.min()), int(sizes.max())
    wide = low > 0 and high > 10 * low
    if high - low < 30:
        edges = np.arange(low, high + 2, dtype=np.float64) - 0.5
    else:
        edges = (np.geomspace if wide else np.linspace)(low, high + 1, 31)
    axes.hist(sizes, np.unique(edges).tolist(), color=_BLUE)
    axes.set(ylabel=what, xscale="log" if wide else "linear")
    axes.set_xlabel(unit, parse_math=False)
    axes.locator_params(axis="y" if wide else "both", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
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

    `data` is that of the table of sizes and runtimes of `saen reproduce`. What ran out of memory
    has that word in place of a bar, what ran out of time the bound. The scales are logarithmic.
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


# -- parts of charts ---------------------------------------------------------------------------


def _draw_curves(axes: Axes, curves: Mapping[str, NDArray[np.float64]], unit: str) -> None:
    for (name, values), colour in zip(curves.items(), (_BLUE, _ORANGE, _GREEN), strict=False):
        shown = _spread(len(values), MOST_EPOCHS)
        low, middle, high = np.quantile(values[shown], (0.1, 0.5, 0.9), axis=1)
        axes.fill_between(shown + 1, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(shown + 1, middle, color=colour, label=name)
    axes.set(xlabel="epoch", ylabel=unit, ylim=(0, None))
    axes.locator_params(axis="x", integer=True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_confusion(axes: Axes, counts: NDArray[np.int64]) -> None:
    n = len(counts)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set(xlabel="predicted", ylabel="true")
    if n > MOST_CELLS:
        return
    percent = " %" if n <= 5 else ""
    for i in range(n):
        for j in range(n):
            text = f"{100 * share[i, j]:.0f}{percent}"
            colour = "white" if share[i, j] > 0.5 else "black"
            axes.text(j, i, text, ha="center", va="center", color=colour, size=9)


def _name_classes(axes: Axes, classes: Array) -> None:
    """Names of the classes at both axes, of very many only some."""
    places = _spread(len(classes), MOST_CELLS)
    names = [short_label(classes[i], 16) for i in places.tolist()]
    slanted = {**_SLANTED, "rotation": 45} if max(map(len, names)) * len(names) > 24 else {}
    axes.set_xticks(places, names, parse_math=False, size=9, **slanted)
    axes.set_yticks(places, names, parse_math=False, size=9)


def _spread(n: int, most: int) -> NDArray[np.int64]:
    """Up to `most` of the numbers 0 … n - 1, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


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
