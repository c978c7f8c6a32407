"""Write data in the format of a path; which formats there are says `saen.io.formats.registry`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from saen._util.atomic import check_output, expand_user, holds_input
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.errors import FileError, InputError
from saen.io.formats.format import Format
from saen.io.formats.registry import FORMATS
from saen.io.formats.saen import SAEN


def write_data(
    data: Graphs | Documents | NestedData,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    force: bool = False,
) -> list[Path]:
    """Write data in the format of the suffix; returns the files that were written.

    Graphs are written as

    - `.jsonl`, `.ndjson`: JSON lines;
    - `.saen`: the binary format;
    - `.csv`, `.tsv`, `.parquet`: a table of edges, with tables of nodes and targets beside it;
    - `.zip`: TUDataset's text format, zipped;
    - no suffix: a folder in the `format` "tu" or "graphml",

    nested data as JSON lines or `.saen`, documents as `.saen`. Existing files are overwritten only
    with `force`. If writing fails, the old files stay.

    Parameters
    ----------
    data : Graphs | Documents | NestedData
        The data to write.
    path : str | os.PathLike[str]
        The file or folder to write; its suffix decides the format.
    format : str | None, default=None
        What to write into a folder: `"tu"` or `"graphml"`.
    force : bool, default=False
        Whether to overwrite existing files.

    Raises
    ------
    InputError
        If the format cannot store the data.
    FileError
        If a file cannot be written.

    Examples
    --------
    >>> folder = getfixture("tmp_path")
    >>> two = Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]], targets=["short", "long"])
    >>> [file.name for file in write_data(two, folder / "edges.csv")]
    ['edges.csv', 'nodes.csv', 'targets.csv']
    >>> from saen.io.loading import load_dataset
    >>> load_dataset(folder / "edges.csv") == two
    True
    """
    kind = "graphs" if isinstance(data, Graphs) else "nested"
    kind = "documents" if isinstance(data, Documents) else kind
    chosen, files = output_files(path, kind, format=format, force=force)
    write: Any = chosen.write
    try:
        write(data, files[0])
    except UnicodeEncodeError:
        raise InputError("a label contains an unpaired surrogate, which is not text") from None
    return files


def output_files(
    path: str | os.PathLike[str],
    kind: str = "graphs",
    *,
    format: str | None = None,
    force: bool = False,
    inputs: Iterable[object] = (),
) -> tuple[Format, list[Path]]:
    """The format and the files in which `write_data` would write; raises if it may not.

    Existing files need `force`, and `inputs` are never overwritten.

    >>> format, files = output_files("toy.csv")
    >>> format.title, [file.name for file in files]
    ('edge tables', ['toy.csv', 'toy_nodes.csv', 'toy_targets.csv'])
    """
    path = expand_user(path)
    chosen = _format(path, kind, format)
    files = chosen.files(path)
    for file in files:
        if not file.is_dir():
            check_output(file, force=force, inputs=inputs)
        elif any(holds_input(file, source) for source in inputs):
            raise FileError("is an input of this command: choose another output", path=file)
        elif not force and any(file.iterdir()):
            raise FileError("already exists (use force=True to overwrite)", path=file)
    return chosen, files


def _format(path: Path, kind: str, requested: str | None) -> Format:
    """The format of the suffix, which must agree with the requested one."""
    formats = [each for each in FORMATS if each.write and each.kind in (kind, SAEN.kind)]
    names = {name: each for each in formats for name in (each.name, *_bare(each.written))}
    if requested is not None and requested not in names:
        raise InputError(f"format must be one of {', '.join(names)}, not {requested!r}")
    found = next((each for each in formats if path.suffix in each.written), None)
    if found is None and not path.suffix and requested and names[requested].folders:
        return names[requested]
    if found is None:
        suffixes = ", ".join(suffix for each in formats for suffix in each.written)
        folders = " or ".join(f'format="{each.name}"' for each in formats if each.folders)
        raise InputError(
            f"{'nested data' if kind == 'nested' else kind} are written as {suffixes}, or as "
            f"shards with shards=…, not as {path.name or path}"
            + (f"; for a folder, use {folders}" if folders else "")
        )
    if requested not in (None, found.name, *_bare((path.suffix,))):
        raise InputError(f"{path.name}: the suffix means {found.name}, not {requested}")
    return found


def _bare(suffixes: tuple[str, ...]) -> list[str]:
    return [suffix.removeprefix(".") for suffix in suffixes]
