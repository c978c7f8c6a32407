"""Every kind of file that saen reads: a good example of each, and how a user would read it.

An input is the content of one file, or a bundle: several files after lines `--- NAME`. Files with
a checksum are written as JSON and sealed before they are read, since a damaged one is refused
at once and what is behind the checksum would never be tried.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from saen import Classifier, Graphs, PartCountsClassifier, SAENClassifier, SaenError, compress
from saen._util.json_files import write_json
from saen.decompositions import Ego
from saen.io.embeddings import read_embeddings
from saen.io.formats.any_json import read_any_json
from saen.io.formats.conllu import read_conllu
from saen.io.formats.nested import read_nested
from saen.io.formats.tu import read_tu
from saen.io.loading import data_kind, load_dataset
from saen.io.options import ReadOptions
from saen.io.store import container
from saen.io.word_vectors import read_word_vectors
from saen.io.writing import write_data
from saen.jobs.inspect import inspect_file
from saen.jobs.store import open_run
from saen.learning.files import load
from saen.learning.models import forest
from saen.learning.models.networks import NetworkLearner
from saen.learning.parameters import validate
from saen.learning.presets import load_preset
from saen.learning.splits import splits_from_json
from saen.network.ensemble import _read_group

MAX_MESSAGE = 1200
"""Characters of the longest message, with room for the name of the file."""


class NotAnInput(Exception):  # noqa: N818
    """Bytes that no file can be made of: not counted, not kept."""


@dataclass(frozen=True)
class Kind:
    """`make` writes an input into a folder; `read` then does what a user would do with it."""

    samples: Callable[[], list[bytes]]
    make: Callable[[Path, bytes], Path]
    read: Callable[[Path], object]
    content: str = "text"
    """Text, JSON lines or bytes: what is changed, a word, a value or bytes."""


def survive(kind: Kind, folder: Path, data: bytes) -> bool:
    """Read one input: True if it was accepted, False if it was refused as it should be."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = kind.make(folder, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind.read(path)
        except SaenError as error:
            check_message(error)
            return False
    return True


def check_message(error: SaenError) -> None:
    """A message is one line that a person can read."""
    text = str(error)
    assert text.isprintable(), "control characters in a message"
    assert len(text) <= MAX_MESSAGE, "a message of thousands of characters"


# -- writing inputs ----------------------------------------------------------------------------


def one_file(name: str) -> Callable[[Path, bytes], Path]:
    """The input is the content of this file."""

    def make(folder: Path, data: bytes) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


_MARK = re.compile(rb"^--- ([\w.]{1,40})\n", re.MULTILINE)


def bundle(**files: bytes) -> bytes:
    """Several files in one input."""
    return b"".join(b"--- %s\n%s" % (name.encode(), data) for name, data in files.items())


def unbundle(data: bytes) -> dict[str, bytes]:
    """The files of a bundle."""
    _, *rest = _MARK.split(data)
    return dict(zip(map(bytes.decode, rest[::2]), rest[1::2], strict=True))


def _make_tables(folder: Path, data: bytes) -> Path:
    for name, content in unbundle(data).items():
        if name in ("edges", "nodes", "targets"):
            (folder / f"{name}.csv").write_bytes(content)
    return folder / "edges.csv"


def _make_tu(folder: Path, data: bytes) -> Path:
    for name, content in unbundle(data).items():
        (folder / f"toy_{name.replace('.', '')}.txt").write_bytes(content)
    return folder


def _make_run(folder: Path, data: bytes) -> Path:
    for name, content in unbundle(data).items():
        if name in ("settings", "summary"):
            write_json(folder / f"{name}.json", _parsed(content, dict), sealed=True)
    return folder


def _make_container(folder: Path, data: bytes) -> Path:
    """A `.saen` file with the right checksum, of a kind, a document and tensors as JSON."""
    try:
        kind, document, tensors = _parsed(data, list)
        arrays = {
            key: np.array(values, dtype=container._DTYPES[dtype]).reshape(shape)
            for key, (dtype, shape, values) in tensors.items()
        }
        container.write(folder / "file.saen", kind, document, arrays, durable=False)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, SaenError) as error:
        raise NotAnInput from error
    return folder / "file.saen"


def _parsed(data: bytes, expected: type) -> Any:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotAnInput from error
    if not isinstance(document, expected):
        raise NotAnInput
    return document


