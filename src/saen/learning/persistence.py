"""Fitted estimators in one file: safetensors for the weights, JSON for the rest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array
from saen._version import __version__
from saen.decompositions.registry import decomposition_from_json, decomposition_to_json
from saen.errors import FileError, SaenError
from saen.io import container
from saen.learning.blend import BlendClassifier, BlendEstimator, BlendRegressor, Member
from saen.learning.estimators import (
    NetworkEstimator,
    SAENClassifier,
    SAENRegressor,
    SAENTransformer,
)
from saen.learning.part_counts import Encoder
from saen.learning.part_counts_models import (
    LinearCounts,
    PartCountsClassifier,
    PartCountsEstimator,
    PartCountsRegressor,
)
from saen.network.model import SAEN, Architecture
from saen.network.training import History

KIND = "model"
CLASSES = (
    SAENClassifier,
    SAENRegressor,
    SAENTransformer,
    PartCountsClassifier,
    PartCountsRegressor,
)

BLENDS = (BlendClassifier, BlendRegressor)


def save_estimator(
    estimator: NetworkEstimator | PartCountsEstimator | BlendEstimator, path: str | Path
) -> int:
    """Write a fitted estimator; the size of the file in bytes."""
    document, tensors = (_pack_blend if isinstance(estimator, BlendEstimator) else _pack)(estimator)
    return container.write(path, KIND, document, tensors)


def _pack_blend(estimator: BlendEstimator) -> tuple[dict[str, Any], dict[str, Array]]:
    check_is_fitted(estimator, "members_")
    members: list[dict[str, Any]] = []
    tensors: dict[str, Array] = {}
    for number, member in enumerate(estimator.members_):
        document, arrays = _pack(member.estimator)
        about = {"name": member.name, "weight": member.weight, "score": member.score}
        members.append({**about, "model": document})
        tensors |= {f"{number}.{key}": array for key, array in arrays.items()}
    document = {
        "saen": __version__,
        "estimator": type(estimator).__name__,
        "parameters": {key: getattr(estimator, key) for key in estimator.setting_names()},
        "tried": estimator.tried_,
        "members": members,
    }
    _pack_calibration(estimator, document, tensors)
    return document, tensors


def _pack_calibration(estimator: Any, document: dict[str, Any], tensors: dict[str, Array]) -> None:
    if hasattr(estimator, "temperature_"):
        document["temperature"] = estimator.temperature_
    if isinstance(estimator, SAENRegressor | BlendRegressor):
        tensors["calibration.errors"] = estimator.errors_


def _unpack_calibration(
    estimator: Any, document: dict[str, Any], tensors: dict[str, Array]
) -> None:
    """Models of older versions have no calibration: their probabilities are as they were."""
    if isinstance(estimator, SAENClassifier | BlendClassifier):
        estimator.temperature_ = float(document.get("temperature", 1.0))
    elif isinstance(estimator, SAENRegressor | BlendRegressor):
        shape = np.shape(getattr(estimator, "mean_", 0.0))
        estimator.errors_ = np.array(tensors.get("calibration.errors", np.empty((0, *shape))))


def _unpack_blend(document: dict[str, Any], tensors: dict[str, Array]) -> BlendEstimator:
    cls = {each.__name__: each for each in BLENDS}[document["estimator"]]
    estimator: BlendEstimator = cls(**document["parameters"])
    estimator.tried_ = document["tried"]
    estimator.members_ = [
        Member(
            each["name"],
            _unpack(each["model"], _under(f"{number}.", tensors)),
            each["weight"],
            each["score"],
        )
        for number, each in enumerate(document["members"])
    ]
    if isinstance(estimator, BlendClassifier):
        estimator.classes_ = estimator.members_[0].estimator.classes_
    _unpack_calibration(estimator, document, tensors)
    return estimator


def _pack(
    estimator: NetworkEstimator | PartCountsEstimator,
) -> tuple[dict[str, Any], dict[str, Array]]:
    check_is_fitted(estimator, "schema_")
    schema, schema_tensors = container.pack_hierarchy(estimator.schema_)
    parameters = {
        key: getattr(estimator, key) for key in estimator.setting_names() if key != "decomposition"
    }
    if isinstance(parameters.get("class_weight"), dict):
        # As pairs: the keys of a JSON object are strings, those of this dictionary classes.
        parameters["class_weight"] = list(parameters["class_weight"].items())
    document: dict[str, Any] = {
        "saen": __version__,
        "estimator": type(estimator).__name__,
        "parameters": _plain(parameters),
        "decomposition": None
        if estimator.decomposition_ is None
        else decomposition_to_json(estimator.decomposition_),
        "schema": schema,
    }
    tensors: dict[str, Array] = {f"schema.{key}": t for key, t in schema_tensors.items()}
    pack = _pack_linear if isinstance(estimator, PartCountsEstimator) else _pack_network
    pack(estimator, document, tensors)
    for key in ("mean_", "scale_"):
        if hasattr(estimator, key):
            document[key] = np.asarray(getattr(estimator, key)).tolist()  # a number or a list
    if hasattr(estimator, "classes_"):
        # Classes are of any type that sorts: strings, whole numbers of any width, Booleans.
        classes = np.asarray(estimator.classes_)
        document["classes"] = {"dtype": classes.dtype.str, "values": classes.tolist()}
    _pack_calibration(estimator, document, tensors)
    return document, tensors


def _pack_network(
    estimator: NetworkEstimator, document: dict[str, Any], tensors: dict[str, Array]
) -> None:
    architecture = estimator.network_.architecture
    document["architecture"] = {k: _plain(v) for k, v in vars(architecture).items()}
    document["history"] = asdict(estimator.history_)
    document["inner_history"] = asdict(estimator.inner_history_)
    document["targets"] = estimator.target_names_
    for key, tensor in estimator.network_.state_dict().items():
        tensors[f"network.{key}"] = tensor.detach().cpu().numpy()


def _pack_linear(
    estimator: PartCountsEstimator, document: dict[str, Any], tensors: dict[str, Array]
) -> None:
    linear = estimator.linear_
    encoder = linear.encoder
    document["linear"] = {
        "encoding": encoder.encoding,
        "max_count": encoder.max_count,
        "norm": linear.norm,
        "depth": linear.depth,
        "C": linear.C,
        "score": linear.score,
    }
    if isinstance(estimator, PartCountsRegressor):
        document["flat"] = estimator.flat_
    tensors["linear.ids"] = encoder.ids.view(np.int64)
    tensors["linear.starts"] = encoder.starts
    tensors["linear.thresholds"] = encoder.thresholds
    if encoder.occupied is not None:
        tensors["linear.occupied"] = encoder.occupied
    tensors["linear.coef"], tensors["linear.intercept"] = linear.coef, linear.intercept
    if linear.errors is not None:
        tensors["linear.errors"] = linear.errors


def _unpack_linear(document: dict[str, Any], tensors: dict[str, Array]) -> LinearCounts:
    known = document["linear"]
    encoder = Encoder(
        known["encoding"],
        known["max_count"],
        tensors["ids"].view(np.uint64),
        tensors["starts"],
        tensors["thresholds"],
        tensors.get("occupied"),
    )
    if tensors["coef"].shape != (len(tensors["intercept"]), encoder.n_columns):
        raise ValueError("the coefficients do not match the columns")
    return LinearCounts(
        encoder,
        known["norm"],
        tensors["coef"],
        tensors["intercept"],
        known["depth"],
        known["C"],
        known["score"],
        tensors.get("errors"),
    )


def _unpack_network(document: dict[str, Any], tensors: dict[str, Array]) -> SAEN:
    fields = document["architecture"]
    fields["roles"] = tuple(fields["roles"])
    fields["layers"] = tuple(tuple(sizes) for sizes in fields["layers"])
    weights = {key: torch.from_numpy(np.array(t)) for key, t in tensors.items()}
    n_models = len(weights["levels.0.bias"])
    network = SAEN(Architecture(**fields), range(n_models), dtype=weights["levels.0.bias"].dtype)
    network.load_state_dict(weights)
    return network.eval()


def load_estimator(path: str | Path) -> Any:
    """Read what `save_estimator` wrote, onto the CPU."""
    kind, document, tensors = container.read(path)
    if kind != KIND:
        raise FileError(f"this file holds a {kind}, not a model", path=path)
    try:
        return (_unpack_blend if "members" in document else _unpack)(document, tensors)
    except (KeyError, TypeError, ValueError, RuntimeError, SaenError) as error:
        raise FileError(
            f"damaged: its contents do not fit together ({error})", path=path
        ) from error


def _unpack(document: dict[str, Any], tensors: dict[str, Array]) -> Any:
    cls = {each.__name__: each for each in CLASSES}[document["estimator"]]
    settings = document["decomposition"]
    decomposition = None if settings is None else decomposition_from_json(settings)
    parameters = document["parameters"]
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    estimator = cls(decomposition if decomposition is not None else "ego", **parameters)
    estimator.decomposition_ = decomposition
    estimator.schema_ = container.unpack_hierarchy(document["schema"], _under("schema.", tensors))
    if issubclass(cls, PartCountsEstimator):
        estimator.linear_ = _unpack_linear(document, _under("linear.", tensors))
        if "flat" in document:
            estimator.flat_ = document["flat"]
    else:
        estimator.network_ = _unpack_network(document, _under("network.", tensors))
        estimator.history_ = History(**document["history"])
        estimator.inner_history_ = History(**document.get("inner_history", {}))
        estimator.target_names_ = document.get("targets", [])
    for key in ("mean_", "scale_"):
        if key in document:
            setattr(estimator, key, np.array(document[key], dtype=np.float64))
    if "classes" in document:
        classes = document["classes"]
        estimator.classes_ = np.array(classes["values"], dtype=classes["dtype"])
    _unpack_calibration(estimator, document, tensors)
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
