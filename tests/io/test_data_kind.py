"""What a path holds, from its first line."""

import pytest

from saen.decompositions import make_decomposition
from saen.io.loading import data_kind
from saen.jobs.job import Job


@pytest.mark.parametrize(
    ("name", "text", "kind", "decomposition"),
    [
        ("a.jsonl", '{"parts": {"w": ["x"]}}', "nested", "nested"),
        ("b.jsonl", '{"levels": ["words", "notes"]}', "nested", "nested"),
        ("c.jsonl", '{"nodes": ["parts"], "edges": []}', "graphs", None),
        ("d.csv", 'id,"SMILES",y\n', "graphs", None),
        ("e.csv", "graph,source,target\n", "graphs", None),
        ("f.conllu", "", "documents", "dependency_paths"),
    ],
)
def test_data_kind_decides_the_decomposition(tmp_path, name, text, kind, decomposition):
    path = tmp_path / name
    path.write_text(text)
    assert data_kind(path) == kind
    assert Job(str(path)).settings().get("decomposition") == decomposition
    assert Job(str(path), overrides={"decomposition": "x"}).settings()["decomposition"] == "x"


def test_true_and_false_are_written_either_way():
    for text in ("true", "True"):
        assert make_decomposition(f"paths(both_ways={text})").both_ways is True
    assert make_decomposition("paths(both_ways=false)").both_ways is False