def as_json(path: Path) -> bytes:
    """A `.saen` file as `_make_container` takes it."""
    kind, document, arrays = container.read(path)
    tensors = {}
    for key, array in arrays.items():
        short = np.round(array, 3) if array.dtype.kind == "f" else array
        tensors[key] = [container._NAMES[array.dtype], array.shape, short.ravel().tolist()]
    return json.dumps([kind, document, tensors]).encode()


# -- reading them ------------------------------------------------------------------------------


def _graphs(path: Path) -> None:
    """As it is, and with bad graphs skipped."""
    data_kind(path)
    try:
        graphs = load_dataset(path)
    except SaenError:
        graphs = load_dataset(path, skip_bad=True, report=check_message)
        _check(graphs)
        raise
    _check(graphs)


def _check(graphs: Graphs) -> None:
    assert replace(graphs) == graphs  # which checks it all again


def _dataset(path: Path) -> None:
    load_dataset(path, cache=False)


def _anything(path: Path) -> None:
    try:
        inspect_file(path)
    finally:
        load(path)


def _model(path: Path) -> None:
    inspect_file(path)
    model = load(path)
    if not hasattr(model, "predict"):
        raise NotAnInput
    model.predict(toy_graphs())


def _any_json(path: Path) -> None:
    read_any_json(path, ReadOptions())


def _words(path: Path) -> None:
    read_word_vectors(path)
    read_word_vectors(path, ["dog", "New York"])


def _splits(path: Path) -> None:
    splits_from_json(path, 6)


def _preset(path: Path) -> None:
    preset = load_preset(str(path))
    settings = preset.settings("MUTAG")
    for choice in preset.choices()[:3]:
        model = preset.classifier(**{**settings, **choice})
        validate(model)
        json.dumps({**settings, **choice})  # as runs record them
        if isinstance(model, SAENClassifier):
            learner = model.learner()
            assert isinstance(learner, NetworkLearner)
            learner.settings(0).rate(1)
            learner.architecture(Ego(radii=(0, 1)).decompose(toy_graphs()), 2)


def _run(path: Path) -> None:
    inspect_file(path)
    with open_run(path, {"seed": 1}, anew=True):
        pass


def _group(path: Path) -> None:
    """What a run keeps of a finished group of networks."""
    _read_group(path)


# -- good examples -----------------------------------------------------------------------------


@cache
def toy_graphs() -> Graphs:
    return Graphs.from_edge_lists(
        [[(0, 1), (1, 2)], [(0, 0)], [(0, 1)]] * 2,
        node_labels=["C", "N", "é", "C", "C", "O"] * 2,
        targets=["yes", "no", "yes"] * 2,
        name="toy",
    )


@cache
def rich_graphs() -> Graphs:
    return Graphs.from_edge_lists(
        [[(0, 1), (1, 2)], [(0, 0)], [(0, 1)]],
        node_labels=["C", "N", "é", "C", "C", "O"],
        node_attributes=np.arange(12.0).reshape(6, 2) / 3,
        edge_labels=[1, 2, 3, 4],
        edge_attributes=[[0.5], [1.5], [2], [-1e9]],
        targets=["yes", "no", "yes"],
        ids=["a", "b", "c"],
    )


def _written(*names: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in names:
            options = {} if "." in file else {"format": file}
            write_data(rich_graphs(), folder / file, **options)
        return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}


def _graph_file(name: str) -> Callable[[], list[bytes]]:
    return lambda: [_written(name)[name]]


def _edge_tables() -> list[bytes]:
    files = _written("edges.csv")
    return [bundle(**{name: files[f"{name}.csv"] for name in ("edges", "nodes", "targets")})]


def _tu_folder() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        write_data(rich_graphs(), Path(folder, "toy"), format="tu")
        files = sorted(Path(folder, "toy").glob("toy_*.txt"))
        return [bundle(**{file.stem.removeprefix("toy_"): file.read_bytes() for file in files})]


def _saved(*things: Any) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file.saen")
        out = []
        for thing in things:
            thing.save(file) if hasattr(thing, "save") else container.save(thing, file)
            out.append(as_json(file))
        return out


