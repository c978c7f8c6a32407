"""Data that are decomposed once: sliced, searched, predicted, and compressed in a file."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import saen
from saen.errors import InputError
from saen.io.options import ReadOptions
from saen.io.store import container
from saen.jobs.compress import compress_dataset
from saen.jobs.job import Job
from saen.jobs.train import train_model
from saen.learning import decomposing
from saen.learning.decomposing import Decompositions, fitted_fields, load_compressed
from tests.cli.commandline import fails, invoke, run

THREADS = saen.generate_threads(40, average_nodes=15, seed=1)


def test_prepared_in_a_grid_search_is_decomposed_once(monkeypatch):
    calls = []
    original = decomposing.compress_graphs
    monkeypatch.setattr(
        decomposing, "compress_graphs", lambda *a, **k: calls.append(1) or original(*a, **k)
    )
    model = saen.SAENClassifier(n_models=1)
    search = GridSearchCV(model, {"epochs": [1, 2]}, cv=2)
    search.fit(model.prepare(THREADS), THREADS.targets)
    assert len(calls) == 1
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_prepared_parts_are_predicted_as_in_the_whole():
    model = saen.SAENClassifier(epochs=2)
    prepared = model.prepare(THREADS)
    model.fit(prepared[5:], THREADS.targets[5:])
    rows = np.array([7, 3, 3, 39])
    np.testing.assert_array_equal(
        model.predict_proba(prepared[rows]), model.predict_proba(prepared)[rows]
    )
    np.testing.assert_allclose(
        model.predict_proba(prepared[rows]), model.predict_proba(THREADS[rows]), atol=1e-6
    )


@pytest.mark.parametrize("kind", [saen.SAENClassifier, saen.SAENRegressor])
def test_one_small_graph_is_predicted_as_in_company(kind, monkeypatch):
    y = THREADS.sizes % 2
    model = kind(epochs=2, dtype="float64").fit(THREADS, y)
    predict = model.predict if kind is saen.SAENRegressor else model.predict_proba
    together = predict(THREADS)
    # One small graph does not need to be compressed.
    monkeypatch.setattr("saen.learning.decomposing.compress_graphs", None)
    alone = np.concatenate([predict(one) for one in THREADS])
    np.testing.assert_allclose(alone, together, rtol=1e-10)


def test_one_large_graph_is_compressed(monkeypatch):
    model = saen.SAENClassifier(epochs=1).fit(THREADS, THREADS.targets)
    small = model.predict_proba(THREADS[3])
    monkeypatch.setattr("saen.learning.models.networks.MAX_UNCOMPRESSED", 10)
    calls = []
    compress = decomposing.compress_graphs
    monkeypatch.setattr(
        decomposing, "compress_graphs", lambda *a, **k: calls.append(1) or compress(*a, **k)
    )
    np.testing.assert_allclose(model.predict_proba(THREADS[3]), small, atol=1e-6)
    assert calls


def test_prepared_data_give_each_decomposition_once(monkeypatch):
    calls = []
    original = decomposing.compress_graphs
    monkeypatch.setattr(
        decomposing, "compress_graphs", lambda *a, **k: calls.append(1) or original(*a, **k)
    )
    prepared, train = Decompositions(THREADS), np.arange(30)
    degrees, others = (
        saen.SAENClassifier(radii=(0, 1), node_labels=labels).learner().spec
        for labels in ("degree", "log-degree:1")
    )
    made = prepared.decomposed(degrees, train)
    assert prepared.decomposed(degrees, train[:20]).compressed is made.compressed
    assert prepared.decomposed(others, train).compressed is not made.compressed
    part = prepared[5:10].decomposed(degrees, np.arange(3)).compressed
    assert part.hierarchy is made.compressed.hierarchy
    np.testing.assert_array_equal(part.top, made.compressed.top[5:10])
    assert len(calls) == 2


def test_prepared_data_learn_bins_from_training_examples_alone():
    attributes = np.arange(THREADS.n_nodes, dtype=float)[:, None]
    graphs = THREADS._with(node_attributes=attributes)
    spec = saen.PartCountsClassifier(node_labels="attribute-bins:4").learner().spec
    prepared = Decompositions(graphs)
    first, second = (
        prepared.decomposed(spec, train).decomposition
        for train in (np.arange(20), np.arange(20, 40))
    )
    alone = Decompositions(graphs[:20]).decomposed(spec, np.arange(20)).decomposition
    [name] = fitted_fields(first)
    assert getattr(first, name) == getattr(alone, name) != getattr(second, name)


@pytest.fixture
def file(tmp_path):
    """Threads, compressed in a file."""
    data, out = tmp_path / "graphs.saen", tmp_path / "threads.saen"
    saen.save(THREADS, data)
    compress_dataset(str(data), saen.decompositions.Ego(node_labels="degree"), out)
    return out


def test_compressed_examples_train_the_model_of_the_graphs(file, tmp_path):
    options = ("--epochs", "2", "--models", "1", "--node-labels", "degree", "--radii", "0,1")
    network = ("--preset", "network", *options)
    direct = run("train", tmp_path / "graphs.saen", "-o", tmp_path / "direct.saen", *network)
    report = run("train", file, "-o", tmp_path / "model.saen", *options[:4])
    assert report["out_of_fold"]["accuracy"] == direct["out_of_fold"]["accuracy"]
    assert report["levels"] == direct["levels"]
    one, other = (saen.load(tmp_path / name) for name in ("direct.saen", "model.saen"))
    np.testing.assert_array_equal(one.predict_proba(THREADS), other.predict_proba(THREADS))


def test_compressed_examples_are_memory_mapped_and_sliced_with_their_targets(file):
    examples = load_compressed(file)
    assert examples.targets.tolist() == THREADS.targets.tolist()
    assert not examples.only.compressed.hierarchy.relations[0].parts.flags.owndata
    assert examples[3:5].targets.tolist() == THREADS.targets[3:5].tolist()
    assert len(examples[3:5]) == 2


def test_compressed_examples_take_the_task_and_a_preset_that_reads_one_decomposition(
    file, tmp_path
):
    told = []
    job = Job(str(file), "best", {"epochs": 1})
    report = train_model(job, tmp_path / "m.saen", notify=told.append)
    assert "these data have one: preset network is used" in told[0]
    assert isinstance(report.model, saen.SAENClassifier)
    job = Job(str(file), reading=ReadOptions(task="regression"))
    with pytest.raises(InputError, match="needs numbers as targets"):
        train_model(job, tmp_path / "numbers.saen")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--radii", "0"), "threads.saen is compressed already: leave out radii"),
        (("--node-labels", "node"), "leave out node-labels"),
        (("--target", "y"), "option --target applies only to"),
        (("--report", "page.html"), "--report shows the data themselves"),
    ],
)
def test_compressed_examples_refuse_options_of_the_data(file, tmp_path, options, message):
    assert message in fails("train", file, "-o", tmp_path / "m.saen", *options)


def test_compressed_examples_need_targets_and_a_decomposition(file, tmp_path):
    saen.save(saen.load(file), tmp_path / "alone.saen")
    message = fails("train", tmp_path / "alone.saen", "-o", tmp_path / "m.saen")
    assert "alone.saen: nothing to train on: compress the data again" in message
    kind, document, tensors = container.read(file)
    document["decomposition"]["vocabulary"] = [1]
    container.write(tmp_path / "other.saen", kind, document, tensors)
    message = fails("train", tmp_path / "other.saen", "-o", tmp_path / "m.saen")
    assert "damaged: invalid decomposition (the vocabularies differ)" in message


def test_compressed_examples_train_a_model_of_targets_by_name(tmp_path):
    rows = "".join(f"{'C' * n},{n % 2},{n // 6}\n" for n in range(1, 12))
    (tmp_path / "x.csv").write_text(f"smiles,odd,long\n{rows}")
    file, out = tmp_path / "c.saen", tmp_path / "m.saen"
    invoke("compress", tmp_path / "x.csv", "--target", "odd,long", "--out", file)
    report = run("train", file, "-o", out, "--epochs", 1, "--models", 1, "--hold-out", 0.4)
    assert [*report["held_out"]["targets"]] == ["odd", "long"]
    assert saen.load(out).target_names_ == ["odd", "long"]
    assert run("inspect", out)["targets"] == ["odd", "long"]


def labelled(letters):
    """Paths of three nodes, the class of each is its first letter."""
    words = [letters[k % 2] + "C" * 2 for k in range(24)]
    nodes = np.array([letter for word in words for letter in word])
    graphs = saen.Graphs.from_edge_lists([[(0, 1), (1, 2)]] * 24, node_labels=nodes)
    return graphs, np.array([word[0] for word in words])


@pytest.mark.parametrize("as_hierarchy", [False, True])
def test_predictions_of_one_model_leave_the_fit_of_another_alone(as_hierarchy):
    (first, y), (second, z) = labelled("NO"), labelled("SP")
    spec = saen.make_decomposition("neighbourhoods(depth=1)")
    if as_hierarchy:
        first, second = spec.decompose(first), spec.decompose(second)
        one = saen.PartCountsClassifier().fit(first, y)
        other = saen.PartCountsClassifier()
    else:
        one = saen.PartCountsClassifier(spec).fit(first, y)
        other = saen.PartCountsClassifier(one.decomposition_)
    data = Decompositions(second)
    one.predict(data)
    other.fit(data, z)
    assert other.feature_names_.tolist() == ["C", "P", "S"]
    assert other.score(data, z) == 1.0


def test_lower_levels_are_known_of_data_that_were_decomposed_before():
    graphs, y = labelled("NO")
    model = saen.SAENClassifier(epochs=1, inner_folds=0)
    data = model.prepare(graphs)
    model.fit(data, y)
    np.testing.assert_allclose(model.embed(data, 0), model.embed(graphs, 0))
    np.testing.assert_allclose(model.embed(data[3:5], 0), model.embed(graphs[3:5], 0), atol=1e-6)
    assert model.compress(data, lower_inverse=True).unique_of(0).shape == (72,)


def test_a_hierarchy_of_one_example_is_predicted():
    graphs, y = labelled("NO")
    model = saen.SAENClassifier(epochs=1, inner_folds=0).fit(graphs, y)
    hierarchy = model.decomposition_.decompose(graphs)
    np.testing.assert_allclose(
        model.predict_proba(hierarchy[[0]]), model.predict_proba(graphs[:1]), atol=1e-6
    )


def test_quick_blends_try_part_counts_alone_whatever_the_data():
    graphs, y = labelled("NO")
    hierarchy = saen.make_decomposition("neighbourhoods(depth=1)").decompose(graphs)
    model = saen.Classifier(budget="quick").fit(hierarchy, y)
    assert [each["candidate"] for each in model.tried_] == ["part counts"]
