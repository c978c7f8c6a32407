"""Pages need nothing but themselves, and show text as text."""

import re
from html.parser import HTMLParser

import pytest

from saen import Ego, Graphs, InputError
from saen.errors import FileError
from saen.report.page import Page
from saen.report.plots import draw_decomposition

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")


class Seen(HTMLParser):
    """Tags with their attributes, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def figure():
    return draw_decomposition(Graphs.from_edge_lists([[(0, 1), (1, 2)]]), Ego((0, 1)), "<i>&")


def page() -> Page:
    out = Page("Results <script>")
    out.add_heading("A & B")
    out.add_paragraph("one <b>two</b>", note=True)
    out.add_figure(figure(), 'the "path"')
    out.add_figure(figure())
    rows = [["<td>", -1.5, None, figure()], ["x", 12345, "y", figure()]]
    out.add_table(["name", "number", "nothing", "picture"], rows, caption="<caption>")
    return out


def test_tags_are_closed_and_text_is_text():
    seen = Seen(page().html())
    assert seen.open == []
    assert seen.named("script") == []
    for text in ("Results <script>", "A & B", "one <b>two</b>", "<td>", "<caption>", "−1.5"):
        assert text in seen.texts
    assert any("<i>&" in text for text in seen.texts)  # in the figure
    assert "12,345" in seen.texts


def test_nothing_is_loaded_from_elsewhere():
    html = page().html()
    seen = Seen(html)
    policy = seen.named("meta")[-1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert "default-src 'none'" in policy["content"]
    for _, attributes in seen.tags:
        for key, value in attributes.items():
            if key in ("src", "href") or key.endswith(":href"):
                assert value.startswith(("#", "data:"))
    assert "@import" not in html
    assert "http://" not in html
    assert "https://" not in html


def test_identifiers_are_unique_and_what_refers_to_them_is_there():
    html = page().html()
    seen = Seen(html)
    found = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(found) == len(set(found)) > 0
    used = set(re.findall(r"url\(#([^)]+)\)", html)) | {
        attributes["href"][1:] for attributes in seen.named("use")
    }
    assert used
    assert used <= set(found)
    assert len(seen.named("svg")) == 4
    assert seen.named("svg")[0]["aria-label"] == 'the "path"'


def test_phones_and_dark_rooms_are_thought_of():
    html = page().html()
    assert "width=device-width" in html
    assert "prefers-color-scheme: dark" in html


def test_the_same_content_gives_the_same_bytes(tmp_path):
    page().write(tmp_path / "a.html")
    page().write(tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_mistakes_are_named(tmp_path):
    with pytest.raises(InputError, match="row 1: 1 cells for 2 columns"):
        Page("x").add_table(["a", "b"], [[1, 2], [3]])
    with pytest.raises(FileError, match="cannot be written"):
        Page("x").write(tmp_path / "missing" / "page.html")
