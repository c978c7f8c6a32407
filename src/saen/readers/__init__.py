"""Files that people have: readers and writers of graphs, one module per format."""

from saen.readers.folder import SUFFIXES as IN_FOLDERS
from saen.readers.problems import Report, SkippedWarning
from saen.readers.reading import JSON_LINES, SUFFIXES, read_graphs, reads
from saen.readers.writing import FORMATS, output_files, write_graphs

__all__ = [
    "FORMATS",
    "IN_FOLDERS",
    "JSON_LINES",
    "SUFFIXES",
    "Report",
    "SkippedWarning",
    "output_files",
    "read_graphs",
    "reads",
    "write_graphs",
]
