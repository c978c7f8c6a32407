"""`make lines`: count the lines of code of every room, and write them into CONTRIBUTING.md.

Docstrings, comments and blank lines do not count.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE, SOURCE = ROOT / "CONTRIBUTING.md", ROOT / "src" / "saen"
START, END = "<!-- make lines -->\n", "<!-- end of make lines -->\n"
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """Lines of a module with code on them."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            lines.difference_update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return len(lines)


def count() -> dict[str, tuple[int, int]]:
    """Lines of code, and files, of every room; modules outside of rooms are one."""
    rooms: dict[str, tuple[int, int]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        place = file.relative_to(SOURCE).parts
        room = place[0] if len(place) > 1 else "others"
        lines, files = rooms.get(room, (0, 0))
        rooms[room] = lines + code_lines(file.read_text(encoding="utf-8")), files + 1
    return rooms


def table(rooms: dict[str, tuple[int, int]]) -> str:
    """The counts as a table, largest first, and their sum."""
    rows = sorted(rooms.items(), key=lambda room: -room[1][0])
    total = sum(lines for lines, _ in rooms.values()), sum(files for _, files in rooms.values())
    body = [f"| {room} | {lines:,} | {files} |" for room, (lines, files) in [*rows, ("all", total)]]
    return "\n".join(["| room | lines of code | files |", "|---|---|---|", *body]) + "\n"


def main() -> None:
    """Count, print, and write."""
    found = table(count())
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(before + START + found + END + rest.partition(END)[2], encoding="utf-8")
    print(found, end="")


if __name__ == "__main__":
    main()
