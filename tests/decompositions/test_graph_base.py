"""The settings that all decompositions of graphs share."""

from __future__ import annotations

from typing import Any

import pytest

from saen import Graphs
from saen.decompositions import Edges, Ego, Neighbourhoods, Nodes, Paths
from tests.refusals import refuses

ALL = [Ego, Neighbourhoods, Paths, Nodes, Edges]
KINDS = (
    "auto, node, element, degree, core, triangles, log-degree, log-core, log-triangles, rings, "
    "hub, distance, attributes, attribute-bins"
)


@pytest.mark.parametrize("decomposition", ALL)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"direction": "up"}, "direction must be one of both, out, in, not 'up'"),
        (
            {"node_labels": "degre"},
            f"unknown label 'degre' (did you mean degree?): choose from {KINDS}",
        ),
        ({"node_labels": "node,?"}, f"unknown label '?': choose from {KINDS}"),
        ({"node_labels": "core:2"}, "the label 'core' takes no argument, found 'core:2'"),
        *(
            (
                {"node_labels": label},
                f"log-core:b needs an integer ≥ 1, the bins per doubling, not {label!r}",
            )
            for label in ("log-core:-1", "log-core:x", "log-core:²", "log-core:0")
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    decomposition: Any, arguments: dict[str, str], message: str
) -> None:
    with refuses(message):
        decomposition(**arguments)


@pytest.mark.parametrize("decomposition", [Ego, Neighbourhoods, Paths])
def test_edges_are_ignored_roles_or_objects(decomposition: Any) -> None:
    known = "none, roles, auto, bins, objects"
    with refuses(f"edges must be one of {known}, not 'role' (did you mean roles?)"):
        decomposition(edges="role")
    with refuses(
        "edges='objects' have no distance to the root: leave the label 'distance' out, "
        "or use edges='roles'"
    ):
        decomposition(edges="objects", node_labels="node,distance")


@pytest.mark.parametrize("decomposition", ALL)
def test_labels_that_the_graphs_do_not_have_are_refused(decomposition: Any) -> None:
    bare = Graphs.from_edge_lists([[(0, 1)]])
    with refuses(
        "these graphs have no node labels: add labels to their nodes, or train with "
        'node_labels="degree"'
    ):
        decomposition(node_labels="node").decompose(bare)
    what = "edge" if decomposition is Edges else "node"
    with refuses(f"these graphs have no {what} attributes"):
        decomposition(node_labels="attributes").decompose(bare)


RING, HUB = ("ring of 6", "2 ring edges", "1 from hub"), ("no ring", "0 ring edges", "hub")
FAR = ("C", "6+ from hub", "no ring", "0 ring edges", 2)


@pytest.mark.parametrize(
    ("labels", "label", "text"),
    [
        ("distance,hub", (2, 1), ("2 from hub", 1)),
        ("node,distance,hub,rings", ("C", 6, 0, 0, 2), FAR),
        ("rings,hub", ("edge", (6, 2, 1), (0, 0, 0)), ("edge", RING, HUB)),
        (
            "node,log-degree:1",
            ("edge", ("C", 2), ("O", 1), "double"),
            ("edge", ("C", "degree 3–6"), ("O", "degree 1–2"), "double"),
        ),
    ],
)
def test_labels_of_nodes_and_edges_are_described_in_words(labels, label, text):
    edges = "objects" if label[0] == "edge" else "none"
    assert Ego(radii=(1,), node_labels=labels, edges=edges).describe_label(label) == text
