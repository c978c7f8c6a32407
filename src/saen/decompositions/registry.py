"""Decompositions by name: `make_decomposition("neighbourhoods(depth=4)")`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from saen._util.strings import did_you_mean
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


def make_decomposition(
    spec: str,
    *,
    defaults: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Decomposition:
    """Build a decomposition from `name` or `name(parameter=value, …)`.

    - `overrides`: parameters given beside `spec`, None for those that are not;
    - `defaults`: values for parameters that neither `spec` nor `overrides` give; those that the
      decomposition does not have are ignored. A value that is a function without arguments is
      called only if it is needed.

    Raises `InputError` for an unknown name or parameter, a bad value, and a parameter that both
    `spec` and `overrides` give.

    >>> make_decomposition("ego(radii=(0, 1, 2), node_labels=degree)").settings()["radii"]
    [0, 1, 2]
    >>> make_decomposition("nodes", defaults={"node_labels": "degree", "radii": (0, 1)})
    Nodes(vocabulary=None, node_labels='degree', direction='both')
    >>> make_decomposition("ego(radii=(2,))", overrides={"radii": (0, 1)})
    Traceback (most recent call last):
    saen.errors.InputError: radii is given twice: as (0, 1) and in 'ego(radii=(2,))'
    """
    name, values = _parse(spec)
    cls = _named(name)
    known = [f.name for f in parameters(cls)]
    for key, value in (overrides or {}).items():
        if value is None:
            continue
        if key in values:
            raise InputError(f"{key} is given twice: as {value!r} and in {spec!r}")
        values[key] = value
    for key in values:
        if key not in known:
            raise InputError(
                f"{name} has no parameter {key!r}{did_you_mean(key, known)}: "
                f"choose from {', '.join(known)}"
            )
    for key, default in (defaults or {}).items():
        if key in known and key not in values:
            values[key] = default() if callable(default) else default
    try:
        return cls(**values)
    except TypeError as error:
        raise InputError(f"{name}: {error}") from None


def decomposition_class(spec: str) -> type[Decomposition]:
    """The class that a specification such as `"ego(radii=(0, 1))"` names.

    Raises `InputError` for an unknown name.

    >>> decomposition_class("dependency_paths(max_length=2)").takes
    'documents'
    """
    return _named(_parse(spec)[0])


def _named(name: str) -> type[Decomposition]:
    if name not in DECOMPOSITIONS:
        raise InputError(
            f"unknown decomposition {name!r}{did_you_mean(name, DECOMPOSITIONS)}: "
            f"choose from {', '.join(DECOMPOSITIONS)}"
        )
    return DECOMPOSITIONS[name]


def _parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters of `name` or `name(key=value, …)`; plain words need no quotes."""
    if "(" not in spec:
        return spec.strip(), {}
    wrong = InputError(f"a decomposition is written name or name(parameter=value, …), not {spec!r}")
    try:
        call = ast.parse(spec.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise wrong from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise wrong
    values: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise wrong
        if isinstance(keyword.value, ast.Name):
            word = keyword.value.id
            values[keyword.arg] = {"true": True, "false": False}.get(word, word)
            continue
        try:
            values[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError):
            raise wrong from None
    return call.func.id, values


def parameters(cls: type[Decomposition]) -> list[Field[Any]]:
    """The fields that users set, in order, with `default` and `metadata["help"]`."""
    return [f for f in fields(cls) if "fitted" not in f.metadata]


# -- files -------------------------------------------------------------------------------------


def decomposition_to_json(decomposition: Decomposition) -> dict[str, Any]:
    """The settings and what `fit` filled, for files.

    Settings that are paths of this machine are left out: a file never makes saen open another.
    """
    settings = decomposition.settings()
    if DECOMPOSITIONS.get(settings["name"]) is not type(decomposition):
        raise InputError(
            f"a model over {type(decomposition).__name__} cannot be saved: its decomposition is "
            "not one of saen's own; fit the model on the Hierarchy that it returns instead"
        )
    fitted = {f.name: getattr(decomposition, f.name) for f in _fitted(type(decomposition))}
    portable = {key: value for key, value in settings.items() if key not in _paths(decomposition)}
    return portable | {key: None if v is None else v.to_json() for key, v in fitted.items()}


def decomposition_from_json(document: dict[str, Any]) -> Decomposition:
    """The inverse of `decomposition_to_json`."""
    values = dict(document)
    cls = _named(values.pop("name"))
    if paths := _paths(cls) & values.keys():
        raise InputError(f"a saved decomposition must not name a file ({', '.join(paths)})")
    for f in _fitted(cls):
        if values.get(f.name) is not None:
            values[f.name] = f.metadata["fitted"].from_json(values[f.name])
    return cls(**values)


def _fitted(cls: type[Decomposition]) -> list[Field[Any]]:
    return [f for f in fields(cls) if "fitted" in f.metadata]


def _paths(cls: type[Decomposition] | Decomposition) -> set[str]:
    return {f.name for f in fields(cls) if "path" in f.metadata}
