"""Fitted estimators in one file: safetensors for the weights, JSON for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saen._util.atomic import expand_user
from saen._version import __version__
from saen.decompositions.registry import UnknownDecompositionError
from saen.errors import FileError, InputError
from saen.io.options import REMEMBERED, REMEMBERED_NAMES, USUAL_NAMES
from saen.io.store import container

if TYPE_CHECKING:
    from saen.learning.estimators import Estimator
    from saen.learning.overlap import TrainingGraphs

KIND = "model"


@dataclass(frozen=True)
class Origin:
    """What a model knows of the data that it was trained on, beside what it learned.

    - `reading`: how `saen train` read them; new data are read in the same way;
    - `about`: their name and size, and score and date of the training, as `saen train` keeps them;
    - `training`: ids and content keys of the training graphs, None unless they are remembered.
    """

    reading: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    training: TrainingGraphs | None = None


def load(path: str | Path, *, vectors: str | Path | None = None) -> Any:
    """Read what was saved: `Graphs`, `Hierarchy`, `Compressed` or an estimator, as the file says.

    Where the class is known, its own `load` checks it and is typed: `saen.Classifier.load(path)`.

    Parameters
    ----------
    path : str | Path
        The file.
    vectors : str | Path | None, default=None
        The file of word vectors of a model that was trained with one.

    Raises
    ------
    FileError
        For a file that is missing, damaged, foreign or of a newer format.
    """
    if container.read_header(path).kind != KIND:
        return container.load(path)
    return load_estimator(path, vectors=vectors)


def save_estimator(estimator: Estimator, path: str | Path) -> int:
    """Write a fitted estimator; the size of the file in bytes."""
    from saen.learning.parameters import settings_of  # needs scikit-learn, which data do not

    parameters = settings_of(estimator)
    if not isinstance(parameters["decomposition"], str):
        parameters["decomposition"] = None  # that of the model, which is fitted
    if isinstance(parameters.get("class_weight"), dict):
        # As pairs: the keys of a JSON object are strings, those of this dictionary classes.
        parameters["class_weight"] = list(parameters["class_weight"].items())
    model, tensors = estimator.fitted_.pack()
    origin = estimator.origin_
    document = {
        "saen": __version__,
        "estimator": type(estimator).__name__,
        "parameters": _plain(parameters),
        "model": model,
        "tried": estimator.tried_,
        "reading": dict(origin.reading),
        "about": dict(origin.about),
    }
    if origin.training is not None:
        document["training"], arrays = origin.training.pack()
        tensors = {**tensors, **arrays}
    return container.write(path, KIND, document, tensors)


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
            estimator = _unpack(document, tensors)
        except UnknownDecompositionError as error:
            raise FileError(str(error), path=path) from None
    if vectors is not None:
        _use_vectors(estimator, Path(vectors), path)
    return estimator


def _unpack(document: dict[str, Any], tensors: Mapping[str, Any]) -> Any:
    from sklearn.base import RegressorMixin

    from saen.learning import estimators
    from saen.learning.models.blend import unpack_fitted
    from saen.learning.overlap import TrainingGraphs
    from saen.learning.parameters import setting_names, validate

    cls: Any = vars(estimators).get(document["estimator"])
    if not isinstance(cls, type) or not issubclass(cls, estimators.Estimator):
        raise InputError(f"unknown estimator {document['estimator']!r}")
    parameters = document["parameters"]
    if not parameters.keys() <= {*setting_names(cls)}:
        raise InputError("it has settings that no model has")
    if isinstance(parameters.get("class_weight"), list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    fitted = unpack_fitted(document["model"], tensors)
    regression = fitted.targets.choose(for_classes=False, for_numbers=True)
    if parameters["decomposition"] is None:
        parameters["decomposition"] = fitted.decomposition
    estimator = cls(**parameters)
    validate(estimator)
    if fitted.kind != estimator.learner().kind or regression != issubclass(cls, RegressorMixin):
        raise InputError("the model is not one of this estimator")
    estimator.fitted_, estimator.tried_, estimator.evaluation_ = fitted, document["tried"], None
    reading = document["reading"]
    choices = {**REMEMBERED, "largest_fragment": ("yes",)}
    if any(
        option not in (*REMEMBERED_NAMES, *USUAL_NAMES) and choice not in choices[option]
        for option, choice in reading.items()
    ):
        raise InputError("the way in which the data were read is unknown")
    training = document.get("training")
    known = None if training is None else TrainingGraphs.unpack(training, tensors)
    estimator.origin_ = Origin(reading, document["about"], known)
    return estimator


def _use_vectors(estimator: Any, vectors: Path, path: str | Path) -> None:
    """Let the members of a model read their word vectors from a file."""
    models = {id(each): each for each in [estimator.fitted_, *(
        member.model for member in estimator.fitted_.members)]}  # fmt: skip
    for model in models.values():
        file = getattr(model.decomposition, "file", None)
        if file is None or model.decomposition is None:
            raise FileError("this model was not trained with word vectors", path=path)
        known: Any = model.decomposition
        model.decomposition = replace(known, vectors=file.check(expand_user(vectors)))
    if not isinstance(estimator.decomposition, str):
        estimator.decomposition = estimator.fitted_.decomposition  # to fit again


def _plain(value: Any) -> Any:
    """The value as JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
