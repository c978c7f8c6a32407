"""Groups of examples that are never on both sides of a split: from columns, files or scaffolds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saen._util.arrays import Array
from saen._util.lazy import LazyModule
from saen._util.strings import did_you_mean, plural
from saen.data.duplicates import identical_examples
from saen.data.overlap import Overlap
from saen.errors import FileError, InputError
from saen.io.formats.molecules import SMILES
from saen.io.libraries.rdkit import canonical_smiles, murcko_scaffolds
from saen.io.options import ReadOptions
from saen.io.parsing.tables import SUFFIXES, column_name, read_table
from saen.learning.overlap import overlap

if TYPE_CHECKING:
    from saen.learning import splits
else:
    splits = LazyModule("saen.learning.splits")

SCAFFOLD, NO_SCAFFOLD, MOLECULE = "scaffold", "(no rings)", "molecule"
OVERLAP, DUPLICATES = "overlap", "duplicates"
MAX_OVERLAP = 10
"""Groups of overlapping graphs are split until none has more than the n-th part of all, so that
folds stay about equal."""


def load_groups(
    groups: str,
    source: str,
    data: Any,
    reading: ReadOptions,
    skipped: Sequence[int | None] = (),
) -> Array:
    """The group of each example of the data, which were read from `source`.

    `groups` is a column of the table or key of the JSON lines, a file with one line per record;
    `scaffold`: that of the molecules of a table or an SDF; `molecule`: those that are the same but
    for stereochemistry; `overlap`: graphs that share more rare
    parts than chance explains (see `saen.overlap`; groups of more than a tenth of all are split at
    their weakest links); or `duplicates`: examples that are identical. `skipped` are the records
    of the source that are not among the data, see `skipped_records`.

    >>> import saen
    >>> file = getfixture("tmp_path") / "acids.csv"
    >>> _ = file.write_text("smiles,target,lab\\nCC(=O)O,acid,A\\nCCO,alcohol,B\\n")
    >>> acids = saen.load_dataset(file)
    >>> [load_groups(g, str(file), acids, ReadOptions()).tolist() for g in ("lab", "scaffold")]
    [['A', 'B'], ['(no rings)', '(no rings)']]
    """
    if groups == OVERLAP:
        return overlap_groups(overlap(data))
    if groups == DUPLICATES:
        same: Array = identical_examples(data).astype(str)
        return same
    if groups in (SCAFFOLD, MOLECULE):
        smiles = smiles_of(source, data, reading, skipped)
        if smiles is None:
            raise InputError(
                f"{groups}s need a table with a column {SMILES!r} or an SDF, not {source}"
            )
        if groups == MOLECULE:
            return canonical_smiles(smiles.tolist(), stereo=False)
        scaffolds = murcko_scaffolds(smiles.tolist())
        return np.where(scaffolds == "", NO_SCAFFOLD, scaffolds)
    column = _extra_column(groups, data)
    if column is None:
        column = _table_column(groups, source, len(data), skipped)
    if column is None:
        column = _lines(groups, data, skipped)
    empty = np.flatnonzero(np.isin(np.char.strip(column), ("", "nan")))
    if len(empty):
        have = "has" if len(empty) == 1 else "have"
        raise InputError(
            f"{len(empty):,} of {plural(len(data), 'example')} {have} no group in {groups!r} "
            f"(first: {data.ids[empty[0]]})"
        )
    return column


def smiles_of(
    source: str, data: Any, reading: ReadOptions, skipped: Sequence[int | None] = ()
) -> Array | None:
    """The SMILES of molecules, None for other data."""
    column = reading.smiles or SMILES
    known = _extra_column(column, data)
    return _table_column(column, source, len(data), skipped) if known is None else known


def overlap_groups(found: Overlap) -> Array:
    """Groups of overlapping graphs of at most the n-th part of all."""
    groups: Array = found.split(max(len(found) // MAX_OVERLAP, 1)).astype(str)
    return groups


def _extra_column(name: str, data: Any) -> Array | None:
    """The values of a key, or of a column whose name may be in upper or lower case, as text."""
    columns = getattr(data, "extra", None) or {}
    spelling = {column_name(each): each for each in columns}
    key = name if name in columns else spelling.get(column_name(name))
    return None if key is None else columns[key].astype(str)


def _table_column(
    name: str, source: str, n: int, skipped: Sequence[int | None]
) -> NDArray[np.str_] | None:
    """Any column of a table with one row for each of the `n` examples, as text."""
    path = Path(source)
    if path.suffix not in SUFFIXES or not path.is_file():
        return None
    table = read_table(path)
    rows = np.flatnonzero(~np.isin(table.records()[0], [r for r in skipped if r is not None]))
    if column_name(name) not in table.columns or len(rows) != n:
        return None
    return table.texts(column_name(name)).iloc[rows].to_numpy().astype(str)


def _lines(groups: str, data: Any, skipped: Sequence[int | None]) -> NDArray[np.str_]:
    """The lines of a file, one for each record of the input, for those that were not skipped."""
    try:
        lines = np.array(Path(groups).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        hint = did_you_mean(groups, getattr(data, "extra", None) or ())
        raise InputError(
            f"groups must be a column or key of the data, a file with one line per example, "
            f"{SCAFFOLD}, {MOLECULE}, {OVERLAP} or {DUPLICATES}, not {groups!r}{hint}"
        ) from None
    records = splits.remaining_records(len(data), skipped)
    n = len(data) + len(set(skipped))
    if len(lines) != n or records is None:
        raise FileError(f"{len(lines)} groups for {n} examples", path=groups)
    return lines[records]
