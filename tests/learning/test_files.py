from __future__ import annotations

import json
import pickle
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from safetensors import safe_open
from sklearn.base import clone

import saen
from saen import (
    Attributes,
    Classifier,
    Decomposition,
    FileError,
    Graphs,
    Hierarchy,
    InputError,
    PartCountsClassifier,
    Relation,
    SAENClassifier,
    SaenError,
    SAENRegressor,
    SAENTransformer,
    Vocabulary,
    generate_threads,
)
from saen.data.documents import Documents
from saen.data.nested import NestedData
from saen.decompositions import Ego
from saen.decompositions.registry import DECOMPOSITIONS
from saen.io.embeddings import read_embeddings
from saen.io.store import container
from saen.learning.models import forest
from tests.refusals import refuses

SMALL: dict[str, Any] = {
    "hidden": ((4,), (6, 4), (6,)),
    "epochs": 2,
    "n_models": 2,
    "device": "cpu",  # where the same seed gives the same bits
}


@pytest.fixture(scope="module")
def threads() -> Graphs:
    return generate_threads(30, average_nodes=12, seed=1)


@pytest.fixture(scope="module")
def new() -> Graphs:
    return generate_threads(20, average_nodes=20, seed=2)


@pytest.fixture(scope="module")
def model(threads: Graphs) -> SAENClassifier:
    return SAENClassifier(**SMALL).fit(threads, threads.targets)


@pytest.fixture(scope="module")
def linear(threads: Graphs) -> PartCountsClassifier:
    return PartCountsClassifier(C=1.0, depth=None, inner_folds=0).fit(threads, threads.targets)


@pytest.fixture(scope="module")
def trees(threads: Graphs) -> PartCountsClassifier:
    model = PartCountsClassifier(model="forest", depth=1, inner_folds=0)
    with mock.patch.object(forest, "N_TREES", 3):
        return model.fit(threads, threads.targets)


@pytest.fixture(scope="module")
def blend(threads: Graphs) -> Classifier:
    counts = PartCountsClassifier("neighbourhoods(depth=1)", C=1.0)
    model = Classifier(candidates=[counts, SAENClassifier(**SMALL | {"n_models": 1})])
    model.fit(threads, threads.targets)
    assert [type(each.model).__name__ for each in model.members_] == [
        "FittedCounts",
        "FittedNetworks",
    ]
    return model


def codes_of(threads: Graphs) -> np.ndarray:
    return np.unique(threads.targets, return_inverse=True)[1]


def with_vectors(graphs: Graphs, width: int) -> Graphs:
    attributes = np.random.default_rng(0).normal(size=(graphs.n_nodes, width))
    return graphs._with(node_attributes=attributes)


CLASSES: dict[str, Callable[[np.ndarray], Any]] = {
    "strings": lambda codes: np.array(["π no", "yes"])[codes],
    "object strings": lambda codes: np.array(["no", "yes"], dtype=object)[codes],
    "int64": lambda codes: np.array([-3, 2**40])[codes],
    "int8": lambda codes: codes.astype(np.int8),
    "uint8": lambda codes: codes.astype(np.uint8),
    "int16": lambda codes: codes.astype(np.int16),
    "truth values": lambda codes: codes == 1,
    "floats": lambda codes: codes.astype(np.float64),
}


@pytest.mark.parametrize("classes", CLASSES)
def test_a_classifier_comes_back_with_its_classes(
    threads: Graphs, new: Graphs, tmp_path: Path, classes: str
) -> None:
    y = CLASSES[classes](codes_of(threads))
    one = SAENClassifier(**SMALL).fit(threads, y)
    size = one.save(tmp_path / "model.saen")
    assert size == (tmp_path / "model.saen").stat().st_size
    for other in (SAENClassifier.load(tmp_path / "model.saen"), saen.load(tmp_path / "model.saen")):
        assert type(other) is SAENClassifier
        assert other.classes_.dtype == one.classes_.dtype
        assert_array_equal(other.classes_, one.classes_)
        assert_array_equal(other.predict(new), one.predict(new))
        assert other.predict(new).dtype == one.predict(new).dtype
        assert_array_equal(other.predict_proba(new), one.predict_proba(new))
        assert_array_equal(other.decision_function(new), one.decision_function(new))


