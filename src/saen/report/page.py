"""`Page`: results as one HTML file that needs nothing else, to read, to mail and to keep."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saen._util.atomic import atomic_write
from saen._version import __version__
from saen.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #222; --dim: #666; --line: #ddd; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181c; --ink: #e4e4e4; --dim: #a0a0a0; --line: #3a3d42; }
  svg { filter: invert(0.9) hue-rotate(180deg); }
}
body { background: var(--paper); color: var(--ink); margin: 0 auto; padding: 1rem;
  max-width: 60rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.note, caption, figcaption, footer { color: var(--dim); font-size: 0.875rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 0.25rem; }
th, td { padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid var(--line);
  text-align: left; vertical-align: middle; }
.number { text-align: right; white-space: nowrap; }
figure { display: inline-block; vertical-align: top; max-width: 100%;
  margin: 0.5rem 1rem 0.5rem 0; }
svg { background: #fff; border-radius: 4px; max-width: 100%; height: auto; }
dl { display: grid; gap: 0.25rem 2rem; } dl div { display: flex; gap: 1rem; }
dt { color: var(--dim); flex: 0 0 6rem; } dd { margin: 0; overflow-wrap: anywhere; }
.short { grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); }
.short dt { flex-basis: 9.5rem; }
pre { white-space: pre-wrap; border: 1px solid var(--line); border-radius: 4px; padding: 0.5rem; }
footer { margin-top: 3rem; }
"""
# The page may load nothing at all: a browser that honours this proves that it is self-contained.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_XLINK = "{http://www.w3.org/1999/xlink}"


class Page:
    """An HTML page of headings, paragraphs, tables and figures, with no script and no network.

    All text is escaped. It follows the reader's light or dark setting and fits a phone. The same
    content gives the same bytes.

    >>> page = Page("Ego graphs & more")
    >>> page.add_table(["part", "contribution"], [["<root>", -0.25], ["elem", 1200]])
    >>> "<td>&lt;root&gt;</td><td class=\\"number\\">−0.25</td>" in page.html()
    True
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._body: list[str] = [f"<h1>{escape(title)}</h1>"]
        self._figures = 0

    def add_heading(self, text: str) -> None:
        """A heading below the title."""
        self._body.append(f"<h2>{escape(text)}</h2>")

    def add_paragraph(self, text: str, *, note: bool = False) -> None:
        """A paragraph; a `note` is smaller and paler."""
        tag = '<p class="note">' if note else "<p>"
        self._body.append(f"{tag}{escape(text)}</p>")

    def add_code(self, text: str) -> None:
        """Text to copy, such as a command line."""
        self._body.append(f"<pre><code>{escape(text)}</code></pre>")

    def add_pairs(self, pairs: Mapping[str, str], *, short: bool = False) -> None:
        """Names with what stands for them; `short` ones side by side where there is room."""
        lines = [
            f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
            for name, text in pairs.items()
        ]
        tag = '<dl class="short">' if short else "<dl>"
        self._body.append(f"{tag}{chr(10).join(lines)}</dl>")

    def add_table(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = ""
    ) -> None:
        """A table whose cells are text, numbers (set to the right), None or small figures.

        Raises `InputError` for a row that has not as many cells as there are columns.
        """
        for number, row in enumerate(rows):
            if len(row) != len(columns):
                raise InputError(f"row {number}: {len(row)} cells for {len(columns)} columns")
        numeric = [any(_is_number(row[i]) for row in rows) for i in range(len(columns))]
        head = "".join(
            f'<th class="number">{escape(column)}</th>' if right else f"<th>{escape(column)}</th>"
            for column, right in zip(columns, numeric, strict=True)
        )
        lines = [f"<tr>{''.join(map(self._cell, row))}</tr>" for row in rows]
        above = f"<caption>{escape(caption)}</caption>" if caption else ""
        self._body.append(
            f'<div class="wide"><table>{above}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>{chr(10).join(lines)}</tbody></table></div>"
        )

    def add_figure(self, figure: Figure, caption: str = "") -> None:
        """A matplotlib figure as inline SVG; `caption` also tells screen readers what it shows."""
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        # As wide as the drawing, so that narrow ones stand side by side, whatever their captions.
        width = f'style="width: {96 * figure.get_figwidth():.0f}px"'
        self._body.append(f"<figure {width}>{self._svg(figure, caption)}{below}</figure>")

    def html(self) -> str:
        """The whole page as text."""
        head = (
            f'<meta charset="utf-8">\n<title>{escape(self.title)}</title>\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
            f"<style>{_STYLE}</style>"
        )
        body = "\n".join([*self._body, f"<footer>saen {escape(__version__)}</footer>"])
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
            f"<body>\n{body}\n</body>\n</html>\n"
        )

    def write(self, path: str | Path) -> None:
        """Write the page, whole or not at all; `FileError` where the file cannot be written."""
        with atomic_write(path) as temporary:
            # File names of the command line may hold what is no text.
            temporary.write_text(self.html(), encoding="utf-8", errors="xmlcharrefreplace")

    def _cell(self, value: Any) -> str:
        if _is_number(value):
            return f'<td class="number">{_shown(value)}</td>'
        if hasattr(value, "savefig"):
            return f"<td>{self._svg(value, '')}</td>"
        return f"<td>{'' if value is None else escape(str(value))}</td>"

    def _svg(self, figure: Figure, label: str) -> str:
        """The figure as an SVG element, its identifiers made unique on this page."""
        import matplotlib as mpl

        self._figures += 1
        drawn = StringIO()
        # As in `saen.report.plots.save_figure`: text stays text, equal figures give equal bytes.
        with mpl.rc_context({"svg.hashsalt": "saen", "svg.fonttype": "none"}):
            figure.savefig(drawn, format="svg", metadata={"Date": None})
        root = ElementTree.fromstring(drawn.getvalue())
        _make_inline(root, f"f{self._figures}-")
        root.set("role", "img")
        root.set("aria-label", label)
        # Its style sheet would rule the whole page; what it says is inherited anyway.
        root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
        return ElementTree.tostring(root, encoding="unicode")


def _make_inline(element: ElementTree.Element, prefix: str) -> None:
    """Drop namespaces, metadata and style sheets; rename identifiers and references to them."""
    element.tag = _bare(element.tag)
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        if key == "id":
            value = prefix + value
        elif key == f"{_XLINK}href" and value.startswith("#"):
            value = f"#{prefix}{value[1:]}"
        element.set(_bare(key), value.replace("url(#", f"url(#{prefix}"))
    for child in list(element):
        if _bare(child.tag) in ("metadata", "style"):
            element.remove(child)
        else:
            _make_inline(child, prefix)


def _bare(name: str) -> str:
    return name.rpartition("}")[2]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: float) -> str:
    """Four digits that count, with a true minus sign."""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return text.replace("-", "−")
