"""Which writer for which path, and files that are whole or not there at all."""

from __future__ import annotations

import csv
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from saen._util.atomic import atomic_write, make_folder
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io import container, folder, tables
from saen.io.directions import check_both_directions
from saen.io.edge_tables import beside, tables_of
from saen.io.graphml import write_graphml
from saen.io.jsonl import write_jsonl
from saen.io.reading import JSON_LINES
from saen.io.tu import ENDINGS, NAMES_ENDING, write_tu

FORMATS = ("jsonl", "saen", "csv", "tsv", "parquet", "tu", "graphml")

_NOT_IN_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphs(
    graphs: Graphs, path: str | os.PathLike[str], *, format: str | None = None, force: bool = False
) -> list[Path]:
    """Write graphs in the format that the ending of the name says; the files that were written.

    - `.jsonl`, `.ndjson`: JSON lines;
    - `.saen`: the binary format;
    - `.csv`, `.tsv`, `.parquet`: a table of edges, with those of nodes and labels beside it;
    - `.zip`: TUDataset's text format, zipped;
    - no ending: a folder in the `format` "tu" or "graphml".

    What is there stays, unless `force`. A write that fails leaves what was there before.

    >>> folder = getfixture("tmp_path")
    >>> two = Graphs.from_edge_lists([[(0, 1)], [(0, 1), (1, 2)]], targets=["short", "long"])
    >>> [file.name for file in write_graphs(two, folder / "edges.csv")]
    ['edges.csv', 'nodes.csv', 'labels.csv']
    >>> from saen.io.reading import read_graphs
    >>> read_graphs(folder / "edges.csv") == two
    True

    Raises `InputError` for graphs that the format cannot hold, and `FileError` for places that
    cannot be written.
    """
    chosen, files = output_files(path, format=format, force=force)
    place = files[0]
    if chosen == "saen":
        container.save(graphs, place)
        return files
    _check(graphs, chosen)
    try:
        if chosen == "jsonl":
            with atomic_write(place) as temporary:
                write_jsonl(graphs, temporary)
        elif len(files) > 1:
            _write_tables(graphs, dict(zip(("edges", "nodes", "labels"), files, strict=True)))
        elif place.suffix == ".zip":
            _write_zip(graphs, place)
        else:
            with _atomic_folder(place) as temporary:
                if chosen == "tu":
                    write_tu(graphs, temporary, place.name)
                else:
                    _write_labels(graphs, temporary / folder.NAME, write_graphml(graphs, temporary))
    except UnicodeEncodeError:
        raise InputError("a label holds half of a surrogate pair, which is no text") from None
    return files


def output_files(
    path: str | os.PathLike[str], *, format: str | None = None, force: bool = False
) -> tuple[str, list[Path]]:
    """The format that `write_graphs` would write, and the files; an error where they may not be.

    >>> chosen, files = output_files("toy.csv")
    >>> chosen, [file.name for file in files]
    ('csv', ['toy.csv', 'toy_nodes.csv', 'toy_labels.csv'])
    """
    place = Path(path).expanduser()
    chosen = _format(place, format)
    others = ("nodes", "labels") if place.suffix in tables.SUFFIXES else ()
    files = [place, *(beside(place, kind) for kind in others)]
    for file in files:
        if not force and file.exists() and not _is_empty_folder(file):
            raise FileError("is there already, and stays without --force (force=True)", path=file)
    return chosen, files


def _format(path: Path, asked: str | None) -> str:
    """The format that ending and option agree on."""
    by_suffix = {".saen": "saen", ".zip": "tu", **dict.fromkeys(JSON_LINES, "jsonl")}
    by_suffix |= {suffix: suffix[1:] for suffix in tables.SUFFIXES}
    if asked is not None and asked not in FORMATS:
        raise InputError(f"the format is one of {', '.join(FORMATS)}, not {asked!r}")
    found = by_suffix.get(path.suffix)
    if found is None and asked in ("tu", "graphml"):
        return asked
    if found is None:
        endings = ", ".join(by_suffix)
        raise InputError(
            f"{path.name}: no format is known by this name (endings are {endings}); for a folder, "
            "say --format tu or --format graphml"
        )
    if asked not in (None, found):
        raise InputError(f"{path.name} is the name of a file of {found}, not of {asked}")
    return found


