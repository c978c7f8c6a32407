"""JSON lines parsed many at a time: the same graphs, or the same error, as line by line."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import SaenError
from saen.io.formats import jsonl, jsonl_blocks
from saen.io.formats.jsonl_blocks import read_block
from saen.io.loading import load_dataset
from saen.io.options import ReadOptions
from saen.io.parsing.records import BadGraphs
from tests.io.test_jsonl import as_line, written
from tests.properties.plain import PlainGraphs, plain_graphs

pytestmark = pytest.mark.filterwarnings("ignore::saen.io.loading.DuplicateIdsWarning")

LABELLED = {"id": "a", "target": 1, "nodes": ["C", "O", "é"], "edges": [[0, 1], [1, 2]]}
COUNTED = {"nodes": 3, "edges": [[0, 1], [2, 1]], "directed": True, "label": "yes"}
FULL = {
    "id": 7,
    "target": 0.5,
    "nodes": [{"label": 1, "attributes": [0.5, 2]}, {"label": 2, "attributes": [1, -1e-3]}],
    "edges": [{"source": 0, "target": 1, "label": "x", "attributes": 2.5}],
}
SHAPES = [LABELLED, COUNTED, FULL]
ODD_VALUES = [None, True, -1, 5, 1.0, 2.5, 1e300, 2**53, 2**63, "", "C", "a\0", [], [1], [[0]], {}]


def outcome(file: Path) -> Any:
    """The graphs and ids that reading gives, or the error."""
    try:
        graphs = load_dataset(file)
    except SaenError as error:
        return str(error)
    arrays = (graphs.node_labels, graphs.edge_labels, graphs.targets, graphs.ids)
    return graphs, graphs.ids.tolist(), [None if a is None else a.dtype for a in arrays]


def both_ways(file: Path) -> tuple[Any, Any]:
    """The outcome with blocks, and line by line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl_blocks, "MIN_BYTES", 0)
        fast = outcome(file)
        patch.setattr(jsonl, "read_block", lambda *_: None)
        return fast, outcome(file)


@pytest.mark.parametrize("graph", SHAPES)
def test_jsonl_blocks_take_every_usual_way_to_write_graphs(
    graph: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl_blocks, "MIN_BYTES", 0)
    file = written(tmp_path, graph, graph, graph)
    block = read_block(file.read_bytes(), file, 1, 0)
    assert block is not None
    assert [*block.lines] == [1, 2, 3]
    fast, slow = both_ways(file)
    assert not isinstance(slow, str)
    assert fast == slow


@given(plain_graphs(), st.booleans(), st.booleans())
def test_jsonl_blocks_and_lines_give_the_same_graphs(
    tmp_path_factory: pytest.TempPathFactory, plain: PlainGraphs, ids: bool, objects: bool
) -> None:
    lines = [as_line(plain, graph, ids, objects) for graph in range(len(plain.sizes))]
    fast, slow = both_ways(written(tmp_path_factory.mktemp("jsonl"), *lines))
    assert fast == slow