@pytest.mark.parametrize("k", [None, 1, 3])
def test_a_regressor_comes_back_with_its_units(
    threads: Graphs, new: Graphs, tmp_path: Path, k: int | None
) -> None:
    y = threads.sizes * 1e3 if k is None else np.outer(threads.sizes, np.arange(1, k + 1))
    one = SAENRegressor(**SMALL, dtype="float64").fit(threads, y)
    one.save(tmp_path / "model.saen")
    other = SAENRegressor.load(tmp_path / "model.saen")
    assert_array_equal(other.predict(new), one.predict(new))
    assert other.predict(new).shape == one.predict(new).shape
    assert other.network_.dtype == torch.float64


def test_a_transformer_comes_back_with_its_vectors(
    threads: Graphs, new: Graphs, tmp_path: Path
) -> None:
    one = SAENTransformer(**SMALL).fit(threads, threads.targets)
    one.save(tmp_path / "model.saen")
    other = SAENTransformer.load(tmp_path / "model.saen")
    assert type(other) is SAENTransformer
    assert_array_equal(other.transform(new), one.transform(new))
    for level in range(3):
        assert_array_equal(other.embed(new, level), one.embed(new, level))


@pytest.mark.parametrize(
    ("options", "graphs"),
    [
        ({"radii": (0, 2), "node_labels": "degree"}, lambda g: g),
        ({"node_labels": "log-degree:2,attributes"}, lambda g: with_vectors(g, 3)),
        ({"node_labels": "attributes"}, lambda g: with_vectors(g, 2)),
        (
            {"min_count": 5, "normalization": "none", "dropout": 0.3, "negative_slope": 0.01},
            lambda g: g,
        ),
        ({"decomposition": Ego((1,), "degree", direction="both")}, lambda g: g),
        ({"hidden": "auto", "n_models": 1}, lambda g: g),
        ({"inner_folds": 0}, lambda g: g),
    ],
)
def test_every_kind_of_model_comes_back(
    threads: Graphs,
    new: Graphs,
    tmp_path: Path,
    options: dict[str, Any],
    graphs: Callable[[Graphs], Graphs],
) -> None:
    one = SAENClassifier(**(SMALL | options)).fit(graphs(threads), threads.targets)
    one.save(tmp_path / "model.saen")
    other = SAENClassifier.load(tmp_path / "model.saen")
    assert_array_equal(other.predict_proba(graphs(new)), one.predict_proba(graphs(new)))
    assert other.decomposition_ == one.decomposition_
    assert other.network_.architecture == one.network_.architecture
    assert other.schema_ == one.schema_
    for key, tensor in one.network_.state_dict().items():
        assert torch.equal(other.network_.state_dict()[key], tensor), key


