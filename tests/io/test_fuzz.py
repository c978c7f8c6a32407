"""Whatever is in a file, reading it ends in graphs or in a `SaenError`, within bounded memory.

A short version runs with the other tests; `SAEN_FUZZ=20000 pytest tests/io/test_fuzz.py`
runs that many random examples of each.
"""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saen import SaenError
from saen.io.formats.registry import SUFFIXES
from saen.io.loading import load_dataset
from tests.fuzz.kinds import KINDS, SDF, TOKENS, check_message
from tests.fuzz.kinds import survive as survive_kind

FUZZ = os.environ.get("SAEN_FUZZ")
fuzzing = settings(max_examples=int(FUZZ or 30))

# What reading may take beyond the file: columns of text, and nodes without edges, are given a
# first allowance whatever the size of the file.
FREE_BYTES = 2**27
BYTES_PER_BYTE = 1000


pytestmark = pytest.mark.filterwarnings(
    "ignore::saen.io.formats.edge_tables.UnknownGraphsWarning",
    "ignore::saen.io.loading.DuplicateIdsWarning",
)


def survive(folder: Path, suffix: str, content: bytes, **beside: bytes) -> None:
    """Read a file as a user would, and with bad graphs left out."""
    folder.mkdir(exist_ok=True)
    file = folder / f"edges{suffix}"
    file.write_bytes(content)
    for name, data in beside.items():
        (folder / f"{name}.csv").write_bytes(data)
    size = len(content) + sum(map(len, beside.values()))
    for skip_bad in (False, True):
        with bounded(size):
            try:
                graphs = load_dataset(file, skip_bad=skip_bad, report=check_message)
                assert replace(graphs) == graphs  # which checks it all again
            except SaenError as error:
                check_message(error)


