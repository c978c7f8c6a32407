from __future__ import annotations

import subprocess
import sys

import numpy as np

from saen import (
    Attributes,
    Hierarchy,
    Relation,
    Vocabulary,
    compress,
    merge,
)
from saen.data.content_hash import attribute_keys, value_keys


def hexadecimal(keys: np.ndarray) -> list[str]:
    return [f"{one:016x}{other:016x}" for one, other in keys.tolist()]


def small() -> Hierarchy:
    atoms = Attributes(np.array([0, 1, -1]), Vocabulary(["C", "N"]))
    pairs = Relation([0, 0, 1, 3], [0, 0, 2], [0, 1, 1], ("root", "elem"), 3, [1, 2, 3])
    return Hierarchy(atoms, [pairs, Relation([0, 3], [0, 1, 2], [0, 0, 0], ("carry",), 3)])


def test_keys_stay_what_they_are():
    """Stored collections are merged by key: these values may never change."""
    assert hexadecimal(value_keys([1, "1", (1, "1"), "π"], "label")) == [
        "a3a9712e369f98c6f70507af23bcab4e",
        "548fe8a8728a5deb2576fcedc2b33944",
        "df961b777c7a3855d199f9b1d4cb357a",
        "1cf4f0e6f256d837d309d70eeb7a94b7",
    ]
    assert hexadecimal(value_keys(["root"], "role")) == ["eef253ab5b5418325232c520531611c9"]
    labels = Attributes(np.array([0, 1, 2, -1]), Vocabulary([1, "1", (1, "1")]))
    assert hexadecimal(attribute_keys(labels)) == [
        "a3502c5b1133ee2800e9b878aeac6ee4",
        "3deeaf99a1fecdd4f0e6170a7541fa2a",
        "5e8f28f0ac06afafac4f748b556f1b5a",
        "71136d3bef079afdd8fa23b56c2503bc",
    ]
    reals = Attributes(vectors=np.array([[0.5, -0.0], [0.0, 0.1]]))
    assert hexadecimal(attribute_keys(reals)) == [
        "7af80952675a8766e5adc6f6519ee54f",
        "69ae7e57fa0d34b77becb1537cc85c7c",
    ]
    both = Attributes(np.array([0]), Vocabulary([1]), np.array([[0.5]], np.float32))
    assert hexadecimal(attribute_keys(both)) == ["eda34d81d802c34b6c1d004878a95f78"]
    compressed = compress(small())
    found = [
        [hexadecimal(compressed.keys[level])[label] for label in compressed.unique_of(level)]
        for level in range(3)
    ]
    assert found == [
        [
            "def2d4a3a7933d4b64b39935e5f8cead",
            "8f943c910c3d176391853fd6fe464859",
            "71136d3bef079afdd8fa23b56c2503bc",
        ],
        [
            "e220a8397b1dcdaf68850ac74e2e5a26",
            "746bf09d0ddbd07c0ee1e7b5410f14ba",
            "a01fe15c093e13409f0038b9c0a34d12",
        ],
        ["3dbb15c60768fc4ae2bd6f2792bf02cc"],
    ]


def test_keys_tell_types_roles_labels_and_the_unseen_apart():
    kinds = [([1, "1", "", (1,), ("1",), (1, 1)], "label"), (["1", ""], "role"), ([""], "unseen")]
    keys = np.vstack([value_keys(values, kind) for values, kind in kinds])
    assert len(np.unique(keys, axis=0)) == len(keys)


def test_keys_of_a_number_are_the_same_in_32_and_64_bits():
    alone = Relation([0, 1], [0], [0], ("part",), 1)
    narrow, wide = (
        Hierarchy(Attributes(vectors=np.array([[0.5]], dtype)), [alone])
        for dtype in (np.float32, np.float64)
    )
    assert np.array_equal(compress(narrow).keys[0], compress(wide).keys[0])
    assert merge([compress(narrow), compress(wide)]).top.tolist() == [0, 0]


def test_keys_are_the_same_in_another_process():
    code = (
        "from saen import Graphs, compress\n"
        "from saen.decompositions import Ego\n"
        "graphs = Graphs.from_edge_lists([[(0, 1), (1, 2)]], node_labels=['C', 'N', 'C'])\n"
        "print([keys.tolist() for keys in compress(Ego().decompose(graphs)).keys])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
