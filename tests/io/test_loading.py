from __future__ import annotations

import io
import os
import re
import shutil
import ssl
import subprocess
import threading
import time
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from saen import Graphs, load, save
from saen.data.nested import NestedData
from saen.decompositions import Ego
from saen.errors import DatasetNotFoundError, FileError, InputError, SaenError
from saen.io import loading
from saen.io.formats import tudataset
from saen.io.formats.nested import write_nested
from saen.io.formats.tudataset import CacheWarning
from saen.io.loading import load_data, load_dataset
from saen.io.sources import catalog as catalog_module
from saen.io.sources.catalog import OtherVersionWarning, catalog, content_digest, find_entry
from saen.io.sources.local import locate
from saen.io.writing import write_data

TOY = {
    "A": "1, 2\n2, 1\n",
    "graph_indicator": "1\n1\n2\n",
    "graph_labels": "0\n1\n",
}
GRAPHS = Graphs.from_edge_lists([[(0, 1)], []], sizes=[2, 1], targets=[0, 1])

# What the tests were started with: each of them hides it from itself.
DATA = os.environ.get("SAEN_DATA", "")
BASE_URL = catalog_module.BASE_URL


def zipped(name: str = "toy", parts: dict[str, str] = TOY) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for part, text in parts.items():
            target.writestr(f"{name}/{name}_{part}.txt", text)
    return buffer.getvalue()


def unpacked(folder: Path, name: str = "toy") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in TOY.items():
        (folder / f"{name}_{part}.txt").write_text(text)
    return folder


@dataclass
class Site:
    """A stand-in for the public site: what it answers, and what it was asked."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    missing_bytes: int = 0
    status: int = 200
    seconds_per_byte: float = 0
    announces: bool = True
    length: str = ""
    asked: list[str] = field(default_factory=list)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("SAEN_DATA", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    # Nobody listens at the discard port: a test without a site of its own is offline.
    monkeypatch.setattr(catalog_module, "BASE_URL", "http://127.0.0.1:9")
    return tmp_path / "cache"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            content = site.files.get(self.path)
            self.send_response(404 if content is None else site.status)
            if site.announces:
                self.send_header("Content-Length", site.length or str(len(content or b"")))
            self.end_headers()
            sent = (content or b"")[: len(content or b"") - site.missing_bytes]
            with suppress(ConnectionError):  # of a reader who has had enough
                if not site.seconds_per_byte:
                    self.wfile.write(sent)
                    return
                for byte in sent:
                    self.wfile.write(bytes([byte]))
                    time.sleep(site.seconds_per_byte)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(catalog_module, "BASE_URL", site.url)
        yield site
        server.shutdown()
        thread.join()


def pretend(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Make the toy dataset one of the catalog."""
    facts = {"graphs": 2, "classes": 2, "sha256": None} | changes
    entry = replace(catalog()["MUTAG"], name="TOY", **facts)
    monkeypatch.setattr(loading, "find_entry", lambda _: entry)


