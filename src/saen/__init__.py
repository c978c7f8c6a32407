"""Shift Aggregate Extract Networks: learn from graphs and other things made of parts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from saen.compression import (
    Compressed,
    ceiling,
    compress,
    compress_graphs,
    compress_stream,
    compute_cd,
    equivalent,
    extend,
    merge,
)
from saen.datasets import catalog, generate_threads, load_dataset, read_tu
from saen.decompositions import Decomposition, Ego
from saen.errors import (
    DatasetNotFoundError,
    FileError,
    InputError,
    MissingExtraError,
    SaenError,
)
from saen.graphs import Graphs
from saen.hierarchy import Attributes, Hierarchy, Relation
from saen.interop import from_networkx, from_pyg, from_scipy, to_networkx
from saen.storage import load, save
from saen.vocabulary import Vocabulary

if TYPE_CHECKING:
    from saen.estimators import SAENClassifier, SAENRegressor, SAENTransformer
    from saen.model import SAEN, Architecture
    from saen.training import Settings, train

__version__ = "0.1.0"

# What needs torch is imported when it is first used: `import saen` stays quick.
_LAZY = {
    "SAENClassifier": "saen.estimators",
    "SAENRegressor": "saen.estimators",
    "SAENTransformer": "saen.estimators",
    "SAEN": "saen.model",
    "Architecture": "saen.model",
    "Settings": "saen.training",
    "train": "saen.training",
}

__all__ = [
    "SAEN",
    "Architecture",
    "Attributes",
    "Compressed",
    "DatasetNotFoundError",
    "Decomposition",
    "Ego",
    "FileError",
    "Graphs",
    "Hierarchy",
    "InputError",
    "MissingExtraError",
    "Relation",
    "SAENClassifier",
    "SAENRegressor",
    "SAENTransformer",
    "SaenError",
    "Settings",
    "Vocabulary",
    "catalog",
    "ceiling",
    "compress",
    "compress_graphs",
    "compress_stream",
    "compute_cd",
    "equivalent",
    "extend",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "generate_threads",
    "load",
    "load_dataset",
    "merge",
    "read_tu",
    "save",
    "to_networkx",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'saen' has no attribute {name!r}")