def _places(value: Any) -> list[list[Any]]:
    """The path of keys to every value inside."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    return [[key, *rest] for key in keys for rest in [[], *_places(value[key])]]


@given(st.data())
def test_jsonl_blocks_with_a_wrong_value_say_what_lines_say(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    graph = data.draw(st.sampled_from(SHAPES))
    changed = copy.deepcopy(graph)
    *way, last = data.draw(st.sampled_from(_places(graph)))
    inner: Any = changed
    for key in way:
        inner = inner[key]
    if isinstance(inner, dict) and data.draw(st.booleans()):
        inner[data.draw(st.sampled_from(["label", "odd"]))] = inner.pop(last)
    else:
        inner[last] = data.draw(st.sampled_from(ODD_VALUES))
    lines = data.draw(st.permutations([graph, graph, changed]))
    fast, slow = both_ways(written(tmp_path_factory.mktemp("jsonl"), *lines))
    assert fast == slow


@given(st.data())
def test_jsonl_blocks_with_damaged_bytes_say_what_lines_say(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("jsonl") / "x.jsonl"
    text = (json.dumps(data.draw(st.sampled_from(SHAPES))) + "\n").encode() * 3
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 3))
    tokens = [b"\n", b"{", b"}", b"[", b"]", b",", b'"', b"\\", b"0", b"-", b"1e9", b"\xff", b" "]
    new = data.draw(st.sampled_from(tokens) | st.binary(max_size=3))
    file.write_bytes(text[:place] + new + text[place + length :])
    fast, slow = both_ways(file)
    assert fast == slow


@pytest.mark.parametrize(
    "text",
    [
        '{"nodes": 1,\n"edges": []}\n{"nodes": 1, "edges": []}{"nodes": 1, "edges": []}\n',
        '{"nodes": 1, "edges": []}\n{"nodes": NaN, "edges": []}\n',
        '{"nodes": 1, "edges": [], "target": 1.5}\n{"nodes": 1, "edges": [], "target": Infinity}\n',
        '{"nodes": 1, "nodes": 2, "edges": [[0, 1]]}\n',
        '{"nodes": ["\\u0000"], "edges": []}\n',
        '{"nodes": ["\\ud800"], "edges": []}\n',
        '\ufeff{"nodes": 1, "edges": []}\r\n{"nodes": 2, "edges": []}\r\n\r\n',
        '{"nodes": 1, "edges": []}',
        '{"nodes": 1, "edges": []} \n\n  {"nodes": 1, "edges": []}\n',
        '{"nodes": 1, "edges": [], "target": "a"}\n{"nodes": 1, "edges": []}\n',
        '{"nodes": 9000000, "edges": []}\n{"nodes": 2, "edges": []}\n',
        '{"nodes": 9223372036854775808, "edges": []}\n{"nodes": 2, "edges": []}\n',
        '{"nodes": 4611686018427387904, "edges": []}\n' * 2,
    ],
)
def test_jsonl_blocks_of_odd_text_are_what_lines_are(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(text.encode())
    fast, slow = both_ways(file)
    assert fast == slow


def test_jsonl_blocks_count_lines_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "_BLOCK_BYTES", 200)
    monkeypatch.setattr(jsonl_blocks, "MIN_BYTES", 0)
    good = [{"nodes": ["C"], "edges": [], "target": row} for row in range(30)]
    file = written(tmp_path, *good)
    assert load_dataset(file).targets.tolist() == [*range(30)]
    assert load_dataset(file).ids.tolist() == [*range(30)]
    file = written(tmp_path, *good, {"nodes": ["C"], "edges": [[0, 1]], "target": 1})
    assert ", line 31: edge 0 refers to node 1" in outcome(file)
    file = written(tmp_path, *good, {"nodes": [1], "edges": [], "target": 1})
    assert ", line 31: integer node labels, but earlier graphs have" in outcome(file)


def test_jsonl_a_stream_gives_the_graphs_of_the_file_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "PART_BYTES", 500)
    monkeypatch.setattr(jsonl, "_BLOCK_BYTES", 200)
    monkeypatch.setattr(jsonl_blocks, "MIN_BYTES", 0)
    rows = [{"id": f"g{k}", "nodes": k, "edges": [[0, k - 1]], "target": k} for k in range(1, 60)]
    file = written(tmp_path, *rows)
    raising = BadGraphs(skip=False, report=print)
    parts = [*jsonl.stream_jsonl(file, ReadOptions(), raising)]
    assert len(parts) > 3
    whole = load_dataset(file)
    assert type(whole).concatenate(parts) == whole
    assert np.concatenate([part.ids for part in parts]).tolist() == whole.ids.tolist()
    file.write_text(file.read_text() + (json.dumps({"nodes": 1, "edges": []}) + "\n") * 50)
    with pytest.raises(SaenError, match="either all graphs need one, or none"):
        [*jsonl.stream_jsonl(file, ReadOptions(), raising)]
