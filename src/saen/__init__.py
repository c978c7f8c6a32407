"""Shift Aggregate Extract Networks: learn from graphs and other things made of parts."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from saen._version import __version__ as __version__

if _TYPE_CHECKING:
    from saen import decompositions as decompositions
    from saen import network as network
    from saen.data.chunks import compress_graphs as compress_graphs
    from saen.data.compression import Compressed as Compressed
    from saen.data.compression import ceiling as ceiling
    from saen.data.compression import compress as compress
    from saen.data.compression import compute_cd as compute_cd
    from saen.data.compression import merge as merge
    from saen.data.documents import Documents as Documents
    from saen.data.graphs import Graphs as Graphs
    from saen.data.hierarchy import Attributes as Attributes
    from saen.data.hierarchy import Hierarchy as Hierarchy
    from saen.data.hierarchy import Relation as Relation
    from saen.data.nested import NestedData as NestedData
    from saen.data.vocabulary import Vocabulary as Vocabulary
    from saen.decompositions import Decomposition as Decomposition
    from saen.decompositions import make_decomposition as make_decomposition
    from saen.errors import FileError as FileError
    from saen.errors import InputError as InputError
    from saen.errors import SaenError as SaenError
    from saen.explanations.dataset import explain_dataset as explain_dataset
    from saen.explanations.explanation import explain as explain
    from saen.explanations.exploration import explore as explore
    from saen.io.formats.any_json import from_json as from_json
    from saen.io.libraries.networkx import from_networkx as from_networkx
    from saen.io.libraries.pyg import from_pyg as from_pyg
    from saen.io.libraries.rdkit import from_rdkit as from_rdkit
    from saen.io.libraries.rdkit import from_smiles as from_smiles
    from saen.io.loading import load_dataset as load_dataset
    from saen.io.sources.catalog import catalog as catalog
    from saen.io.sources.threads import generate_threads as generate_threads
    from saen.io.store.container import save as save
    from saen.learning.comparison import compare as compare
    from saen.learning.estimators import Classifier as Classifier
    from saen.learning.estimators import PartCounts as PartCounts
    from saen.learning.estimators import PartCountsClassifier as PartCountsClassifier
    from saen.learning.estimators import PartCountsRegressor as PartCountsRegressor
    from saen.learning.estimators import Regressor as Regressor
    from saen.learning.estimators import SAENClassifier as SAENClassifier
    from saen.learning.estimators import SAENRegressor as SAENRegressor
    from saen.learning.estimators import SAENTransformer as SAENTransformer
    from saen.learning.evaluation import cross_validate as cross_validate
    from saen.learning.files import load as load
    from saen.learning.overlap import overlap as overlap

# Modules are imported when a name of theirs is first used, so `import saen` takes no time.
_MODULES = {
    "data.chunks": "compress_graphs",
    "data.compression": "Compressed ceiling compress compute_cd merge",
    "data.documents": "Documents",
    "data.graphs": "Graphs",
    "data.hierarchy": "Attributes Hierarchy Relation",
    "data.nested": "NestedData",
    "data.vocabulary": "Vocabulary",
    "decompositions": "Decomposition make_decomposition",
    "errors": "FileError InputError SaenError",
    "explanations.dataset": "explain_dataset",
    "explanations.exploration": "explore",
    "explanations.explanation": "explain",
    "io.formats.any_json": "from_json",
    "io.sources.catalog": "catalog",
    "io.store.container": "save",
    "io.loading": "load_dataset",
    "io.libraries.networkx": "from_networkx",
    "io.libraries.pyg": "from_pyg",
    "io.libraries.rdkit": "from_rdkit from_smiles",
    "io.sources.threads": "generate_threads",
    "learning.overlap": "overlap",
    "learning.comparison": "compare",
    "learning.estimators": (
        "Classifier Regressor SAENClassifier SAENRegressor SAENTransformer "
        "PartCounts PartCountsClassifier PartCountsRegressor"
    ),
    "learning.evaluation": "cross_validate",
    "learning.files": "load",
}
_HOME = {name: f"saen.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOME)

_SUBPACKAGES = ("decompositions", "network")


def __getattr__(name: str) -> _Any:
    if name in _SUBPACKAGES:
        return _import_module(f"saen.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'saen' has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*_HOME, *_SUBPACKAGES, "__version__"])