def _fitted(*makes: Callable[[], Any]) -> Callable[[], list[bytes]]:
    def samples() -> list[bytes]:
        graphs = Graphs.concatenate([toy_graphs()] * 2)  # enough for inner folds
        with warnings.catch_warnings(), mock.patch.multiple(forest, N_TREES=2, MIN_LEAF=1):
            warnings.simplefilter("ignore")
            return _saved(*(make().fit(graphs, graphs.targets) for make in makes))

    return samples


def _network() -> Any:
    return SAENClassifier("ego(radii=(0, 1))", hidden=[[2], [2], [2]], epochs=1, inner_folds=2)


def _blend() -> Any:
    counts = PartCountsClassifier("neighbourhoods(depth=1)")
    return Classifier(candidates=[_network(), counts], inner_folds=2)


def _hierarchies() -> list[bytes]:
    return _saved(Ego(radii=(0, 1)).decompose(toy_graphs()))


def _compressed() -> list[bytes]:
    return _saved(compress(Ego(radii=(0, 1)).decompose(toy_graphs())))


def _raw_container() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file.saen")
        container.save(toy_graphs(), file)
        return [file.read_bytes()]


def _finished_group() -> list[bytes]:
    history = {"loss": [[0.5]], "accuracy": [[1.0]]}
    document = {"history": history, "networks": 1}
    return [json.dumps(["predictions", document, {"outputs": ["F64", [2, 1], [0.5, 1]]}]).encode()]


def _npy() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "v.npy"), np.ones((3, 2), dtype=np.float32))
        return [Path(folder, "v.npy").read_bytes()]


def _zip() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        write_data(toy_graphs(), Path(folder, "toy.zip"))
        return [Path(folder, "toy.zip").read_bytes()]


SMILES = b"smiles,target\nCC(=O)O,acid\nc1ccccc1,ring\n[Na+].[Cl-],salt\nC[C@H](N)C(=O)O,acid\n"
BLOCK = b"""
     RDKit          2D

  2  1  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.2990    0.7500    0.0000 O   0  0
  1  2  1  0
M  END
>  <target>
yes

$$$$
"""
SDF = b"a" + BLOCK + b"b" + BLOCK
GML = b"""graph [ directed 0
 node [ id 1 label "O" x 0.5 ]
 node [ id 2 label "H&amp;" x 1 ]
 edge [ source 1 target 2 label "single" w 2 ] ]"""
CONLLU = b"""# newdoc id = d1
# target = good
# text = Men sleep
1\tMen\tman\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\t_

# newdoc id = d2
# target = bad
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t0\troot\t_\t_
2\tle\tle\tDET\t_\t_\t1\tdet\t_\tSpaceAfter=No
"""
NESTED = b"""{"levels": ["words", "sentences", "notes"]}
{"parts": {"s": [{"word": ["the", "dog"]}, {"word": [["a", 1]]}]}, "target": "a", "id": "x"}
{"parts": {"s": [{"word": ["cat"]}], "t": []}, "target": "b", "id": "y"}
"""
ANY_JSON = b"""{"name": "R", "age": 3, "owners": [{"city": "Rome"}, {"city": "Oslo"}], "target": 1}
{"name": "Tom", "age": 2, "owners": [], "good": true, "target": 2, "id": "t"}
"""
PRESET = b"""model = "network"
[defaults]
decomposition = "ego(radii=(0, 1))"
layers = [[2], [2, 2], [3, 1]]
learning_rate = 1e-2
epochs = 30
[datasets.MUTAG]
batch_size = 16
[grid]
dropout = [0.0, 0.5]
"""
COUNTS = b"""model = "part_counts"
[defaults]
decomposition = "neighbourhoods(depth=2)"
[grid]
C = [1.0, 10.0]
"""
SPLITS = [
    b'{"repeats": [[{"train": [0, 1, 2], "test": [3, 4, 5]}, '
    b'{"train": [3, 4, 5], "test": [0, 1, 2]}]]}',
    b'{"train": [0, 1, 2], "valid": [3], "test": [4, 5]}',
]
RUN = bundle(
    settings=b'{"dataset": "toy", "seed": 1, "versions": {"saen": "1.0"}}\n',
    summary=b'{"accuracy": {"mean": 0.5}}\n',
)
WORDS = b"2 3\ndog 1 0 0.5\nNew York 0 1 -2e3\n"


def _text(*samples: bytes) -> Callable[[], list[bytes]]:
    return lambda: list(samples)