def files_in(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


# -- the catalog -------------------------------------------------------------------------------


def test_load_the_catalog_holds_the_eleven_datasets_of_the_paper_and_ptc_mr() -> None:
    entries = catalog()
    assert len(entries) == 12
    assert [name for name, entry in entries.items() if entry.paper is None] == ["PTC_MR"]
    assert [name for name, entry in entries.items() if not entry.served] == ["PTC"]
    assert {entry.node_labels for entry in entries.values() if entry.group == "social"} == {
        "degree"
    }
    assert {entry.node_labels for entry in entries.values() if entry.group != "social"} == {"node"}
    five_k = entries["REDDIT-MULTI-5K"]
    assert five_k.paper is not None
    assert (five_k.graphs, five_k.paper.graphs) == (4999, 5000)
    assert all(entry.radii == tuple(range(len(entry.radii))) for entry in entries.values())
    assert all(len(entry.sha256 or "") == 64 for entry in entries.values())


def test_load_names_are_known_in_any_case_and_by_alias() -> None:
    for name in ("IMDB-MULTI", "imdb-multi", "Imdb-M"):
        entry = find_entry(name)
        assert entry is not None
        assert entry.name == "IMDB-MULTI"
    spellings = [s.casefold() for e in catalog().values() for s in (e.name, *e.aliases)]
    assert len(spellings) == len(set(spellings))


# -- where it is found -------------------------------------------------------------------------


def test_load_a_path_is_a_folder_a_zip_or_a_file_written_by_saen(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(zipped())
    save(GRAPHS, tmp_path / "x.saen")
    unpacked(tmp_path / "folder")
    for path in ("x.zip", "x.saen", "folder"):
        assert load_dataset(tmp_path / path) == GRAPHS
        assert load_dataset(str(tmp_path / path)) == GRAPHS
    assert load_dataset("../x.zip") == GRAPHS


def test_load_a_path_that_exists_is_never_downloaded_as_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    site.files["/toy.zip"] = zipped()
    Path("toy").mkdir()
    with pytest.raises(FileError, match="toy: no graphs in this folder"):
        load_dataset("toy")
    monkeypatch.setenv("SAEN_DATA", str(tmp_path))
    (tmp_path / "toy.zip").write_bytes(zipped())
    assert load_dataset("toy") == GRAPHS  # a local dataset of that name is found all the same
    monkeypatch.delenv("SAEN_DATA")
    unpacked(Path("toy"))
    assert load_dataset("toy") == GRAPHS
    assert site.asked == []


def test_load_a_path_that_is_not_there_is_an_error_about_the_path(tmp_path: Path) -> None:
    for path in (tmp_path / "x", str(tmp_path / "x"), "x.zip", "sub/x"):
        with pytest.raises(FileError, match="no such file or folder"):
            load_dataset(path)
    with pytest.raises(FileError, match=r"x\.saen"):
        load_dataset("x.saen")


def test_load_a_file_written_by_saen_must_hold_graphs(tmp_path: Path) -> None:
    save(Ego().decompose(GRAPHS), tmp_path / "x.saen")
    with pytest.raises(FileError, match="contains a Hierarchy, not Graphs"):
        load_dataset(tmp_path / "x.saen")
    save(GRAPHS, tmp_path / "x.saen")
    with pytest.raises(InputError, match="option 'directed' applies only to TUDataset files"):
        load_dataset(tmp_path / "x.saen", directed=True)


def test_load_saen_data_may_name_several_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    unpacked(tmp_path / "two" / "MUTAG", "MUTAG")
    monkeypatch.setenv("SAEN_DATA", os.pathsep.join(map(str, (tmp_path / "one", tmp_path / "two"))))
    assert load_dataset("mutag") == GRAPHS
    assert locate("mutag") == tmp_path / "two" / "MUTAG"
    (tmp_path / "one" / "MUTAG.zip").write_bytes(zipped("MUTAG"))
    assert locate("Mutag") == tmp_path / "one" / "MUTAG.zip"
    assert locate("NCI1") is None


def test_load_the_path_comes_before_saen_data_and_that_before_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    def with_label(label: int) -> bytes:
        return zipped("toy", TOY | {"graph_labels": f"{label}\n0\n"})

    def found() -> int:
        targets = load_dataset("toy").targets
        assert targets is not None
        return int(targets[0])

    site.files["/toy.zip"] = with_label(4)
    assert found() == 4
    (cache / "datasets" / "toy.zip").write_bytes(with_label(3))
    assert found() == 3
    monkeypatch.setenv("SAEN_DATA", str(tmp_path))
    (tmp_path / "toy.zip").write_bytes(with_label(2))
    assert found() == 2
    Path("toy").write_bytes(with_label(1))
    assert found() == 1
    assert site.asked == ["/toy.zip"]


def test_load_the_generated_collection_needs_no_file(site: Site) -> None:
    graphs = load_dataset("threads")
    assert graphs == load_dataset("Threads")
    assert graphs.targets is not None
    assert site.asked == []
    with pytest.raises(InputError, match="threads: option 'directed' applies only to"):
        load_dataset("threads", directed=True)


# -- the cache ---------------------------------------------------------------------------------


def test_the_second_load_reads_the_parsed_copy(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy.zip").write_bytes(zipped())
    first = load_dataset(tmp_path / "toy.zip")
    assert len(files_in(cache / "parsed")) == 1
    monkeypatch.setattr(tudataset, "read_tu", None)
    second = load_dataset(tmp_path / "toy.zip")
    assert second == first == GRAPHS
    assert second.name == first.name == "toy"


@pytest.mark.parametrize("as_zip", [True, False])
def test_load_other_content_or_other_options_are_read_anew(
    tmp_path: Path, cache: Path, as_zip: bool
) -> None:
    path = unpacked(tmp_path / "toy")
    if as_zip:
        path = tmp_path / "toy.zip"
        path.write_bytes(zipped())
    assert load_dataset(path) == GRAPHS
    assert load_dataset(path, directed=True).directed
    assert not load_dataset(path).directed
    if as_zip:
        path.write_bytes(zipped(parts=TOY | {"graph_labels": "8\n9\n"}))
    else:
        (path / "toy_graph_labels.txt").write_text("8\n9\n")
    assert load_dataset(path).targets.tolist() == [8, 9]  # type: ignore[union-attr]
    assert len(files_in(cache / "parsed")) == 3


@pytest.mark.parametrize("damage", [b"", b"x" * 1000, None])
def test_load_a_damaged_copy_in_the_cache_is_rebuilt(
    tmp_path: Path, cache: Path, damage: bytes | None
) -> None:
    (tmp_path / "toy.zip").write_bytes(zipped())
    load_dataset(tmp_path / "toy.zip")
    (copy,) = (cache / "parsed").iterdir()
    copy.write_bytes(copy.read_bytes()[:-1] if damage is None else damage)
    assert load_dataset(tmp_path / "toy.zip") == GRAPHS
    assert load(copy) == GRAPHS


def test_load_cache_false_neither_reads_nor_writes_the_cache(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "toy.zip").write_bytes(zipped())
    assert load_dataset(tmp_path / "toy.zip", cache=False) == GRAPHS
    assert not cache.exists()


def test_load_a_cache_that_cannot_be_written_is_only_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy.zip").write_bytes(zipped())
    (tmp_path / "occupied").write_text("a file, where the folder should be")
    monkeypatch.setenv("SAEN_CACHE", str(tmp_path / "occupied"))
    with pytest.warns(CacheWarning, match="SAEN_CACHE") as caught:
        assert load_dataset(tmp_path / "toy.zip") == GRAPHS
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_dataset(tmp_path / "toy.zip", cache=False) == GRAPHS


# -- downloading -------------------------------------------------------------------------------


def test_load_a_download_is_checked_and_kept(site: Site, cache: Path) -> None:
    site.files["/toy.zip"] = zipped()
    assert load_dataset("toy") == GRAPHS
    assert (cache / "datasets" / "toy.zip").read_bytes() == site.files["/toy.zip"]
    assert (cache / "datasets" / "toy.zip").stat().st_mode & 0o777 == 0o644
    assert load_dataset("toy") == GRAPHS
    assert site.asked == ["/toy.zip"]
    assert len(files_in(cache)) == 2


def test_load_a_broken_transfer_leaves_nothing_behind(site: Site, cache: Path) -> None:
    site.files["/toy.zip"] = zipped()
    site.missing_bytes = 10
    with pytest.raises(DatasetNotFoundError, match=r"toy\.zip: the download failed"):
        load_dataset("toy")
    assert files_in(cache) == []
    site.missing_bytes = 0
    assert load_dataset("toy") == GRAPHS


@pytest.mark.parametrize("length", ["abc", "SIZE, SIZE", "-1", "9" * 5000])
def test_load_a_length_that_is_no_number_is_ignored(site: Site, length: str) -> None:
    site.files["/toy.zip"] = zipped()
    site.length = length.replace("SIZE", str(len(zipped())))
    assert load_dataset("toy") == GRAPHS


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html>welcome</html>", "not a readable zip"),
        (zipped()[:-30], "not a readable zip"),
        (zipped(parts=TOY | {"A": "1, 9\n"}), r"toy\.zip/toy/toy_A\.txt, line 1: node 9"),
    ],
)
def test_load_a_download_that_is_no_dataset_is_refused(
    site: Site, cache: Path, content: bytes, words: str
) -> None:
    site.files["/toy.zip"] = content
    with pytest.raises(DatasetNotFoundError, match=words):
        load_dataset("toy")
    assert files_in(cache) == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"graphs": 3}, "has 2 graphs in 2 classes, but TOY has 3 in 2"),
        ({"classes": 3}, "has 2 graphs in 2 classes, but TOY has 2 in 3"),
    ],
)
def test_load_a_download_that_differs_from_the_catalog_is_refused(
    site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], words: str
) -> None:
    site.files["/TOY.zip"] = zipped()
    pretend(monkeypatch, **facts)
    with pytest.raises(DatasetNotFoundError, match=words):
        load_dataset("toy")
    assert files_in(cache) == []


