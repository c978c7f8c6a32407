"""Decompositions by name: `make_decomposition("neighbourhoods(depth=4)")`.

A name is one of saen's own, that of an installed plug-in (an entry point of the group
`saen.decompositions`), or `package.module:Class` for a class in a module that has been imported.
Nothing is imported because of a name in a file: a program imports the module itself, and on the
command line the user names it.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import Field, fields
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from saen._util.strings import did_you_mean, short_label
from saen.decompositions.bags import Edges, Nodes
from saen.decompositions.base import Decomposition
from saen.decompositions.dependency_paths import DependencyPaths
from saen.decompositions.ego import Ego
from saen.decompositions.neighbourhoods import Neighbourhoods
from saen.decompositions.nested import Nested
from saen.decompositions.pairs import Pairs
from saen.decompositions.paths import Paths
from saen.errors import InputError

DECOMPOSITIONS: dict[str, type[Decomposition]] = {
    cls.name: cls
    for cls in (Ego, Neighbourhoods, Pairs, Paths, Nodes, Edges, Nested, DependencyPaths)
}
"""saen's own, by the name that the command line and saved files use."""
ALIASES = {"neighborhoods": "neighbourhoods"}
"""Other spellings of names that users type."""
PLUG_INS = "saen.decompositions"
"""The group of entry points under which packages provide others."""


class UnknownDecompositionError(InputError):
    """No decomposition has this name: neither saen's own, nor installed, nor imported."""


