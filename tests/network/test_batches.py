from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch

from saen import Attributes, Hierarchy, Relation, Vocabulary, compress
from saen.data.content_hash import Keys
from saen.network import SAEN, Architecture, Settings, Task, batches, train
from saen.network.batches import (
    Batches,
    batch_numbers,
    cut_batches,
    cut_validation_batches,
    seen_in_training,
)
from tests.references.networks import assert_close, make_network, random_hierarchy


def bags(*labels: str, vocabulary: Vocabulary | None = None) -> Hierarchy:
    """One example per word, whose parts are its letters, all with one role."""
    letters = np.array([letter for word in labels for letter in word], dtype=np.str_)
    words = vocabulary or Vocabulary(letters.tolist())
    indptr = np.cumsum([0, *map(len, labels)])
    relation = Relation(
        indptr, np.arange(len(letters)), np.zeros(len(letters), int), ("letter",), len(letters)
    )
    return Hierarchy(Attributes(words.encode([letters]), words), (relation,))


def numbers_in(batches: Batches, model: int = 0) -> list[list[float]]:
    """The targets, which number the examples, of every batch of a model."""
    return [batch.targets[batch.targets[:, model, 1] > 0, model, 2].tolist() for batch in batches]


def random_words(n: int) -> Hierarchy:
    """Examples that are all different."""
    letters = np.random.default_rng(0).choice(list("abcdefgh"), (n, 12))
    return bags(*map("".join, letters), vocabulary=Vocabulary("abcdefgh"))


def test_batches_are_a_partition_of_the_training_examples_drawn_from_the_seed() -> None:
    n = 64
    words, weights = random_words(n), np.ones((n, 2))
    weights[::3, 0] = 0
    task = Task.regression(np.arange(n, dtype=np.float64), weights)
    network = make_network(words, 1, (0, 1))

    def cut(seed: int, n_batches: int, model: int) -> list[list[float]]:
        return numbers_in(cut_batches(network, words, task, n_batches, seed), model)

    assert cut(0, 4, 1) == cut(0, 4, 1) != cut(1, 4, 1)
    assert sorted(row for batch in cut(0, 4, 1) for row in batch) == list(range(n))
    assert all(4 < len(batch) < 32 for batch in cut(0, 4, 1))  # about a quarter
    # A model has the batches of the other one, without the examples that it does not train on.
    assert cut(0, 4, 0) == [[row for row in batch if row % 3] for batch in cut(0, 4, 1)]
    assert cut(0, 1, 1) == [list(range(n))]


def test_batch_of_an_example_depends_on_no_other_example_and_no_other_model() -> None:
    hierarchy = random_hierarchy(0, n=40, patterns=20, kind="both")
    weights = (np.random.default_rng(0).random((40, 3)) < 0.7).astype(float)
    keys, top = distinct_keys(hierarchy)
    together = batch_numbers(keys, top, weights, 4, seed=0)
    assert ((together >= 0) == (weights > 0)).all()
    for model in range(3):
        alone = batch_numbers(keys, top, weights[:, [model]], 4, seed=0)
        np.testing.assert_array_equal(alone[:, 0], together[:, model])
        rows = np.flatnonzero(weights[:, model])  # without the examples to test
        keys_there, there = distinct_keys(hierarchy[rows])
        own = batch_numbers(keys_there, there, np.ones((len(rows), 1)), 4, seed=0)
        np.testing.assert_array_equal(own[:, 0], together[rows, model])
    # Weights decide nothing but which examples are for training, nor does their unit.
    np.testing.assert_array_equal(batch_numbers(keys, top, 3 * weights, 4, seed=0), together)


def test_identical_examples_are_spread_over_the_batches() -> None:
    words = bags(*["abc"] * 400)
    keys, top = distinct_keys(words)
    assert len(keys) == 1
    numbers = batch_numbers(keys, top, np.ones((400, 1)), 4, seed=0)[:, 0]
    assert (np.bincount(numbers) > 60).all()
    # One copy less: those that are left are counted anew, and their number decides.
    weights = np.ones((400, 1))
    weights[0] = 0
    np.testing.assert_array_equal(
        batch_numbers(keys, top, weights, 4, seed=0)[:, 0], [-1, *numbers[:-1]]
    )


def test_batches_of_compressed_data_are_those_of_the_original() -> None:
    hierarchy = random_hierarchy(0, n=32, patterns=20, kind="both")
    compressed = compress(hierarchy)
    task = Task.regression(np.arange(32.0), n_models=2)
    network = make_network(hierarchy, 1, (0, 1))
    numbers = [
        cut_batches(network, data, task, 4, seed=0)._numbers for data in (hierarchy, compressed)
    ]
    assert len(compressed.hierarchy) < 32
    np.testing.assert_array_equal(*numbers)


def distinct_keys(hierarchy: Hierarchy) -> tuple[Keys, np.ndarray]:
    """The keys of unique examples, and which of them each example is."""
    compressed = compress(hierarchy)
    return compressed.keys[-1], compressed.top


def test_validation_batches_are_the_held_out_examples_alone() -> None:
    hierarchy = random_hierarchy(0, n=32, patterns=20, kind="both")
    weights = np.zeros((32, 2))
    weights[3::4, 0] = weights[5, 1] = 1.0
    task = Task.regression(np.arange(32.0), n_models=2, weights=weights)
    network = make_network(hierarchy, 1, (0, 1))
    cut = cut_validation_batches(network, hierarchy, task, 4)
    assert numbers_in(cut, 0) == [[3.0, 7.0], [11.0, 15.0], [19.0, 23.0], [27.0, 31.0]]
    assert numbers_in(cut, 1) == [[5.0], [], [], []]
    none = Task.regression(np.arange(32.0), n_models=2, weights=np.zeros((32, 2)))
    assert len(cut_validation_batches(network, hierarchy, none, 4)) == 1


