"""Merging by ranges of keys gives what merging everything at once gives."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saen.data.content_hash
from saen import Hierarchy, compress, generate_threads, merge
from saen.cluster.executors import SerialExecutor
from saen.cluster.partitions import Partitions, merge_by_ranges, read_partitions
from saen.cluster.work import Work
from saen.decompositions import Ego
from saen.errors import FileError, InputError
from saen.io.store.container import save
from tests.properties.strategies import collections


def merged(parts: list[Hierarchy], n_ranges: int, folder: Path) -> Partitions:
    files = []
    for number, part in enumerate(parts):
        files.append(folder / f"shard-{number}.saen")
        save(compress(part).top_only(), files[-1])
    return merge_by_ranges(files, Work(folder), n_ranges, SerialExecutor())


@pytest.mark.parametrize("bits", [64, 4])
@settings(max_examples=6)
@given(collections(), st.integers(1, 4))
def test_ranges_joined_are_compressing_everything(
    bits: int, parts: list[Hierarchy], n_ranges: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr("saen._util.atomic._flush", lambda path: None)  # a test needs no disk
        patch.setattr(saen.data.content_hash, "MASKS", (np.uint64(2**bits - 1),) * 2)
        direct = compress(Hierarchy.concatenate(parts)).top_only()
        result = merged(parts, n_ranges, Path(folder))
        assert result.join() == direct
        assert result.levels() == direct.levels()
        save(result.join(), Path(folder) / "joined.saen")
        save(direct, Path(folder) / "direct.saen")
        joined, expected = (Path(folder) / f"{name}.saen" for name in ("joined", "direct"))
        assert joined.read_bytes() == expected.read_bytes()


def test_ranges_are_of_about_equal_size_and_are_found_again(tmp_path: Path) -> None:
    ego = Ego(radii=(0, 1, 2))
    parts = [ego.decompose(generate_threads(40, seed=seed)) for seed in range(3)]
    result = merged(parts, 4, tmp_path)
    sizes = result.unique[1]
    assert len(sizes) == 4
    assert max(sizes) < 1.5 * min(sizes)
    assert read_partitions(tmp_path) == result
    assert sorted(result.files) == sorted(
        file for file in tmp_path.glob("*.saen") if not file.name.startswith("shard-")
    )


def test_ranges_that_are_there_are_not_merged_again(tmp_path: Path) -> None:
    parts = [Ego().decompose(generate_threads(10, seed=seed)) for seed in range(2)]
    first = merged(parts, 2, tmp_path)
    before = {file: file.stat().st_mtime_ns for file in first.files}
    missing = first.files[3]
    content = missing.read_bytes()
    missing.unlink()
    assert merged(parts, 2, tmp_path).join() == merge([compress(part) for part in parts]).top_only()
    assert missing.read_bytes() == content
    after = {file: file.stat().st_mtime_ns for file in first.files}
    assert {file for file in before if before[file] != after[file]} == {missing}


def test_ranges_need_shards_of_one_kind(tmp_path: Path) -> None:
    threads = generate_threads(5, seed=1)
    parts = [Ego(radii=radii).decompose(threads) for radii in ((0, 1), (0, 2))]
    with pytest.raises(InputError, match=r"shard-1.saen: levels or roles differ"):
        merged(parts, 2, tmp_path)
    with pytest.raises(InputError, match="partitions must be an integer ≥ 1, not 0"):
        merged(parts[:1], 0, tmp_path)
    with pytest.raises(FileError, match="no such file"):
        read_partitions(tmp_path)
