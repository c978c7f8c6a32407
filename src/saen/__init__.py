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
from saen.datasets import (
    catalog,
    generate_threads,
    load_dataset,
    read_nested,
    read_tu,
    stdlib_functions,
    write_nested,
)
from saen.decompositions import (
    Decomposition,
    Edges,
    Ego,
    Neighbourhoods,
    Nested,
    Paths,
    Text,
    Vertices,
    make_decomposition,
)
from saen.documents import Documents
from saen.errors import (
    DatasetNotFoundError,
    FileError,
    InputError,
    MissingExtraError,
    SaenError,
)
from saen.graphs import Graphs
from saen.hierarchy import Attributes, Hierarchy, Relation
from saen.interop import (
    ToHierarchy,
    from_networkx,
    from_pyg,
    from_rdkit,
    from_scipy,
    from_smiles,
    from_spacy,
    hierarchy_from_pyg,
    read_conllu,
    to_networkx,
    to_pyg,
    to_rdkit,
    to_scipy,
)
from saen.storage import load, save
from saen.structures import Structures
from saen.vocabulary import Vocabulary

if TYPE_CHECKING:
    from saen.estimators import SAENClassifier, SAENRegressor, SAENTransformer
    from saen.explanation import explain, explain_collection
    from saen.features import SAFeatures
    from saen.model import SAEN, Architecture
    from saen.training import Settings, train

__version__ = "0.1.0"

# What needs torch or scikit-learn is imported when it is first used: `import saen` stays quick.
_LAZY = {
    "SAENClassifier": "saen.estimators",
    "SAENRegressor": "saen.estimators",
    "SAENTransformer": "saen.estimators",
    "explain": "saen.explanation",
    "explain_collection": "saen.explanation",
    "SAFeatures": "saen.features",
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
    "Documents",
    "Edges",
    "Ego",
    "FileError",
    "Graphs",
    "Hierarchy",
    "InputError",
    "MissingExtraError",
    "Neighbourhoods",
    "Nested",
    "Paths",
    "Relation",
    "SAENClassifier",
    "SAENRegressor",
    "SAENTransformer",
    "SAFeatures",
    "SaenError",
    "Settings",
    "Structures",
    "Text",
    "ToHierarchy",
    "Vertices",
    "Vocabulary",
    "catalog",
    "ceiling",
    "compress",
    "compress_graphs",
    "compress_stream",
    "compute_cd",
    "equivalent",
    "explain",
    "explain_collection",
    "extend",
    "from_networkx",
    "from_pyg",
    "from_rdkit",
    "from_scipy",
    "from_smiles",
    "from_spacy",
    "generate_threads",
    "hierarchy_from_pyg",
    "load",
    "load_dataset",
    "make_decomposition",
    "merge",
    "read_conllu",
    "read_nested",
    "read_tu",
    "save",
    "stdlib_functions",
    "to_networkx",
    "to_pyg",
    "to_rdkit",
    "to_scipy",
    "train",
    "write_nested",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'saen' has no attribute {name!r}")
