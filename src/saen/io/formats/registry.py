"""All formats of files, and which of them a path is in.

To add one, write a module with a `Format` and list it in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from saen.errors import InputError
from saen.io.formats.conllu import CONLLU
from saen.io.formats.edge_tables import EDGE_TABLES
from saen.io.formats.format import Format
from saen.io.formats.graph_files import EDGE_LISTS, GRAPHML
from saen.io.formats.jsonl import JSON_LINES
from saen.io.formats.molecules import MOLECULES, SDF, SMILES_FILES
from saen.io.formats.nested import NESTED
from saen.io.formats.saen import SAEN, SHARDS
from saen.io.formats.tudataset import TUDATASET
from saen.io.options import ReadOptions

FORMATS = (
    SAEN,
    TUDATASET,
    NESTED,
    JSON_LINES,
    MOLECULES,
    EDGE_TABLES,
    SMILES_FILES,
    SDF,
    GRAPHML,
    EDGE_LISTS,
    CONLLU,
    SHARDS,
)
"""Of two with the same suffix, the first is the one that has to `look` like it."""

SUFFIXES = tuple(dict.fromkeys(suffix for each in FORMATS for suffix in each.suffixes))


def find_format(
    path: Path, options: ReadOptions | None = None, kind: str | None = None
) -> Format | None:
    """The format of a path, preferably one of a kind of data; None if it is in none.

    >>> find_format(Path("toy.graphml")).title, find_format(Path("toy"))
    ('GraphML and GML files', None)
    """
    matching = [each for each in FORMATS if each.matches(path)]
    if kind is not None and len(matching) > 1:
        matching = [each for each in matching if each.kind == kind] or matching
    options = options or ReadOptions()
    for each in matching[:-1]:
        if each.looks(path, options):
            return each
    return matching[-1] if matching else None


def check_options(name: str, options: ReadOptions, known: Collection[str] = ()) -> None:
    """Raise `InputError` if an option is set that these data do not have.

    >>> check_options("x.gml", ReadOptions(smiles="molecule"), GRAPHML.options)
    Traceback (most recent call last):
    saen.errors.InputError: x.gml: option 'smiles' applies only to tables of molecules
    """
    for option in dict.fromkeys(option for each in FORMATS for option in each.options):
        if option not in known and getattr(options, option) != getattr(ReadOptions, option):
            titles = [each.title for each in FORMATS if option in each.options]
            listed = ", ".join(titles[:-1]) + " and " * (len(titles) > 1) + titles[-1]
            raise InputError(f"{name}: option {option!r} applies only to {listed}")
