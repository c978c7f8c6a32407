"""Every block of code and every command of the README and the docs runs, page by page."""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import saen
from tests.docs.pages import (
    PAGES,
    ROOT,
    Block,
    Command,
    Reader,
    blocks,
    commands,
    first_difference,
    named_datasets,
)

UNRUN_AT_MOST = 6
"""Blocks that take minutes, or need what a test does not have."""
SLOW = {
    "README.md",
    "evaluate.md",
    "explain.md",
    "getting-started.md",
    "report.md",
    "train-and-predict.md",
}
"""Pages that train for more than a few seconds; index.md has the same commands in short."""
TABLES = {
    "README.md": "accuracy",
    "docs/compression.md": "compression",
    "docs/performance.md": "performance",
}
"""Tables that docs/build.py makes of docs/results."""
API = sorted((ROOT / "docs" / "api").glob("*.md"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if p.name in SLOW else ()) for p in PAGES],
    ids=lambda page: page.name,
)
def test_every_block_of_a_page_runs(page, folder):
    Reader().read(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*filter(named_datasets, PAGES)], ids=lambda page: page.name)
def test_commands_that_name_the_datasets_of_the_paper_run(page, folder, dataset):
    for name in sorted(named_datasets(page)):
        dataset(name)
    Reader(datasets=True).read(page)


def test_few_blocks_are_left_out():
    unrun = {
        f"{page.name}, line {block.line}": block.unrun
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.unrun
    }
    assert len(unrun) <= UNRUN_AT_MOST, unrun


def test_no_command_hides_in_an_indented_block():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        hidden = re.findall(r"^ {4,}(?:\$ )?(?:saen|make|pip|python|git) .*", outside, re.MULTILINE)
        assert not hidden, f"{page.name}: put into a ```sh or ```console block: {hidden}"


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, *API]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_page_of_examples_names_each_of_them():
    listed = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    for example in (ROOT / "examples").glob("*.py"):
        assert f"(../examples/{example.name})" in listed


def test_all_public_names_are_in_the_reference():
    named = {name for page in API for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)}
    assert {f"saen.{name}" for name in saen.__all__} <= named


def test_generated_tables_are_what_the_results_say():
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    for page, table in TABLES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        pattern = rf"<!-- table: {table} \(make docs\) -->\n(.*?)<!-- end -->"
        [found] = re.findall(pattern, text, re.DOTALL)
        assert found.strip() == build[f"{table}_table"]().strip(), f"{page}: run make docs"


def test_the_page_about_performance_states_measured_numbers_only():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", page)
    results = "\n".join(p.read_text("utf-8") for p in (ROOT / "docs" / "results").glob("*.md"))
    for number in re.findall(r"\d+(?:[.,]\d+)*", words):
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", results), number


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing_from_elsewhere(tmp_path):
    if find_spec("material") is None or find_spec("mkdocstrings") is None:
        pytest.skip("mkdocs is not here: pip install 'saen[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:https?:)?//[^>]+>", text)
        assert not fetched, f"{page.name}: {fetched}"
    for name in saen.__all__:
        assert any(f'id="saen.{name}"' in p.read_text() for p in tmp_path.glob("api/*.html")), name


@pytest.mark.slow
def test_the_example_of_the_demo_trains_and_predicts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["threads.py", str(tmp_path)])
    source = (ROOT / "examples" / "threads.py").read_text(encoding="utf-8")
    exec(compile(source, "threads.py", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    accuracy = float(re.search(r"10-fold accuracy on 270 threads: ([\d.]+)", printed)[1])
    assert accuracy > 70
    assert (tmp_path / "evaluation.png").stat().st_size > 10_000


# -- the reader of pages -----------------------------------------------------------------------

PAGE = """
# A page

```python
two = 1 + 1
```

<!-- not run: takes minutes -->

```sh
saen evaluate threads
```

```json title="graphs.jsonl"
{}
```

```console
$ saen --version
saen …
$ head -1 graphs.jsonl
{}
```
"""


def test_blocks_are_found_with_their_lines_titles_and_reasons():
    python, unrun, titled, console = blocks(PAGE)
    assert python == Block("python", None, "two = 1 + 1\n", 4, None)
    assert unrun.unrun == "takes minutes"
    assert (titled.title, titled.text) == ("graphs.jsonl", "{}\n")
    assert [*commands(console.text, prompts=True)] == [
        Command("saen --version", ("saen …",)),
        Command("head -1 graphs.jsonl", ("{}",)),
    ]


def test_a_page_runs_in_order_in_one_folder(folder):
    Path("page.md").write_text(PAGE, encoding="utf-8")
    reader = Reader()
    reader.read(Path("page.md"))
    assert reader.names["two"] == 2
    assert reader.ran == ["saen --version", "head -1 graphs.jsonl"]


def test_without_prompts_every_line_is_a_command_and_lines_may_go_on():
    text = "# first\nsaen datasets\nsaen train \\\n  threads   # all\n"
    assert [*commands(text, prompts=False)] == [
        Command("saen datasets"),
        Command("saen train   threads   # all"),
    ]


@pytest.mark.parametrize(
    ("language", "text", "trouble"),
    [
        ("console", "$ saen --version\nsaen 17\n", "not printed: saen 17"),
        ("sh", "saen frobnicate\n", "exit code 2"),
        ("console", "$ saen --version\nsaen: no such thing\n", "exit code 0"),
        ("sh", "rm -rf everything\n", "neither saen nor one of"),
        ("pycon", ">>> 1 + 1\n3\n", "Expected:\n    3\nGot:\n    2"),
    ],
)
def test_a_block_that_does_not_do_what_it_shows_is_found(folder, language, text, trouble):
    with pytest.raises(AssertionError) as raised:
        Reader().run(Block(language, None, text, 1, None), "page.md, line 1")
    assert trouble in str(raised.value)


def test_an_excerpt_must_stand_in_its_file(folder):
    good, bad = "def main() -> None:\n", "def main() -> int:\n"
    Reader().run(Block("python", "docs/build.py", good, 1, None), "page.md, line 1")
    with pytest.raises(AssertionError, match=r"page.md, line 1: these lines are not in docs/build"):
        Reader().run(Block("python", "docs/build.py", bad, 1, None), "page.md, line 1")


def test_what_needs_a_dataset_is_left_out_with_all_that_follows_from_it(folder):
    text = "saen train MUTAG -o m.saen\nsaen predict m.saen MUTAG --out p.csv\nsaen inspect p.csv\n"
    reader = Reader()
    reader.run(Block("sh", None, text, 1, None), "page.md, line 1")
    assert not reader.ran
    assert reader.wanted == {"MUTAG"}


def test_lines_are_shown_in_order_and_dots_stand_for_anything():
    said = ["accuracy   83.3 % on 30", "", "written    m.saen"]
    assert first_difference(("accuracy … % on 30", "written m.saen"), said) is None
    assert first_difference(("…", "written m.saen"), said) is None
    assert first_difference(("written m.saen", "accuracy …"), said) is not None


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("accuracy 80.0 % on 30", True),
        ("accuracy 40.0 % on 30", False),
        ("accuracy 80.0 % on 31", False),
        ("accuracy 83.3 % on 30.", False),
    ],
)
def test_fractions_may_differ_a_little_and_whole_numbers_not(shown, same):
    assert (first_difference((shown,), ["accuracy  83.3 % on 30"]) is None) is same
