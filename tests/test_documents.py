"""Every Python block of the README and the docs runs, page by page, in an empty folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(python_blocks(page)):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_example_of_the_demo_trains_and_predicts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["threads.py", str(tmp_path)])
    source = (ROOT / "examples" / "threads.py").read_text(encoding="utf-8")
    exec(compile(source, "threads.py", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    accuracy = float(re.search(r"10-fold accuracy on 270 threads: ([\d.]+)", printed)[1])
    assert accuracy > 70
    assert (tmp_path / "evaluation.png").stat().st_size > 10_000
