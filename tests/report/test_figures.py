"""Files of figures: text as text, equal bytes for equal figures, nothing half-written."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from saen import Graphs
from saen.decompositions import Ego
from saen.errors import FileError, InputError, MissingExtraError
from saen.report.figures import new_figure, save_figure
from saen.report.hierarchy_drawing import draw_compression, draw_decomposition
from tests.report.pictures import SMALL, collaboration

mpl = pytest.importorskip("matplotlib", reason="needs the extra 'plots'")


def test_save_figure_keeps_words_as_text_in_svg(tmp_path: Any) -> None:
    labels = ["$x^{$", "<&\x07>", "two\nlines", "a very long label indeed"]
    graphs = Graphs.from_edge_lists([[(0, 1), (1, 2), (2, 3)]], node_labels=labels)
    save_figure(draw_decomposition(graphs, Ego((0, 1)), "$x^{$ & co"), tmp_path / "figure.svg")
    tree = ElementTree.parse(tmp_path / "figure.svg")
    words = {"".join(element.itertext()) for element in tree.iter() if element.tag.endswith("text")}
    assert {"root", "elem", "radius 0", "radius 1", "$x^{$", "<&·>", "two lines"} <= words
    assert "a very long…" in words
    assert "$x^{$ & co: 4 nodes → 8 ego graphs → 1 graph" in words


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_save_figure_gives_the_same_bytes_for_the_same_picture(suffix: str, tmp_path: Any) -> None:
    for name in ("a", "b"):
        save_figure(draw_compression(collaboration(), Ego((0, 1))), tmp_path / f"{name}.{suffix}")
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_save_figure_refuses_an_unknown_suffix(tmp_path: Any) -> None:
    figure = new_figure(2, 1)
    with pytest.raises(InputError, match=r"\.svg, \.png, \.pdf"):
        save_figure(figure, tmp_path / "figure.bmp")
    save_figure(figure, tmp_path / "FIGURE.PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["FIGURE.PNG"]


def test_save_figure_names_the_file_that_cannot_be_written(tmp_path: Any) -> None:
    figure = new_figure(2, 1)
    with pytest.raises(FileError, match=r"nowhere.figure\.svg: cannot be written"):
        save_figure(figure, tmp_path / "nowhere" / "figure.svg")


def test_save_figure_leaves_the_old_file_when_interrupted(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = new_figure(2, 1)
    target = tmp_path / "figure.svg"
    target.write_text("old")

    def interrupted(file: Any, **options: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(figure, "savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_figure(figure, target)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_new_figure_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"saen\[plots\]"):
        new_figure(1, 1)


def test_matplotlib_is_imported_late_and_pyplot_never() -> None:
    code = (
        "import sys, saen.report.hierarchy_drawing as drawing\n"
        "from saen import Graphs\n"
        "from saen.decompositions import Ego\n"
        "assert 'matplotlib' not in sys.modules\n"
        "drawing.draw_compression(Graphs.from_edge_lists([[(0, 1)]]), Ego())\n"
        "assert 'matplotlib.figure' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_matplotlib_settings_are_left_as_they_were(tmp_path: Any) -> None:
    before = dict(mpl.rcParams)
    save_figure(draw_decomposition(*SMALL["house"]), tmp_path / "figure.svg")
    assert dict(mpl.rcParams) == before
