"""The code of a page of the documents, run as a reader would type it: in order, in one folder.

- ```python blocks are executed, in one namespace;
- ```pycon blocks are doctests in the same namespace, `...` stands for anything;
- ```sh blocks hold commands, one per line;
- ```console blocks hold commands after `$ `, and below each what it prints, line by line; `…`
  stands for anything, decimal fractions may differ a little, whole numbers may not;
- a block with a title, ```json title="graphs.jsonl", is put into that file; if the repository has a
  file of that name, it must be an excerpt of it;
- a block after `<!-- not run: why -->` is left alone.
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
from textwrap import dedent
from typing import Any
from unittest.mock import patch

from saen.cli import main
from saen.io.catalog import catalog

TOLERANCE = 0.25
"""By how much decimal fractions may differ: other versions of libraries train to other digits."""
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(
    r"^(?P<unrun><!-- not run: (?P<why>[^\n]+) -->\n+)?"
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
_TOOLS = ("head", "tail", "cat", "ls", "wc")  # what may stand beside saen, and is run
_SETUP = ("make", "git", "pip", "cd", "export", "python", "python3")  # what a reader does once
_DECIMAL = re.compile(r"\d+\\\.\d+")  # in a pattern, where the point is escaped
_MISTAKE = re.compile(r"saen: (?!warning|skipped|accuracy|R²|mean)|\d+ problem")


@dataclass(frozen=True)
class Block:
    """A fenced block: what it is written in, the file that it stands for, why it is not run."""

    language: str
    title: str | None
    text: str
    line: int
    unrun: str | None


@dataclass(frozen=True)
class Command:
    """A command as it is typed, and the lines that the page shows under it."""

    text: str
    printed: tuple[str, ...] = ()

    @property
    def pipeline(self) -> list[list[str]]:
        """The words of each command between bars."""
        words = shlex.split(self.text, comments=True)
        parts: list[list[str]] = [[]]
        for word in words:
            if word == "|":
                parts.append([])
            else:
                parts[-1].append(word)
        return parts


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(
            found["language"],
            found["title"],
            found["text"],
            page.count("\n", 0, found.start("language")) + 1,
            found["why"],
        )
        for found in _BLOCK.finditer(page)
    ]


def commands(text: str, prompts: bool) -> Iterator[Command]:
    """The commands of a block, with or without prompts."""
    lines = [line for line in text.replace("\\\n", "").split("\n") if line.strip()]
    if not prompts:
        yield from (Command(line) for line in lines if not line.startswith("#"))
        return
    assert lines[0].startswith("$ "), f"{lines[0]}: no prompt (without any, write ```sh)"
    while lines:
        first, *lines = lines
        stop = next((n for n, line in enumerate(lines) if line.startswith("$ ")), len(lines))
        yield Command(first.removeprefix("$ "), tuple(lines[:stop]))
        lines = lines[stop:]


def named_datasets(page: Path) -> set[str]:
    """The paper's datasets that the commands of a page name."""
    reader = Reader()
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language in ("sh", "console") and block.unrun is None:
            for command in commands(block.text, prompts=block.language == "console"):
                reader.needs_dataset(command.pipeline[0])
    return reader.wanted


