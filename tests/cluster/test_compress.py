"""Shards compressed in tasks: the same bytes, however they are cut and whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saen import Documents, Graphs, NestedData, generate_threads, load
from saen.cluster.compress import compress_into_partitions, compress_shards
from saen.cluster.executors import SerialExecutor, open_executor
from saen.cluster.partitions import read_partitions
from saen.decompositions import Ego, make_decomposition
from saen.errors import FileError, InputError
from saen.io.store.container import save
from saen.io.store.shards import split_graphs, write_shards
from saen.jobs.compress import compress_dataset, dataset_decomposition
from tests.cli.commandline import fails, invoke, run
from tests.cluster.faulty import Stopping
from tests.io.test_shards import documents, nested

GRAPHS = generate_threads(40, average_nodes=12, seed=1)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    write_shards(split_graphs(GRAPHS, 4), folder)
    return folder


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What compressing everything at once writes."""
    folder = tmp_path_factory.mktemp("direct")
    save(GRAPHS, folder / "graphs.saen")
    compress_dataset(str(folder / "graphs.saen"), Ego(), folder / "out.saen")
    return (folder / "out.saen").read_bytes()


@settings(max_examples=4)
@given(st.integers(1, 12))
def test_compress_gives_the_same_bytes_for_any_number_of_shards(
    tmp_path_factory: pytest.TempPathFactory, direct: bytes, n: int
) -> None:
    folder = tmp_path_factory.mktemp("any")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saen._util.atomic._flush", lambda path: None)
        write_shards(split_graphs(GRAPHS, n), folder / "shards")
        out = folder / "out.saen"
        report = compress_shards(folder / "shards", Ego(), SerialExecutor(), out)
        assert out.read_bytes() == direct
        assert sorted(file.name for file in folder.iterdir()) == ["out.saen", "shards"]
        parts = compress_into_partitions(
            folder / "shards", Ego(), SerialExecutor(), folder / "parts", 1 + n % 3
        )
        assert parts.compressed.join() == load(out)
        assert parts.to_json()["levels"] == report.to_json()["levels"]
        assert parts.ceiling == report.ceiling


@pytest.mark.parametrize("edges", ["roles", "objects"])
@pytest.mark.parametrize("name", ["ego", "neighbourhoods"])
def test_compress_unites_labels_and_kinds_of_edges_that_shards_do_not_share(
    tmp_path: Path, name: str, edges: str
) -> None:
    graphs = Graphs.from_edge_lists(
        [[(0, 1), (1, 2)], [(0, 1)], [(0, 1)]],
        node_labels=list("CNOCCXC"),
        edge_labels=["single", "double", "triple", "single"],
        targets=["a", "b", "a"],
    )
    decomposition = make_decomposition(f"{name}(edges={edges})")
    save(graphs, tmp_path / "graphs.saen")
    expected = compress_dataset(
        str(tmp_path / "graphs.saen"), decomposition, tmp_path / "direct.saen"
    )
    write_shards(split_graphs(graphs, 3), tmp_path / "shards")
    report = compress_shards(
        tmp_path / "shards", decomposition, SerialExecutor(), tmp_path / "out.saen"
    )
    assert (tmp_path / "out.saen").read_bytes() == (tmp_path / "direct.saen").read_bytes()
    assert report.decomposition == expected.decomposition
    assert report.ceiling == expected.ceiling


@pytest.mark.parametrize("make", [documents, nested])
def test_compress_takes_shards_of_other_data(
    tmp_path: Path, make: Callable[[], Documents | NestedData]
) -> None:
    data = make()
    shards = write_shards(split_graphs(data, 4), tmp_path / "shards")
    save(data, tmp_path / "whole.saen")
    decomposition = dataset_decomposition(str(tmp_path / "whole.saen"))
    expected = compress_dataset(
        str(tmp_path / "whole.saen"), decomposition, tmp_path / "direct.saen"
    )
    report = compress_shards(shards.folder, decomposition, SerialExecutor(), tmp_path / "out.saen")
    assert (tmp_path / "out.saen").read_bytes() == (tmp_path / "direct.saen").read_bytes()
    assert report.decomposition == expected.decomposition
    with pytest.raises(InputError, match=f"these shards hold {shards.kind}, but ego reads graphs"):
        compress_shards(shards.folder, Ego(), SerialExecutor())


