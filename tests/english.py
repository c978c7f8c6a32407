"""`make lint`: patterns of English that read as translated, in pages, help and docstrings.

- "Of a blend, …": write "For a blend, …".
- "X is an error, a warning, refused": write "X raises an error", "saen warns if X", "is rejected".
- "beside" for "next to" or "in addition to"; "anew" for "again".
- "training part" for training fold or set: a part is a piece of an object.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
GENERATED = {"reliability.md", "commands.md"}
"""Pages that are made of results and of help."""
PATTERNS = {
    r"(?:^|[.;:(] )Of (?:a|an|several|more|other|such|all|the|two|three|both|each|some) [^.;:]*,": (
        '"Of X, …": write "For X, …" or "If X …"'
    ),
    r"\b(?:is|are|be) refused\b": '"is refused": write "is rejected" or "raises an error"',
    r"\b(?:is|are) (?:a )?warnings?\b": '"is a warning": write "saen warns if …"',
    r"\b(?:is|are) (?:an )?errors?\b": '"is an error": write "raises an error"',
    r"\bbeside\b": '"beside": write "next to" or "in addition to"',
    r"\banew\b": '"anew": write "again"',
    r"\b(?:training|test|held-out) parts?\b": '"training part": write training fold or set',
    r"\bhopeless\b": '"hopeless" is a private word',
}
IN_CODE = ("is refused", "is a warning", "is an error", "hopeless", "anew")
"""What docstrings are checked for; pages and help are checked for all."""
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def complaints(text: str, patterns: dict[str, str]) -> Iterator[tuple[int, str]]:
    """The lines with a pattern, and what to write; code is left alone."""
    plain = _CODE.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)
    for pattern, advice in patterns.items():
        for match in re.finditer(pattern, plain, re.MULTILINE):
            yield plain.count("\n", 0, match.start()) + 1, advice


def pages() -> list[Path]:
    """Pages that people read."""
    docs = [file for file in (ROOT / "docs").glob("*.md") if file.name not in GENERATED]
    return [*sorted(docs), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """Docstrings of a module and their first lines."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and (text := ast.get_docstring(node, clean=False)):
            yield getattr(node.body[0], "lineno", 1), text


def help_texts(file: Path) -> Iterator[tuple[int, str]]:
    """Docstrings of commands, and other texts that `--help` shows."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def main() -> int:
    """Print every place, and return how many there are."""
    found = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        found += [f"{page.relative_to(ROOT)}:{n}: {what}" for n, what in complaints(text, PATTERNS)]
    own = {p: advice for p, advice in PATTERNS.items() if any(w in advice for w in IN_CODE)}
    for file in sorted((ROOT / "src" / "saen").rglob("*.py")):
        in_help = "cli" in file.parts
        for line, text in help_texts(file) if in_help else docstrings(file):
            for n, what in complaints(text, PATTERNS if in_help else own):
                found.append(f"{file.relative_to(ROOT)}:{line + n - 1}: {what}")
    print("\n".join(found) or "English: nothing to change")
    return len(found)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