def test_load_another_version_of_a_dataset_is_kept_with_a_warning(
    site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/TOY.zip"] = zipped()
    pretend(monkeypatch, sha256="0" * 64)
    with pytest.warns(OtherVersionWarning, match="numbers may differ"):
        assert load_dataset("toy") == GRAPHS
    assert (cache / "datasets" / "TOY.zip").is_file()


def test_load_the_known_content_is_known_however_it_is_packed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/TOY.zip"] = zipped(parts=TOY | {"A": TOY["A"].replace(", ", " ,  ")})
    assert site.files["/TOY.zip"] != zipped()
    pretend(monkeypatch, sha256=content_digest(GRAPHS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_dataset("toy") == GRAPHS


def test_load_a_redirect_from_https_to_http_is_refused(
    site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BASE_URL.startswith("https://")
    site.files["/toy.zip"] = zipped()
    send = HTTPAdapter.send

    def redirect(adapter: HTTPAdapter, request: Any, **options: Any) -> requests.Response:
        if request.url.startswith("http:"):
            return send(adapter, request, **options)
        response = requests.Response()
        response.status_code, response.raw = 302, io.BytesIO()
        response.url, response.request = request.url, request
        response.headers["Location"] = f"{site.url}/toy.zip"
        return response

    monkeypatch.setattr(HTTPAdapter, "send", redirect)
    monkeypatch.setattr(catalog_module, "BASE_URL", BASE_URL)
    with pytest.raises(DatasetNotFoundError, match="redirects to an address that is not HTTPS"):
        load_dataset("toy")
    assert files_in(cache) == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_load_a_site_with_a_certificate_of_its_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "certificate.pem"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command = ["openssl", "req", "-x509", *curve, *names, *files]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        monkeypatch.setattr(catalog_module, "BASE_URL", f"https://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(DatasetNotFoundError, match=r"the download failed \(SSLError\)"):
            load_dataset("toy")
        thread.join()


@pytest.mark.parametrize("announces", [True, False])
def test_load_a_download_that_is_too_large_is_refused(
    site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch, announces: bool
) -> None:
    site.files["/toy.zip"], site.announces = zipped(), announces
    monkeypatch.setattr(catalog_module, "MAX_BYTES", 100)
    with pytest.raises(DatasetNotFoundError, match=r"toy\.zip: larger than 100 B"):
        load_dataset("toy")
    assert files_in(cache) == []


def test_load_a_download_that_takes_too_long_is_given_up(
    site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/toy.zip"], site.seconds_per_byte = zipped(), 0.02
    monkeypatch.setattr(catalog_module, "MAX_SECONDS", 0.2)
    before = time.monotonic()
    with pytest.raises(DatasetNotFoundError, match=r"not complete after 0\.2 seconds"):
        load_dataset("toy")
    assert time.monotonic() - before < 2
    assert files_in(cache) == []


def test_load_what_a_killed_download_left_is_removed_by_the_next(
    site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files |= {"/toy.zip": zipped(), "/toy2.zip": zipped()}
    reader, folders = catalog_module.read_tu, []

    def read_tu(file: Path, **options: Any) -> Graphs:
        folders.append(file.parent)
        return reader(file, **options)

    monkeypatch.setattr(catalog_module, "read_tu", read_tu)
    load_dataset("toy")
    dead = 2**31 - 1  # no system gives a process this number
    left = folders[0].with_name(folders[0].name.replace(f"-{os.getpid()}-", f"-{dead}-"))
    left.mkdir()
    (left / "half.zip").write_bytes(b"PK")
    load_dataset("toy2")
    assert not left.exists()


@pytest.mark.skipif(not DATA, reason="set SAEN_DATA to the folder of the benchmark datasets")
@pytest.mark.parametrize("name", ["MUTAG", "IMDB-MULTI"])
def test_load_the_benchmark_datasets_are_those_of_the_catalog(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAEN_DATA", DATA)
    assert content_digest(load_dataset(name)) == catalog()[name].sha256


def test_load_an_interrupted_download_leaves_nothing_behind(
    site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/toy.zip"] = zipped()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalog_module, "read_tu", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_dataset("toy")
    assert files_in(cache) == []


def test_load_an_error_of_the_site_is_reported(site: Site) -> None:
    site.files["/toy.zip"] = b"sorry"
    site.status = 503
    with pytest.raises(DatasetNotFoundError, match="answered with error 503"):
        load_dataset("toy")


def test_load_a_cache_that_cannot_take_a_download_says_what_to_do(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/toy.zip"] = zipped()
    (tmp_path / "occupied").write_text("a file, where the folder should be")
    monkeypatch.setenv("SAEN_CACHE", str(tmp_path / "occupied"))
    with pytest.raises(DatasetNotFoundError, match="set SAEN_CACHE to a folder that is"):
        load_dataset("toy")
    assert site.asked == []


def test_load_the_progress_bar_is_shown_when_asked_and_only_on_stderr(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.files |= {"/toy.zip": zipped(), "/toy2.zip": zipped()}
    load_dataset("toy", progress=True)
    shown = capsys.readouterr()
    assert shown.err
    assert shown.out == ""
    load_dataset("toy2")
    assert capsys.readouterr() == ("", "")


# -- not found ---------------------------------------------------------------------------------


def test_load_offline_the_message_lists_every_place_and_what_to_do(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAEN_DATA", os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")]))
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("nci1")
    message = str(caught.value)
    for place in (
        Path.cwd() / "NCI1",
        tmp_path / "a" / "NCI1",
        tmp_path / "b" / "NCI1",
        cache / "datasets" / "NCI1.zip",
        "http://127.0.0.1:9/NCI1.zip: the download failed (ConnectionError); are you online?",
        "set SAEN_DATA to the folder of NCI1.zip",
    ):
        assert str(place) in message
    assert "Did you mean" not in message
    assert files_in(cache) == []


def test_load_an_unknown_name_suggests_near_ones(site: Site) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"Did you mean MUTAG\?") as caught:
        load_dataset("mutga")
    assert "the site has no dataset of that name" in str(caught.value)
    assert "$SAEN_DATA: not set" in str(caught.value)
    with pytest.raises(DatasetNotFoundError, match="Did you mean threads"):
        load_dataset("thread")


def test_load_the_ptc_of_the_paper_is_not_replaced_by_ptc_mr(site: Site) -> None:
    site.files |= {"/PTC.zip": zipped("PTC"), "/PTC_MR.zip": zipped("PTC_MR")}
    with pytest.raises(DatasetNotFoundError, match="the site serves PTC_MR"):
        load_dataset("PTC")
    assert site.asked == []


@pytest.mark.parametrize("name", ["", "a b", "what?x=1", "%2e%2e", "..", "naïve", "-rf", "a#b"])
def test_load_what_cannot_be_a_name_is_never_asked_for(site: Site, name: str) -> None:
    with pytest.raises(SaenError):
        load_dataset(name)
    assert site.asked == []


# -- kinds of data ----------------------------------------------------------------------------


def test_load_data_reads_the_kind_of_data_that_a_decomposition_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = NestedData([{"word": ["the", "dog"]}], ["a"], levels=("words", "notes"))
    write_nested(nested, tmp_path / "notes.jsonl")
    assert load_data(tmp_path / "notes.jsonl", "nested") == nested
    generated = {"stdlib-functions": ("nested", lambda: nested)}
    monkeypatch.setattr(loading, "GENERATED", generated)
    assert load_data("stdlib-functions", "nested") == nested
    write_data(GRAPHS, tmp_path / "x.jsonl")
    assert load_data(str(tmp_path / "x.jsonl")) == GRAPHS
    with pytest.raises(FileError, match="nested data, not a graph: use a decomposition"):
        load_data(tmp_path / "notes.jsonl", "graphs")
    with pytest.raises(FileError, match="expected the key 'parts'"):
        load_data(tmp_path / "x.jsonl", "nested")


def test_load_data_reads_documents_from_conllu(tmp_path: Path) -> None:
    pytest.importorskip("conllu")
    (tmp_path / "x.conllu").write_text("1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    documents = load_data(tmp_path / "x.conllu", "documents")
    assert documents.words.tolist() == ["go"]
    with pytest.raises(FileError, match="holds documents, not graphs, which are read"):
        load_dataset(tmp_path / "x.conllu")


@pytest.mark.parametrize(
    ("name", "takes", "message"),
    [
        ("x.txt", "documents", "holds graphs, not documents, which are read from .saen, .conllu"),
        ("MUTAG", "nested", "holds graphs, not nested, which are read from .saen, .jsonl, "
                            ".ndjson, stdlib-functions"),
        ("x", "pictures", "takes must be graphs, documents or nested, not 'pictures'"),
    ],
)  # fmt: skip
def test_load_data_names_what_it_cannot_load(name: str, takes: str, message: str) -> None:
    with pytest.raises(SaenError, match=re.escape(message)):
        load_data(name, takes)


def test_load_options_of_tables_are_refused_for_other_data(tmp_path: Path) -> None:
    save(GRAPHS, tmp_path / "x.saen")
    for name in (tmp_path / "x.saen", "threads"):
        with pytest.raises(InputError, match="option 'targets_file' applies only to edge tables"):
            load_dataset(name, targets_file="x.csv")
    write_data(GRAPHS, tmp_path / "x.jsonl")
    with pytest.raises(InputError, match="option 'smiles' applies only to tables of molecules"):
        load_dataset(tmp_path / "x.jsonl", smiles="x")


def test_load_a_file_of_an_unknown_kind_lists_what_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.docx").write_text("x")
    with pytest.raises(FileError, match=r"known suffixes: \.saen, \.zip, \.jsonl, \.ndjson, \.csv"):
        load_dataset(tmp_path / "x.docx")


# -- the real thing ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_second_load_of_collab_takes_well_under_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SAEN_DATA", DATA)
    if locate("COLLAB") is None:
        pytest.skip("COLLAB is not in $SAEN_DATA")
    first = load_dataset("COLLAB")
    start = time.perf_counter()
    second = load_dataset("COLLAB")
    assert time.perf_counter() - start < 0.8
    assert second == first
