"""`convert`: data of any format that can be read, in another one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from saen._util.atomic import holds_input
from saen.data.documents import Documents
from saen.data.graphs import Graphs
from saen.data.nested import NestedData
from saen.errors import FileError, InputError
from saen.io.formats.any_json import read_any_json
from saen.io.formats.tudataset import TUDATASET
from saen.io.loading import data_kind, load_data, stream_data
from saen.io.options import ReadOptions
from saen.io.sources.local import catalog_entry, input_files
from saen.io.store.shards import Shards, write_shards
from saen.io.writing import output_files, write_data


@dataclass(frozen=True)
class Converted:
    """What `convert` wrote: the data, the files, and the columns that had no place in them."""

    data: Graphs | Documents | NestedData | Shards
    files: tuple[Path, ...]
    lost: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.data.n_graphs if isinstance(self.data, Shards) else len(self.data)


def convert(
    source: str,
    out: Path,
    reading: ReadOptions | None = None,
    *,
    shards: int | None = None,
    format: Literal["tu", "graphml"] | None = None,
    kind: Literal["nested"] | None = None,
    depth: int | None = None,
    force: bool = False,
) -> Converted:
    """Read data and write them in the format of the suffix of `out`, or in `shards` parts.

    The formats are those of `write_data`. With `kind="nested"`, any JSON is read as nested data of
    this `depth`.

    Raises `InputError` for data that the format cannot store, and `FileError` for files that cannot
    be read or written.

    >>> folder = getfixture("tmp_path")
    >>> convert("threads", folder / "threads.jsonl").files[0].name
    'threads.jsonl'
    """
    reading = reading or ReadOptions()
    inputs = input_files(source, reading.nodes_file, reading.targets_file)
    if shards is not None:
        if any(holds_input(out, each) for each in inputs):
            raise FileError("is an input of this command: choose another output", path=out)
        if format is not None:
            raise InputError("shards are .saen files: omit option 'format'")
        nested = [read_any_json(Path(source), reading, depth)] if kind == "nested" else None
        parts = nested or stream_data(source, data_kind(source), reading)
        entry = catalog_entry(source)
        written = write_shards(
            parts, out, shards, catalog="" if entry is None else entry.name, force=force
        )
        return Converted(written, tuple(written.files))
    any_json = kind == "nested"
    holds = "nested" if any_json else data_kind(source)
    chosen, files = output_files(out, holds, format=format, force=force, inputs=inputs)
    data = (
        read_any_json(Path(source), reading, depth)
        if any_json
        else load_data(source, holds, reading)
    )
    write_data(data, out, format=format, force=force)
    lost = tuple(data.extra or ()) if chosen is TUDATASET else ()
    return Converted(data, tuple(files), lost)
