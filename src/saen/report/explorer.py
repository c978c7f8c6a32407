"""`write_explorer`: a whole dataset on one page that needs no server and no network.

The map and the drawings are Bokeh's, whose script is copied into the page; tables are plain HTML.
All data lie in the page, compressed, and nothing is ever loaded from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from saen._util.arrays import Array, Floats
from saen.errors import MissingExtraError
from saen.explanations.exploration import Exploration
from saen.report.explorer_data import n_listed_parts, packed, page_data
from saen.report.page import in_words, write_page
from saen.report.palette import GREY, INK, PALE


def write_explorer(
    path: str | Path,
    exploration: Exploration,
    *,
    fold: Array | None = None,
    about: Mapping[str, Any] | None = None,
    out_of_fold: str = "",
) -> None:
    """Write the page atomically.

    Parameters
    ----------
    path : str | Path
        The .html file.
    exploration : Exploration
        What `explore` returned.
    fold : Array | None, default=None
        The fold in which every example was tested, (n,), for one more colouring of the map.
    about : Mapping[str, Any] | None, default=None
        How it was made, such as the model and versions.
    out_of_fold : str, default=''
        Where the model was trained on these very examples: its score on inner folds and, after a
        comma, what that is.

    Raises
    ------
    MissingExtraError
        Without Bokeh.
    FileError
        Where the file cannot be written.

    Examples
    --------
    >>> import saen
    >>> threads = saen.generate_threads(30, average_nodes=12, seed=1)
    >>> model = saen.SAENClassifier(epochs=1).fit(threads, threads.targets)
    >>> page = getfixture("tmp_path") / "explore.html"
    >>> write_explorer(page, saen.explore(model, threads, n_parts=10))
    >>> "<h1>" in page.read_text()
    True
    """
    figures, map_div, graph_divs, library = _bokeh(exploration)
    application = (Path(__file__).parent / "templates/explorer.js").read_text("utf-8")
    write_page(
        path,
        "explorer.html",
        f"{exploration.name}: explore {len(exploration.ids):,} {exploration.noun}s",
        noun=exploration.noun,
        part_name=exploration.part_name,
        headline=_headline(exploration, out_of_fold),
        explained=exploration.explained,
        overlap=exploration.overlap is not None,
        n_listed=f"{n_listed_parts(exploration):,}",
        n_unique=f"{exploration.n_unique_parts:,}",
        hashes=[_hash(script) for script in (library, figures, application)],
        library=Markup(library),
        figures=Markup(figures),
        map=Markup(map_div),
        graphs=[Markup(div) for div in graph_divs],
        application=Markup(application),
        data=packed(page_data(exploration, fold)),
        settings={str(key): in_words(value) for key, value in (about or {}).items()},
    )


def _headline(exploration: Exploration, out_of_fold: str) -> tuple[str, str]:
    """The number to show large, and what it is: of examples that were not trained on, if known."""
    errors, training = exploration.errors, exploration.training
    noun = exploration.noun
    if errors is None:
        return f"{len(exploration.ids):,}", f"{noun}s without targets"
    new = np.ones(len(errors), dtype=np.bool_) if training is None else ~training

    def shown(own: Floats) -> str:
        right = f"{100 * (1 - own.mean()):.1f} %" if len(own) else "–"
        return right if exploration.classes else f"{np.abs(own).mean():.3g}" if len(own) else "–"

    what = "of predictions are right" if exploration.classes else "mean absolute error"
    if out_of_fold:
        number, _, rest = out_of_fold.partition(", ")
        return number, f"{rest} ({shown(errors)} on these {noun}s, which the model was trained on)"
    if training is None:
        return shown(errors), f"{what}, on {len(errors):,} {noun}s"
    known = f"{shown(errors[~new])} on those of the training data"
    return shown(errors[new]), f"{what}, on {new.sum():,} new {noun}s ({known})"


def _hash(script: str) -> str:
    """What the page's policy knows a script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}"


