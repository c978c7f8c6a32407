"""Maps: many vectors as points of a plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen.errors import InputError
from saen.report.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Method = Literal["pca", "tsne"]
MOST_POINTS = {"pca": 50_000, "tsne": 5_000}
"""Vectors that a map shows; of more, an evenly spaced sample is taken."""
# Okabe and Ito's colours, which colour-blind readers tell apart.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#333333")
_GREY = "#BBBBBB"


def project(
    vectors: NDArray[np.float64], method: Method = "pca", *, seed: int = 0
) -> NDArray[np.float64]:
    """Points of a plane for vectors (n, width), shape (n, 2), by scikit-learn.

    >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [1, 2, 0]], dtype=float)
    >>> project(corners).shape
    (4, 2)
    """
    n = len(vectors)
    if n < 3:
        raise InputError(f"a map needs at least 3 vectors, not {n}")
    if method == "tsne":
        from sklearn.manifold import TSNE

        tsne = TSNE(perplexity=min(30.0, (n - 1) / 3), init="pca", random_state=seed)
        points: NDArray[np.float64] = tsne.fit_transform(_wide(vectors))
        return points
    from sklearn.decomposition import PCA

    points = PCA(2, random_state=seed).fit_transform(_wide(vectors))
    return points


def sampled(n: int, method: Method) -> NDArray[np.int64]:
    """The vectors, out of n, that a map shows, in order.

    >>> sampled(3, "pca").tolist(), len(sampled(10**6, "tsne"))
    ([0, 1, 2], 5000)
    """
    shown = min(n, MOST_POINTS[method])
    return np.linspace(0, n - 1, shown).astype(np.int64)


def _wide(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """At least two columns: vectors of one number lie on a line."""
    return np.pad(vectors, ((0, 0), (0, max(2 - vectors.shape[1], 0))))


def plot_embeddings(
    points: NDArray[np.float64], groups: Array | None = None, by: str = "", title: str = ""
) -> Figure:
    """Points (n, 2) of a plane, coloured by their group (n,): a class, or a number.

    Of more classes than there are colours, the largest have one, the others share grey.

    >>> points = project(np.eye(4))
    >>> figure = plot_embeddings(points, np.array(["a", "b", "b", "b"]), by="target")
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['b (3)', 'a (1)']
    """
    figure = new_figure(7.5, 6)
    axes = figure.subplots()
    size = float(np.clip(4000 / max(len(points), 1), 4, 36))
    style: dict[str, Any] = {"s": size, "alpha": 0.7, "linewidths": 0}
    x, y = points.T
    if groups is None:
        axes.scatter(x, y, color=_COLOURS[0], **style)
    elif _is_scale(groups):
        figure.colorbar(axes.scatter(x, y, c=groups, cmap="viridis", **style), label=by)
    else:
        names = _draw_groups(axes, points, groups, style)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)}
        legend = axes.legend(title=by, frameon=False, fontsize=9, **place)
        legend.get_title().set_parse_math(False)
        # Afterwards: a legend leaves out names that begin with an underscore.
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set(text=name, parse_math=False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, size=11, loc="left", weight="bold", parse_math=False)
    axes.spines[["top", "right", "bottom", "left"]].set_color(_GREY)
    figure.tight_layout()
    return figure


def _is_scale(groups: Array) -> bool:
    """Whether values are numbers rather than classes."""
    kind = groups.dtype.kind
    return kind == "f" or (kind in "iu" and len(np.unique(groups)) > len(_COLOURS))


def _draw_groups(
    axes: Axes, points: NDArray[np.float64], groups: Array, style: dict[str, Any]
) -> list[str]:
    """Draw the points of every group in its colour; what to call them, in order."""
    names, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shown = order if len(order) <= len(_COLOURS) else order[: len(_COLOURS) - 1]
    for colour, code in zip(_COLOURS, shown.tolist(), strict=False):
        x, y = points[codes == code].T
        axes.scatter(x, y, color=colour, label=f"group {code}", **style)
    called = [f"{names[code]} ({counts[code]:,})" for code in shown.tolist()]
    rest = ~np.isin(codes, shown)
    if rest.any():
        axes.scatter(*points[rest].T, color=_GREY, label="others", zorder=0, **style)
        called.append(f"{len(order) - len(shown)} others ({rest.sum():,})")
    return called
