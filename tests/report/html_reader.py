"""HTML read back with the standard library: elements in order, tags checked to be balanced."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    children: list[Element | str] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """Elements of that name below this one, in the order of the page."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                found += [child] * (child.tag == tag) + child.all(tag)
        return found

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_startendtag(self, tag, attributes):
        self.open[-1].children.append(Element(tag, dict(attributes)))

    def handle_starttag(self, tag, attributes):
        element = Element(tag, dict(attributes))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read_html(text: str) -> Element:
    """The page as a tree; fails where an element is not closed in its turn."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.open[0]


def tables(page: Element) -> list[list[list[str]]]:
    """The cells of every table, its head first."""
    return [
        [[cell.text for cell in [*row.all("th"), *row.all("td")]] for row in table.all("tr")]
        for table in page.all("table")
    ]


def pairs(page: Element) -> dict[str, str]:
    """All names with what stands for them."""
    names, words = page.all("dt"), page.all("dd")
    return {name.text: word.text for name, word in zip(names, words, strict=True)}
