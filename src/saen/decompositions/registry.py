"""Decompositions by name: `make_decomposition("neighbourhoods(depth=4)")`."""

from __future__ import annotations

import ast
from dataclasses import MISSING, Field, fields
from typing import Any

from saen._util.strings import did_you_mean
from saen.data.vocabulary import Vocabulary
from saen.decompositions.bags import Edges, Nodes
from saen.decompositions.base import Decomposition
from saen.decompositions.dependency_paths import DependencyPaths
from saen.decompositions.ego import Ego
from saen.decompositions.neighbourhoods import Neighbourhoods
from saen.decompositions.nested import Nested
from saen.decompositions.paths import Paths
from saen.errors import InputError

DECOMPOSITIONS: dict[str, type[Decomposition]] = {
    cls.name: cls for cls in (Ego, Neighbourhoods, Paths, Nodes, Edges, Nested, DependencyPaths)
}
"""By the name that the command line and saved files use."""


def make_decomposition(text: str, **defaults: Any) -> Decomposition:
    """The decomposition that a name, with or without parameters, stands for.

    `defaults` fill parameters that the text leaves open and that the decomposition has.

    >>> make_decomposition("ego(radii=(0, 1, 2), node_labels=degree)").settings()["radii"]
    [0, 1, 2]
    >>> make_decomposition("ego", node_labels="degree").settings()["node_labels"]
    'degree'
    """
    name, given = parse_decomposition(text)
    cls = named_decomposition(name)
    known = [f.name for f in parameters(cls)]
    for key in given:
        if key not in known:
            raise InputError(
                f"{name} has no parameter {key!r}{did_you_mean(key, known)}: "
                f"choose from {', '.join(known)}"
            )
    chosen = {key: value for key, value in defaults.items() if key in known} | given
    try:
        return cls(**chosen)
    except TypeError as error:
        raise InputError(f"{name}: {error}") from None


def named_decomposition(name: str) -> type[Decomposition]:
    """The class of that name."""
    if name not in DECOMPOSITIONS:
        raise InputError(
            f"unknown decomposition {name!r}{did_you_mean(name, DECOMPOSITIONS)}: "
            f"choose from {', '.join(DECOMPOSITIONS)}"
        )
    return DECOMPOSITIONS[name]


def parse_decomposition(text: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters of `name` or `name(key=value, …)`; plain words need no quotes.

    >>> parse_decomposition("paths(radii=(1, 2), node_labels=degree)")
    ('paths', {'radii': (1, 2), 'node_labels': 'degree'})
    """
    wrong = InputError(f"a decomposition is written name or name(parameter=value, …), not {text!r}")
    if "(" not in text:
        return text.strip(), {}
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise wrong from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise wrong
    given: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise wrong
        if isinstance(keyword.value, ast.Name):
            given[keyword.arg] = keyword.value.id
            continue
        try:
            given[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError):
            raise wrong from None
    return call.func.id, given


def parameters(cls: type[Decomposition]) -> list[Field[Any]]:
    """The fields that users set, in order; `default` and `metadata["help"]` describe them."""
    return [f for f in fields(cls) if "fitted" not in f.metadata and f.default is not MISSING]


# -- files -------------------------------------------------------------------------------------


def decomposition_to_json(decomposition: Decomposition) -> dict[str, Any]:
    """Settings and what `fit` found, for files."""
    settings = decomposition.settings()
    if DECOMPOSITIONS.get(settings["name"]) is not type(decomposition):
        raise InputError(
            f"a model over {type(decomposition).__name__} cannot be saved: its decomposition is "
            "not one of saen's own; keep the Hierarchy it makes and fit on that instead"
        )
    found = {f.name: getattr(decomposition, f.name) for f in _fitted(type(decomposition))}
    return settings | {key: None if v is None else v.to_json() for key, v in found.items()}


def decomposition_from_json(document: dict[str, Any]) -> Decomposition:
    """The inverse of `decomposition_to_json`."""
    values = dict(document)
    cls = named_decomposition(values.pop("name"))
    for key in (f.name for f in _fitted(cls)):
        if values.get(key) is not None:
            values[key] = Vocabulary.from_json(values[key])
    return cls(**values)


def _fitted(cls: type[Decomposition]) -> list[Field[Any]]:
    return [f for f in fields(cls) if "fitted" in f.metadata]