def test_unseen_labels_are_treated_alike_inside_and_outside_the_vocabulary() -> None:
    # In cross-validation the vocabulary knows the labels of test examples, in prediction not.
    words = ("aab", "bac", "abz")
    weights = np.array([[1.0], [1.0], [0.0]])
    for min_count in (1, 2):
        inside = bags(*words)
        outside = bags(*words, vocabulary=Vocabulary("abc"))
        results = []
        for hierarchy in (inside, outside):
            network = SAEN(Architecture.over(hierarchy, [[3], [4, 1]]), [0], dtype=torch.float64)
            seen = seen_in_training(hierarchy, np.arange(3), weights, min_count)
            network.restrict_to_seen(*seen)
            with torch.no_grad():
                for number, parameter in enumerate(network.parameters()):
                    values = torch.linspace(-1, 1, parameter[0].numel(), dtype=torch.float64)
                    parameter[0] = values.view(parameter[0].shape) + number
                # The same rows for a, b, c, and for the entry that rare labels share.
                rows = torch.arange(12, dtype=torch.float64).view(4, 3) / 7
                network.bottom.table[0, :3], network.bottom.table[0, -1] = rows[:3], rows[3]
            results.append(network.eval()(hierarchy))
        assert_close(*results, 1e-14)


def test_rare_labels_share_one_entry_and_unseen_ones_use_it() -> None:
    hierarchy = bags("aab", "bac", "adx")
    weights = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    entries, roles = seen_in_training(hierarchy, np.arange(3), weights, min_count=2)
    shared, unseen = 5, 6
    # Model 0 trains on aab and bac: c is rare. Model 1 on aab and adx: b, d and x are.
    assert entries.tolist() == [
        [0, 1, shared, shared, shared, shared],
        [0, shared, shared, shared, shared, shared],
    ]
    entries, _ = seen_in_training(hierarchy, np.arange(3), weights, min_count=1)
    assert entries.tolist() == [[0, 1, 2, unseen, unseen, unseen], [0, 1, unseen, 3, 4, unseen]]
    assert [seen.tolist() for seen in roles] == [[[True, True]]]


def test_rare_labels_are_counted_by_examples_and_not_by_occurrences() -> None:
    hierarchy = bags("aaaa", "b", "b")
    entries, _ = seen_in_training(hierarchy, np.arange(3), np.ones((3, 1)), min_count=2)
    assert entries.tolist() == [[2, 1, 2]]
    duplicates = compress(hierarchy)
    again, _ = seen_in_training(duplicates.hierarchy, duplicates.top, np.ones((3, 1)), min_count=2)
    assert again.tolist() == entries.tolist()


def test_many_labels_take_no_more_memory_than_their_table() -> None:
    n = 100_000
    vocabulary = Vocabulary(range(n))
    relation = Relation(np.arange(0, n + 1, 500), np.arange(n), np.zeros(n, np.uint8), ("word",), n)
    hierarchy = Hierarchy(Attributes(np.arange(n, dtype=np.int32), vocabulary), (relation,))
    tracemalloc.start()
    network = SAEN(Architecture.over(hierarchy, [[4], [4, 2]], normalization="batch"), [0, 1])
    seen = seen_in_training(hierarchy, np.arange(200), np.ones((200, 2)), min_count=1)
    network.restrict_to_seen(*seen)
    outputs = network.train()(hierarchy)
    outputs.square().sum().backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert outputs.shape == (200, 2, 2)
    assert network.bottom.table.grad.shape == (2, n + 1, 4)
    # One byte for every pair of object and label would be 10 GB.
    assert peak < 200e6


@pytest.mark.parametrize("validates", [False, True])
def test_batches_that_are_cut_anew_train_the_same_networks(
    monkeypatch: pytest.MonkeyPatch, validates: bool
) -> None:
    n = 32
    hierarchy = random_hierarchy(0, n=n, patterns=20, kind="both")
    held_out = np.eye(n, 2) if validates else None
    task = Task.regression(np.arange(n, dtype=np.float64), n_models=2, validation=held_out)
    settings = Settings(epochs=3, batch_size=8, learning_rate=1e-3)
    results = []
    for limit in (1 << 23, 0):
        monkeypatch.setattr(batches, "MAX_KEPT_ENTRIES", {"cpu": limit})
        kept = cut_batches(make_network(hierarchy, 1, (0, 1)), hierarchy, task, 4, 0).kept
        assert len(kept) == (4 if limit else 1)
        network = make_network(hierarchy, 1, (0, 1))
        history = train(network, hierarchy, task, settings)
        results.append((history, network.state_dict()))
    (one, state), (other, again) = results
    assert one == other
    assert all(torch.equal(tensor, again[key]) for key, tensor in state.items())


def test_labels_and_roles_are_counted_in_chunks_as_in_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compressed = compress(random_hierarchy(1, n=30, patterns=12, kind="codes"))
    weights = (np.arange(60).reshape(30, 2) % 3 > 0).astype(np.float64)
    whole, roles = seen_in_training(compressed.hierarchy, compressed.top, weights, 2)
    monkeypatch.setattr(batches, "MAX_SEEN_ENTRIES", 3)
    parts, again = seen_in_training(compressed.hierarchy, compressed.top, weights, 2)
    assert torch.equal(whole, parts)
    assert all(map(torch.equal, roles, again))
