"""The colours of all pictures: Okabe and Ito's, which colour-blind readers can tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saen._util.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, DARK = "#E69F00", "#56B4E9", "#555555"
CATEGORIES = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, DARK)
"""For classes and roles, in this order; Okabe and Ito's yellow is too pale for lines."""

INK, GREY, PALE = "#333333", "#999999", "#BBBBBB"
"""Of text and rims, of lines in the background, and of bars in the background."""


def label_colours(n: int) -> Floats:
    """RGBA of n ordered labels, from pale to dark, shape (n, 4).

    >>> label_colours(3).shape
    (3, 4)
    """
    import matplotlib as mpl

    colours: Floats = mpl.colormaps["YlGnBu"](np.linspace(0.1, 0.9, max(n, 2)))[:n]
    return colours


def contribution_map() -> Colormap:
    """Blue for negative, white for zero, vermilion for positive contributions."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("contributions", [BLUE, "#F7F7F7", VERMILION])


def contribution_colours(values: Floats) -> Floats:
    """RGBA of contributions between -1 and 1, shape (n, 4).

    >>> contribution_colours(np.array([-1.0, 0.0, 1.0])).shape
    (3, 4)
    """
    colours: Floats = contribution_map()(0.5 + 0.5 * values)
    return colours


def text_colours(backgrounds: Floats) -> list[str]:
    """Black or white text, whichever is legible on each RGBA background, shape (n, 4)."""
    dark = backgrounds[:, :3] @ (0.299, 0.587, 0.114) < 0.5
    return ["white" if each else "black" for each in dark.tolist()]
