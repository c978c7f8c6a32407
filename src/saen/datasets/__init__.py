"""Datasets: TUDataset's text format, the catalog of the paper's datasets, generated collections."""

from saen.datasets.catalog import CatalogEntry, PaperStatistics, catalog, find_entry
from saen.datasets.loading import CacheWarning, cache_folder, load_dataset, locate
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
    "locate",
    "read_tu",
]
