"""Pages about a dataset of somebody who hopes that they run what is in it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.commandline import invoke
from tests.report.html_reader import Element

TAG = "</title></style></svg><script>document.title='ran'</script><img src=x onerror=alert(1)>"
TURNED = "\u202e\u2066txt.exe\x1b[31m"
HOSTILE = [f"a{TAG}{TURNED}", '" onmouseover="alert(1)', "javascript:alert(1)", "{{ 7*7 }}", "=1+1"]
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
INERT = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "footer", "figure"),
    *("figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd"),
    *("div", "section", "details", "summary", "pre", "code", "strong", "em", "span", "ul", "li"),
    *("svg", "defs", "g", "path", "use", "text", "tspan", "rect", "image", "clippath"),
}
"""Elements without a script, an address or an input."""


def hostile_dataset(folder: Path) -> Path:
    """Names, ids, labels and classes that are markup, in a file whose name is markup too."""
    file = folder / "<img src=x onerror=alert(1)>.jsonl"
    lines = []
    for number in range(24):
        size = 3 + number % 2
        lines.append(
            {
                "id": f"{HOSTILE[number % 5]}{number}",
                "nodes": [{"label": HOSTILE[(number + n) % 3]} for n in range(size)],
                "edges": [{"source": n, "target": n + 1, "label": HOSTILE[n]} for n in range(2)],
                "target": HOSTILE[number % 2],
            }
        )
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def hostile_pages(folder: Path) -> list[Path]:
    """An evaluation, a training, the explanation of one graph and that of all."""
    data, model = hostile_dataset(folder), folder / "<b>model.saen"
    pages = [folder / f"{name}.html" for name in ("evaluate", "train", "graph", "all")]
    quick = ("--preset", "network", "--epochs", 1)
    invoke("evaluate", data, "--repeats", 1, "--folds", 2, *quick, "--report", pages[0])
    invoke("train", data, "--out", model, *quick, "--report", pages[1])
    invoke("explain", model, data, "--graph", 0, "--out", pages[2])
    invoke("explain", model, data, "--out", pages[3])
    return pages


def elements(page: Element) -> list[Element]:
    below = [child for child in page.children if isinstance(child, Element)]
    return [*below, *(each for child in below for each in elements(child))]


def check_inert(page: Element) -> None:
    """No element or attribute that could run, load or send anything."""
    for element in elements(page):
        assert element.tag in INERT
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "srcdoc", "action", "formaction")
            if name in ("href", "xlink:href"):
                assert value is not None
                assert value.startswith("data:image/png" if element.tag == "image" else "#")
