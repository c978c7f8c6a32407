"""`saen serve`: the answers are those of `saen predict`, and no request can harm the server."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from saen.jobs.predict import predict_dataset
from tests.cli.commandline import fails, invoke
from tests.docs.pages import ROOT

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
from fastapi.testclient import TestClient

from saen.serving import MAX_EXAMPLES, Limits, make_app

GRAPH: dict[str, Any] = {"id": "a", "nodes": 4, "edges": [[0, 1], [1, 2], [2, 3]]}


def line(number: int, **more: Any) -> dict[str, Any]:
    """A graph with all that a node and an edge may have."""
    draw = random.Random(number)
    size = draw.randrange(3, 7)
    nodes = [{"label": draw.choice("CNO"), "attributes": [draw.random()]} for _ in range(size)]
    edges = [{"source": i, "target": i + 1, "label": draw.choice("ab")} for i in range(size - 1)]
    return {"id": f"g{number}", "directed": True, "nodes": nodes, "edges": edges, **more}


def smiles(number: int) -> str:
    return "C" * (1 + number % 7) + ["O", "N", "=O"][number % 3]


def document(number: int) -> str:
    first = ["dogs", "men", "cats"][number % 3]
    return f"1\t{first}\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbite\t_\tVERB\t_\t_\t0\troot\t_\t_\n"


def nested(number: int) -> dict[str, Any]:
    words = ["the", "dog", "bites", "a", "man"][number % 3 :]
    return {"parts": {"title": [{"word": words[:1]}], "text": [{"word": words}]}, "id": number}


N = 24
CLASSES = ["no", "yes"]
KINDS: dict[str, tuple[str, Any, list[str]]] = {
    "plain": (
        ".jsonl",
        [{**GRAPH, "id": n, "nodes": 4 + n % 5, "target": n % 2} for n in range(N)],
        [],
    ),
    "directed": (".jsonl", [line(n, target=CLASSES[n % 2]) for n in range(N)], ["--nearest"]),
    "regression": (".jsonl", [line(n, target=n / 7) for n in range(N)], []),
    "several": (
        ".jsonl",
        [line(n, size=n / 7, weight=n % 5 + 0.5) for n in range(N)],
        ["--target", "size,weight"],
    ),
    "nested": (".jsonl", [{**nested(n), "target": CLASSES[n % 2]} for n in range(N)], []),
    "molecules": (
        ".csv",
        [(smiles(n), f"m{n}", n / 7) for n in range(N)],
        ["--atom-labels", "smiles"],
    ),
    "documents": (".conllu", [f"# target = {CLASSES[n % 2]}\n{document(n)}" for n in range(N)], []),
}


def write(path: Path, content: Any) -> Path:
    if path.suffix == ".csv":
        pd.DataFrame(content, columns=["smiles", "id", "target"]).to_csv(path, index=False)
    else:
        texts = (each if isinstance(each, str) else json.dumps(each) for each in content)
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Trains the model of a kind of data once: its file, and that of the data."""
    folder, trained = tmp_path_factory.mktemp("serving"), {}

    def model(kind: str) -> tuple[Path, Path]:
        if kind not in trained:
            suffix, content, options = KINDS[kind]
            if suffix == ".csv":
                pytest.importorskip("rdkit")
            if suffix == ".conllu":
                pytest.importorskip("conllu")
            data = write(folder / f"{kind}{suffix}", content)
            out = folder / f"{kind}.saen"
            invoke("train", data, "--preset", "counts", "--out", out, *options)
            trained[kind] = out, data
        return trained[kind]

    return model


@pytest.fixture(scope="module")
def client(models: Any) -> Iterator[TestClient]:
    with TestClient(make_app(models("plain")[0], Limits(n_bytes=100_000))) as client:
        yield client


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_the_rows_of_saen_predict(kind: str, models: Any, tmp_path: Path) -> None:
    model, data = models(kind)
    predict_dataset(model, str(data), tmp_path / "rows.jsonl")
    expected = [json.loads(row) for row in (tmp_path / "rows.jsonl").read_text().splitlines()]
    examples = KINDS[kind][1]
    if kind == "molecules":
        examples = [{"smiles": text, "id": own} for text, own, _ in examples]
    with TestClient(make_app(model)) as client:
        answer = client.post("/predict", json={"examples": examples})
        assert answer.status_code == 200, answer.text
        assert answer.json()["unseen"] == 0
        found = pd.DataFrame(answer.json()["predictions"])
        pd.testing.assert_frame_equal(found, pd.DataFrame(expected), rtol=1e-5)
        explained = client.post("/explain", json={"example": examples[3], "parts": 2})
        assert explained.status_code == 200, explained.text
        assert len(explained.json()["parts"]) <= 2
        assert client.get("/health").json()["model"] == model.name


