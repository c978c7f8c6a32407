"""HTML pages from Jinja2 templates: one file that needs nothing else, to read, mail and keep.

Pages hold no script and load nothing. All text is escaped. They follow the reader's light or dark
setting and fit a phone. The same content gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from saen._util.atomic import atomic_write
from saen._version import __version__
from saen.report.figures import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure, or an SVG file, with a caption, which screen readers read too."""

    figure: Figure | bytes
    caption: str = ""

    @property
    def width(self) -> str:
        """As wide as the drawing, so that narrow ones stand side by side."""
        if isinstance(self.figure, bytes):
            return "480px"
        return f"{96 * self.figure.get_figwidth():.0f}px"


@dataclass(frozen=True)
class Table:
    """Rows of cells: text, numbers (set to the right), None or small pictures."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [any(is_number(row[i]) for row in self.rows) for i in range(len(self.columns))]


def render_page(template: str, title: str, **context: Any) -> str:
    """A page as text, from one of the templates beside this module."""
    numbers = count(1)

    def svg(picture: Picture) -> Markup:
        return Markup(inline_svg(picture.figure, picture.caption, f"f{next(numbers)}-"))

    page = _environment().get_template(template)
    return page.render(title=title, version=__version__, svg=svg, **context)


def write_page(path: str | Path, template: str, title: str, **context: Any) -> None:
    """Write a page atomically; `FileError` where the file cannot be written."""
    html = render_page(template, title, **context)
    with atomic_write(path) as temporary:
        # File names on the command line may hold bytes that are not text.
        temporary.write_text(html, encoding="utf-8", errors="xmlcharrefreplace")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests |= {"number": is_number, "picture": lambda cell: isinstance(cell, Picture)}
    environment.filters |= {"digits": format_number}
    return environment


def is_number(value: Any) -> bool:
    """Whether a cell is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_number(value: float) -> str:
    """Four significant digits and a true minus sign.

    >>> format_number(-0.25), format_number(12345)
    ('−0.25', '12,345')
    """
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return text.replace("-", "−")
