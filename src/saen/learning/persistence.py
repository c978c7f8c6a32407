"""Fitted estimators in one file: safetensors for the weights, JSON for the rest."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saen._util.arrays import Array
from saen._util.atomic import expand_user
from saen._version import __version__
from saen.data.hierarchy import Hierarchy
from saen.decompositions.registry import (
    UnknownDecompositionError,
    decomposition_from_json,
    decomposition_to_json,
)
from saen.errors import FileError, InputError
from saen.io import container
from saen.io.packing import pack_hierarchy, under, unpack_hierarchy
from saen.io.reading import REMEMBERED
from saen.learning.blend import BlendClassifier, BlendEstimator, BlendRegressor, Member
from saen.learning.counts_model import CountsModel, Linear
from saen.learning.estimators import SAENClassifier, SAENRegressor, SAENTransformer
from saen.learning.forest import Forest
from saen.learning.network_estimator import NetworkEstimator
from saen.learning.part_counts import ENCODINGS, MAX_ROLE, SHARES, Encoder
from saen.learning.part_counts_models import (
    PartCountsClassifier,
    PartCountsEstimator,
    PartCountsRegressor,
)
from saen.network.architecture import Architecture
from saen.network.forward import TrainedNetworks
from saen.network.settings import History

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
    if estimator.reading_:
        document["reading"] = dict(estimator.reading_)
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
        if not 0 < estimator.temperature_ < np.inf:
            raise ValueError("temperature")
    elif isinstance(estimator, SAENRegressor | BlendRegressor):
        shape = np.shape(getattr(estimator, "mean_", 0.0))
        estimator.errors_ = np.array(tensors.get("calibration.errors", np.empty((0, *shape))))


def _unpack_blend(document: dict[str, Any], tensors: dict[str, Array]) -> BlendEstimator:
    cls = {each.__name__: each for each in BLENDS}[document["estimator"]]
    estimator: BlendEstimator = cls(**document["parameters"])
    estimator.validate()
    estimator.tried_ = document["tried"]
    estimator.members_ = [
        Member(
            each["name"],
            _unpack(each["model"], under(f"{number}.", tensors)),
            float(each["weight"]),
            each["score"],
        )
        for number, each in enumerate(document["members"])
    ]
    models = [member.estimator for member in estimator.members_]
    if isinstance(estimator, BlendClassifier):
        estimator.classes_ = models[0].classes_
        if not all(np.array_equal(model.classes_, estimator.classes_) for model in models):
            raise ValueError("members of other classes")
    if not np.isfinite(estimator.weights_).all() or estimator.weights_.min() < 0:
        raise ValueError("weights of members")
    _unpack_calibration(estimator, document, tensors)
    return estimator


def _pack(
    estimator: NetworkEstimator | PartCountsEstimator,
) -> tuple[dict[str, Any], dict[str, Array]]:
    check_is_fitted(estimator, "schema_")
    schema, schema_tensors = pack_hierarchy(estimator.schema_)
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
        "targets": estimator.target_names_,
    }
    tensors: dict[str, Array] = {f"schema.{key}": t for key, t in schema_tensors.items()}
    pack = _pack_counts if isinstance(estimator, PartCountsEstimator) else _pack_network
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
    weights = estimator.weights_
    document["architecture"] = {k: _plain(v) for k, v in vars(weights.architecture).items()}
    document["history"] = asdict(estimator.history_)
    document["inner_history"] = asdict(estimator.inner_history_)
    tensors |= {f"network.{key}": array for key, array in weights.state.items()}


def _pack_counts(
    estimator: PartCountsEstimator, document: dict[str, Any], tensors: dict[str, Array]
) -> None:
    model = estimator.model_
    encoder = model.encoder
    document["linear"] = {
        "encoding": encoder.encoding,
        "max_count": encoder.max_count,
        "norm": model.norm,
        "depth": model.depth,
        "C": model.C,
        "score": model.score,
    }
    if isinstance(estimator, PartCountsRegressor):
        document["flat"] = estimator.flat_
    tensors["linear.ids"] = encoder.ids.view(np.int64)
    tensors["linear.starts"] = encoder.starts
    tensors["linear.thresholds"] = encoder.thresholds
    if encoder.occupied is not None:
        tensors["linear.occupied"] = encoder.occupied
    function = model.function
    prefix = "forest." if isinstance(function, Forest) else "linear."
    tensors |= {f"{prefix}{each.name}": getattr(function, each.name) for each in fields(function)}
    for key in ("errors", "typical"):
        if getattr(model, key) is not None:
            tensors[f"linear.{key}"] = getattr(model, key)


def _unpack_counts(
    document: dict[str, Any], tensors: dict[str, Array], trees: dict[str, Array]
) -> CountsModel:
    known = document["linear"]
    encoder = Encoder(
        known["encoding"],
        known["max_count"],
        tensors["ids"].view(np.uint64),
        tensors["starts"],
        tensors["thresholds"],
        tensors.get("occupied"),
    )
    _check_encoder(encoder)
    function: Linear | Forest
    function = Forest(**trees) if trees else Linear(tensors["coef"], tensors["intercept"])
    function.check(encoder.n_columns + (known["norm"] == SHARES))
    typical = tensors.get("typical", function.intercept)
    if (
        typical.shape != function.intercept.shape
        or typical.dtype != np.float64
        or not np.isfinite(typical).all()
        or known["norm"] not in ((None, SHARES) if trees else (None, "l2"))
        or type(known["depth"]) not in (int, type(None))
        or not 0 <= (known["depth"] or 0) <= MAX_ROLE
        or not isinstance(known["C"], int | float | None)
        or (known["C"] is None) != bool(trees)
        or not isinstance(known["score"], int | float | None)
    ):
        raise InputError("the model does not match its columns")
    return CountsModel(
        encoder,
        known["norm"],
        function,
        known["depth"],
        known["C"],
        known["score"],
        tensors.get("errors"),
        tensors.get("typical"),
    )


def _check_encoder(encoder: Encoder) -> None:
    """Raise unless parts, columns and thresholds are such as `Encoder.fit` makes."""
    ids, starts, thresholds = encoder.ids, encoder.starts, encoder.thresholds
    integers = all(each.dtype.kind in "iu" and each.ndim == 1 for each in (starts, thresholds))
    if (
        encoder.encoding not in ENCODINGS
        or not (encoder.max_count is None or 1 <= encoder.max_count < 2**31)
        or not integers
        or ids.shape != (len(starts) - 1, 3)
        or starts[0] != 0
        or (starts[1:] <= starts[:-1]).any()
    ):
        raise InputError("the parts do not match their columns")
    if encoder.occupied is not None:
        if len(ids) or encoder.occupied.dtype != np.bool_ or encoder.occupied.ndim != 1:
            raise InputError("the hashed columns are wrong")
    elif encoder.encoding == "unary":
        first = np.zeros(len(thresholds), dtype=np.bool_)
        if len(thresholds) != starts[-1] or (thresholds < 1).any():
            raise InputError("the thresholds do not match their columns")
        first[starts[:-1]] = True
        if (first[1:] | (thresholds[1:] > thresholds[:-1])).sum() < len(thresholds) - 1:
            raise InputError("the thresholds of a part must increase")
    elif starts[-1] != len(ids):
        raise InputError("a part must have one column of counts")


def _unpack_network(
    document: dict[str, Any], tensors: dict[str, Array], like: Hierarchy
) -> TrainedNetworks:
    fields = document["architecture"]
    fields["roles"] = tuple(fields["roles"])
    fields["layers"] = tuple(tuple(sizes) for sizes in fields["layers"])
    architecture = Architecture(**fields)
    architecture.check_fits(like)
    return TrainedNetworks(architecture, {key: np.array(array) for key, array in tensors.items()})


def _check_outputs(estimator: Any, n_outputs: int) -> None:
    """Raise unless a model has as many outputs as its targets need."""
    if hasattr(estimator, "classes_"):
        classes = estimator.classes_
        if classes.ndim == 2 and len(estimator.target_names_) != len(classes):
            raise InputError("the names of the targets are wrong")
        needed = 1 if classes.shape == (2,) else len(classes)
    elif hasattr(estimator, "mean_"):
        mean, scale = estimator.mean_, estimator.scale_
        if mean.shape != scale.shape or mean.ndim > 1 or not np.isfinite([mean, scale]).all():
            raise InputError("the mean and scale of the targets are wrong")
        needed = mean.size
    else:
        needed = 1 if estimator.flat_ else n_outputs
    if needed != n_outputs:
        raise InputError(f"{n_outputs} outputs, but the targets need {needed}")


def _unpack_classes(document: dict[str, Any]) -> Array:
    """Strings, Booleans or numbers, in the type that the file says, if their own allows it.

    Shape (C,), or (t, 2) of several targets.
    """
    values, dtype = np.array(document["values"]), np.dtype(document["dtype"])
    kinds = {"U": "UO", "b": "bO", "i": "iuO", "u": "iuO", "f": "fO"}.get(values.dtype.kind, "")
    several = values.ndim == 2 and values.shape[1] == 2 and len(values) > 0
    if dtype.kind not in kinds or not (several or (values.ndim == 1 and len(values) > 1)):
        raise InputError(f"expected a list of classes of type {dtype}")
    # The width of strings is that of the longest, whatever the file says.
    classes: Array = values if dtype.kind == "U" else values.astype(dtype)
    for row in np.atleast_2d(classes):
        if not np.array_equal(row, np.unique(row)):
            raise InputError("classes must be distinct and in order")
    return classes


def load_estimator(path: str | Path, *, vectors: str | Path | None = None) -> Any:
    """Read what `save_estimator` wrote, onto the CPU.

    `vectors` is the file of word vectors of a model that was trained with one; see
    `DependencyPaths`.
    """
    kind, document, tensors = container.read(path)
    if kind != KIND:
        raise FileError(f"not a model, but a file of kind {kind!r}", path=path)
    with container.consistent(path, "damaged: its contents do not fit together"):
        try:
            estimator = (_unpack_blend if "members" in document else _unpack)(document, tensors)
            estimator.reading_ = _unpack_reading(document)
        except UnknownDecompositionError as error:
            raise FileError(str(error), path=path) from None
    if vectors is not None:
        _use_vectors(estimator, Path(vectors), path)
    return estimator


def _unpack_reading(document: dict[str, Any]) -> dict[str, str]:
    """How the data were read; models of older versions, and those fitted in Python, do not say."""
    reading: dict[str, str] = document.get("reading", {})
    if any(choice not in REMEMBERED[option] for option, choice in reading.items()):
        raise InputError("the way in which the data were read is unknown")
    return reading


def _use_vectors(estimator: Any, vectors: Path, path: str | Path) -> None:
    """Let a model, or the members of a blend, read their word vectors from a file."""
    if isinstance(estimator, BlendEstimator):
        models = [member.estimator for member in estimator.members_]
    else:
        models = [estimator]
    for model in models:
        file = getattr(model.decomposition_, "file", None)
        if file is None:
            raise FileError("this model was not trained with word vectors", path=path)
        model.decomposition_ = replace(
            model.decomposition_, vectors=file.check(expand_user(vectors))
        )
        model.decomposition = model.decomposition_


def _unpack(document: dict[str, Any], tensors: dict[str, Array]) -> Any:
    cls = {each.__name__: each for each in CLASSES}[document["estimator"]]
    settings = document["decomposition"]
    decomposition = None if settings is None else decomposition_from_json(settings)
    parameters = document["parameters"]
    if not parameters.keys() <= set(cls.setting_names()):
        raise InputError("it has settings that no model has")
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    estimator = cls(decomposition if decomposition is not None else "ego", **parameters)
    estimator.validate()
    estimator.decomposition_ = decomposition
    schema = unpack_hierarchy(document["schema"], under("schema.", tensors))
    if decomposition is not None and decomposition.vocabulary != schema.attributes.vocabulary:
        raise InputError("the vocabularies differ")
    estimator.schema_ = schema
    names = document.get("targets", [])
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InputError("the names of the targets are wrong")
    estimator.target_names_ = names
    if issubclass(cls, PartCountsEstimator):
        trees = under("forest.", tensors)
        estimator.model_ = _unpack_counts(document, under("linear.", tensors), trees)
        if "flat" in document:
            estimator.flat_ = bool(document["flat"])
        n_outputs = estimator.model_.function.n_outputs
    else:
        estimator.network_ = _unpack_network(document, under("network.", tensors), schema)
        n_outputs = estimator.weights_.architecture.layers[-1][-1]
        estimator.history_ = _unpack_history(document["history"])
        estimator.inner_history_ = _unpack_history(document.get("inner_history", {}))
    for key in ("mean_", "scale_"):
        if key in document:
            setattr(estimator, key, np.array(document[key], dtype=np.float64))
    if "classes" in document:
        estimator.classes_ = _unpack_classes(document["classes"])
    _check_outputs(estimator, n_outputs)
    _unpack_calibration(estimator, document, tensors)
    return estimator


def _unpack_history(document: dict[str, Any]) -> History:
    history = History(**document)
    if not all(isinstance(v, list) for k, v in vars(history).items() if k != "interrupted"):
        raise InputError("the history of the training is wrong")
    return history


def _plain(value: Any) -> Any:
    """The value as JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