def check_bokeh() -> None:
    """Raise `MissingExtraError` without Bokeh."""
    if find_spec("bokeh") is None:
        raise MissingExtraError("bokeh", extra="explore")


# -- Bokeh -------------------------------------------------------------------------------------


_ID = re.compile(r"\bp\d{4,}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def _bokeh(exploration: Exploration) -> tuple[str, str, list[str], str]:
    """The script and the places of the figures, and Bokeh's own script."""
    check_bokeh()
    from bokeh.embed import components
    from bokeh.resources import INLINE

    figures = [_map_figure(), _graph_figure("a"), _graph_figure("b")]
    script, divs = components(figures, wrap_script=False)
    names: dict[str, str] = {}
    # Bokeh numbers its models through, and draws the ids of elements at random.
    script, *places = (
        _ID.sub(lambda found: names.setdefault(found[0], f"f{len(names)}"), text)
        for text in (script, *divs)
    )
    return script, places[0], places[1:], INLINE.js_raw[0]


def _figure(title: str, tools: str, height: int) -> Any:
    from bokeh.plotting import figure

    plot = figure(
        tools=tools,
        height=height,
        sizing_mode="stretch_width",
        toolbar_location="above",
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_alpha=0,
        active_scroll="wheel_zoom",
    )
    plot.axis.visible = False
    plot.grid.visible = False
    plot.name = title
    plot.toolbar.logo = None
    return plot


def _map_figure() -> Any:
    from bokeh.models import ColumnDataSource, HoverTool

    plot = _figure("map", "pan,wheel_zoom,box_zoom,lasso_select,box_select,tap,reset", 420)
    # One point until the script of the page brings its own: Bokeh complains of none.
    point: dict[str, Any] = {
        "x": [0],
        "y": [0],
        "colour": [PALE],
        "id": [""],
        "target": [""],
        "prediction": [""],
    }
    source = ColumnDataSource(point, name="points")
    plot.scatter(
        "x", "y", source=source, size=7, fill_color="colour", line_color=None, fill_alpha=0.75,
        nonselection_fill_alpha=0.12, selection_line_color=GREY, selection_fill_alpha=1,
    )  # fmt: skip
    rows = [("id", "@id"), ("target", "@target"), ("prediction", "@prediction")]
    plot.add_tools(HoverTool(tooltips=rows))
    return plot


def _graph_figure(side: str) -> Any:
    from bokeh.models import ColumnDataSource, HoverTool
    from bokeh.models.annotations import LabelSet

    plot = _figure(f"graph-{side}", "pan,wheel_zoom,box_zoom,tap,reset", 380)
    plot.match_aspect = True
    edges = ColumnDataSource({"xs": [[0, 0]], "ys": [[0, 0]]}, name=f"edges-{side}")
    plot.multi_line("xs", "ys", source=edges, line_color=GREY, line_alpha=0.8)
    node: dict[str, Any] = {
        "x": [0],
        "y": [0],
        "colour": [PALE],
        "rim": [PALE],
        "width": [1],
        "size": [1],
        "text": [INK],
    }
    words = {"node": [""], "label": [""], "shown": [""], "value": [""]}
    nodes = ColumnDataSource(node | words, name=f"nodes-{side}")
    dots = plot.scatter(
        "x", "y", source=nodes, size="size", fill_color="colour", line_color="rim",
        line_width="width", nonselection_fill_alpha=1, nonselection_line_alpha=1,
    )  # fmt: skip
    plot.add_layout(
        LabelSet(
            x="x", y="y", text="shown", source=nodes, text_align="center", text_baseline="middle",
            text_font_size="11px", text_color="text",
        )
    )  # fmt: skip
    rows = [("node", "@node"), ("label", "@label"), ("contribution", "@value")]
    plot.add_tools(HoverTool(tooltips=rows, renderers=[dots]))
    return plot
