"""`make lint`: rules of the tree that ruff and import-linter do not know.

- A string that names a module of saen, as lazy imports take it, names a room below its own.
- A private module or name stays in its room.
- Library code leaves its process alone: no hooks, signals, allocator settings or stand-ins.
- Nothing is imported from scikit-learn's private modules.
- A library that is imported is declared in pyproject.toml.
- Outside of `learning/models` nobody asks which kind of model something is: learners and fitted
  models have methods.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "saen"
UPPER = {"__init__.py", "cli"}
"""What may name any room: the package's list of public names, and commands."""
OWN_PROCESS = {"cli", "cluster", "network/memory.py"}
"""Commands and workers, and what only they switch on."""
EFFECTS = r"register_at_fork|mallopt|signal\.signal|sys\.modules\[.*\] =|sys\.modules\.update"
MODELS = "learning/models/"
"""Where kinds of models may be told apart."""
PACKAGES = {"sklearn": "scikit-learn", "torch_geometric": "torch-geometric"}
"""Libraries that are imported by another name than they are installed by."""


def settings() -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def layers() -> dict[str, int]:
    """The height of every room, as the import contract has it."""
    listed = settings()["tool"]["importlinter"]["contracts"][0]["layers"]
    rows = enumerate(reversed(listed))
    return {room: height for height, row in rows for room in row.split(" | ")}


@cache
def declared() -> set[str]:
    """The libraries that saen or one of its extras needs, as pyproject.toml names them."""
    project = settings()["project"]
    listed = chain(project["dependencies"], *project["optional-dependencies"].values())
    return {re.match(r"[\w-]+", each)[0] for each in listed}


def undeclared(names: list[str]) -> list[str]:
    """Libraries that modules come from, and that nothing says are needed."""
    roots = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"saen"}
    return sorted(root for root in roots if PACKAGES.get(root, root) not in declared())


@cache
def kinds() -> tuple[set[str], set[str]]:
    """The classes of learners, fitted models and estimators, and what files call the models."""
    classes, names = {"Learner", "Fitted", "Estimator"}, set()
    roots = set(classes)
    files = [*sorted((SOURCE / MODELS).glob("*.py")), SOURCE / "learning" / "estimators.py"]
    for node in chain.from_iterable(ast.walk(ast.parse(file.read_text("utf-8"))) for file in files):
        if isinstance(node, ast.ClassDef) and classes & {each.id for each in _names(node.bases)}:
            classes.add(node.name)
            lines = [each for each in node.body if isinstance(each, ast.AnnAssign)]
            names |= {
                each.value.value
                for each in lines
                if isinstance(each.value, ast.Constant) and ast.unparse(each.target) == "kind"
            }
    return classes - roots, names


def _names(nodes: list[Any]) -> list[ast.Name]:
    return [each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)]


def decides_on_kind(node: ast.AST) -> bool:
    """Whether code asks which kind of model something is: by class, attribute or name."""
    classes, names = kinds()
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
        asked = node.args[1]
        if node.func.id == "hasattr":
            own = r"fitted_|blended|module|networks|members_?|weights_?|model_?|kind|history_?"
            return isinstance(asked, ast.Constant) and bool(re.fullmatch(own, str(asked.value)))
        known = {each.id for each in _names([asked])}
        return node.func.id in ("isinstance", "issubclass") and bool(known & classes)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        texts = {
            each.value
            for side in sides
            for each in ast.walk(side)
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        }
        by_name = any(isinstance(each, ast.Attribute) and each.attr == "kind" for each in sides)
        by_class = {each.id for each in _names(sides)}
        return (by_name and bool(texts & names)) or (
            "type" in by_class and bool(by_class & classes)
        )
    if isinstance(node, ast.Dict):
        return any(isinstance(key, ast.Name) and key.id in classes for key in node.keys)
    if isinstance(node, ast.MatchClass):
        return isinstance(node.cls, ast.Name) and node.cls.id in classes
    return False


def broken(place: str, source: str, heights: dict[str, int]) -> Iterator[str]:
    """What is wrong with a module, whose path below `src/saen` is `place`."""
    room = place.removesuffix(".py").partition("/")[0]
    tree = ast.parse(source)
    for node in ast.walk(tree):
        line = f"{place}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            for name in undeclared([each.name for each in node.names]):
                yield f"{line}: pyproject.toml does not declare {name}"
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in undeclared([node.module]):
                yield f"{line}: pyproject.toml does not declare {name}"
            path = node.module.split(".")
            names = [*path, *(each.name for each in node.names)]
            if path[0] == "saen" and path[1:2] != [room]:
                inner = [each for each in names[2:] if re.match(r"_[^_]", each)]
                yield from (f"{line}: {each} is private to {path[1]}" for each in inner)
            private = [each for each in path if re.match(r"_[^_]", each)]
            if path[0] == "sklearn" and (private or re.match(r"_[^_]", names[-1])):
                yield f"{line}: {node.module} is private to scikit-learn"
        elif not place.startswith(MODELS) and decides_on_kind(node):
            yield f"{line}: ask a method of the model, not which kind it is"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = re.match(r"saen\.(\w+)[\w.]*\Z", node.value)
            if (
                found
                and not UPPER & {place, room}
                and heights.get(found[1], -1) > heights.get(room, 99)
            ):
                yield f"{line}: {node.value} is above {room}"
    if not OWN_PROCESS & {place, room}:
        for number, text in enumerate(source.splitlines(), 1):
            if match := re.search(EFFECTS, text):
                yield f"{place}:{number}: {match[0]} changes the process of whoever imports saen"


def main() -> int:
    """Print what breaks a rule."""
    heights = layers()
    lines = [
        line
        for file in sorted(SOURCE.rglob("*.py"))
        for line in broken(
            file.relative_to(SOURCE).as_posix(), file.read_text(encoding="utf-8"), heights
        )
    ]
    print(*lines, f"rules of the tree: {len(lines)} broken", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
