"""Datasets: TUDataset's text format, the catalog of the paper's datasets, generated collections."""

from saen.datasets.catalog import CatalogEntry, PaperStatistics, catalog, find_entry
from saen.datasets.loading import CacheWarning, cache_folder, load_dataset, load_structures, locate
from saen.datasets.nested import read_nested, write_nested
from saen.datasets.stdlib import stdlib_functions
from saen.datasets.threads import generate_threads
from saen.datasets.tu import read_tu

__all__ = [
    "CacheWarning",
    "CatalogEntry",
    "PaperStatistics",
    "cache_folder",
    "catalog",
    "find_entry",
    "generate_threads",
    "load_dataset",
    "load_structures",
    "locate",
    "read_nested",
    "read_tu",
    "stdlib_functions",
    "write_nested",
]
