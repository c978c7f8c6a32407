"""GraphML and GML: one graph per file, parsed by networkx."""

from __future__ import annotations

import io
import warnings
from collections import ChainMap
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from saen._util.arrays import Array
from saen._util.strings import first_duplicate
from saen.data.graphs import Graphs
from saen.errors import FileError, InputError
from saen.io.options import ReadOptions
from saen.io.parsing.columns import (
    LABEL,
    Choice,
    Items,
    numbered,
    text_columns,
)
from saen.io.parsing.records import Record
from saen.io.parsing.text_files import read_bytes, text_of

SUFFIXES = (".graphml", ".gml")

_NODE = "{http://graphml.graphdrawing.org/xmlns}node"


def read_graphml(path: Path, options: ReadOptions) -> Record:
    """Read a GraphML or GML file; nodes are in the order of the file.

    The attribute `label` of nodes and edges and all others of text become their labels, in this
    order, those that hold numbers real attributes; `options` name others.

    >>> file = getfixture("tmp_path") / "water.gml"
    >>> _ = file.write_text('''graph [
    ...   node [ id 1 label "O" ]
    ...   node [ id 2 label "H" ]
    ...   edge [ source 1 target 2 length 0.96 ]
    ... ]''')
    >>> record = read_graphml(file, ReadOptions())
    >>> record.edges.tolist(), record.columns["node_labels"].tolist(), record.names
    ([[0, 1]], ['O', 'H'], {'node_labels': (), 'edge_attributes': ('length',)})
    """
    data = read_bytes(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about ports and keys without types
            graph = (_graphml if path.suffix == ".graphml" else _gml)(data, path)
        return _record(graph, path, len(data), options)
    except FileError:
        raise
    except InputError as error:
        raise FileError(str(error), path=path) from None
    except RecursionError:
        raise FileError("nested too deeply", path=path) from None
    except Exception as error:
        # networkx raises errors of any kind for a bad file.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise FileError(f"invalid {path.suffix[1:]}: {reason}", path=path) from None


def _graphml(data: bytes, path: Path) -> Any:
    import networkx

    if not data.strip():
        raise FileError("the file is empty", path=path)
    _refuse_entities(data, path)
    reader = networkx.GraphMLReader(force_multigraph=True)
    graphs = list(reader(path=io.BytesIO(data)))
    if len(graphs) != 1:
        raise FileError(f"{len(graphs)} graphs, expected one per file", path=path)
    declared = [node.get("id") for node in reader.xml.iter(_NODE)]
    [graph] = graphs
    if len(set(declared)) < len(declared):
        raise InputError(f"two nodes have the id {first_duplicate(declared)!r}")
    if set(declared) - set(graph):
        raise InputError("nested graphs are not supported")
    if set(graph) - set(declared):
        name = min(set(graph) - set(declared))
        raise InputError(f"an edge refers to node {name!r}, but no node has that id")
    return graph


def _refuse_entities(data: bytes, path: Path) -> None:
    """Graphs need no document type, and without one there are no entities to expand."""

    def doctype(*_: object) -> None:
        raise FileError("refused: document types (<!DOCTYPE …>) are not supported", path=path)

    def root(*_: object) -> None:
        raise _RootError

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = doctype
    parser.StartElementHandler = root  # entities are defined before it
    with suppress(_RootError):
        parser.Parse(data, True)


class _RootError(Exception):
    """Raised at the first element, to stop parsing."""


def _gml(data: bytes, path: Path) -> Any:
    import networkx

    return networkx.parse_gml(text_of(data, path).split("\n"), label="id")


def _record(graph: Any, path: Path, n_bytes: int, options: ReadOptions) -> Record:
    nodes = list(graph.nodes(data=True))
    edges = [((source, target), data) for source, target, data in graph.edges(data=True)]
    columns: dict[str, Array] = {}
    names: dict[str, tuple[str, ...]] = {}
    choices: list[Choice] = []
    for what, rows in (("node", nodes), ("edge", edges)):
        if not rows:
            continue
        default = graph.graph.get(f"{what}_default", {})
        kinds = text_columns([default, *(own for _, own in rows)])
        choice = Choice.by(what, kinds, options)
        items = Items(
            what,
            [ChainMap(own, default) for _, own in rows],
            lambda row, what=what, rows=rows: f"{what} {rows[row][0]!r:.60}",  # type: ignore[misc]
            n_bytes,
        )
        own, own_names = items.chosen(choice)
        columns, names = columns | own, names | own_names
        choices.append(choice)
    position = {node: place for place, node in enumerate(graph)}
    pairs = [(position[source], position[target]) for (source, target), _ in edges]
    return Record(
        path,
        None,
        len(graph),
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        columns,
        names,
        directed=graph.is_directed(),
        choices=tuple(choices),
    )


# -- writing -----------------------------------------------------------------------------------


def write_graphml(graphs: Graphs, folder: Path) -> list[str]:
    """Write one GraphML file per graph into a folder; returns the file names.

    Attributes are named `attribute_0`, `attribute_1`, …, padded so that they sort by number.
    """
    import networkx

    from saen.io.libraries.networkx import to_networkx

    digits = len(str(max(len(graphs) - 1, 0)))
    names = [f"{number:0{digits}}.graphml" for number in range(len(graphs))]
    for name, graph in zip(names, to_networkx(graphs), strict=True):
        graph.graph.clear()  # the target goes to targets.csv
        for data in (*graph.nodes.values(), *graph.edges.values()):
            values = data.pop("attributes", [])
            data |= dict(zip(numbered("attribute", len(values)), values, strict=True))
            if isinstance(data.get(LABEL), tuple):
                labels = data.pop(LABEL)
                data |= dict(zip(numbered(LABEL, len(labels)), labels, strict=True))
        networkx.write_graphml_xml(graph, folder / name)
    return names
