"""The API reference: every parameter has an entry, and the default that it really has."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

API = Path(__file__).parents[2] / "docs" / "api"
PAGES = [page.read_text("utf-8") for page in sorted(API.glob("*.md"))]
NAMES = [name for page in PAGES for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)]
WITHOUT_METHODS = {
    name
    for page in PAGES
    for name in re.findall(r"^::: (\S+)\n    options:\n      members: false$", page, re.MULTILINE)
}
ENTRY = re.compile(r"^\*{0,2}(\w+) : (.+?)(?:, default=(.+))?\n    \S", re.MULTILINE)


def described(name: str) -> Iterator[tuple[str, Any]]:
    """Functions, classes with arguments, and methods with more than one parameter."""
    found = resolve_name(name)
    if inspect.isfunction(found):
        yield name, found
    if not inspect.isclass(found):
        return
    if "\nParameters\n---" in (found.__doc__ or ""):
        yield name, found
    if name in WITHOUT_METHODS:
        return
    for method, _ in inspect.getmembers(found, callable):
        function = inspect.getattr_static(found, method)
        function = getattr(function, "__func__", function)
        if (
            not method.startswith("_")
            and inspect.isfunction(function)
            and function.__module__.startswith("saen.")
            and len(own_parameters(function)) > 1
        ):
            yield f"{name}.{method}", function


def own_parameters(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    return {name: each.default for name, each in parameters.items() if name not in ("self", "cls")}


DESCRIBED = dict(each for name in NAMES for each in described(name))


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_parameter_has_an_entry_with_its_default(name: str) -> None:
    function = DESCRIBED[name]
    parameters = own_parameters(function)
    text = inspect.getdoc(function) or ""
    section = re.search(r"Parameters\n----------\n(.*?)(?=\n\n\S|\Z)", text, re.DOTALL)
    assert section or not parameters, "no section of parameters"
    entries = {each[1]: each[3] for each in ENTRY.finditer(section[1] if section else "")}
    assert list(entries) == list(parameters) or inspect.isclass(function)
    assert set(entries) == set(parameters)
    for parameter, default in parameters.items():
        written = entries[parameter]
        if default is inspect.Parameter.empty or written is None:
            assert default is inspect.Parameter.empty, f"{parameter} has a default"
        elif not re.fullmatch(r"[A-Z_]+|field\(.*\)|\{\}", written):  # names of constants
            assert written == repr(default)


def test_there_is_something_to_describe() -> None:
    assert {"saen.load_dataset", "saen.Classifier", "saen.Classifier.fit"} <= set(DESCRIBED)
    assert len(DESCRIBED) > 100
