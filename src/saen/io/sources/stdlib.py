"""A generated dataset: functions of Python's standard library, with their package as target."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saen.data.nested import NestedData
from saen.errors import DatasetNotFoundError, FileError, InputError
from saen.io.parsing.text_files import read_bytes

PACKAGES = (
    *("asyncio", "email", "http", "importlib", "logging"),
    *("multiprocessing", "unittest", "urllib", "xml"),
)
"""Large packages that every CPython since 3.11 has."""
LEVELS = ("node types", "paths", "statements", "functions")

MIN_STATEMENTS = 2
MAX_DEPTH = 3  # deeper blocks share a role
MAX_LENGTH = 8  # longer paths share a role

Pairs = Iterator[tuple[str, Any]]


def stdlib_functions(packages: Sequence[str] = PACKAGES, n_per_package: int = 200) -> NestedData:
    """Functions of the standard library of the running Python, each with its package as target.

    The sources are parsed, never imported or run. The parts of a function or method are its
    statements, at any depth; the parts of a statement are the paths from the root of its syntax
    tree to the leaves (without nested statements, which are parts of their own); the parts of a
    path are the types of its nodes. Identifiers are not used. Roles are the depth of a statement,
    the length of a path, and the position of a node on its path.

    Nested functions belong to the outer one; docstrings and functions with fewer than two
    statements are skipped. At most `n_per_package` functions are taken from each package, evenly
    spaced over its files, so that the same Python gives the same functions.

    Parameters
    ----------
    packages : Sequence[str], default=PACKAGES
        Names of packages of the standard library.
    n_per_package : int, default=200
        How many functions to take from each package, at most.

    Raises
    ------
    DatasetNotFoundError
        If the sources of a package are not installed.

    Examples
    --------
    >>> functions = stdlib_functions(["json", "queue"], n_per_package=2)
    >>> functions  # doctest: +ELLIPSIS
    NestedData(stdlib-functions: ... statements → 4 functions; 2 classes)
    >>> functions.targets.tolist()
    ['json', 'json', 'queue', 'queue']
    """
    if isinstance(packages, str) or not all(isinstance(package, str) for package in packages):
        raise InputError(f"packages must be a list of names, not {packages!r}")
    if isinstance(n_per_package, bool) or not isinstance(n_per_package, int) or n_per_package < 1:
        raise InputError(f"n_per_package must be an integer ≥ 1, not {n_per_package!r}")
    functions: list[ast.AST] = []
    targets: list[str] = []
    for package in packages:
        nodes = [node for file in _sources(package) for node in _functions(_parsed(file))]
        evenly = np.linspace(0, len(nodes), min(n_per_package, len(nodes)), endpoint=False)
        functions += [nodes[index] for index in evenly.astype(int)]
        targets += [package] * len(evenly)
    parts = map(_function, functions)
    return NestedData(parts, np.array(targets, np.str_), levels=LEVELS, name="stdlib-functions")


def _sources(package: str) -> list[Path]:
    """The files of a package or a module, without its tests, in order."""
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    if not package.isidentifier():
        raise InputError(f"{package!r} is not the name of a package")
    module, folder = stdlib / f"{package}.py", stdlib / package
    if module.is_file():
        return [module]
    files = sorted(folder.rglob("*.py"))
    sources = [file for file in files if not {"test", "tests"} & {*file.relative_to(folder).parts}]
    if not sources:
        raise DatasetNotFoundError(
            f"no sources of {package!r} in {stdlib}: they are not installed, or the standard "
            "library has no such package"
        )
    return sources


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(read_bytes(file), filename=str(file))
    except (SyntaxError, ValueError) as error:
        raise FileError(f"invalid Python: {error}", path=file) from None


def _functions(node: ast.AST) -> Iterator[ast.AST]:
    """Functions and methods outside of other functions, in the order of the file."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _functions(child)
        elif len([*_statements(child)]) >= MIN_STATEMENTS:
            yield child


def _statements(node: ast.AST, depth: int = 0) -> Iterator[tuple[int, ast.stmt]]:
    """All statements inside a node, with the number of blocks around them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            if not _is_doc_string(child):
                yield depth, child
            yield from _statements(child, depth + 1)
        else:
            yield from _statements(child, depth)  # except clauses and cases contain statements


def _is_doc_string(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _paths(node: ast.AST, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The types of the nodes from the root of a statement to each of its leaves."""
    path = (*above, type(node).__name__)
    children = [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt)]
    for child in children:
        yield from _paths(child, path)
    if not children:
        yield path


# -- parts ---------------------------------------------------------------------------------------


def _function(node: ast.AST) -> Pairs:
    for depth, statement in _statements(node):
        yield f"depth {min(depth, MAX_DEPTH)}", _statement(statement)


def _statement(node: ast.stmt) -> Pairs:
    for path in _paths(node):
        yield f"length {min(len(path), MAX_LENGTH)}", _path(path)


def _path(path: tuple[str, ...]) -> Pairs:
    for position, node_type in enumerate(path):
        yield f"node {min(position, MAX_LENGTH)}", node_type
