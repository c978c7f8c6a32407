"""Charts of the paper's tables: published figures beside ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from saen.io.sources.catalog import catalog
from saen.report.charts import SLANTED
from saen.report.figures import new_figure, open_frame
from saen.report.palette import BLUE, GREEN, GREY, ORANGE, PALE, PINK, SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Where a method's accuracy stands in the row of a dataset, and its colour.
_METHODS = {
    "DGK": ("published", "DGK", PALE),
    "PATCHY-SAN": ("published", "PATCHY-SAN", GREY),
    "SAEN, paper": ("published", "SAEN", ORANGE),
    "as written": ("written", "accuracy", PINK),
    "preset paper": ("paper", "accuracy", BLUE),
    "preset network": ("network", "accuracy", GREEN),
    "preset best": ("best", "accuracy", SKY),
}


def plot_accuracy(data: dict[str, Any]) -> Figure:
    """Accuracies with error bars, the paper's methods beside ours, for `saen reproduce`."""
    figure = new_figure(max(7.5, 1.4 * len(data)), 4.2)
    axes = figure.subplots()
    width = 0.84 / len(_METHODS)
    for number, (method, (_, _, colour)) in enumerate(_METHODS.items()):
        accuracies = [(x, _accuracy(row, method)) for x, row in enumerate(data.values())]
        points = [(x, pair) for x, pair in accuracies if pair is not None]
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
    axes.set_xticks(range(len(data)), list(data), **SLANTED)
    axes.set(ylabel="accuracy (%)", ylim=(20, 100))
    axes.legend(
        ncols=len(_METHODS),
        frameon=False,
        fontsize=9,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
    )
    open_frame(axes)
    figure.tight_layout()
    return figure


def plot_gain(data: dict[str, Any]) -> Figure:
    """Our gain over PATCHY-SAN against the average maximum degree: the paper's claim A1."""
    figure = new_figure(6, 4)
    axes = figure.subplots()
    for method in ("preset paper", "preset network"):
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
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set(xscale="log", xlabel="average maximum degree", ylabel="gain over PATCHY-SAN (points)")
    axes.legend(frameon=False, loc="lower right")
    open_frame(axes)
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
    _draw_bars(sizes, list(data), ratios, (ORANGE, BLUE))
    sizes.set(ylim=(min(shares) / 2, 2), ylabel="bytes after / before")
    sizes.set_title("Size of the file: less is better", size=10, loc="left")
    timings = {
        f"preset {preset}": [_speedup(row["timings"][preset]) for row in data.values()]
        for preset in ("paper", "network")
    }
    speedups = {"paper": [_speedup(row) for row in published], **timings}
    _draw_bars(speeds, list(data), speedups, (ORANGE, BLUE, GREEN))
    heights = [height or 1 for bars in speedups.values() for height, _ in bars]
    speeds.set(ylim=(min(1, *heights), 4 * max(heights)), ylabel="seconds before / after")
    speeds.set_title("Speed-up of training: more is better", size=10, loc="left")
    figure.tight_layout()
    return figure


# -- parts of charts --------------------------------------------------------------------------


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
    axes.set_xticks(range(len(names)), names, **SLANTED)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.legend(frameon=False, fontsize=9, ncols=len(series), loc="upper right")
    open_frame(axes)


def _accuracy(row: dict[str, Any], method: str) -> tuple[float, float] | None:
    """Mean in percent of one method on one dataset, and half of its interval.

    The paper has standard deviations instead.
    """
    group, key, _ = _METHODS[method]
    accuracy = row.get(group, {}).get(key)
    if accuracy is None:
        return None
    if group == "published":
        return accuracy[0], accuracy[1]
    low, high = accuracy["interval"]
    return 100 * accuracy["mean"], 50 * (high - low)
