"""Networks that are trained on inner folds, averaged and calibrated."""

import numpy as np
import pytest

import saen
from saen import learning
from saen.learning.decomposing import Decompositions
from saen.learning.models.base import Study
from saen.learning.problem import Problem
from saen.learning.splits import Fold

THREADS = saen.generate_threads(40, average_nodes=8, seed=1)


def log_losses(proba, truth):
    return -np.log(proba[np.arange(len(truth)), truth])


def test_curves_end_with_the_loss_of_what_was_predicted(monkeypatch):
    monkeypatch.setattr(learning.problem, "temperature_of", lambda *_: 1.0)
    network = saen.SAENClassifier(epochs=23, n_models=1, radii=(0, 1), inner_folds=2)
    problem = Problem.of(THREADS.targets, regression=False)
    folds = [Fold(np.arange(20) + 20 * i, np.arange(20) + 20 * (1 - i), (0, i)) for i in range(2)]
    results = network.learner().fit(Study(Decompositions(THREADS), problem), folds)
    for result in results:
        assert result.loss.shape == result.validation.shape == (23, 2)
        measured = np.flatnonzero(np.isfinite(result.validation[:, 0])) + 1
        assert measured.tolist() == [*range(2, 23, 2), 23]
        ends = np.cumsum([len(check) for _, check in result.fold.inner])[:-1]
        truth = problem.values[result.fold.held_out]
        losses = [each.mean() for each in np.split(log_losses(result.held_out, truth), ends)]
        assert result.validation[-1] == pytest.approx(losses, rel=1e-4)


def test_a_model_of_a_fold_is_the_one_that_fit_makes_of_its_training_examples():
    network = saen.SAENClassifier(epochs=4, n_models=2, radii=(0, 1), random_state=3)
    problem = Problem.of(THREADS.targets, regression=False)
    train, test = np.arange(10, 40), np.arange(10)
    others = Fold(np.arange(30), np.arange(30, 40), (0, 0))
    _, result = network.learner().fit(
        Study(Decompositions(THREADS), problem, 3), [others, Fold(train, test, (0, 1))]
    )
    alone = network.fit(THREADS[train], THREADS.targets[train])
    np.testing.assert_allclose(result.tested, alone.predict_proba(THREADS[test]), atol=1e-5)
    kept = result.fitted.predictions(Decompositions(THREADS[test]))
    np.testing.assert_allclose(kept, result.tested, atol=1e-6)


def test_few_training_examples_have_no_inner_folds():
    """Fewer than ten are all trained on; nothing tells how sure the networks may be."""
    model = saen.SAENClassifier(epochs=2, n_models=2).fit(THREADS[:9], THREADS.targets[:9])
    assert model.evaluation_ is None
    assert model.network_.n_models == 2
    assert model.temperature_ == 1
