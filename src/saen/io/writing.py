"""Choose the writer for a path, and write atomically."""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saen._util.atomic import (
    atomic_folder,
    atomic_write,
    check_output,
    expand_user,
    holds_input,
    scratch_folder,
)
from saen._util.lazy import LazyModule
from saen._util.strings import plural
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.formats import jsonl
from saen.io.formats.edge_tables import beside, tables_of
from saen.io.formats.graphml import write_graphml
from saen.io.formats.tu import ENDINGS, NAMES_ENDING, write_tu
from saen.io.libraries.plain_graphs import check_both_directions
from saen.io.loading import TARGET_FILES
from saen.io.parsing import tables
from saen.io.result_tables import write_table
from saen.io.store import container

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")

FORMATS = ("jsonl", "saen", "csv", "tsv", "parquet", "tu", "graphml")

_NOT_IN_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphs(
    graphs: Graphs, path: str | os.PathLike[str], *, format: str | None = None, force: bool = False
) -> list[Path]:
    """Write graphs in the format of the suffix; returns the files that were written.

    - `.jsonl`, `.ndjson`: JSON lines;
    - `.saen`: the binary format;
    - `.csv`, `.tsv`, `.parquet`: a table of edges, with tables of nodes and targets beside it;
    - `.zip`: TUDataset's text format, zipped;
    - no suffix: a folder in the `format` "tu" or "graphml".

    Existing files are overwritten only with `force`. If writing fails, the old files stay.

    >>> folder = getfixture("tmp_path")
    >>> two = Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]], targets=["short", "long"])
    >>> [file.name for file in write_graphs(two, folder / "edges.csv")]
    ['edges.csv', 'nodes.csv', 'targets.csv']
    >>> from saen.io.loading import read_graphs
    >>> read_graphs(folder / "edges.csv") == two
    True

    Raises `InputError` if the format cannot store the graphs, and `FileError` if a file cannot be
    written.
    """
    format, files = output_files(path, format=format, force=force)
    file = files[0]
    if format == "saen":
        container.save(graphs, file)
        return files
    _check(graphs, format)
    try:
        if format == "jsonl":
            with atomic_write(file) as temporary:
                jsonl.write_jsonl(graphs, temporary)
        elif len(files) > 1:
            with ExitStack() as stack:  # all are written before the first is replaced
                for part, frame in zip(files, tables_of(graphs).values(), strict=True):
                    write_table(frame, stack.enter_context(atomic_write(part)), part.suffix)
                # The edges come last: until then nobody reads old and new tables together.
                file.unlink(missing_ok=True)
        elif file.suffix == ".zip":
            _write_zip(graphs, file)
        else:
            _check_replaceable(file)
            with atomic_folder(file) as temporary:
                if format == "tu":
                    write_tu(graphs, temporary, file.name)
                else:
                    columns = {"graph": write_graphml(graphs, temporary), "id": graphs.ids}
                    if graphs.targets is not None:
                        columns["target"] = graphs.targets
                    frame = pd.DataFrame({**(graphs.extra or {}), **columns})
                    write_table(frame, temporary / TARGET_FILES[0], ".csv")
    except UnicodeEncodeError:
        raise InputError("a label contains an unpaired surrogate, which is not text") from None
    return files


def output_files(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    force: bool = False,
    inputs: Iterable[object] = (),
) -> tuple[str, list[Path]]:
    """The format and the files that `write_graphs` would write; raises if it may not.

    Existing files need `force`, and `inputs` are never overwritten.

    >>> format, files = output_files("toy.csv")
    >>> format, [file.name for file in files]
    ('csv', ['toy.csv', 'toy_nodes.csv', 'toy_targets.csv'])
    """
    path = expand_user(path)
    format = _format(path, format)
    others = ("nodes", "targets") if path.suffix in tables.SUFFIXES else ()
    files = [path, *(beside(path, kind) for kind in others)]
    for file in files:
        if not file.is_dir():
            check_output(file, force=force, inputs=inputs)
        elif any(holds_input(file, source) for source in inputs):
            raise FileError("is an input of this command: choose another output", path=file)
        elif not force and any(file.iterdir()):
            raise FileError("already exists (use --force to overwrite)", path=file)
    return format, files