def _check(graphs: Graphs, chosen: str) -> None:
    """Refuse what a file of text cannot hold."""
    if not len(graphs):
        raise InputError("there are no graphs to write")
    for key in ("node_attributes", "edge_attributes", "targets"):
        column = getattr(graphs, key)
        if column is not None and column.dtype.kind == "f" and not np.isfinite(column).all():
            raise InputError(
                f"{key.replace('_', ' ')} are missing or infinite: only .saen keeps them"
            )
    if chosen == "tu":
        return
    targets = graphs.targets
    if targets is not None and (targets.ndim > 1 or targets.dtype.kind == "b"):
        raise InputError("one label or number per graph can be written; only .saen keeps others")
    if not graphs.directed:
        check_both_directions(graphs, f"a file of {chosen}")
    if chosen == "jsonl":
        return
    for key in ("node_labels", "edge_labels"):
        column = getattr(graphs, key)
        if column is not None and column.ndim > 1:
            raise InputError(
                f"{key.replace('_', ' ')} have {column.shape[1]} columns, and {chosen} keeps one"
            )
    _check_text(graphs, chosen)
    if chosen != "graphml" and not graphs.n_edges:
        raise InputError("no graph has an edge, and a table of edges needs one")
    if chosen != "graphml" and (graphs.sizes == 0).any():
        empty = int(np.argmin(graphs.sizes))
        raise InputError(f"graph {empty} has no nodes, which a table of edges cannot say")


def _check_text(graphs: Graphs, chosen: str) -> None:
    for key in ("node_labels", "edge_labels", "targets"):
        column = getattr(graphs, key)
        if column is None or column.dtype.kind != "U":
            continue
        distinct = np.unique(column).tolist()
        if "" in distinct:
            raise InputError(
                f"{key.replace('_', ' ')}: an empty text, which {chosen} does not keep"
            )
        if chosen == "graphml" and any(_NOT_IN_XML.search(text) for text in distinct):
            raise InputError(f"{key.replace('_', ' ')}: a character that XML does not keep")


# -- tables ------------------------------------------------------------------------------------


def _write_tables(graphs: Graphs, files: dict[str, Path]) -> None:
    frames = tables_of(graphs)
    with ExitStack() as stack:  # all are written before the first takes its place
        for kind, file in files.items():
            _write_table(frames[kind], stack.enter_context(atomic_write(file)), file.suffix)


def _write_table(frame: pd.DataFrame, file: Path, suffix: str) -> None:
    if suffix == ".parquet":
        tables.pyarrow()
        frame.to_parquet(file, engine="pyarrow", index=False)
        return
    separator = "\t" if suffix == ".tsv" else ","
    with file.open("w", encoding="utf-8", newline="") as out:
        out.write(separator.join(frame.columns) + "\n")
        frame.to_csv(
            out,
            sep=separator,
            header=False,
            index=False,
            lineterminator="\n",
            quoting=csv.QUOTE_NONNUMERIC,  # so that blanks at the ends of text are kept
        )


def _write_labels(graphs: Graphs, file: Path, names: list[str]) -> None:
    if graphs.targets is not None:
        _write_table(pd.DataFrame({"graph": names, "label": graphs.targets}), file, ".csv")


# -- folders -----------------------------------------------------------------------------------


def _write_zip(graphs: Graphs, path: Path) -> None:
    with atomic_write(path) as temporary, _scratch_folder(path) as scratch:
        write_tu(graphs, scratch, path.stem)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(scratch.iterdir()):
                archive.write(file, f"{path.stem}/{file.name}")


@contextmanager
def _scratch_folder(path: Path) -> Iterator[Path]:
    scratch = make_folder(path.with_name(f".{path.name}.{secrets.token_hex(8)}"))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _atomic_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path` to write to, which takes its place once the block is done."""
    _check_replaceable(path)
    try:
        with _scratch_folder(path) as scratch:
            new, old = make_folder(scratch / "new"), scratch / "old"
            yield new
            if path.exists():
                path.replace(old)
            try:
                new.replace(path)
            except BaseException:
                if old.exists():
                    old.replace(path)
                raise
    except OSError as error:
        raise FileError(f"cannot be written ({error.strerror or error})", path=path) from error


def _check_replaceable(path: Path) -> None:
    """Only a folder of graphs and nothing else may be replaced."""
    if not path.exists():
        return
    if not path.is_dir():
        raise FileError("is a file, expected a folder", path=path)
    ours = (".graphml", folder.NAME, NAMES_ENDING, *ENDINGS)
    for file in sorted(path.iterdir()):
        if not file.is_file() or not file.name.endswith(ours):
            raise FileError(f"holds {file.name}, which would be lost: choose another", path=path)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
