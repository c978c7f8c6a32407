"""Run the code of a documentation page as a reader would type it: in order, in one folder.

- ```python blocks are executed in one namespace;
- ```pycon blocks are doctests in the same namespace, `...` stands for anything;
- ```sh blocks hold one command per line;
- ```console blocks hold commands after `$ `, each followed by its output: `…` stands for anything,
  decimal fractions may differ a little, integers may not, and lines may be left out;
- a block with a title, ```json title="graphs.jsonl", is written to that file; a title under `src/`
  or `examples/` names a file of the repository, of which the block must be an excerpt;
- a block after `<!-- not run: reason -->` is skipped.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from saen.cli import main
from saen.io.sources.catalog import catalog

TOLERANCE = 0.25
"""Relative tolerance of decimal fractions: other library versions train to other digits."""
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<skipped>[^\n]+) -->\n+)?"
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
_TOOLS = ("head", "tail", "cat", "ls", "wc")  # the only programs besides saen that are run
_SETUP = ("make", "git", "pip", "cd", "export", "python", "python3")  # not run
_DECIMAL = re.compile(r"\d+\\\.\d+")  # in a regular expression, where the point is escaped
_ERROR = re.compile(r"saen: (?!note|warning|skipped|accuracy|R²|mean)|(?:.*: )?\d+ problem")


@dataclass(frozen=True)
class Block:
    """A fenced block; `skipped` is the reason why it is not run."""

    language: str
    title: str | None
    text: str
    line: int
    skipped: str | None = None

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """The commands of a shell block, each with the output lines that the page shows."""
        lines = [line for line in self.text.replace("\\\n", "").split("\n") if line.strip()]
        if self.language == "sh":
            yield from ((line, []) for line in lines if not line.startswith("#"))
        elif self.language == "console":
            assert lines[0].startswith("$ "), f"{lines[0]}: no prompt (use ```sh without prompts)"
            prompts = [n for n, line in enumerate(lines) if line.startswith("$ ")]
            for start, stop in pairwise([*prompts, len(lines)]):
                yield lines[start].removeprefix("$ "), lines[start + 1 : stop]


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(line=page.count("\n", 0, match.start("language")) + 1, **match.groupdict())
        for match in _BLOCK.finditer(page)
    ]


def named_datasets(page: Path) -> set[str]:
    """The datasets of the paper that the commands of a page name."""
    reader = Reader()
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.skipped is None:
            for command, _ in block.commands():
                reader.needs_dataset(shlex.split(command, comments=True))
    return reader.wanted


@dataclass
class Reader:
    """Runs pages in the working directory, which should be empty.

    Unless `datasets` is true, commands that name a dataset of the paper are skipped, and so are
    commands that read their results.
    """

    datasets: bool = False
    names: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)

    def read(self, page: Path) -> None:
        """Run all blocks of a page."""
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.skipped is None:
                self.run(block, f"{page.name}, line {block.line}")

    def run(self, block: Block, place: str) -> None:
        """Run one block, or write it to its file."""
        if block.title is not None:
            _write_or_compare(block.title, block.text, place)
        elif block.language == "python":
            exec(compile(block.text, place, "exec"), self.names)
        elif block.language == "pycon":
            self._doctest(block.text, place)
        for command, shown in block.commands():
            self._command(command, shown, place)

    def needs_dataset(self, words: list[str]) -> bool:
        """Whether a command names a dataset, or the output of a command that does."""
        named = {part for word in words for part in word.split(",")}
        if not named & (self.missing | set(catalog())):
            return False
        self.wanted |= named & set(catalog())
        for option, value in pairwise(words):
            if option in ("--out", "-o", "--report", "--plot"):
                self.missing.add(value)
        return True

    def _doctest(self, text: str, place: str) -> None:
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        test = doctest.DocTestParser().get_doctest(text, {}, place, place, 0)
        test.globs = self.names
        output = io.StringIO()
        runner = doctest.DocTestRunner(verbose=False, optionflags=options)
        runner.run(test, out=output.write, clear_globs=False)
        assert not runner.failures, output.getvalue()

    def _command(self, command: str, shown: list[str], place: str) -> None:
        words = shlex.split(command, comments=True)
        if words[0] in _SETUP or (not self.datasets and self.needs_dataset(words)):
            return
        code, output = _run(words)
        self.ran.append(command)
        expected = 2 if any(map(_ERROR.match, shown)) else 0
        assert code == expected, f"{place}: {command}\nexit code {code}\n{output}"
        missing = first_missing(shown, output.splitlines())
        assert missing is None, f"{place}: {command}\nnot printed: {missing}\nprinted:\n{output}"


def _write_or_compare(title: str, text: str, place: str) -> None:
    path = Path(title)
    if path.parts[0] in ("src", "examples"):
        wanted = [line.strip() for line in text.strip().split("\n")]
        lines = [line.strip() for line in (ROOT / path).read_text(encoding="utf-8").split("\n")]
        starts = range(len(lines) - len(wanted) + 1)
        assert any(lines[n : n + len(wanted)] == wanted for n in starts), (
            f"{place}: these lines are not in {title}"
        )
        return
    assert not path.is_absolute(), place
    assert ".." not in path.parts, place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _run(words: list[str]) -> tuple[int, str]:
    """Exit code and output of a command; saen runs in this process."""
    if words[0] != "saen":
        assert words[0] in _TOOLS, f"{words[0]} is neither saen nor one of {', '.join(_TOOLS)}"
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    terminal = io.StringIO()
    with (
        patch("sys.argv", words),
        patch.dict(os.environ, {"COLUMNS": "100"}),
        contextlib.redirect_stdout(terminal),
        contextlib.redirect_stderr(terminal),
    ):
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), terminal.getvalue()
    return 0, terminal.getvalue()


def first_missing(shown: list[str], printed: list[str]) -> str | None:
    """The first line of a page that was not printed, in order; None if all were."""
    rest = iter(printed)
    for line in shown:
        if line.strip() not in ("…", "...") and not any(_matches(line, each) for each in rest):
            return line
    return None


def _matches(line: str, printed: str) -> bool:
    """Whether a line was printed, up to blanks, `…` and the rounding of decimals."""
    pattern = r"\s+".join(map(re.escape, line.split())).replace("…", ".*")
    match = re.fullmatch(_DECIMAL.sub(r"(\\d+\\.\\d+)", pattern), printed.strip())
    decimals = [float(number) for number in re.findall(r"\d+\.\d+", line)]
    return match is not None and all(
        abs(float(one) - other) <= TOLERANCE * max(float(one), other)
        for one, other in zip(match.groups(), decimals, strict=True)
    )