@dataclass
class Reader:
    """Somebody who types a page into an empty folder, which is the working directory.

    Without `datasets`, commands that name one of the paper's datasets are left out, and so is
    what needs their results.
    """

    datasets: bool = False
    names: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)

    def read(self, page: Path) -> None:
        """Run all blocks of a page."""
        for block in blocks(page.read_text(encoding="utf-8")):
            place = f"{page.name}, line {block.line}"
            if block.unrun is None:
                self.run(block, place)

    def run(self, block: Block, place: str) -> None:
        """Run one block, or put it where it belongs."""
        if block.title is not None:
            _keep(block.title, block.text, place)
        elif block.language == "python":
            exec(compile(block.text, place, "exec"), self.names)
        elif block.language == "pycon":
            self._doctest(block.text, place)
        elif block.language in ("sh", "console"):
            for command in commands(block.text, prompts=block.language == "console"):
                self._command(command, place)

    def _doctest(self, text: str, place: str) -> None:
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        test = doctest.DocTestParser().get_doctest(text, {}, place, place, 0)
        test.globs = self.names
        said = io.StringIO()
        runner = doctest.DocTestRunner(verbose=False, optionflags=options)
        runner.run(test, out=said.write, clear_globs=False)
        assert not runner.failures, said.getvalue()

    def _command(self, command: Command, place: str) -> None:
        pipeline = command.pipeline
        if pipeline[0][0] in _SETUP:
            return
        if not self.datasets and self.needs_dataset(pipeline[0]):
            return
        code, said = run_pipeline(pipeline)
        self.ran.append(command.text)
        expected = 2 if any(map(_MISTAKE.match, command.printed)) else 0
        assert code == expected, f"{place}: {command.text}\nexit code {code}\n{said}"
        differs = first_difference(command.printed, said.splitlines())
        assert differs is None, f"{place}: {command.text}\n{differs}\nprinted:\n{said}"

    def needs_dataset(self, words: list[str]) -> bool:
        """Whether a command names a dataset, or the result of another that does."""
        named = {part for word in words for part in word.split(",")}
        if not named & (self.missing | set(catalog())):
            return False
        self.wanted |= named & set(catalog())
        for option, value in pairwise(words):
            if option in ("--out", "-o", "--report", "--plot"):
                self.missing.add(value)
        return True


def _keep(title: str, text: str, place: str) -> None:
    """Write a file that a page shows, or compare an excerpt with the file that it is from."""
    source = ROOT / title
    if source.exists():
        lines = dedent(text).strip("\n").split("\n")
        words = [line.strip() for line in source.read_text(encoding="utf-8").split("\n")]
        wanted = [line.strip() for line in lines]
        starts = range(len(words) - len(wanted) + 1)
        assert any(words[n : n + len(wanted)] == wanted for n in starts), (
            f"{place}: these lines are not in {title}"
        )
        return
    path = Path(title)
    assert not path.is_absolute(), place
    assert ".." not in path.parts, place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def run_pipeline(pipeline: list[list[str]]) -> tuple[int, str]:
    """Exit code of the first command, and all that a terminal would show."""
    terminal = io.StringIO()
    out = io.StringIO() if len(pipeline) > 1 else terminal
    code = _run(pipeline[0], out, terminal)
    for words in pipeline[1:]:
        assert words[0] in _TOOLS, f"{words[0]} is none of {', '.join(_TOOLS)}"
        out = io.StringIO(_tool(words, out.getvalue()).stdout)
    return code, terminal.getvalue() + (out.getvalue() if out is not terminal else "")


def _run(words: list[str], out: io.StringIO, err: io.StringIO) -> int:
    """Exit code of saen, in this process, or of a tool."""
    if words[0] != "saen":
        assert words[0] in _TOOLS, f"{words[0]} is neither saen nor one of {', '.join(_TOOLS)}"
        done = _tool(words, "")
        out.write(done.stdout)
        err.write(done.stderr)
        return done.returncode
    code: Any = 0
    with (
        patch("sys.argv", words),
        patch.dict(os.environ, {"COLUMNS": "100"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code or 0
    return int(code)


def _tool(words: list[str], given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, input=given, capture_output=True, text=True, check=False)


def first_difference(shown: tuple[str, ...], said: list[str]) -> str | None:
    """The first line of a page that is not printed, in order; None where all are."""
    rest = iter(said)
    for line in shown:
        if line.strip() not in ("…", "...") and not any(_alike(line, each) for each in rest):
            return f"the page shows a line that is not printed: {line}"
    return None


def _alike(line: str, said: str) -> bool:
    """Whether a line was printed, but for blanks, for what `…` stands for, and for rounding."""
    words = r"\s+".join(map(re.escape, line.split())).replace("…", ".*")
    found = re.fullmatch(_DECIMAL.sub(r"(\\d+\\.\\d+)", words), said.strip())
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", line)]
    return found is not None and all(
        abs(float(one) - other) <= TOLERANCE * max(float(one), other)
        for one, other in zip(found.groups(), numbers, strict=True)
    )