def make_decomposition(
    spec: str,
    *,
    defaults: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Decomposition:
    """Build a decomposition from `name` or `name(parameter=value, …)`.

    Parameters
    ----------
    spec : str
        A name, or `name(parameter=value, …)`.
    defaults : Mapping[str, Any] | None, default=None
        Values for parameters that neither `spec` nor `overrides` give; those that the decomposition
        does not have are ignored. A value that is a function without arguments is called only if it
        is needed.
    overrides : Mapping[str, Any] | None, default=None
        Parameters given in addition to `spec`; None for those that are not.

    Raises
    ------
    InputError
        For an unknown name or parameter, a bad value, and a parameter that both `spec` and
        `overrides` give.

    Examples
    --------
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

    Parameters
    ----------
    spec : str
        A specification such as `"ego(radii=(0, 1))"`.

    Raises
    ------
    InputError
        For an unknown name.

    Examples
    --------
    >>> decomposition_class("dependency_paths(max_length=2)").takes
    'documents'
    """
    return _named(_parse(spec)[0])


def installed_decompositions() -> dict[str, type[Decomposition]]:
    """saen's own decompositions and those of installed packages, by name.

    Warns if the class of a package cannot be imported.
    """
    known = dict(DECOMPOSITIONS)
    for name, entry in _plug_ins().items():
        try:
            known[name] = _load(entry)
        except InputError as error:
            warnings.warn(str(error), stacklevel=2)
    return known


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    entries = {entry.name: entry for entry in entry_points(group=PLUG_INS)}
    return {name: entries[name] for name in sorted(entries) if name not in DECOMPOSITIONS}


def _load(entry: EntryPoint) -> type[Decomposition]:
    try:
        cls = entry.load()
    except Exception as error:
        raise InputError(
            f"the installed decomposition {entry.name!r} ({entry.value}) cannot be imported: "
            f"{error}"
        ) from None
    return _checked(cls, entry.value)


def _named(name: str) -> type[Decomposition]:
    name = ALIASES.get(name, name)
    if name in DECOMPOSITIONS:
        return DECOMPOSITIONS[name]
    if ":" in name:
        return _imported(name)
    if name in _plug_ins():
        return _load(_plug_ins()[name])
    known = [*DECOMPOSITIONS, *_plug_ins()]
    raise UnknownDecompositionError(
        f"unknown decomposition {short_label(name, 60)!r}{did_you_mean(name, known)}: choose from "
        f"{', '.join(known)}, install the package that provides it, or name a class of your own as "
        "package.module:Class"
    )


def _imported(reference: str) -> type[Decomposition]:
    """The class of a reference to a module that has been imported."""
    if not re.fullmatch(r"\w{1,99}(\.\w{1,99}){0,9}:\w{1,99}", reference):
        raise InputError(
            f"a class is written package.module:Class, not {short_label(reference, 60)!r}"
        )
    module, _, name = reference.partition(":")
    if module in sys.modules:
        return _checked(vars(sys.modules[module]).get(name), reference)
    raise UnknownDecompositionError(
        f"the decomposition {reference} has not been imported: on the command line, "
        f"saen --import {module} COMMAND …{_where(module)}; in Python, import {module} first"
    )


def _where(module: str) -> str:
    """From where a module can be imported that is not found here."""
    package = module.partition(".")[0]
    if package in sys.modules or find_spec(package) is not None:
        return ""
    return f" in the folder of {package}, or with {package} installed"


def _checked(cls: Any, reference: str) -> type[Decomposition]:
    module, _, name = reference.partition(":")
    if cls is None and module == "__main__":
        raise UnknownDecompositionError(
            f"the decomposition {name} was defined in a script, where other programs do not find "
            "it: move it to a module of its own, and train the model again"
        )
    if cls is None:
        raise UnknownDecompositionError(f"the module {module} has no class {name}")
    if not (isinstance(cls, type) and issubclass(cls, Decomposition)):
        raise UnknownDecompositionError(f"{reference} is not a class derived from Decomposition")
    return cls


def _parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters of `name` or `name(key=value, …)`; plain words need no quotes."""
    if "(" not in spec:
        return spec.strip(), {}
    module, written = "", spec.strip()
    if ":" in written.partition("(")[0]:
        module, _, written = written.partition(":")
        module += ":"
    wrong = InputError(
        f"a decomposition is written name or name(parameter=value, …), not {spec!r:.200}"
    )
    try:
        call = ast.parse(written, mode="eval").body
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
    return module + call.func.id, values


def parameters(cls: type[Decomposition]) -> list[Field[Any]]:
    """The fields that users set, in order, with `default` and `metadata["help"]`."""
    return [f for f in fields(cls) if "fitted" not in f.metadata]


# -- files -------------------------------------------------------------------------------------


def decomposition_to_json(decomposition: Decomposition) -> dict[str, Any]:
    """The settings and what `fit` filled, for files.

    Settings that are paths of this machine are left out: a file never makes saen open another.

    Raises `InputError` for a class that a file cannot refer to.
    """
    settings = decomposition.settings() | {"name": _reference(type(decomposition))}
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
    for f in parameters(cls):
        if isinstance(values.get(f.name), list):
            values[f.name] = tuple(values[f.name])
    return cls(**values)


def _reference(cls: type[Any]) -> str:
    """The name of a class in files: its own, its plug-in's, or `package.module:Class`."""
    for name, own in DECOMPOSITIONS.items():
        if own is cls:
            return name
    for name, entry in _plug_ins().items():
        # Only what has been imported already can be the class.
        if entry.module in sys.modules and _load(entry) is cls:
            return name
    reference = f"{cls.__module__}:{cls.__qualname__}"
    if not issubclass(cls, Decomposition) or _imported_or_none(reference) is not cls:
        raise InputError(
            f"a model over {cls.__name__} cannot be saved, since files refer to a decomposition by "
            "its module and name: derive it from saen.Decomposition, on the top level of a module"
        )
    return reference


def _imported_or_none(reference: str) -> type[Decomposition] | None:
    try:
        return _imported(reference)
    except InputError:
        return None


def _fitted(cls: type[Decomposition]) -> list[Field[Any]]:
    return [f for f in fields(cls) if "fitted" in f.metadata]


def _paths(cls: type[Decomposition] | Decomposition) -> set[str]:
    return {f.name for f in fields(cls) if "path" in f.metadata}
