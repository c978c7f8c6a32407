"""What a path holds, from its first line."""

import pytest

from saen.decompositions import make_decomposition
from saen.io.loading import DuplicateIdsWarning, data_kind, load_dataset
from saen.learning.jobs.job import Job


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


def test_ids_that_repeat_are_a_warning_and_no_loss(tmp_path):
    file = tmp_path / "g.jsonl"
    file.write_text('{"id": "a", "nodes": 1, "edges": []}\n' * 2)
    with pytest.warns(DuplicateIdsWarning, match="1 id used by more than one graph: 'a'"):
        assert len(load_dataset(file)) == 2