KINDS = {
    "jsonl": Kind(_graph_file("edges.jsonl"), one_file("edges.jsonl"), _graphs, content="json"),
    "csv": Kind(_graph_file("edges.csv"), one_file("edges.csv"), _graphs),
    "tsv": Kind(_graph_file("edges.tsv"), one_file("edges.tsv"), _graphs),
    "tables": Kind(_edge_tables, _make_tables, _graphs),
    "parquet": Kind(
        _graph_file("edges.parquet"), one_file("edges.parquet"), _graphs, content="bytes"
    ),
    "smiles": Kind(_text(SMILES), one_file("molecules.csv"), _graphs),
    "smi": Kind(_text(b"CCO ethanol\nC[N+](=O)[O-]\n"), one_file("molecules.smi"), _graphs),
    "sdf": Kind(_text(SDF), one_file("molecules.sdf"), _graphs),
    "graphml": Kind(
        lambda: [_written("graphml")["graphml/0.graphml"]], one_file("a.graphml"), _graphs
    ),
    "gml": Kind(_text(GML), one_file("a.gml"), _graphs),
    "edgelist": Kind(_text(b"# edges\n1 2\n2,3\n7\n"), one_file("a.txt"), _graphs),
    "tu": Kind(_tu_folder, _make_tu, read_tu),
    "zip": Kind(_zip, one_file("toy.zip"), _dataset, content="bytes"),
    "conllu": Kind(_text(CONLLU), one_file("a.conllu"), read_conllu),
    "nested": Kind(_text(NESTED), one_file("a.jsonl"), read_nested, content="json"),
    "any-json": Kind(_text(ANY_JSON), one_file("a.jsonl"), _any_json, content="json"),
    "word-vectors": Kind(_text(WORDS, WORDS[4:]), one_file("vectors.txt"), _words),
    "preset": Kind(_text(PRESET, COUNTS), one_file("own.toml"), _preset),
    "splits": Kind(_text(*SPLITS), one_file("splits.json"), _splits, content="json"),
    "run": Kind(_text(RUN), _make_run, _run, content="json"),
    "group": Kind(_finished_group, _make_container, _group, content="json"),
    "saen": Kind(_raw_container, one_file("file.saen"), _anything, content="bytes"),
    "graphs": Kind(
        lambda: _saved(rich_graphs(), toy_graphs()), _make_container, _anything, content="json"
    ),
    "hierarchy": Kind(_hierarchies, _make_container, _anything, content="json"),
    "compressed": Kind(_compressed, _make_container, _anything, content="json"),
    "model": Kind(_fitted(_network), _make_container, _model, content="json"),
    "part-counts": Kind(
        _fitted(
            lambda: PartCountsClassifier("neighbourhoods(depth=1)"),
            lambda: PartCountsClassifier("neighbourhoods(depth=1)", model="forest"),
        ),
        _make_container,
        _model,
        content="json",
    ),
    "blend": Kind(_fitted(_blend), _make_container, _model, content="json"),
    "embeddings": Kind(_npy, one_file("vectors.npy"), read_embeddings, content="bytes"),
}

TOKENS = [
    *(b",", b"\n", b"\r\n", b'"', b" ", b"\0", b"\xff", b"\xef\xbb\xbf", b"[", b"]", b"{", b"}"),
    *(b"-1", b"0", b"1", b"99999999999999999999", b"1e999", b"nan", b"NaN", b"null", b"true"),
    *(b'"id"', b'"label"', b'"nodes"', b'"edges"', b"graph", b"node", b"</node>", b"<node/>"),
    *(b"&amp;", b"&x;", b"<!DOCTYPE a>", b'"parts"', b"#", b"\xc3\xa9", b"\\ud800", b"'"),
    *(b'"target"', b'"levels"', b"source", b"target", b"smiles", b"\t", b"--- "),
    *(b"[grid]", b"layers", b"hidden", b"epochs", b"[[1]]", b"# newdoc", b"# target = ", b"1.1"),
]
LEAVES = [
    *(None, True, False, -1, 0, 1, 2, 255, 2**31, 2**63, 2**64, 10**18, 10**400, 0.5, 1e308),
    *(math.nan, math.inf, "", "a", "\0", "\ud800", "x" * 5000, [], {}, [[]], [0], {"a": 0}),
]