def test_a_model_of_labelled_graphs_comes_back_with_its_vocabulary(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def graphs(letters: list[str]) -> Graphs:
        edges = [[(0, 1), (1, 2)]] * 20
        return Graphs.from_edge_lists(edges, node_labels=rng.choice(letters, 60))

    training = graphs(["C", "N", "ü"])
    one = SAENClassifier(**SMALL).fit(training, np.arange(20) % 2)
    one.save(tmp_path / "model.saen")
    other = saen.load(tmp_path / "model.saen")
    assert other.decomposition_.vocabulary == Vocabulary(["C", "N", "ü"])
    new = graphs(["C", "ü", "never seen"])
    assert_array_equal(other.predict_proba(new), one.predict_proba(new))


def molecules(n: int, seed: int, bonds: str) -> Graphs:
    """Small labelled graphs with labelled edges."""
    rng = np.random.default_rng(seed)
    edges = [[(0, 1), (1, 2), (2, 0), (2, 3)], [(0, 1), (1, 2), (2, 3)]]
    lists = [edges[i % 2] for i in range(n)]
    return Graphs.from_edge_lists(
        lists,
        node_labels=rng.choice(["C", "N", "ü"], 4 * n),
        edge_labels=rng.choice([*bonds], sum(map(len, lists))),
    )


def documents(n: int, words: list[str]) -> Documents:
    """Documents of one or two sentences of three words."""
    rng = np.random.default_rng(len(words))

    def sentence() -> list[tuple[str, int | None, str]]:
        first, verb, last = rng.choice(words, 3).tolist()
        return [(first, 1, "nsubj"), (verb, None, "root"), (last, 1, "obj")]

    return Documents.from_sentences([[sentence() for _ in range(1 + i % 2)] for i in range(n)])


def notes(n: int, words: list[str]) -> NestedData:
    rng = np.random.default_rng(len(words))
    return NestedData(
        [
            {"line": [{"word": rng.choice(words, 2).tolist()}], "last": [{"end": ["."]}]}
            for _ in range(n)
        ]
    )


GRAPHS = (molecules(16, 0, "-="), molecules(8, 1, "-=#"))
DOCUMENTS = (documents(16, ["a", "b"]), documents(8, ["a", "b", "new"]))
NOTES = (notes(16, ["a", "b"]), notes(8, ["a", "b", "new"]))
DECOMPOSED: dict[str, tuple[Any, Any]] = {
    "ego": GRAPHS,
    "ego(radii=(0, 2), node_labels='node,distance')": GRAPHS,
    "ego(edges=roles)": GRAPHS,
    "ego(edges=objects, direction=out)": GRAPHS,
    "neighbourhoods": GRAPHS,
    "neighbourhoods(depth=2, edges=roles)": GRAPHS,
    "neighbourhoods(depth=1, edges=objects)": GRAPHS,
    "pairs": GRAPHS,
    "pairs(max_distance=2, direction=out)": GRAPHS,
    "paths": GRAPHS,
    "paths(radii=(1,), max_length=2, edges=roles, both_ways=True)": GRAPHS,
    "paths(radii=(1,), edges=objects)": GRAPHS,
    "nodes": GRAPHS,
    "nodes(node_labels='node,degree')": GRAPHS,
    "edges": GRAPHS,
    "nested": NOTES,
    "nested(levels=('words', 'lines', 'notes'))": NOTES,
    "dependency_paths": DOCUMENTS,
    "dependency_paths(relations=True, sentences=position, max_length=2)": DOCUMENTS,
}


def test_every_decomposition_is_tried() -> None:
    assert {text.partition("(")[0] for text in DECOMPOSED} == set(DECOMPOSITIONS)


@pytest.mark.parametrize("text", DECOMPOSED)
def test_a_model_comes_back_with_its_decomposition(text: str, tmp_path: Path) -> None:
    training, new = DECOMPOSED[text]
    # New structures hold labels, words and roles that the model never saw.
    one = SAENClassifier(text, epochs=2, n_models=2, device="cpu").fit(training, np.arange(16) % 2)
    one.save(tmp_path / "model.saen")
    other = saen.load(tmp_path / "model.saen")
    assert other.decomposition_ == one.decomposition_
    assert type(other.decomposition_) is DECOMPOSITIONS[text.partition("(")[0]]
    assert other.schema_ == one.schema_
    for structures in (training, new):
        assert_array_equal(other.predict_proba(structures), one.predict_proba(structures))
    for level in range(one.schema_.depth + 1):
        assert_array_equal(other.embed(new, level), one.embed(new, level))


@pytest.mark.parametrize("kind", ["codes", "vectors", "both"])
def test_a_model_of_hierarchies_comes_back(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    codes = vocabulary = vectors = None
    if kind != "vectors":
        vocabulary, codes = Vocabulary.fit([rng.integers(0, 4, 40), rng.choice(["a", "b"], 40)])
    if kind != "codes":
        vectors = rng.normal(size=(40, 2)).astype(np.float32)
    bags = Relation(np.arange(0, 41, 4), np.arange(40), np.arange(40) % 2, ("x", "y"), 40)
    hierarchy = Hierarchy(Attributes(codes, vocabulary, vectors), (bags,), ("things", "bags"))
    one = SAENClassifier(**(SMALL | {"hidden": [[4], [5]]})).fit(hierarchy, np.arange(10) % 2)
    one.save(tmp_path / "model.saen")
    other = saen.load(tmp_path / "model.saen")
    assert other.decomposition_ is None
    assert_array_equal(other.predict_proba(hierarchy), one.predict_proba(hierarchy))
    assert_array_equal(other.embed(hierarchy, 0), one.embed(hierarchy, 0))
    with pytest.raises(InputError, match="fitted on hierarchies"):
        other.predict(Graphs.from_edge_lists([[(0, 1)]]))


def test_a_loaded_model_can_be_copied_saved_and_fitted_again(
    threads: Graphs, new: Graphs, tmp_path: Path
) -> None:
    names = np.unique(threads.targets).tolist()
    for y, class_weight in [
        (threads.targets, {names[0]: 2.0, names[1]: 1.0}),
        (codes_of(threads), {0: 2.0, 1: 1.0}),
        (codes_of(threads), "balanced"),
    ]:
        one = SAENClassifier(**SMALL, class_weight=class_weight, random_state=0).fit(threads, y)
        one.save(tmp_path / "model.saen")
        other = SAENClassifier.load(tmp_path / "model.saen")
        assert other.class_weight == class_weight
        assert_array_equal(pickle.loads(pickle.dumps(other)).predict(new), one.predict(new))
        other.save(tmp_path / "again.saen")
        again = saen.load(tmp_path / "again.saen")
        assert_array_equal(again.predict_proba(new), one.predict_proba(new))
        refitted = clone(other).fit(threads, y)
        assert_array_equal(refitted.predict_proba(new), one.predict_proba(new))


def test_equal_models_make_equal_files(
    threads: Graphs, model: SAENClassifier, tmp_path: Path
) -> None:
    model.save(tmp_path / "one.saen")
    SAENClassifier(**SMALL).fit(threads, threads.targets).save(tmp_path / "other.saen")
    assert (tmp_path / "one.saen").read_bytes() == (tmp_path / "other.saen").read_bytes()


def test_the_file_says_what_it_holds(model: SAENClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model.saen")
    with safe_open(tmp_path / "model.saen", framework="numpy") as opened:
        header = json.loads(opened.metadata()["saen"])
    assert header["kind"] == "model"
    document = header["document"]
    assert document["saen"] == saen.__version__
    assert document["estimator"] == "SAENClassifier"
    fitted = document["model"]
    assert fitted["kind"] == "networks"
    assert fitted["decomposition"]["name"] == "ego"
    assert fitted["decomposition"]["vocabulary"]
    assert fitted["targets"]["classes"]["values"] == model.classes_.tolist()
    assert fitted["temperature"] == model.temperature_
    assert document["parameters"]["epochs"] == 2
    assert "device" not in document["parameters"]


def test_nothing_is_pickled(
    model: SAENClassifier, new: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("pickle was used")

    for module in (pickle, torch.serialization.pickle):
        for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
            monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(torch, "save", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    model.save(tmp_path / "model.saen")
    assert len(saen.load(tmp_path / "model.saen").predict(new)) == 20
    assert b"cos\nsystem" not in (tmp_path / "model.saen").read_bytes()


# -- files that are no models ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, t: d.update(estimator="os.system"), "damaged: its contents do not fit together"),
        (lambda d, t: d.update(estimator="SAENRegressor"), "damaged"),
        (
            lambda d, t: d.update(
                estimator="PartCountsClassifier", parameters={"decomposition": None}
            ),
            "damaged",
        ),
        (lambda d, t: d["model"].update(kind="other"), "damaged: its contents do not fit together"),
        (lambda d, t: d["model"].update(kind="counts"), "damaged"),
        (lambda d, t: d["model"].pop("architecture"), "damaged: its contents do not fit together"),
        (lambda d, t: d["model"]["architecture"].update(labels=3), "damaged"),
        (
            lambda d, t: d["model"]["decomposition"].update(name="egg"),
            "unknown decomposition 'egg'",
        ),
        (lambda d, t: d["model"].update(temperature=0.0), "damaged"),
        (lambda d, t: d["model"].update(mean=[0.0, 0.0]), "damaged"),
        (lambda d, t: d["parameters"].update(unknown=1), "damaged"),
        (lambda d, t: d["reading"].update(format="other"), "damaged"),
        (lambda d, t: t.pop("network.levels.1.weight"), "damaged"),
        (lambda d, t: t.update({"network.extra": np.zeros(1)}), "damaged"),
        (lambda d, t: t.pop("network.levels.0.bias"), "damaged"),
    ],
)
def test_contents_that_do_not_fit_together_are_refused(
    model: SAENClassifier, tmp_path: Path, change: Callable[[Any, Any], Any], message: str
) -> None:
    assert_refused(model, tmp_path / "model.saen", change, message)


HUGE = [10**12, 10**5000, float("inf"), -1, "x", None, [], {}, "U1000000000"]


@pytest.mark.parametrize(
    "place",
    [
        "model.architecture.labels",
        "model.architecture.vectors",
        "model.architecture.roles.0",
        "model.architecture.layers.0.0",
        "model.architecture.layers.1",
        "model.architecture.negative_slope",
        "model.targets.names",
        "model.targets.classes.dtype",
        "model.targets.classes.values",
        "model.targets.classes.values.0",
        "model.decomposition.radii.1",
        "model.decomposition.vocabulary",
        "model.history.loss",
        "model.history.diverged",
        "model.mean",
        "model.scale",
        "model.temperature",
        "parameters.n_models",
        "parameters.class_weight",
        "model.schema.relations.0.n_parts",
        "model.schema.relations.0.alphabet",
        "model.schema.vocabulary",
    ],
)
def test_a_crafted_header_with_a_right_checksum_is_refused_at_once(
    model: SAENClassifier, new: Graphs, tmp_path: Path, place: str
) -> None:
    path = tmp_path / "model.saen"
    model.save(path)
    kind, document, tensors = container.read(path)
    *above, last = place.split(".")
    holder: Any = document
    for key in above:
        holder = holder[int(key) if key.isdigit() else key]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    for value in HUGE:
        holder[int(last) if last.isdigit() else last] = value
        try:
            sys.set_int_max_str_digits(0)
            container.write(path, kind, document, tensors)
        finally:
            sys.set_int_max_str_digits(4300)
        with suppress(SaenError):
            saen.load(path).predict(new)  # what does no harm may be read
    assert time.monotonic() - began < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


def assert_refused(
    estimator: Any, path: Path, change: Callable[[Any, Any], Any], message: str = "damaged"
) -> None:
    """A saved model whose document and tensors are changed, with a new checksum, is not loaded."""
    estimator.save(path)
    kind, document, tensors = container.read(path)
    change(document, tensors)
    container.write(path, kind, document, tensors)
    with pytest.raises(FileError, match=message):
        saen.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d["parameters"].update(run_dir="/tmp/anything"),
        lambda d, t: d["model"]["decomposition"].update(vectors="/etc/passwd"),
        lambda d, t: t.update(
            {"network.levels.0.entries": np.full_like(t["network.levels.0.entries"], 10**9)}
        ),
        lambda d, t: t.update({"network.levels.0.bias": np.zeros((10**7, 0), np.float32)}),
        lambda d, t: t.update({"schema.codes": np.array([2**32], np.uint64)}),
        lambda d, t: d["model"]["targets"]["classes"].update(values=["b", "a"]),
        lambda d, t: d["model"]["targets"]["classes"].update(values=["a", "b", "c"]),
    ],
)
def test_contents_that_reach_outside_are_refused(
    model: SAENClassifier, tmp_path: Path, change: Callable[[Any, Any], Any]
) -> None:
    assert_refused(model, tmp_path / "model.saen", change)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d["model"]["counts"].update(encoding="other"),
        lambda d, t: d["model"]["counts"].update(norm="l3"),
        lambda d, t: d["model"]["counts"].update(norm="shares"),
        lambda d, t: d["model"]["counts"].update(C="much"),
        lambda d, t: d["model"]["counts"].update(depth=1.5),
        lambda d, t: t.update({"counts.starts": t["counts.starts"][::-1]}),
        lambda d, t: t.update({"counts.starts": t["counts.starts"] * 10**9}),
        lambda d, t: t.update({"counts.thresholds": t["counts.thresholds"] * 0}),
        lambda d, t: t.update({"counts.thresholds": t["counts.thresholds"][1:]}),
        lambda d, t: t.update({"counts.ids": t["counts.ids"][1:]}),
        lambda d, t: t.update({"linear.coef": t["linear.coef"][:, 1:]}),
        lambda d, t: t.update({"linear.coef": t["linear.coef"].astype(np.float32)}),
        lambda d, t: t.update({"linear.intercept": t["linear.intercept"][:0]}),
        lambda d, t: t.update({"counts.typical": t["counts.typical"] * np.nan}),
        lambda d, t: d["model"]["targets"].pop("classes"),
    ],
)
def test_a_linear_model_that_does_not_fit_together_is_refused(
    linear: PartCountsClassifier, tmp_path: Path, change: Callable[[Any, Any], Any]
) -> None:
    assert_refused(linear, tmp_path / "model.saen", change)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d["model"]["counts"].update(C=1.0),
        lambda d, t: d["model"]["counts"].update(norm="l2"),
        lambda d, t: t.update({"forest.column": t["forest.column"] + 10**6}),
        lambda d, t: t.update({"forest.children": t["forest.children"][::-1]}),
        lambda d, t: t.update({"forest.roots": t["forest.roots"] - 1}),
        lambda d, t: t.update({"forest.extra": t["forest.roots"]}),
        lambda d, t: t.pop("forest.value"),
    ],
)
def test_a_forest_that_does_not_fit_together_is_refused(
    trees: PartCountsClassifier, tmp_path: Path, change: Callable[[Any, Any], Any]
) -> None:
    assert_refused(trees, tmp_path / "model.saen", change)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, t: d["model"]["members"][0].update(weight=-1.0),
        lambda d, t: d["model"]["members"][0].update(weight=float("nan")),
        lambda d, t: d["model"]["members"][0].update(weight="much"),
        lambda d, t: d["model"]["members"][1]["model"].update(targets={"names": []}),
        lambda d, t: d["model"]["members"][1]["model"].update(kind="blended"),
        lambda d, t: d["model"].update(members=[]),
        lambda d, t: d["model"].update(temperature=float("inf")),
        lambda d, t: t.pop("1.network.levels.0.bias"),
        lambda d, t: t.pop("0.linear.coef"),
    ],
)
def test_a_blend_that_does_not_fit_together_is_refused(
    blend: Classifier, tmp_path: Path, change: Callable[[Any, Any], Any]
) -> None:
    assert_refused(blend, tmp_path / "model.saen", change)


