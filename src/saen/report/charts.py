"""Charts: learning curves, confusion, calibration, predicted values, sizes before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array, Floats
from saen._util.strings import plural, short_label
from saen.errors import InputError
from saen.learning.metrics import Reliability, classification_scores
from saen.report.figures import (
    NARROW_WIDTH,
    add_title,
    evenly_spaced,
    new_figure,
    open_frame,
    size_in_points,
)
from saen.report.palette import BLUE, CATEGORIES, GREY, INK, ORANGE, PALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from saen.learning.evaluation import Evaluation


MAX_EPOCHS, MAX_POINTS, MAX_CELLS = 200, 1000, 12  # drawn of curves, clouds and matrices
MAX_TARGET_BARS = 20
SLANTED: dict[str, Any] = {"rotation": 20, "ha": "right", "rotation_mode": "anchor"}


def plot_evaluation(evaluation: Evaluation, title: str = "") -> Figure:
    """Learning curves of all networks, and the confusion matrix or predicted against true numbers.

    Of several targets, the score of each.

    Parameters
    ----------
    evaluation : Evaluation
        What `cross_validate` returned.
    title : str, default=''
        The title.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(30, average_nodes=10, seed=1)
    >>> model = saen.SAENClassifier(epochs=1)
    >>> evaluation = saen.cross_validate(model, threads, threads.targets, n_repeats=1, n_folds=2)
    >>> len(plot_evaluation(evaluation, "threads").axes)
    2
    """
    curves = evaluation.loss.size > 0  # linear models have none
    figure = new_figure(10 if curves else 4.2, 4.2)
    left, right = (
        figure.subplots(1, 2, width_ratios=(1.4, 1)) if curves else (None, figure.subplots())
    )
    classes, (repeats, examples) = evaluation.classes, evaluation.tested()
    targets, outputs = evaluation.targets[examples], evaluation.outputs[repeats, examples]
    if left is not None:
        _draw_curves(left, evaluation.curves, evaluation.loss_name)
        left.set_title(describe_curves(evaluation.loss), size=10, loc="left")
    if evaluation.target_names:
        _draw_target_scores(right, evaluation)
    elif classes is None:
        _draw_predictions(right, targets, outputs)
        mae = evaluation.summary("mae")["mean"]
        right.set_title(f"mean absolute error {mae:.4g}", size=10, loc="left")
    else:
        scores = classification_scores(classes[targets], outputs, classes)
        _draw_confusion(right, scores.confusion, classes)
        right.set_title(f"accuracy {100 * scores.accuracy:.1f} %", size=10, loc="left")
    figure.suptitle(title, x=0.01, ha="left", weight="bold", parse_math=False)
    figure.tight_layout()
    return figure


def describe_curves(values: Floats) -> str:
    """What is drawn of curves (epochs, networks), in words.

    >>> describe_curves(np.array([[2.0, 3.0, 1.0], [1.0, 2.0, np.nan]]))
    '3 networks over 1 to 2 epochs: median, 10 % to 90 %'
    """
    lengths = [len(own) for own in _by_length(values)]
    fewest = f"{lengths[0]} to " if len(lengths) > 1 else ""
    what = f"{plural(values.shape[1], 'network')} over {fewest}{plural(len(values), 'epoch')}"
    return what + (": median, 10 % to 90 %" if values.shape[1] > 1 else "")


def plot_curves(curves: Mapping[str, Floats], unit: str) -> Figure:
    """Learning curves by name, (epochs, networks) each: the median, and 10 % to 90 %."""
    figure = new_figure(NARROW_WIDTH, 3)
    axes = figure.subplots()
    _draw_curves(axes, curves, unit)
    figure.tight_layout()
    return figure


def plot_confusion(confusion: NDArray[np.int64], classes: Array) -> Figure:
    """A confusion matrix (C, C), as shares of each row."""
    size = float(np.clip(1.2 + 0.55 * len(classes), 3, NARROW_WIDTH))
    figure = new_figure(size, size)
    _draw_confusion(figure.subplots(), confusion, classes)
    figure.tight_layout()
    return figure


def plot_calibration(calibration: Reliability) -> Figure:
    """Accuracy by confidence, and the number of predictions of each confidence."""
    figure = new_figure(NARROW_WIDTH, 4)
    top, bottom = figure.subplots(2, 1, height_ratios=(3, 1), sharex=True)
    filled = calibration.counts > 0
    width = 1 / len(filled)
    centres = ((np.arange(len(filled)) + 0.5) * width)[filled]
    accuracy, confidence = calibration.accuracy[filled], calibration.confidence[filled]
    top.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", label="perfect")
    top.bar(centres, accuracy, 0.92 * width, color=BLUE, label="observed accuracy")
    diamond: dict[str, Any] = {"marker": "D", "markersize": 5, "markeredgecolor": "white"}
    diamond |= {"color": ORANGE, "linestyle": "none", "label": "mean confidence"}
    top.plot(confidence, confidence, **diamond)
    top.set(ylim=(0, 1), ylabel="accuracy")
    above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1), "ncols": 3}
    top.legend(frameon=False, fontsize=8.5, columnspacing=1, handletextpad=0.5, **above)
    bottom.bar(centres, calibration.counts[filled], 0.92 * width, color=PALE)
    left = centres.min(initial=1) - width / 2
    bottom.set(xlabel="confidence", ylabel="predictions", xlim=(left, 1))
    for axes in (top, bottom):
        open_frame(axes)
    figure.tight_layout()
    return figure


def plot_roc(targets: NDArray[np.int64], probabilities: Floats, classes: Array) -> Figure:
    """ROC curves: of two classes that of the second, of more one per class against the rest."""
    from sklearn.metrics import auc, roc_curve

    figure = new_figure(NARROW_WIDTH, NARROW_WIDTH)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    shown = [1] if len(classes) == 2 else [*range(min(len(classes), len(CATEGORIES)))]
    for code, colour in zip(shown, CATEGORIES, strict=False):
        own = targets == code
        if own.any() and not own.all():
            false, true, _ = roc_curve(own, probabilities[:, code])
            label = f"{short_label(classes[code], 20)}: {auc(false, true):.3f}"
            axes.plot(false, true, color=colour, label=label)
    axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    if axes.get_legend_handles_labels()[0]:
        for text in axes.legend(frameon=False, fontsize=9, loc="lower right").get_texts():
            text.set_parse_math(False)
    open_frame(axes)
    figure.tight_layout()
    return figure


def plot_predictions(
    targets: Floats, predictions: Floats, name: str, radius: Floats | None = None
) -> Figure:
    """Predicted against observed numbers, (n,) both, with intervals of `radius` around them.

    Of very many, an even sample.
    """
    figure = new_figure(NARROW_WIDTH, NARROW_WIDTH)
    _draw_predictions(figure.subplots(), targets, predictions, name, radius)
    figure.tight_layout()
    return figure


def plot_residuals(targets: Floats, predictions: Floats, name: str) -> Figure:
    """Predicted less observed numbers, (n,) both, against the predicted ones."""
    known = np.flatnonzero(np.isfinite(targets))
    shown = known[evenly_spaced(len(known), MAX_POINTS)]
    figure = new_figure(NARROW_WIDTH, 3)
    axes = figure.subplots()
    axes.axhline(0, color=GREY, linewidth=1, linestyle="--")
    residuals = predictions[shown] - targets[shown]
    axes.scatter(predictions[shown], residuals, s=14, color=BLUE, alpha=0.5, linewidths=0)
    axes.set(ylabel="predicted − observed")
    axes.set_xlabel(f"predicted {short_label(name, 40)}", parse_math=False)
    open_frame(axes)
    figure.tight_layout()
    return figure


def plot_distribution(values: Floats, name: str, what: str) -> Figure:
    """A histogram of numbers, (n,): of how many of `what` they are."""
    figure = new_figure(NARROW_WIDTH, 2.6)
    axes = figure.subplots()
    axes.hist(values[np.isfinite(values)], 30, color=BLUE)
    axes.set(ylabel=what)
    axes.set_xlabel(short_label(name, 40), parse_math=False)
    open_frame(axes)
    figure.tight_layout()
    return figure


def _draw_target_scores(axes: Axes, evaluation: Evaluation) -> None:
    metric = evaluation.metrics[evaluation.metric]
    scores = list(evaluation.target_scores().items())[:MAX_TARGET_BARS]
    places = range(len(scores))
    axes.barh(places, [np.nan if value is None else value for _, value in scores], color=BLUE)
    axes.set(xlabel=metric.title)
    axes.set_yticks(places, [short_label(name, 20) for name, _ in scores], parse_math=False)
    axes.invert_yaxis()
    open_frame(axes)


def _draw_predictions(
    axes: Axes,
    targets: Floats,
    predictions: Floats,
    name: str = "",
    radius: Floats | None = None,
) -> None:
    known = np.flatnonzero(np.isfinite(targets))
    shown = known[evenly_spaced(len(known), MAX_POINTS)]
    x, y = targets[shown], predictions[shown]
    span = min(x.min(), y.min()), max(x.max(), y.max())
    axes.plot(span, span, color=GREY, linewidth=1, linestyle="--")
    if radius is not None:
        axes.errorbar(x, y, radius[shown], fmt="none", ecolor=BLUE, alpha=0.15, linewidth=1)
    axes.scatter(x, y, s=14, color=BLUE, alpha=0.5, linewidths=0)
    axes.set(aspect="equal")
    axes.set_xlabel(f"observed {short_label(name, 40)}".rstrip(), parse_math=False)
    axes.set_ylabel(f"predicted {short_label(name, 40)}".rstrip(), parse_math=False)
    open_frame(axes)


def plot_sizes(sizes: NDArray[np.int64], unit: str, what: str) -> Figure:
    """A histogram of the sizes (n,) of `what`, measured in `unit`."""
    figure = new_figure(NARROW_WIDTH, 2.6)
    axes = figure.subplots()
    low, high = int(sizes.min()), int(sizes.max())
    wide = low > 0 and high > 10 * low
    if high - low < 30:
        edges = np.arange(low, high + 2, dtype=np.float64) - 0.5
    else:
        edges = (np.geomspace if wide else np.linspace)(low, high + 1, 31)
    axes.hist(sizes, np.unique(edges).tolist(), color=BLUE)
    axes.set(ylabel=what, xscale="log" if wide else "linear")
    axes.set_xlabel(unit, parse_math=False)
    axes.locator_params(axis="y" if wide else "both", integer=True)
    if wide:  # 2, 5, 10, 20, …: what matplotlib writes at every step overlaps
        from matplotlib.ticker import LogLocator, NullFormatter

        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
        axes.xaxis.set_major_formatter("{x:,g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    open_frame(axes)
    figure.tight_layout()
    return figure


def plot_levels(levels: Sequence[dict[str, Any]], title: str = "") -> Figure:
    """Objects and part-of entries of every level before and after compression, as bars.

    The scales are logarithmic.

    Parameters
    ----------
    levels : Sequence[dict[str, Any]]
        What `Compressed.levels()` returns.
    title : str, default=''
        The title.

    Raises
    ------
    InputError
        For no levels.

    Examples
    --------
    >>> import saen
    >>> compressed = saen.compress_graphs(saen.generate_threads(9), saen.decompositions.Ego())
    >>> len(plot_levels(compressed.levels()).axes)
    2
    """
    if not levels:
        raise InputError("nothing to draw: the list of levels is empty")
    figure = new_figure(10, 1.2 + 0.6 * len(levels))
    for panel, what in enumerate(("objects", "entries")):
        axes = figure.add_axes((0.11 + 0.45 * panel, 0.16, 0.43, 0.62))
        _draw_levels(axes, levels, what)
        if panel:
            axes.set_yticks([])
    corner: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (0.99, 0.99)}
    figure.legend(*figure.axes[0].get_legend_handles_labels(), ncols=2, frameon=False, **corner)
    add_title(figure, title)
    return figure


# -- parts of charts ---------------------------------------------------------------------------


def _draw_curves(axes: Axes, curves: Mapping[str, Floats], unit: str) -> None:
    for (name, values), colour in zip(curves.items(), CATEGORIES, strict=False):
        label: str | None = name
        for own in _by_length(_filled(values)):
            measured = np.flatnonzero(np.isfinite(own).any(axis=1))
            shown = measured[evenly_spaced(len(measured), MAX_EPOCHS)]
            low, middle, high = np.nanquantile(own[shown], (0.1, 0.5, 0.9), axis=1)
            axes.fill_between(shown + 1, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(shown + 1, middle, color=colour, label=label)
            label = None
    axes.set(xlabel="epoch", ylabel=unit, ylim=(0, None))
    axes.locator_params(axis="x", integer=True)
    if len(curves) > 1:
        for text in axes.legend(frameon=False, fontsize=9).get_texts():
            text.set_parse_math(False)
    open_frame(axes)


def _filled(values: Floats) -> Floats:
    """Curves (epochs, networks) with straight lines between the epochs that were measured."""
    epochs, out = np.arange(len(values)), np.full(values.shape, np.nan)
    for network, curve in enumerate(values.T):
        known = np.flatnonzero(np.isfinite(curve))
        if len(known):
            out[:, network] = np.interp(epochs, known, curve[known], left=np.nan, right=np.nan)
    return out


def _by_length(values: Floats) -> list[Floats]:
    """Curves (epochs, networks) by their last epoch: a median of several lengths would jump."""
    ends = (np.isfinite(values) * np.arange(1, len(values) + 1)[:, None]).max(axis=0, initial=0)
    return [values[:end, ends == end] for end in np.unique(ends[ends > 0]).tolist()]


def _draw_confusion(axes: Axes, confusion: NDArray[np.int64], classes: Array) -> None:
    """Shares of each row; names of the classes at both axes, of very many only some."""
    n = len(confusion)
    share = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set(xlabel="predicted", ylabel="true")
    places = evenly_spaced(n, MAX_CELLS)
    names = [short_label(classes[i], 16) for i in places.tolist()]
    slanted = {**SLANTED, "rotation": 45} if max(map(len, names)) * len(names) > 24 else {}
    axes.set_xticks(places, names, parse_math=False, size=9, **slanted)
    axes.set_yticks(places, names, parse_math=False, size=9)
    if n > MAX_CELLS:
        return
    percent = " %" if n <= 5 else ""
    for (i, j), value in np.ndenumerate(share):
        colour = "white" if value > 0.5 else "black"
        centred: dict[str, Any] = {"ha": "center", "va": "center", "size": 9}
        axes.text(j, i, f"{100 * value:.0f}{percent}", color=colour, **centred)


def _draw_levels(axes: Axes, levels: Sequence[dict[str, Any]], what: str) -> None:
    """Bars of every level; the bottom level has no entries."""
    keys = (what, {"objects": "unique", "entries": "entries_compressed"}[what])
    rows = [row for row in levels if what == "objects" or row["level"] > 0]
    bars = ("before", 0.2, PALE), ("after", -0.2, BLUE)
    beside: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "color": INK}
    for key, (label, shift, colour) in zip(keys, bars, strict=True):
        y = [row["level"] + shift for row in rows]
        # A logarithmic scale has no zero to begin at.
        widths = [max(row[key] - 0.5, 0) for row in rows]
        axes.barh(y, widths, 0.38, left=0.5, color=colour, label=label)
        for row, at in zip(rows, y, strict=True):
            end = (max(row[key], 0.5), at)
            axes.annotate(f"{row[key]:,}", end, va="center", size=8.5, **beside)
    widest = max(1, *(row[key] for row in levels for key in keys))
    # Room for the longest number at the end of the longest bar.
    share = (6 + 5.5 * len(f"{widest:,}")) / float(size_in_points(axes)[0])
    axes.set(xscale="log", xlim=(0.5, 0.5 * (2 * widest) ** (1 / (1 - share))))
    axes.set_ylim(-0.5, len(levels) - 0.5)
    names = [short_label(row["name"], 16) for row in rows]
    axes.set_yticks([row["level"] for row in rows], names, parse_math=False)
    axes.set_title(what, size=10, loc="left", color=INK)
    axes.tick_params(labelsize=9, labelcolor=INK)
    open_frame(axes)