def _format(path: Path, requested: str | None) -> str:
    """The format of the suffix, which must agree with the requested one."""
    by_suffix = {".saen": "saen", ".zip": "tu", **dict.fromkeys(jsonl.SUFFIXES, "jsonl")}
    by_suffix |= {suffix: suffix[1:] for suffix in tables.SUFFIXES}
    if requested is not None and requested not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, not {requested!r}")
    format = by_suffix.get(path.suffix)
    if format is None and requested in ("tu", "graphml"):
        return requested
    if format is None:
        suffixes = ", ".join(by_suffix)
        raise InputError(
            f"{path.name or path}: unknown format (known suffixes: {suffixes}); for a folder, use "
            "--format tu or --format graphml"
        )
    if requested not in (None, format):
        raise InputError(f"{path.name}: the suffix means {format}, not {requested}")
    return format


def _check(graphs: Graphs, format: str) -> None:
    """Raise if a format other than .saen cannot store the graphs."""
    if not len(graphs):
        raise InputError("there are no graphs to write")
    for key in ("node_attributes", "edge_attributes", "targets"):
        column = getattr(graphs, key)
        if column is not None and column.dtype.kind == "f" and not np.isfinite(column).all():
            raise InputError(
                f"{key.replace('_', ' ')} contain NaN or infinity, which only .saen stores"
            )
    targets = graphs.targets
    if targets is not None and targets.ndim > 1 and targets.dtype.kind == "U":
        missing = int((targets == "").sum())
        if missing:
            raise InputError(f"targets have {plural(missing, 'gap')}, which only .saen stores")
    if format == "tu":
        return
    if targets is not None and (targets.ndim > 1 or targets.dtype.kind == "b"):
        raise InputError("targets must be one class or number per graph; only .saen stores others")
    if not graphs.directed:
        check_both_directions(graphs, format)
    if format == "jsonl":
        return
    for key in ("node_labels", "edge_labels"):
        column = getattr(graphs, key)
        if column is not None and column.ndim > 1:
            raise InputError(
                f"{key.replace('_', ' ')} have {column.shape[1]} columns, but {format} stores one"
            )
    _check_text(graphs, format)
    if format != "graphml" and not graphs.n_edges:
        raise InputError("an edge table needs at least one edge")
    if format != "graphml" and (graphs.sizes == 0).any():
        empty = int(np.argmin(graphs.sizes))
        raise InputError(f"graph {empty} has no nodes, which an edge table cannot store")


def _check_text(graphs: Graphs, format: str) -> None:
    for key in ("node_labels", "edge_labels", "targets"):
        column = getattr(graphs, key)
        if column is None or column.dtype.kind != "U":
            continue
        distinct = np.unique(column).tolist()
        if "" in distinct:
            raise InputError(f"{key.replace('_', ' ')}: {format} cannot store empty text")
        if format == "graphml" and any(_NOT_IN_XML.search(text) for text in distinct):
            raise InputError(f"{key.replace('_', ' ')}: a character that XML cannot store")


# -- folders -----------------------------------------------------------------------------------


def _write_zip(graphs: Graphs, path: Path) -> None:
    with atomic_write(path) as temporary, scratch_folder(path) as scratch:
        write_tu(graphs, scratch, path.stem)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(scratch.iterdir()):
                # Without the time of day, so that equal graphs make equal files.
                member = zipfile.ZipInfo(f"{path.stem}/{file.name}")
                member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                member.file_size = file.stat().st_size
                with file.open("rb") as source, archive.open(member, "w") as sink:
                    shutil.copyfileobj(source, sink)


def _check_replaceable(path: Path) -> None:
    """Raise unless `path` is absent or a folder with nothing but graphs."""
    if not path.exists():
        return
    if not path.is_dir():
        raise FileError("is a file, expected a folder", path=path)
    ours = (".graphml", *TARGET_FILES, NAMES_ENDING, *ENDINGS)
    for file in sorted(path.iterdir()):
        if not file.is_file() or not file.name.endswith(ours):
            raise FileError(f"contains {file.name}, which would be lost", path=path)
