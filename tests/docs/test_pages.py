"""Every code block and command of the README and the documentation runs, page by page."""

import os
import re
import runpy
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest

import saen
from tests.docs.pages import PAGES, ROOT, Block, Reader, blocks, first_missing, named_datasets

MAX_SKIPPED = 6
"""Blocks that take minutes, or need what a test does not have."""
SLOW = {
    "README.md",
    "explore.md",
    "reading-results.md",
    "regression.md",
    "training.md",
    "cluster.md",
    "decompositions.md",
    "overlap.md",
    "pytorch.md",
    "scikit-learn.md",
    "chemistry.md",
    "choosing-details.md",
    "evaluate.md",
    "explain.md",
    "getting-started.md",
    "report.md",
    "train-and-predict.md",
}
"""Pages that train for more than a few seconds; index.md has the same commands in short."""
TABLES = [
    ("README.md", "accuracy"),
    ("README.md", "comparisons"),
    ("docs/comparison.md", "peers"),
    ("docs/comparison.md", "molecules"),
    ("docs/compression.md", "compression"),
    ("docs/performance.md", "performance"),
]
"""Tables that docs/build.py generates from docs/results."""
API = sorted((ROOT / "docs" / "api").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as in a Python that is started there
    return tmp_path


@pytest.fixture(scope="module")
def build():
    return runpy.run_path(str(ROOT / "docs" / "build.py"))


@pytest.mark.filterwarnings("default::saen.learning.splits.LargeGroupWarning")  # chemistry.md
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if p.name in SLOW else ()) for p in PAGES],
    ids=lambda page: page.name,
)
def test_page_runs(page, folder):
    Reader().read(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", [*filter(named_datasets, PAGES)], ids=lambda page: page.name)
def test_page_runs_with_the_datasets_of_the_paper(page, folder, dataset):
    for name in sorted(named_datasets(page)):
        dataset(name)
    Reader(datasets=True).read(page)


def test_pages_skip_few_blocks():
    skipped = {
        f"{page.name}, line {block.line}": block.skipped
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.skipped
    }
    assert len(skipped) <= MAX_SKIPPED, skipped


def test_pages_have_no_commands_in_indented_blocks():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        hidden = re.findall(r"^ {4,}(?:\$ )?(?:saen|make|pip|python|git) .*", outside, re.MULTILINE)
        assert not hidden, f"{page.name}: put into a ```sh or ```console block: {hidden}"


def test_links_between_pages_exist():
    for page in [*PAGES, *API]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", ["docs/how-it-works.md", "CONTRIBUTING.md"])
def test_tables_of_folders_show_the_tree(page):
    rows = re.findall(r"^\| `(?:src/saen/)?(\w+)` \| (.*) \|$", (ROOT / page).read_text(), re.M)
    folders = {p.parent.name for p in (ROOT / "src" / "saen").glob("*/__init__.py")}
    assert folders <= dict(rows).keys()
    for folder, text in rows:
        if folder in folders:
            for module in re.findall(r"`([a-z_]+)`", text):
                assert list((ROOT / "src" / "saen" / folder).rglob(f"{module}*")), (folder, module)


def test_api_reference_documents_all_public_names():
    named = {name for page in API for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)}
    assert {f"saen.{name}" for name in saen.__all__} <= named
    for name in named:
        resolve_name(name)


@pytest.mark.parametrize(("page", "table"), TABLES)
def test_generated_tables_are_up_to_date(page, table, build):
    text = (ROOT / page).read_text(encoding="utf-8")
    pattern = rf"<!-- table: {table} \(make docs\) -->\n(.*?)<!-- end -->"
    [shown] = re.findall(pattern, text, re.DOTALL)
    assert shown.strip() == build[f"{table}_table"]().strip(), f"{page}: run docs/build.py --fast"


@pytest.mark.parametrize("page", ["README.md", "docs/results/accuracy.md"])
def test_accuracy_tables_fit_a_screen(page):
    text = (ROOT / page).read_text(encoding="utf-8").partition("## What `best` chose")[0]
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    assert tables
    for table in tables:
        rows = [line.strip("|").split("|") for line in table.splitlines()]
        widths = [max(len(cell.strip()) for cell in column) for column in zip(*rows, strict=True)]
        assert sum(widths) <= 105, "1280 px hold about 105 characters of table cells"