@pytest.mark.parametrize("after", [1, 3])
def test_compress_in_two_parts_does_only_what_is_missing(
    tmp_path: Path, shards: Path, direct: bytes, after: int
) -> None:
    out = tmp_path / "out.saen"
    with pytest.raises(KeyboardInterrupt):
        compress_shards(shards, Ego(), Stopping(after), out)
    assert not out.exists()
    second = Stopping(99)
    compress_shards(shards, Ego(), second, out)
    assert len(second.ran) == 4 - after
    assert out.read_bytes() == direct
    assert not (tmp_path / "out.saen.parts").exists()


@pytest.mark.parametrize("after", [1, 6, 13])
def test_partitions_in_two_parts_do_only_what_is_missing(
    tmp_path: Path, shards: Path, direct: bytes, after: int
) -> None:
    clean = Stopping(99)
    compress_into_partitions(shards, Ego(), clean, tmp_path / "clean", 2)
    with pytest.raises(KeyboardInterrupt):
        compress_into_partitions(shards, Ego(), Stopping(after), tmp_path / "out", 2)
    second = Stopping(99)
    compress_into_partitions(shards, Ego(), second, tmp_path / "out", 2)
    assert len(second.ran) == len(clean.ran) - after
    (tmp_path / "direct.saen").write_bytes(direct)
    assert read_partitions(tmp_path / "out").join() == load(tmp_path / "direct.saen")
    for file in (tmp_path / "clean").glob("*.saen"):
        assert file.read_bytes() == (tmp_path / "out" / file.name).read_bytes()


def test_parts_of_other_settings_are_not_taken(tmp_path: Path, shards: Path, direct: bytes) -> None:
    out = tmp_path / "out.saen"
    with pytest.raises(KeyboardInterrupt):
        compress_shards(shards, Ego(radii=(0, 2)), Stopping(2), out)
    second = Stopping(99)
    compress_shards(shards, Ego(), second, out)
    assert len(second.ran) == 4
    assert out.read_bytes() == direct
    compress_into_partitions(shards, Ego(), SerialExecutor(), tmp_path / "parts", 2)
    with pytest.raises(InputError, match="other settings"):
        compress_into_partitions(shards, Ego(), SerialExecutor(), tmp_path / "parts", 3)
    compress_into_partitions(shards, Ego(), SerialExecutor(), tmp_path / "parts", 3, force=True)


def test_damaged_parts_of_an_interrupted_run_are_made_again(
    tmp_path: Path, shards: Path, direct: bytes
) -> None:
    out = tmp_path / "out.saen"
    with pytest.raises(KeyboardInterrupt):
        compress_shards(shards, Ego(), Stopping(3), out)
    parts = sorted((tmp_path / "out.saen.parts").glob("shard-*"))
    parts[0].write_bytes(parts[0].read_bytes()[:-5])
    parts[1].write_bytes(b"")
    second = Stopping(99)
    compress_shards(shards, Ego(), second, out)
    assert len(second.ran) == 3
    assert out.read_bytes() == direct
    with pytest.raises(KeyboardInterrupt):
        compress_into_partitions(shards, Ego(), Stopping(13), tmp_path / "parts", 2)
    for file in (tmp_path / "parts").glob("*.saen"):
        file.write_bytes(file.read_bytes()[:-5])
    compress_into_partitions(shards, Ego(), SerialExecutor(), tmp_path / "parts", 2)
    assert read_partitions(tmp_path / "parts").join() == load(out)