@pytest.mark.parametrize("kind", ["model", "linear", "trees", "blend"])
def test_a_model_that_is_loaded_and_saved_is_the_same_file(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    one = request.getfixturevalue(kind)
    one.save(tmp_path / "one.saen")
    saen.load(tmp_path / "one.saen").save(tmp_path / "two.saen")
    assert (tmp_path / "one.saen").read_bytes() == (tmp_path / "two.saen").read_bytes()


def test_other_files_are_no_models(threads: Graphs, model: SAENClassifier, tmp_path: Path) -> None:
    path = tmp_path / "thing.saen"
    for thing, kind in [
        (threads, "graphs"),
        (Ego().decompose(threads), "hierarchy"),
        (saen.compress(Ego().decompose(threads)), "compressed"),
    ]:
        saen.save(thing, path)
        with refuses(f"{path}: not a model, but a file of kind {kind!r}", FileError):
            SAENClassifier.load(path)
    path.write_text("a letter to a friend")
    with pytest.raises(FileError, match="not a readable saen file"):
        SAENClassifier.load(path)
    with pytest.raises(FileError, match="no such file"):
        SAENClassifier.load(tmp_path / "nothing.saen")
    with pytest.raises(FileError, match="a folder"):
        SAENClassifier.load(tmp_path)


def test_a_model_of_another_kind_is_refused(
    threads: Graphs, model: SAENClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "model.saen"
    model.save(path)
    with refuses(f"{path} holds a SAENClassifier, not a SAENRegressor"):
        SAENRegressor.load(path)
    with pytest.raises(InputError, match="holds a SAENClassifier, not a SAENTransformer"):
        SAENTransformer.load(path)


def test_a_decomposition_that_files_cannot_refer_to_cannot_be_saved(
    threads: Graphs, tmp_path: Path
) -> None:
    @dataclass(frozen=True)
    class Backwards(Decomposition):
        """A decomposition of somebody else's."""

        ego: Ego = field(default_factory=lambda: Ego((0, 1), "degree"))

        def decompose(self, data: Graphs) -> Hierarchy:
            return replace(self.ego, vocabulary=self.vocabulary).decompose(data)

    estimator = SAENClassifier(Backwards(), **SMALL).fit(threads, threads.targets)
    assert len(estimator.predict(threads)) == 30
    with pytest.raises(InputError, match="a model over Backwards cannot be saved"):
        estimator.save(tmp_path / "model.saen")
    assert list(tmp_path.iterdir()) == []


# -- what a file says is data: no name in it is imported, no path in it is read -----------------

EVIL = "evil_module_of_a_file"
NAMES = [EVIL, f"{EVIL}.Ego", f"{EVIL}:Ego", f"__import__('{EVIL}')", f"{EVIL}.Ego()"]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that exists once the module was imported, which could be."""
    mark = tmp_path / "ran"
    (tmp_path / f"{EVIL}.py").write_text(f"open({str(mark)!r}, 'w')\nclass Ego: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return mark


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["decomposition", "estimator", "kind", "model"])
def test_load_imports_nothing_that_a_model_names(
    model: SAENClassifier, tmp_path: Path, ran: Path, key: str, name: str
) -> None:
    file = tmp_path / "model.saen"
    model.save(file)
    kind, document, tensors = container.read(file)
    if key == "kind":
        kind = name
    elif key == "estimator":
        document["estimator"] = name
    elif key == "model":
        document["model"]["kind"] = name
    else:
        document["model"]["decomposition"]["name"] = name
    container.write(file, kind, document, tensors)
    with pytest.raises(SaenError):
        saen.load(file)
    assert not ran.exists()
    assert EVIL not in sys.modules


def test_load_never_unpickles(tmp_path: Path, ran: Path) -> None:
    pickled = f"c{EVIL}\nEgo\n.".encode()  # the instruction to import Ego
    for file in (tmp_path / "a.saen", tmp_path / "a.npy"):
        file.write_bytes(pickled)
    with pytest.raises(SaenError):
        saen.load(tmp_path / "a.saen")
    with pytest.raises(SaenError):
        read_embeddings(tmp_path / "a.npy")
    assert not ran.exists()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_model_saved_on_a_gpu_loads_on_the_processor(
    threads: Graphs, new: Graphs, tmp_path: Path
) -> None:
    one = SAENClassifier(**(SMALL | {"device": "cuda"})).fit(threads, threads.targets)
    assert one.network_.device.type == "cuda"
    one.save(tmp_path / "model.saen")
    other = saen.load(tmp_path / "model.saen")
    assert other.network_.device.type == "cpu"
    assert np.allclose(other.predict_proba(new), one.predict_proba(new), atol=1e-5)