@contextmanager
def bounded(size: int) -> Iterator[None]:
    """What reading a file of this size may take."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < FREE_BYTES + BYTES_PER_BYTE * size
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


# -- files that are no good from the start -----------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(content=st.binary(max_size=200))
@fuzzing
def test_readers_survive_any_bytes(folder: Path, suffix: str, content: bytes) -> None:
    survive(folder / f"bytes{suffix}", suffix, content)


# -- good files with a few mistakes ------------------------------------------------------------

pieces = st.one_of(st.sampled_from(TOKENS), st.binary(max_size=4))
edits = st.tuples(st.integers(0, 10**6), st.integers(0, 12), pieces, st.booleans())


def edited(content: bytes, changes: list[tuple[int, int, bytes, bool]]) -> bytes:
    """Cut a few bytes somewhere and put others there, or what was cut once more."""
    for place, length, piece, again in changes:
        start = place % (len(content) + 1)
        cut = content[start : start + length]
        content = (
            content[:start] + (cut + piece + cut if again else piece) + content[start + length :]
        )
    return content


TEXTS = [
    *("jsonl", "csv", "tsv", "parquet", "smiles", "smi", "sdf", "graphml", "gml", "edgelist"),
    *("tables", "conllu", "nested", "any-json", "word-vectors", "preset", "splits"),
]
good = cache(lambda name: KINDS[name].samples())


@pytest.mark.parametrize("kind", TEXTS)
@given(changes=st.lists(edits, min_size=1, max_size=4))
@fuzzing
def test_readers_survive_damaged_files(
    folder: Path, kind: str, changes: list[tuple[int, int, bytes, bool]]
) -> None:
    data = edited(good(kind)[0], changes)
    with bounded(len(data)):
        survive_kind(KINDS[kind], folder / f"damaged-{kind}", data)


def test_readers_survive_a_block_that_rdkit_stumbles_over(folder: Path) -> None:
    pytest.importorskip("rdkit")
    digits = b"9" * 20
    changes = [(place, 0, digits, False) for place in (0, 120)]
    survive(folder / "block", ".sdf", edited(SDF, changes))


# -- files of the right form with the wrong content --------------------------------------------

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([10**6, 10**18, -(2**63), 2**64, 10**400]),
    st.floats(),
    st.sampled_from(["", "a", "C", "é", "\ud800", "\0", "x" * 5000]),
)
KEYS = ["nodes", "edges", "label", "id", "directed", "source", "target", "attributes", "parts", "x"]
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
node = st.one_of(trees, st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS[2:4], trees)))
edge = st.one_of(
    st.lists(st.integers(-1, 3), min_size=2, max_size=2),
    st.fixed_dictionaries({"source": leaves, "target": leaves}, optional={"label": leaves}),
    trees,
)
lines = st.one_of(
    trees,
    st.fixed_dictionaries(
        {
            "nodes": st.one_of(st.integers(-1, 10**7), st.lists(node, max_size=4), trees),
            "edges": st.one_of(st.lists(edge, max_size=4), trees),
        },
        optional={
            "target": leaves,
            "label": leaves,
            "directed": st.one_of(st.booleans(), leaves),
            "id": leaves,
        },
    ),
)


@given(documents=st.lists(lines, min_size=1, max_size=4))
@fuzzing
def test_readers_survive_any_json(folder: Path, documents: list[object]) -> None:
    text = "\n".join(json.dumps(document) for document in documents)
    survive(folder / "json", ".jsonl", text.encode())


CELLS = [
    *("", "a", "b", "1", "2", "-1", "1.0", "1.5", "nan", "inf", "1e999", "True", "é", '"x', '""'),
    *("99999999999999999999", " 1", "1_0", "0x1", "a b", '"a,b"', '"a\nb"', "' '", "1" * 5000),
]
HEADERS = [
    *("graph,source,target", "graph,source,target,label", "graph,source,target,w"),
    *("target,graph,source", "graph,node", "graph,node,label", "graph,node,label,w"),
    *("graph,target", "graph,label", "smiles", "smiles,target", "smiles,label"),
]
cells, headers = st.sampled_from(CELLS), st.sampled_from(HEADERS)
rows = st.lists(st.lists(cells, max_size=6).map(",".join), max_size=6).map("\n".join)
tables = st.tuples(headers, rows).map("\n".join).map(str.encode)


@given(edges=tables, nodes=tables, targets=tables)
@fuzzing
def test_readers_survive_any_tables(
    folder: Path, edges: bytes, nodes: bytes, targets: bytes
) -> None:
    survive(folder / "tables", ".csv", edges, nodes_file=nodes, targets_file=targets)


columns = st.one_of(
    st.lists(st.integers(-1, 2), min_size=3, max_size=3),
    st.lists(st.sampled_from(["a", "b", "", None]), min_size=3, max_size=3),
    st.lists(st.sampled_from([0.5, 1.0, float("nan"), None]), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.lists(st.sampled_from([b"a", b"\xff"]), min_size=3, max_size=3),
)


@given(frame=st.dictionaries(st.sampled_from(["graph", "source", "target", "label", "w"]), columns))
@fuzzing
def test_readers_survive_any_parquet_columns(folder: Path, frame: dict[str, list[object]]) -> None:
    import pandas as pd

    buffer = io.BytesIO()
    pd.DataFrame(frame).to_parquet(buffer)
    survive(folder / "columns", ".parquet", buffer.getvalue())


names = st.sampled_from(["a", "b", "", "&#65;", "&amp;", "1", "-1", "99999999999999999999"])
attributes = st.sampled_from(['key="d"', 'key="n"', 'id="a"', 'source="a"', 'target="b"', ""])
kinds = st.sampled_from(["int", "double", "string", "boolean", "long", "yfiles", "x"])
elements = st.recursive(
    names,
    lambda inner: st.builds(
        "<{0} {1} {2}>{3}</{0}>".format,
        st.sampled_from(["node", "edge", "data", "graph", "key", "port", "hyperedge", "default"]),
        attributes,
        attributes,
        st.lists(inner, max_size=3).map("".join),
    ),
    max_leaves=10,
)


@given(body=st.lists(elements, max_size=5).map("".join), kind=kinds, default=names)
@fuzzing
def test_readers_survive_any_graphml_elements(
    folder: Path, body: str, kind: str, default: str
) -> None:
    text = (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'<key id="d" for="node" attr.name="x" attr.type="{kind}">'
        f"<default>{default}</default></key>"
        f'<key id="n" for="node" attr.name="label" attr.type="{kind}"/>'
        f'<graph><node id="a"/><node id="b"/>{body}</graph></graphml>'
    )
    survive(folder / "xml", ".graphml", text.encode())


values = st.sampled_from(
    ["1", "-1", "0.5", "1E999", "NAN", '"a"', '"&#0;"', '"&#55296;"', "x", "[]"]
)
pairs = st.recursive(
    st.builds("{} {}".format, st.sampled_from(["id", "source", "target", "label", "x"]), values),
    lambda inner: st.builds(
        "{} [ {} ]".format,
        st.sampled_from(["node", "edge", "graph", "multigraph", "x"]),
        st.lists(inner, max_size=4).map("\n".join),
    ),
    max_leaves=12,
)


@given(body=st.lists(pairs, max_size=6).map("\n".join))
@fuzzing
def test_readers_survive_any_gml_pairs(folder: Path, body: str) -> None:
    survive(folder / "gml", ".gml", f"graph [ node [ id 1 ]\n{body}\n]".encode())
