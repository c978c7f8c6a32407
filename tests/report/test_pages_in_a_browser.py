"""The pages as a person sees them: in a browser, on a phone, by day and by night."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import saen
from tests.cli.commandline import invoke, run
from tests.report.hostile import check_inert, hostile_pages
from tests.report.html_reader import Element, read_html

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
LIGHT, DARK = 1, 0
PHONE = 390

pytest.importorskip("matplotlib", reason="needs the extra 'plots'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not BROWSER, reason="no chromium, chromium-browser or google-chrome on the PATH"
    ),
]

# A window of the browser is at least 500 wide: the phone is a frame in it.
PROBE = """<!DOCTYPE html><title></title><iframe src="NAME" width="390" height="844"></iframe>
<script>
addEventListener("load", () => {
  const page = frames[0].document, root = page.documentElement;
  const boxes = name => [...page.querySelectorAll(name)].map(e => e.getBoundingClientRect());
  const style = name => frames[0].getComputedStyle(page.querySelector(name));
  document.title = JSON.stringify({
    window: frames[0].innerWidth, room: root.clientWidth, content: root.scrollWidth,
    figures: boxes("figure svg").map(box => [box.width, box.height, box.right]),
    letters: boxes("svg text").map(box => box.height),
    paper: style("body").backgroundColor, ink: style("body").color, drawings: style("svg").filter,
  });
});
</script>"""


def browse(path: Path, profile: Path, *options: str) -> tuple[Element, list[str]]:
    """The page once the browser has made it, and what it complained about."""
    command = [
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
    ]
    command += [f"--user-data-dir={profile}", "--enable-logging=stderr", "--dump-dom", *options]
    made = subprocess.run(
        [*command, path.as_uri()], check=True, capture_output=True, text=True, timeout=120
    )
    return read_html(made.stdout), re.findall(r"CONSOLE.*", made.stderr)


def probe(path: Path, profile: Path, scheme: int = LIGHT) -> dict[str, Any]:
    """What the page measures on a phone."""
    frame = path.with_name("probe.html")
    frame.write_text(PROBE.replace("NAME", path.name))
    options = ["--allow-file-access-from-files", f"--blink-settings=preferredColorScheme={scheme}"]
    page, complaints = browse(frame, profile, *options)
    assert complaints == []
    return json.loads(page.all("title")[0].text)


def luminance(colour: str) -> float:
    """Relative, as WCAG 2 has it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An evaluation, a training on numbers, and nested structures."""
    folder = tmp_path_factory.mktemp("pages")
    made = {name: folder / f"{name}.html" for name in ("classes", "numbers", "nested")}
    quick = ("--preset", "network", "--epochs", 2, "--report")
    run("evaluate", "threads", "--repeats", 2, "--folds", 3, *quick, made["classes"])
    threads = saen.generate_threads(60, seed=1)
    saen.save(threads.with_targets(threads.sizes / 10), folder / "numbers.saen")
    invoke("train", folder / "numbers.saen", "--out", folder / "a", *quick, made["numbers"])
    nested = ("train", "stdlib-functions", "-d", "nested", "--out", folder / "b")
    invoke(*nested, *quick, made["nested"])
    return made


# At least so many figures: sizes, objects, entries, loss; accuracy, predictions; hardest examples.
@pytest.mark.parametrize(("name", "least"), [("classes", 10), ("numbers", 10), ("nested", 5)])
def test_pages_load_without_complaint_and_show_their_figures(pages, profile, name, least):
    page, complaints = browse(pages[name], profile)
    assert complaints == []
    figures = sum(len(figure.all("svg")) for figure in page.all("figure"))
    assert figures >= least
    seen = probe(pages[name], profile)
    assert len(seen["figures"]) == figures
    assert all(width > 100 and height > 50 for width, height, _ in seen["figures"])


@pytest.mark.parametrize("name", ["classes", "numbers", "nested"])
def test_pages_fit_a_phone(pages, profile, name):
    seen = probe(pages[name], profile)
    assert seen["window"] == PHONE
    assert seen["content"] <= seen["room"]
    assert all(right <= seen["room"] for _, _, right in seen["figures"])
    assert min(seen["letters"]) >= 7


MEASURE = """() => {
  const root = document.documentElement, cut = [];
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      if (box.width && (box.left < frame.left - 1 || box.right > frame.right + 1))
        cut.push(text.textContent);
    }
  }
  return [root.scrollWidth - root.clientWidth, cut];
}"""
"""How far a page is wider than its window, and texts of figures that are cut off."""


def test_pages_fit_windows_of_all_widths_and_cut_no_text(pages, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    model = pages["numbers"].with_name("a")
    explanation, explorer = tmp_path / "why.html", tmp_path / "explore.html"
    data = pages["numbers"].with_name("numbers.saen")
    invoke("explain", model, data, "--graph", 3, "--out", explanation)
    shown = [*pages.values(), explanation]
    if find_spec("bokeh") is not None:
        invoke("explore", model, data, "--out", explorer)
        shown.append(explorer)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for width, scheme in product((1400, 1200, 400), ("light", "dark")):
            window = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            for path in shown:
                window.goto(path.as_uri())
                window.wait_for_timeout(200)
                assert window.evaluate(MEASURE) == [0, []], (path.name, width, scheme)
        browser.close()


def test_pages_follow_light_and_dark(pages, profile):
    light, dark = (probe(pages["classes"], profile, scheme) for scheme in (LIGHT, DARK))
    assert luminance(light["paper"]) > 0.9
    assert luminance(dark["paper"]) < 0.05
    for seen in (light, dark):
        low, high = sorted([luminance(seen["paper"]), luminance(seen["ink"])])
        assert (high + 0.05) / (low + 0.05) > 7
    assert light["drawings"] == "none"
    assert "invert" in dark["drawings"]


def test_pages_of_hostile_data_run_and_load_nothing(tmp_path, profile):
    for file in hostile_pages(tmp_path):
        page, complaints = browse(file, profile)
        assert complaints == []  # which a refused script or picture would be
        check_inert(page)
        assert page.all("title")[0].text != "ran"


def test_the_browser_would_have_complained(tmp_path, profile, pages):
    whole = pages["classes"].read_text(encoding="utf-8")
    bad = tmp_path / "bad.html"
    for content in ('<img src="http://127.0.0.1:9/x.png">', "<script>alert(1)</script>"):
        bad.write_text(whole.replace("</body>", f"{content}</body>"), encoding="utf-8")
        _, complaints = browse(bad, profile)
        assert "Content Security Policy" in complaints[0]
    wide = '<div style="width: 1000px">wide</div>'
    bad.write_text(whole.replace("</body>", f"{wide}</body>"), encoding="utf-8")
    seen = probe(bad, profile)
    assert seen["content"] > seen["room"]
