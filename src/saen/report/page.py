"""HTML pages from Jinja2 templates: one file that needs nothing else, to read, mail and keep.

Pages hold no script and load nothing. All text is escaped, and control characters are
shown. They follow the reader's light or dark setting and fit a phone. The same content gives the
same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from saen._util.atomic import atomic_write
from saen._util.strings import visible
from saen._version import __version__
from saen.report.figures import inline_svg

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure, or an SVG file `pixels` wide, with a caption, which screen readers read too.

    `more` is shown when it is asked for: a text, and the command that tells everything.
    """

    figure: Figure | bytes
    caption: str = ""
    pixels: int = 480
    more: tuple[str, str] | None = None

    @property
    def width(self) -> str:
        """As wide as the drawing, so that narrow ones stand side by side."""
        if isinstance(self.figure, bytes):
            return f"{self.pixels}px"
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
        drawn = inline_svg(picture.figure, picture.caption, f"f{next(numbers)}-")
        return Markup(visible(drawn))

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
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # only for pages

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates", encoding="utf-8"),
        autoescape=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
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


def in_words(value: Any) -> str:
    """A setting or a statistic as text.

    >>> in_words([{"candidate": "networks", "weight": 0.93}, {"candidate": "part counts"}])
    'candidate networks, weight 0.93; candidate part counts'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        nested = any(isinstance(each, Mapping | list | tuple) for each in value)
        return ("; " if nested else ", ").join(map(in_words, value))
    return str(value)
