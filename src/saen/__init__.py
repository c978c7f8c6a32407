"""Shift Aggregate Extract Networks: learn from graphs and other things made of parts."""

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
from saen.interop import from_networkx, from_scipy, to_networkx
from saen.storage import load, save
from saen.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
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
    "SaenError",
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
    "from_scipy",
    "generate_threads",
    "load",
    "load_dataset",
    "merge",
    "read_tu",
    "save",
    "to_networkx",
]
