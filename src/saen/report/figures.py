"""Figures as objects and files; matplotlib's global state stays untouched."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from functools import cache
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Floats
from saen._util.atomic import atomic_write, check_output
from saen.errors import InputError, MissingExtraError
from saen.report.palette import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png", ".pdf")
NARROW_WIDTH = 4.6  # inches: legible on a phone, two side by side on a page

# Text stays text in SVG files: smaller, and it can be searched and read aloud.
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "saen", "svg.fonttype": "none"}
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches.

    Raises `MissingExtraError` without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", extra="plots") from error
    return _shown(Figure)(figsize=(width, height), facecolor="white")


@cache
def _shown(figure: type[Figure]) -> type[Figure]:
    """Figures that notebooks show without `matplotlib.pyplot`."""
    numbers = count(1)

    class Drawing(figure):  # type: ignore[misc, valid-type]
        def _repr_html_(self) -> str:
            return inline_svg(self, "", f"n{next(numbers)}-")

    return Drawing


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .svg, .png or .pdf, atomically; equal figures give equal bytes.

    Parameters
    ----------
    figure : Figure
        The figure.
    path : str | Path
        A file with the suffix .svg, .png or .pdf.

    Raises
    ------
    InputError
        For another suffix.
    FileError
        Where the file cannot be written.

    Examples
    --------
    >>> save_figure(new_figure(2, 1), getfixture("tmp_path") / "empty.svg")
    """
    import matplotlib as mpl

    suffix = _suffix(path)
    with atomic_write(path) as temporary, mpl.rc_context(_SETTINGS), temporary.open("wb") as file:
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=_UNDATED.get(suffix))


def check_figure(path: str | Path, *, force: bool, inputs: Iterable[object] = ()) -> None:
    """Raise before the work if `save_figure` could not, or must not, write the file."""
    _suffix(path)
    new_figure(1, 1)  # fails without matplotlib
    check_output(path, force=force, inputs=inputs)


def _suffix(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"cannot draw to {str(path)!r}: use {', '.join(FORMATS)}")
    return suffix


def inline_svg(figure: Figure | bytes, label: str, prefix: str) -> str:
    """The figure, or an SVG file, as an SVG element to stand in a page.

    `label` is what screen readers read; `prefix` makes its identifiers unique on the page.
    """
    import matplotlib as mpl

    drawn = BytesIO(figure if isinstance(figure, bytes) else b"")
    if not isinstance(figure, bytes):
        with mpl.rc_context(_SETTINGS):
            figure.savefig(drawn, format="svg", metadata=_UNDATED[".svg"])
    root = ElementTree.fromstring(drawn.getvalue())
    _make_inline(root, prefix)
    root.set("role", "img")
    root.set("aria-label", label)
    # Its style sheet would apply to the whole page; what it says is inherited anyway.
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    return ElementTree.tostring(root, encoding="unicode")


def _make_inline(element: ElementTree.Element, prefix: str) -> None:
    """Drop namespaces, metadata and style sheets; rename identifiers and references to them."""
    element.tag = _local_name(element.tag)
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        if key == "id":
            value = prefix + value
        elif key == _XLINK_HREF and value.startswith("#"):
            value = f"#{prefix}{value[1:]}"
        element.set(_local_name(key), value.replace("url(#", f"url(#{prefix}"))
    for child in list(element):
        if _local_name(child.tag) in ("metadata", "style"):
            element.remove(child)
        else:
            _make_inline(child, prefix)


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]


def add_text(where: Axes | Figure, text: str, *, x: float, y: float, **style: Any) -> None:
    """Text as it is: a dollar sign in a label is a dollar sign."""
    where.text(x, y, text, **{"color": INK, "parse_math": False, **style})


def add_title(figure: Figure, text: str) -> None:
    """A title in bold at the upper left."""
    add_text(figure, text, x=0.01, y=0.975, va="top", size=12, weight="bold")


def add_note(figure: Figure, text: str, *, x: float = 0.01, size: float = 8) -> None:
    """A note in italics at the bottom."""
    add_text(figure, text, x=x, y=0.02, va="bottom", size=size, style="italic")


def add_legend(axes: Axes, handles: list[Any], names: list[str], **options: Any) -> None:
    """A small legend that shows names as they are, and does not replace another one."""
    from matplotlib.legend import Legend

    options |= {"frameon": False, "fontsize": 8.5, "labelcolor": INK, "columnspacing": 1.2}
    options |= {"handlelength": 1.0, "handletextpad": 0.5, "bbox_transform": axes.transAxes}
    legend = Legend(axes, handles, names, **options)
    for text in legend.get_texts():
        text.set_parse_math(False)
    axes.add_artist(legend)


def open_frame(axes: Axes) -> None:
    """Show the left and bottom axis only."""
    axes.spines[["top", "right"]].set_visible(False)


def size_in_points(axes: Axes) -> Floats:
    """Width and height of the axes in points, shape (2,)."""
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    return 72 * np.array([box.width, box.height])


def raised(axes: Axes, points: float) -> Any:
    """Data coordinates moved up by so many points."""
    from matplotlib.transforms import ScaledTranslation

    return axes.transData + ScaledTranslation(0, points / 72, axes.figure.dpi_scale_trans)


def evenly_spaced(n: int, limit: int) -> NDArray[np.int64]:
    """Up to `limit` of the integers 0 … n - 1, evenly spaced, the first and last among them.

    >>> evenly_spaced(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(np.int64))
