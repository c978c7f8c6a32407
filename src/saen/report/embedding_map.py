"""Maps of embeddings: many vectors as points of a plane."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from saen._util.arrays import Array, Floats
from saen._util.strings import did_you_mean
from saen.errors import InputError
from saen.io.embeddings import read_embeddings
from saen.report.figures import evenly_spaced, new_figure, save_figure
from saen.report.palette import CATEGORIES, PALE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Method = Literal["pca", "tsne"]

MAX_POINTS = {"pca": 50_000, "tsne": 5_000}
"""Vectors that a map shows; of more, an evenly spaced sample is taken."""


@dataclass(frozen=True)
class EmbeddingMap:
    """A map that was drawn: the file, the number of points, the method, the column of colours."""

    figure: str
    points: int
    method: str
    by: str | None

    def to_json(self) -> dict[str, Any]:
        """As plain numbers and strings."""
        return asdict(self)


def draw_embedding_map(
    file: str | Path,
    out: str | Path,
    *,
    method: Method = "pca",
    by: str | None = None,
    seed: int = 0,
) -> EmbeddingMap:
    """Draw vectors that `saen embed` wrote as points of a plane.

    Parameters
    ----------
    file : str | Path
        Vectors with columns about them, as `saen embed` writes them.
    out : str | Path
        An .svg, .png or .pdf file.
    method : Method, default='pca'
        `pca`: the two directions of most variance; `tsne`: neighbours stay neighbours.
    by : str | None, default=None
        The column that colours the points; by default `target`, where there is one.
    seed : int, default=0
        Of the projection.

    Raises
    ------
    InputError
        For fewer than three vectors or an unknown column.
    FileError
        For files that cannot be read or written.
    MissingExtraError
        Without matplotlib.
    """
    vectors, columns = read_embeddings(Path(file))
    column = "target" if by is None and "target" in columns else by
    if column is not None and column not in columns:
        known = ", ".join(columns) or "it holds only vectors"
        raise InputError(f"{file} has no column {column!r}{did_you_mean(column, columns)}: {known}")
    rows = evenly_spaced(len(vectors), MAX_POINTS[method])
    points = project(vectors[rows], method, seed=seed)
    groups = None if column is None else columns[column][rows]
    shown = f"{len(rows):,} of {len(vectors):,}" if len(rows) < len(vectors) else f"{len(rows):,}"
    title = f"{Path(file).stem}: {shown} vectors, {'t-SNE' if method == 'tsne' else 'PCA'}"
    save_figure(plot_embeddings(points, groups, column or "", title), out)
    return EmbeddingMap(str(out), len(rows), method, column)


def project(vectors: Floats, method: Method = "pca", *, seed: int = 0) -> Floats:
    """Points of a plane for vectors (n, width), shape (n, 2), by scikit-learn.

    Raises `InputError` for fewer than three vectors.

    >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [1, 2, 0]], dtype=float)
    >>> project(corners).shape
    (4, 2)
    """
    n = len(vectors)
    if n < 3:
        raise InputError(f"a map needs at least 3 vectors, not {n}")
    # Vectors of one number lie on a line.
    wide = np.pad(vectors, ((0, 0), (0, max(2 - vectors.shape[1], 0))))
    if method == "tsne":
        from sklearn.manifold import TSNE

        projection = TSNE(perplexity=min(30.0, (n - 1) / 3), init="pca", random_state=seed)
    else:
        from sklearn.decomposition import PCA

        projection = PCA(2, random_state=seed)
    points: Floats = projection.fit_transform(wide)
    return points


def plot_embeddings(
    points: Floats, groups: Array | None = None, by: str = "", title: str = ""
) -> Figure:
    """Points (n, 2) of a plane, coloured by their group (n,): a class, or a number.

    If there are more classes than colours, the largest have one, the others share grey.

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
        axes.scatter(x, y, color=CATEGORIES[0], **style)
    elif _are_numbers(groups):
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
    axes.spines[["top", "right", "bottom", "left"]].set_color(PALE)
    figure.tight_layout()
    return figure


def _are_numbers(groups: Array) -> bool:
    """Whether values are numbers rather than classes."""
    kind = groups.dtype.kind
    return kind == "f" or (kind in "iu" and len(np.unique(groups)) > len(CATEGORIES))


def _draw_groups(axes: Axes, points: Floats, groups: Array, style: dict[str, Any]) -> list[str]:
    """Draw the points of every group in its colour; the names for the legend, in order."""
    values, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shown = order if len(order) <= len(CATEGORIES) else order[: len(CATEGORIES) - 1]
    for colour, code in zip(CATEGORIES, shown.tolist(), strict=False):
        x, y = points[codes == code].T
        axes.scatter(x, y, color=colour, label=f"group {code}", **style)
    names = [f"{values[code]} ({counts[code]:,})" for code in shown.tolist()]
    rest = ~np.isin(codes, shown)
    if rest.any():
        axes.scatter(*points[rest].T, color=PALE, label="others", zorder=0, **style)
        names.append(f"{len(order) - len(shown)} others ({rest.sum():,})")
    return names
