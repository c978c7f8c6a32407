"""Shards, models and outputs in object stores: URLs in the place of paths."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from saen import generate_threads, save
from saen._util.remote import local_copy
from tests.cli.commandline import fails, invoke

pytest.importorskip("pyarrow", reason="needs the extra 'cloud'")
MOTO = os.environ.get("SAEN_MOTO") or shutil.which("moto_server")
"""A local server of S3, which may be installed in another environment."""


@pytest.fixture
def bucket() -> Iterator[str]:
    if MOTO is None:
        pytest.skip("needs moto_server (in the PATH, or $SAEN_MOTO)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu"}
    address = f"127.0.0.1:{port}"
    with pytest.MonkeyPatch.context() as patch:
        for key, value in (keys | {"AWS_ENDPOINT_URL": f"http://{address}"}).items():
            patch.setenv(key, value)
        command = [MOTO, "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            from pyarrow import fs

            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert server.poll() is None
                time.sleep(0.1)
            own = {"endpoint_override": f"http://{address}", "allow_bucket_creation": True}
            fs.S3FileSystem(**own).create_dir("graphs")
            yield "s3://graphs"
        finally:
            server.kill()
            server.wait()


def check_commands(place: str, folder: Path) -> None:
    """The same files from URLs as from paths, whether workers of their own make them or not."""
    graphs = generate_threads(30, average_nodes=8, seed=1)
    save(graphs, folder / "graphs.saen")
    here, there = str(folder), f"{place}/data"
    fit = ("--preset", "network", "--epochs", 1, "--out")
    for root, cluster in ((here, "serial"), (there, "serial"), (there, "local:1")):
        if cluster == "serial":
            invoke("convert", folder / "graphs.saen", f"{root}/shards", "--shards", 3)
        out = f"{root}/{cluster[:5]}.saen"
        invoke("compress", f"{root}/shards", "--cluster", cluster, "--out", out)
    for root, cluster in ((here, "serial"), (there, "local:1")):
        invoke("train", f"{root}/seria.saen", *fit, f"{root}/m.saen")
        words = ("predict", f"{root}/m.saen", f"{root}/shards", "--cluster", cluster)
        invoke(*words, "--out", f"{root}/out.csv")
        words = ("embed", f"{root}/m.saen", f"{root}/shards", "--cluster", "serial")
        invoke(*words, "--out", f"{root}/out.npy")
    for name, expected in (
        ("seria.saen", "seria.saen"),
        ("local.saen", "seria.saen"),
        ("out.csv", "out.csv"),
        ("out.npy", "out.npy"),
    ):
        with local_copy(f"{there}/{name}") as copy:
            assert copy.read_bytes() == (folder / expected).read_bytes()
    again = ("compress", f"{there}/shards", "--out", f"{there}/local.saen")
    assert "already exists" in fails(*again)
    assert "no such file" in fails("predict", f"{there}/no.saen", f"{there}/shards")
    assert "no such file" in fails("compress", f"{there}/no")
    assert "that all machines see" in fails(
        *("compress", f"{there}/shards", "--partitions", 2, "--out", f"{there}/ranges")
    )


@pytest.mark.slow
def test_urls_of_files_are_read_and_written_as_paths_are(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    check_commands((tmp_path / "store").as_uri(), tmp_path / "here")


@pytest.mark.slow
def test_s3_is_read_and_written_as_paths_are(bucket: str, tmp_path: Path) -> None:
    check_commands(bucket, tmp_path)