def test_without_out_tasks_write_only_into_folders_of_their_own(
    shards: Path, direct: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Elsewhere(SerialExecutor):
        """Tasks see no file that the driver made after it started."""

        def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
            assert not any("saen." in str(a) for a in arguments if isinstance(a, Path))
            super().submit(name, function, *arguments)

    monkeypatch.chdir(shards.parent)
    report = compress_shards(shards.name, Ego(), Elsewhere())
    (tmp_path / "direct.saen").write_bytes(direct)
    assert report.compressed == load(tmp_path / "direct.saen")


def test_shards_of_the_catalog_are_compressed_with_its_defaults(
    dataset: Callable[[str], Graphs], tmp_path: Path
) -> None:
    dataset("MUTAG")
    invoke("convert", "MUTAG", tmp_path / "shards", "--shards", 3)
    run("compress", tmp_path / "shards", "--out", tmp_path / "shards.saen")
    run("compress", "MUTAG", "--out", tmp_path / "whole.saen")
    assert (tmp_path / "shards.saen").read_bytes() == (tmp_path / "whole.saen").read_bytes()


def test_a_bad_shard_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    written = write_shards(split_graphs(GRAPHS, 3), folder)
    written.files[1].write_bytes(written.files[1].read_bytes()[:-1])
    with (
        open_executor("local:1") as executor,
        pytest.raises(FileError, match=r"part-00001.saen: damaged"),
    ):
        compress_shards(folder, Ego(), executor, tmp_path / "out.saen")
    assert not (tmp_path / "out.saen").exists()


def test_compress_command_on_a_cluster(
    tmp_path: Path, direct: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(GRAPHS, tmp_path / "graphs.saen")
    folder, out = tmp_path / "shards", tmp_path / "out.saen"
    assert "3 shards" in invoke("convert", tmp_path / "graphs.saen", folder, "--shards", 3).stdout
    report = run("compress", folder, "--cluster", "local:2", "--out", out)
    assert out.read_bytes() == direct
    assert report["levels"] == run("compress", folder)["levels"]
    monkeypatch.setenv("SAEN_CLUSTER", "serial")
    parts = run("compress", folder, "--partitions", 2, "--out", tmp_path / "parts")
    assert parts["partitions"] == 2
    assert parts["bytes"]["moved"] > 0
    shown = invoke("compress", folder, "--partitions", 2, "--out", tmp_path / "parts").stdout
    assert "distinct" in shown


def test_compress_command_says_what_a_cluster_needs(tmp_path: Path, shards: Path) -> None:
    for arguments, words in [
        (("compress", "threads", "--cluster", "local:2"), "convert with --shards N"),
        (("compress", shards, "--cluster", "spark"), "a cluster is serial, local:N"),
        (("compress", shards, "--partitions", "2"), "--out FOLDER"),
        (("compress", shards, "-d", "nested"), "reads nested"),
        (("convert", "threads", tmp_path / "s", "--shards", "0"), "an integer ≥ 1, not 0"),
        (("convert", shards, shards, "--shards", "2", "--force"), "is an input of this command"),
        (
            ("convert", "threads", tmp_path / "s", "--shards", "2", "--format", "tu"),
            "omit option --format",
        ),
    ]:
        assert words in fails(*arguments)


@pytest.mark.slow
def test_compress_resumes_after_its_driver_was_killed(tmp_path: Path, direct: bytes) -> None:
    write_shards(split_graphs(generate_threads(3000, seed=2), 12), tmp_path / "shards")
    out = tmp_path / "out.saen"
    command = [
        sys.executable,
        "-m",
        "saen",
        "compress",
        str(tmp_path / "shards"),
        "--out",
        str(out),
    ]
    driver = subprocess.Popen([*command, "--cluster", "local:2"])
    work = tmp_path / "out.saen.parts"
    while len(list(work.glob("shard-*"))) < 3:
        time.sleep(0.01)
        assert driver.poll() is None
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    time.sleep(2)  # workers end
    finished = {file: file.stat().st_mtime_ns for file in work.glob("shard-*")}
    assert 3 <= len(finished) < 12
    second = Stopping(99)
    compress_shards(tmp_path / "shards", Ego(), second, out)
    assert len(second.ran) == 12 - len(finished)
    compress_shards(tmp_path / "shards", Ego(), SerialExecutor(), tmp_path / "clean.saen")
    assert out.read_bytes() == (tmp_path / "clean.saen").read_bytes()
    assert load(out).objects[-1] == 3000
    assert json.loads((tmp_path / "shards" / "shards.json").read_text())["graphs"] == 3000