def test_molecules_are_texts_too(models: Any) -> None:
    with TestClient(make_app(models("molecules")[0])) as client:
        rows = client.post("/predict", json={"examples": ["CCO", "CC[N+](C)(C)C"]}).json()
        assert [row["id"] for row in rows["predictions"]] == ["CCO", "CC[N+](C)(C)C"]
        assert rows["unseen"] > 0
        wrong = client.post("/predict", json={"examples": ["CCO", "C=O=C"]})
        assert wrong.status_code == 422
        [problem] = wrong.json()["detail"]
        assert problem["loc"] == ["body", "examples", 1]
        assert "invalid SMILES" in problem["msg"]


BAD: dict[str, tuple[Any, int, str]] = {
    "no JSON": (b"{", 422, "JSON decode error"),
    "not UTF-8": (b'{"examples": ["\xff"]}', 400, ""),
    "nested deeply": (b'{"examples": ' + b"[" * 50_000, 400, ""),
    "nested a little": ({"examples": [{"nodes": eval("[" * 50 + "]" * 50)}]}, 422, "edges"),
    "many digits": (b'{"examples": [' + b"9" * 5000 + b"]}", 400, ""),
    "nothing": ({"examples": []}, 422, "at least 1"),
    "another key": ({"graphs": [GRAPH]}, 422, "Field required"),
    "numbers": ({"examples": [1, 2]}, 422, "valid dict"),
    "many": ({"examples": [""] * (MAX_EXAMPLES + 1)}, 422, "at most"),
    "NaN": (b'{"examples": [{"nodes": NaN, "edges": []}]}', 422, "NaN"),
    "surrogate": (b'{"examples": [{"nodes": ["\\ud800"], "edges": []}]}', 422, "surrogate"),
    "surrogate in SMILES": (b'{"examples": ["\\ud800"]}', 422, "not UTF-8"),
    "surrogate in keys": (b'{"examples": [{"\\ud800": 1}]}', 422, "nodes"),
    "null character": ({"examples": [{"id": "\0", "nodes": 1, "edges": []}]}, 422, "null"),
    "no node": ({"examples": [GRAPH, {**GRAPH, "edges": [[0, 9]]}]}, 422, "edge 0 refers to"),
    "huge": ({"examples": [{"nodes": 10**12, "edges": []}]}, 422, "too many"),
    "large": ({"examples": [{"nodes": 10**6, "edges": []}]}, 422, "too large"),
    "two kinds": ({"examples": [GRAPH, "CCO"]}, 422, "SMILES"),
    "many bytes": (b" " * 100_001, 413, "at most 100,000 bytes"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_requests_are_answered_in_a_line(kind: str, client: TestClient) -> None:
    body, status, words = BAD[kind]
    content = body if isinstance(body, bytes) else json.dumps(body)
    answer = client.post("/predict", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    detail = answer.json()["detail"]
    assert words in (detail if isinstance(detail, str) else detail[0]["msg"])
    assert len(answer.content) < 5000
    if words == "edge 0 refers to":
        assert detail[0]["loc"] == ["body", "examples", 1]


def test_requests_end_after_their_time(models: Any) -> None:
    with TestClient(make_app(models("plain")[0], Limits(seconds=1e-9))) as client:
        answer = client.post("/predict", json={"examples": [GRAPH]})
        assert (answer.status_code, answer.json()["detail"][:16]) == (503, "no answer within")


def test_metrics_count_requests_without_their_words(client: TestClient) -> None:
    client.post("/predict", json={"examples": [GRAPH]})
    client.get("/secret-of-a-user")
    text = client.get("/metrics").text
    values = dict(row.rsplit(" ", 1) for row in text.splitlines() if not row.startswith("#"))
    assert int(values['saen_requests_total{path="/predict",status="200"}']) >= 1
    assert int(values['saen_requests_total{path="other",status="404"}']) >= 1
    assert int(values["saen_requests_active"]) == 1  # this one
    assert "secret" not in text


# -- the server itself -----------------------------------------------------------------------------


@contextmanager
def serving(model: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server in a process of its own, and its port."""
    command = [sys.executable, "-m", "saen", "serve", str(model), "--port", "0", *options]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert "serving" in said, said + process.stderr.read()
            yield process, int(said.split(" (")[0].rpartition(":")[2])
        finally:
            process.kill()


def post(port: int, body: bytes, path: str = "/predict") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


@pytest.mark.slow
def test_server_with_200_clients_some_of_them_malformed_stays_right(models: Any) -> None:
    model, _ = models("plain")
    good = json.dumps({"examples": [GRAPH]}).encode()
    bad = [(b, s) for b, s, _ in BAD.values() if isinstance(b, bytes) and len(b) < 60_000]

    def client(number: int) -> None:
        for request in range(2):
            if (number + request) % 3 == 0:
                body, status = bad[number % len(bad)]
                assert post(port, body)[0] == status
            elif number % 7 == 0:  # says what it will send, and leaves
                with socket.create_connection(("127.0.0.1", port)) as rude:
                    rude.sendall(
                        b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"
                    )
            else:
                status, content = post(port, good)
                assert (status, json.loads(content)) == (200, expected)

    with TestClient(make_app(model)) as alone:
        expected = alone.post("/predict", json=json.loads(good)).json()
    with serving(model) as (process, port):
        with ThreadPoolExecutor(200) as clients:
            list(clients.map(client, range(200)))
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=30)
        assert (process.returncode, out, errors) == (143, "", "")


@pytest.mark.slow
def test_server_answers_open_requests_when_terminated_and_slow_ones_after_their_time(
    models: Any,
) -> None:
    body = json.dumps({"examples": [GRAPH] * 1000}).encode()
    head = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n".encode()

    def answer(connection: socket.socket) -> bytes:
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
        return b"".join(parts)

    with (
        serving(models("plain")[0], "--timeout", "2") as (process, port),
        socket.create_connection(("127.0.0.1", port)) as slow,
        socket.create_connection(("127.0.0.1", port)) as usual,
    ):
        slow.sendall(head + body[:10])  # and no more
        usual.sendall(head + body[:-1])
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        with pytest.raises(OSError, match=r"refused|reset"):
            post(port, body)
        usual.sendall(body[-1:])
        assert answer(usual).startswith(b"HTTP/1.1 200")
        assert answer(slow).startswith(b"HTTP/1.1 503")
        assert process.wait(20) == 143


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_memory_of_the_server_does_not_grow(models: Any) -> None:
    bodies = [json.dumps({"examples": [{**GRAPH, "id": f"{n}"}] * 3}).encode() for n in range(50)]
    bodies += [b for b, _, _ in BAD.values() if isinstance(b, bytes) and len(b) < 6000]

    def resident() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/metrics")
        return int(connection.getresponse().read().rsplit(maxsplit=1)[1])

    with serving(models("plain")[0]) as (_, port), ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda n: post(port, bodies[n % len(bodies)]), range(500)))
        before = resident()
        list(clients.map(lambda n: post(port, bodies[n % len(bodies)]), range(2500)))
        assert resident() - before < 2_000_000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # as the command does
def test_server_follows_its_own_specification(models: Any) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    import hypothesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(models("plain")[0]))
    for operation in schema.get_all_operations():

        @hypothesis.given(case=operation.ok().as_strategy())
        @hypothesis.settings(max_examples=100, deadline=None, database=None)
        def check(case: Any) -> None:
            # What a graph must be is more than a schema can say.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        check()


# -- the page and the container --------------------------------------------------------------------


def test_page_shows_a_request_that_is_answered(client: TestClient) -> None:
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    [body] = re.findall(r"-d '(.*)'", page)
    answer = client.post("/predict", json=json.loads(body))
    assert answer.json()["predictions"][0]["id"] == "a"


@pytest.mark.slow
def test_lines_of_the_dockerfile_run(models: Any, tmp_path: Path) -> None:
    text = (ROOT / "examples" / "Dockerfile").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^(\w+) (?:CMD )?(.*)$", text, re.M))
    [copied] = re.findall(r"^COPY (.*) /saen/$", text, re.M)
    assert all((ROOT / name).exists() for name in (*copied.split(), "src"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for named in re.findall(r"/saen\[([\w,]+)\]", text):
        assert set(named.split(",")) <= set(extras["optional-dependencies"])
    program, *arguments = json.loads(lines["CMD"])
    assert (program, arguments[1]) == ("saen", "/model.saen")
    arguments[1] = str(models("plain")[0])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    arguments[arguments.index("--port") + 1] = port
    python, *check = json.loads(lines["HEALTHCHECK"])
    healthy = [sys.executable, *(word.replace("8000", port) for word in check)]
    assert python == "python"
    assert lines["EXPOSE"] == "8000"
    assert subprocess.run(healthy, capture_output=True, check=False).returncode == 1
    command = [sys.executable, "-m", "saen", *arguments]
    # As in a container that is --read-only: nothing can be written but in the temporary folder.
    where = {"HOME": "/nowhere", "SAEN_CACHE": "/nowhere", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=os.environ | where, stderr=-1, text=True) as server:
        try:
            assert server.stderr is not None
            assert "serving plain.saen at http://0.0.0.0" in server.stderr.readline()
            assert subprocess.run(healthy, capture_output=True, check=False).returncode == 0
            assert post(int(port), json.dumps({"examples": [GRAPH]}).encode())[0] == 200
            assert [*tmp_path.iterdir()] == []
        finally:
            server.terminate()


# -- the command -----------------------------------------------------------------------------------


def test_serve_refuses_what_it_cannot_serve(models: Any, tmp_path: Path) -> None:
    model, data = models("plain")
    assert fails("serve", tmp_path / "none.saen").endswith("none.saen: no such file")
    assert "not a saen file" in fails("serve", data)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        message = fails("serve", model, "--port", taken.getsockname()[1])
        assert "cannot listen at 127.0.0.1" in message
    assert "cannot listen at nowhere.invalid" in fails("serve", model, "--host", "nowhere.invalid")


def test_serve_without_its_extra_says_what_to_install(
    models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "saen.serving")
    assert 'pip install "saen[serve]"' in fails("serve", models("plain")[0])
