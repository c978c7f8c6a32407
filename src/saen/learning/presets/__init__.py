"""Presets: named settings of a model, as TOML.

A preset has a table `defaults`, may have one table per dataset under `datasets`, and may have a
table `grid` with lists of values that nested cross-validation chooses from. `model` says whose
arguments their keys are: `network` (the default) stands for `SAENClassifier` and `SAENRegressor`,
`part_counts` for `PartCountsClassifier` and `PartCountsRegressor`, `blend` for `Classifier` and
`Regressor`. For networks, `layers` may stand for `hidden`, with the output layer included as in the
paper.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from saen._util.strings import did_you_mean
from saen.errors import FileError, InputError
from saen.learning.estimators import (
    Classifier,
    ClassPredictor,
    NumberPredictor,
    PartCountsClassifier,
    PartCountsRegressor,
    Regressor,
    SAENClassifier,
    SAENRegressor,
)
from saen.learning.parameters import setting_names

NAMES = ("best", "network", "paper", "counts")
MAX_BYTES = 32_768
"""Of a file: longer ones could take minutes to parse."""
MAX_CHOICES = 10_000
"""Combinations of a grid: more could neither be tried nor listed."""
MODELS: dict[str, tuple[type[ClassPredictor], type[NumberPredictor]]] = {
    "network": (SAENClassifier, SAENRegressor),
    "part_counts": (PartCountsClassifier, PartCountsRegressor),
    "blend": (Classifier, Regressor),
}
"""Classifier and regressor of every kind of model."""


@dataclass(frozen=True)
class Preset:
    """Settings of a model: for all datasets, for some of them, and a grid to choose from."""

    name: str
    defaults: dict[str, Any] = field(default_factory=dict)
    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    model: str = "network"

    @property
    def classifier(self) -> type[ClassPredictor]:
        """The class of the model for classes."""
        return MODELS[self.model][0]

    @property
    def regressor(self) -> type[NumberPredictor]:
        """The class of the model for numbers."""
        return MODELS[self.model][1]

    def accepts(self, setting: str) -> bool:
        """Whether the model has this setting."""
        return setting in setting_names(self.classifier)

    def settings(self, dataset: str) -> dict[str, Any]:
        """Arguments of the model for a dataset."""
        return _arguments({**self.defaults, **self.datasets.get(dataset, {})})

    def choices(self) -> list[dict[str, Any]]:
        """Every combination of the grid, one empty combination without a grid."""
        keys, values = list(self.grid), list(self.grid.values())
        return [_arguments(dict(zip(keys, each, strict=True))) for each in product(*values)]


def _arguments(settings: dict[str, Any]) -> dict[str, Any]:
    """What an estimator takes: `hidden`, without the output layer, for `layers`."""
    *below, top = settings.pop("layers", None) or [None]
    return settings if top is None else {**settings, "hidden": [*below, top[:-1]]}


def load_preset(name_or_path: str) -> Preset:
    """A preset that comes with saen, or one of the user's own from a TOML file.

    >>> load_preset("paper").settings("MUTAG")["hidden"]
    [[10], [5, 5], [5, 5]]
    """
    if name_or_path in NAMES:
        text = (files("saen.learning.presets") / f"{name_or_path}.toml").read_text(encoding="utf-8")
        return _checked(name_or_path, tomllib.loads(text), name_or_path)
    path = Path(name_or_path)
    if path.suffix != ".toml":
        raise InputError(
            f"unknown preset {name_or_path!r}{did_you_mean(name_or_path, NAMES)}: "
            f"choose from {', '.join(NAMES)}, or give a .toml file"
        )
    try:
        document = tomllib.loads(_text(path))
        _check_integers(document, path)
    except FileNotFoundError:
        raise FileError("no such file", path=path) from None
    except RecursionError:
        raise FileError("not valid TOML (nested too deeply)", path=path) from None
    except ValueError as error:  # also a number with thousands of digits, or a bad byte
        raise FileError(f"not valid TOML ({error})", path=path) from None
    except OSError as error:
        raise FileError(f"cannot be read ({error.strerror})", path=path) from None
    return _checked(path.stem, document, str(path))


def _text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise FileError(f"a preset has at most {MAX_BYTES:,} bytes", path=path)
    return content.decode()


def _check_integers(value: Any, path: Path) -> None:
    """Raise `FileError` for an integer of more than 64 bits, which no setting can have."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise FileError("an integer does not fit into 64 bits", path=path)
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_integers(each, path)


def _checked(name: str, document: dict[str, Any], place: str) -> Preset:
    tables = ("model", "defaults", "datasets", "grid")
    _check_keys(document, tables, f"{place}: tables")
    model = document.get("model", "network")
    if not isinstance(model, str) or model not in MODELS:
        raise InputError(f"{place}: model is one of {', '.join(MODELS)}, not {model!r}")
    known = (*setting_names(MODELS[model][0]), *(("layers",) if model == "network" else ()))
    defaults, datasets = document.get("defaults", {}), document.get("datasets", {})
    grid = document.get("grid", {})
    _check_settings(defaults, known, f"{place}, [defaults]")
    if not isinstance(datasets, dict):
        raise InputError(f"{place}, [datasets]: expected a table")
    for dataset, settings in datasets.items():
        _check_settings(settings, known, f"{place}, [datasets.{dataset}]")
    _check_keys(grid, known, f"{place}, [grid]")
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{place}, [grid]: {key} must be a list of values to choose from")
    for layers in grid.get("layers", ()):
        _check_layers(layers, f"{place}, [grid]")
    if math.prod(map(len, grid.values())) > MAX_CHOICES:
        raise InputError(f"{place}, [grid]: more than {MAX_CHOICES:,} combinations")
    return Preset(name, defaults, datasets, grid, model)


def _check_settings(table: Any, known: Iterable[str], place: str) -> None:
    _check_keys(table, known, place)
    _check_layers(table.get("layers", [[]]), place)


def _check_layers(layers: Any, place: str) -> None:
    if not isinstance(layers, list) or not layers or not all(isinstance(s, list) for s in layers):
        raise InputError(f"{place}: layers must be a list of sizes per level")


def _check_keys(table: Any, known: Iterable[str], place: str) -> None:
    if not isinstance(table, dict):
        raise InputError(f"{place}: expected a table")
    for key in table:
        if key not in known:
            raise InputError(f"{place}: unknown key {key!r}{did_you_mean(key, known)}")