def test_command_reference_is_up_to_date(build):
    pinned = re.search(r"^typer==(.+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.M)
    if pinned is None or version("typer") != pinned[1]:
        pytest.skip("the page is written with the typer of constraints.txt")
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert page == build["command_reference"](), "run docs/build.py --fast"


def test_reliability_page_is_up_to_date(build):
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert page == build["reliability_page"](), "run docs/build.py --fast"


def test_performance_page_states_only_measured_numbers():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", page)
    results = "\n".join(p.read_text("utf-8") for p in (ROOT / "docs" / "results").rglob("*.md"))
    for number in re.findall(r"\d+(?:[.,]\d+)*", words):
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", results), number


@pytest.mark.slow
def test_site_builds_without_warnings_and_loads_nothing_from_other_sites(tmp_path):
    if find_spec("material") is None or find_spec("mkdocstrings") is None:
        pytest.skip("mkdocs is not installed: pip install 'saen[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:https?:)?//[^>]+>", text)
        assert not loaded, f"{page.name}: {loaded}"
    for name in saen.__all__:
        assert any(f'id="saen.{name}"' in p.read_text() for p in tmp_path.glob("api/*.html")), name
    estimators = (tmp_path / "api" / "estimators.html").read_text(encoding="utf-8")
    assert ">evaluation_</span>" in estimators  # in the list of what is learned
    for name in ('id="saen.Classifier.evaluation_"', "ClassVar", "init=False"):
        assert name not in re.sub("<details.*?</details>", "", estimators, flags=re.DOTALL)


def test_examples_page_lists_all_examples():
    listed = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    for example in EXAMPLES:
        assert f"(../examples/{example.name})" in listed


# -- the page runner ---------------------------------------------------------------------------

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


def test_runner_finds_blocks_with_lines_titles_and_reasons():
    python, skipped, titled, console = blocks(PAGE)
    assert python == Block("python", None, "two = 1 + 1\n", 4)
    assert skipped.skipped == "takes minutes"
    assert (titled.title, titled.text) == ("graphs.jsonl", "{}\n")
    assert [*console.commands()] == [
        ("saen --version", ["saen …"]),
        ("head -1 graphs.jsonl", ["{}"]),
    ]


def test_runner_runs_a_page_in_order_in_one_folder(folder):
    Path("page.md").write_text(PAGE, encoding="utf-8")
    reader = Reader()
    reader.read(Path("page.md"))
    assert reader.names["two"] == 2
    assert reader.ran == ["saen --version", "head -1 graphs.jsonl"]


def test_runner_takes_lines_without_prompts_as_commands_that_may_continue():
    text = "# first\nsaen datasets\nsaen train \\\n  threads   # all\n"
    assert [command for command, _ in Block("sh", None, text, 1).commands()] == [
        "saen datasets",
        "saen train   threads   # all",
    ]


@pytest.mark.parametrize(
    ("language", "text", "problem"),
    [
        ("console", "$ saen --version\nsaen 17\n", "not printed: saen 17"),
        ("sh", "saen frobnicate\n", "exit code 2"),
        ("console", "$ saen --version\nsaen: no such thing\n", "exit code 0"),
        ("sh", "rm -rf everything\n", "neither saen nor one of"),
        ("pycon", ">>> 1 + 1\n3\n", "Expected:\n    3\nGot:\n    2"),
    ],
)
def test_runner_fails_on_a_block_that_does_not_do_what_it_shows(folder, language, text, problem):
    with pytest.raises(AssertionError) as raised:
        Reader().run(Block(language, None, text, 1), "page.md, line 1")
    assert problem in str(raised.value)


def test_runner_compares_excerpts_with_their_file(folder):
    good, bad = "def main() -> None:\n", "def main() -> int:\n"
    Reader().run(Block("python", "src/saen/cli/__init__.py", good, 1), "page.md, line 1")
    with pytest.raises(AssertionError, match=r"page.md, line 1: these lines are not in src/saen"):
        Reader().run(Block("python", "src/saen/cli/__init__.py", bad, 1), "page.md, line 1")
    with pytest.raises(FileNotFoundError):
        Reader().run(Block("python", "src/saen/moved.py", good, 1), "page.md, line 1")


def test_runner_skips_commands_that_need_a_dataset_or_their_results(folder):
    text = "saen train MUTAG -o m.saen\nsaen predict m.saen MUTAG --out p.csv\nsaen inspect p.csv\n"
    reader = Reader()
    reader.run(Block("sh", None, text, 1), "page.md, line 1")
    assert not reader.ran
    assert reader.wanted == {"MUTAG"}


def test_runner_matches_lines_in_order_and_dots_with_anything():
    printed = ["accuracy   83.3 % on 30", "", "written    m.saen"]
    assert first_missing(["accuracy … % on 30", "written m.saen"], printed) is None
    assert first_missing(["…", "written m.saen"], printed) is None
    assert first_missing(["written m.saen", "accuracy …"], printed) is not None


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("accuracy 80.0 % on 30", True),
        ("accuracy 40.0 % on 30", False),
        ("accuracy 80.0 % on 31", False),
        ("accuracy 83.3 % on 30.", False),
    ],
)
def test_runner_tolerates_small_differences_of_decimals_but_not_of_integers(shown, same):
    assert (first_missing([shown], ["accuracy  83.3 % on 30"]) is None) is same
