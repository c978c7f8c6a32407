"""Fitted estimators in one file: safetensors for the weights, JSON for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from saen._util.arrays import Array
from saen._version import __version__
from saen.decompositions.registry import decomposition_from_json, decomposition_to_json
from saen.errors import FileError, SaenError
from saen.io import container
from saen.network.model import SAEN, Architecture
from saen.network.training import History

if TYPE_CHECKING:
    from saen.learning.estimators import _Estimator

KIND = "model"


def save_estimator(estimator: _Estimator, path: str | Path) -> int:
    """Write a fitted estimator; the size of the file in bytes."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "network_")
    schema, schema_tensors = container.pack_hierarchy(estimator.schema_)
    parameters = {
        key: value
        for key, value in estimator.get_params(deep=False).items()
        if key
        not in ("decomposition", "checkpoint", "checkpoint_every", "random_state", "progress")
    }
    if isinstance(parameters.get("class_weight"), dict):
        # As pairs: the keys of a JSON object are strings, those of this dictionary classes.
        parameters["class_weight"] = list(parameters["class_weight"].items())
    architecture = estimator.network_.architecture
    document: dict[str, Any] = {
        "saen": __version__,
        "estimator": type(estimator).__name__,
        "parameters": _plain(parameters),
        "decomposition": None
        if estimator.decomposition_ is None
        else decomposition_to_json(estimator.decomposition_),
        "schema": schema,
        "architecture": {k: _plain(v) for k, v in vars(architecture).items()},
        "epochs": len(estimator.history_.loss),
    }
    tensors: dict[str, Array] = {f"schema.{key}": t for key, t in schema_tensors.items()}
    for key, tensor in estimator.network_.state_dict().items():
        tensors[f"network.{key}"] = tensor.detach().cpu().numpy()
    for key in ("mean_", "scale_"):
        if hasattr(estimator, key):
            document[key] = np.asarray(getattr(estimator, key)).tolist()  # a number or a list
    if hasattr(estimator, "classes_"):
        # Classes are of any type that sorts: strings, whole numbers of any width, Booleans.
        classes = np.asarray(estimator.classes_)
        document["classes"] = {"dtype": classes.dtype.str, "values": classes.tolist()}
    return container.write(path, KIND, document, tensors)


def load(path: str | Path) -> Any:
    """Read what was saved: `Graphs`, `Hierarchy`, `Compressed` or an estimator, as the file says.

    Raises `FileError` for a file that is missing, damaged, foreign or of a newer format.
    """
    if container.read_header(path).kind == KIND:
        return load_estimator(path)
    return container.load(path)


def load_estimator(path: str | Path) -> Any:
    """Read what `save_estimator` wrote, onto the CPU."""
    kind, document, tensors = container.read(path)
    if kind != KIND:
        raise FileError(f"this file holds a {kind}, not a model", path=path)
    try:
        return _unpack(document, tensors)
    except (KeyError, TypeError, ValueError, RuntimeError, SaenError) as error:
        raise FileError(
            f"damaged: its contents do not fit together ({error})", path=path
        ) from error


def _unpack(document: dict[str, Any], tensors: dict[str, Array]) -> Any:
    from saen.learning import estimators

    cls = {
        c.__name__: c
        for c in (estimators.SAENClassifier, estimators.SAENRegressor, estimators.SAENTransformer)
    }[document["estimator"]]
    settings = document["decomposition"]
    decomposition = None if settings is None else decomposition_from_json(settings)
    parameters = document["parameters"]
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    estimator = cls(decomposition if decomposition is not None else "ego", **parameters)
    estimator.decomposition_ = decomposition
    estimator.schema_ = container.unpack_hierarchy(document["schema"], _under("schema.", tensors))
    fields = document["architecture"]
    fields["roles"] = tuple(fields["roles"])
    fields["layers"] = tuple(tuple(sizes) for sizes in fields["layers"])
    weights = {key: torch.from_numpy(np.array(t)) for key, t in _under("network.", tensors).items()}
    n_models = len(weights["levels.0.bias"])
    network = SAEN(Architecture(**fields), range(n_models), dtype=weights["levels.0.bias"].dtype)
    network.load_state_dict(weights)
    estimator.network_ = network.eval()
    estimator.history_ = History()
    for key in ("mean_", "scale_"):
        if key in document:
            setattr(estimator, key, np.array(document[key], dtype=np.float64))
    if "classes" in document:
        classes = document["classes"]
        estimator.classes_ = np.array(classes["values"], dtype=classes["dtype"])
    return estimator


def _plain(value: Any) -> Any:
    """The value as JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _under(prefix: str, tensors: dict[str, Array]) -> dict[str, Array]:
    return {key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)}
