from __future__ import annotations

import ast
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

from saen import compress
from saen.decompositions import Nested
from saen.errors import DatasetNotFoundError, FileError, InputError
from saen.io.sources.stdlib import PACKAGES, stdlib_functions
from tests.io.refusals import refusal

SOURCE = '''
"""A module."""
import os
os.abort()  # never run

def short():
    """One statement is too few."""
    return 1

def long(x):
    "Doc strings do not count."
    if x:
        return -x
    return 1

class Thing:
    async def method(self):
        def inner():
            return 2
        try:
            pass
        except ValueError:
            raise
'''


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A folder in the place of the standard library."""
    paths = sysconfig.get_paths() | {"stdlib": str(tmp_path)}
    monkeypatch.setattr("saen.io.sources.stdlib.sysconfig.get_paths", lambda: paths)
    return tmp_path


def path(*types: str) -> dict[str, list[str]]:
    return {f"node {place}": [node_type] for place, node_type in enumerate(types)}


def test_stdlib_functions_are_statements_are_paths_are_node_types(library):
    (library / "toy.py").write_text(SOURCE, encoding="utf-8")
    functions = stdlib_functions(["toy"])
    assert functions.levels == ("node types", "paths", "statements", "functions")
    assert functions.name == "stdlib-functions"
    assert functions.targets.tolist() == ["toy", "toy"]
    long, method = functions.to_mappings()
    assert long == {
        "depth 0": [
            {"length 3": [path("If", "Name", "Load")]},
            {"length 2": [path("Return", "Constant")]},
        ],
        "depth 1": [
            {
                "length 3": [path("Return", "UnaryOp", "USub")],
                "length 4": [path("Return", "UnaryOp", "Name", "Load")],
            }
        ],
    }
    assert method == {
        "depth 0": [
            {"length 2": [path("FunctionDef", "arguments")]},
            {"length 4": [path("Try", "ExceptHandler", "Name", "Load")]},
        ],
        "depth 1": [
            {"length 2": [path("Return", "Constant")]},
            {"length 1": [path("Pass")]},
            {"length 1": [path("Raise")]},
        ],
    }


def test_stdlib_deep_blocks_and_long_paths_share_the_last_roles(library):
    blocks = "".join(f"{' ' * depth}if 1:\n" for depth in range(1, 7)) + f"{' ' * 7}pass\n"
    (library / "toy.py").write_text(
        f"def deep():\n{blocks}\ndef long():\n  {'-' * 12}x\n  pass\n", encoding="utf-8"
    )
    deep, long = stdlib_functions(["toy"]).to_mappings()
    assert {role: len(parts) for role, parts in deep.items()} == {
        **{"depth 0": 1, "depth 1": 1, "depth 2": 1},
        "depth 3": 4,
    }
    first, _ = long["depth 0"]
    # Expr, twelve times UnaryOp with its USub, Name, Load: every operator ends a path.
    assert {role: len(paths) for role, paths in first.items()} == {
        **{f"length {n}": 1 for n in range(3, 8)},
        "length 8": 8,
    }
    longest = max(
        first["length 8"], key=lambda nodes: len(nodes["node 8"]) if "node 8" in nodes else 0
    )
    assert longest["node 0"] == ["Expr"]
    assert sorted(longest["node 8"]) == ["Load", "Name", *["UnaryOp"] * 5]


def test_stdlib_a_package_gives_functions_evenly_spaced_over_its_files_without_tests(library):
    for name in ("b", "a", "test/c", "inner/tests/d", "inner/e"):
        file = library / "toy" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        body = "\n".join(f"def f{i}():\n  {name[-1]}{i}(1)\n  pass" for i in range(4))
        file.write_text(body, encoding="utf-8")
    everything = stdlib_functions(["toy"])
    assert len(everything) == 12
    for n, expected in (
        (1, [0]),
        (2, [0, 6]),
        (4, [0, 3, 6, 9]),
        (5, [0, 2, 4, 7, 9]),
        (99, range(12)),
    ):
        assert stdlib_functions(["toy"], n) == everything[list(expected)]


def test_stdlib_files_are_read_in_the_encoding_that_they_declare(library):
    source = "# coding: latin-1\ndef f():\n    'é'.x\n    return 'é'\n"
    (library / "toy.py").write_bytes(source.encode("latin-1"))
    assert len(stdlib_functions(["toy"])) == 1


def test_stdlib_the_same_functions_every_time_and_they_can_be_learned_from():
    functions = stdlib_functions(["json", "queue"], 10)
    assert functions == stdlib_functions(["json", "queue"], 10)
    assert np.unique(functions.targets, return_counts=True)[1].tolist() == [10, 10]
    compressed = compress(Nested().decompose(functions))
    assert compressed.hierarchy.sizes[1] < functions.hierarchy.sizes[1] / 2


@pytest.mark.parametrize("package", PACKAGES)
def test_stdlib_every_package_is_there_and_its_labels_are_types_of_syntax(package):
    files = sorted((Path(sysconfig.get_paths()["stdlib"]) / package).rglob("*.py"))
    assert files
    functions = stdlib_functions([package], n_per_package=20)
    assert len(functions) == 20
    assert set(functions.targets) == {package}
    types = {name for name in dir(ast) if isinstance(getattr(ast, name), type)}
    assert set(functions.hierarchy.attributes.vocabulary) <= types


@pytest.mark.parametrize(
    ("packages", "n", "error", "message"),
    [
        ("json", 5, InputError, "packages must be a list of names, not 'json'"),
        ([3], 5, InputError, "packages must be a list of names, not [3]"),
        (["../etc"], 5, InputError, "'../etc' is not the name of a package"),
        (["toy"], 0, InputError, "n_per_package must be an integer ≥ 1, not 0"),
        (["toy"], 1.5, InputError, "n_per_package must be an integer ≥ 1, not 1.5"),
        (["toy"], True, InputError, "n_per_package must be an integer ≥ 1, not True"),
        (
            ["toy"],
            5,
            DatasetNotFoundError,
            "no sources of 'toy' in {folder}: they are not installed, or the standard library "
            "has no such package",
        ),
        (
            ["bad"],
            5,
            FileError,
            "{folder}/bad.py: invalid Python: '(' was never closed (bad.py, line 1)",
        ),
    ],
)
def test_stdlib_what_is_not_there_is_refused(library, packages, n, error, message):
    (library / "bad.py").write_text("(", encoding="utf-8")
    assert refusal(error, stdlib_functions, packages, n) == message.format(folder=library)


@pytest.mark.slow
def test_stdlib_the_default_is_quick_and_sizeable():
    start = time.perf_counter()
    functions = stdlib_functions()
    assert time.perf_counter() - start < 15  # two seconds on a quiet machine
    classes, counts = np.unique(functions.targets, return_counts=True)
    assert tuple(classes) == PACKAGES
    assert counts.min() > 100
    assert counts.max() == 200
