"""Calibrated probabilities, and intervals of numbers that cover what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import saen
from saen.errors import InputError
from saen.learning.calibration import (
    Calibration,
    fit_temperature,
    interval_radius,
    logits_of,
    probabilities,
    temperature_of,
    tempered,
)
from saen.learning.metrics import log_losses

RNG = np.random.default_rng(0)
THREADS = saen.generate_threads(260, average_nodes=12, seed=3)
CODES = np.unique(THREADS.targets, return_inverse=True)[1]
TRAIN, TEST = np.arange(120), np.arange(120, 260)
QUICK = {"n_models": 2, "epochs": 6, "device": "cpu", "radii": (0, 1)}


def fitted(**changes):
    model = saen.SAENClassifier(**{**QUICK, **changes})
    return model.fit(THREADS[TRAIN[:60]], THREADS.targets[TRAIN[:60]])


# -- the pieces --------------------------------------------------------------------------------


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=5), st.floats(0.1, 10), st.booleans())
def test_a_temperature_keeps_the_order_of_classes(weights, temperature, several):
    row = np.array(weights) / sum(weights)
    result = tempered(row[None], temperature, several=several)[0]
    order = np.argsort(row, kind="stable")
    assert (np.diff(result[order]) >= -1e-12).all()
    assert several or result.sum() == pytest.approx(1)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_logits_of_probabilities_have_these_probabilities(n_outputs, several):
    proba = probabilities(RNG.normal(size=(5, n_outputs)), several=several)
    again = probabilities(logits_of(proba, several=several), several=several)
    np.testing.assert_allclose(again, proba, atol=1e-12)


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_the_temperature_is_that_by_which_logits_are_off(factor):
    logits = RNG.normal(scale=2, size=(4000, 3))
    rows = probabilities(logits)
    codes = np.array([RNG.choice(3, p=row) for row in rows])
    temperature, loss = fit_temperature(factor * logits, codes, np.ones(4000))
    assert temperature == pytest.approx(factor, rel=0.1)
    assert loss <= log_losses(codes, rows[None]).mean() + 1e-3


def test_classes_that_are_all_right_do_not_make_probabilities_certain():
    logits, codes = np.full((40, 1), 2.0), np.ones(40, dtype=int)
    assert fit_temperature(logits, codes, np.ones(40))[0] > 0.2


def test_unknown_targets_have_no_part_in_the_temperature():
    proba, codes = RNG.random((50, 3)), RNG.integers(-1, 2, (50, 3))
    other = np.where(codes < 0, 0.999, proba)
    weights = np.ones(50)
    assert temperature_of(proba, codes, weights) == temperature_of(other, codes, weights)
    assert temperature_of(proba, np.full((50, 3), -1), weights) == 1


def test_the_radius_is_the_conformal_quantile():
    errors = np.arange(1.0, 100.0)
    assert interval_radius(errors, 0.9) == 90
    assert interval_radius(errors[::-1][:8], 0.9) == np.inf
    two = np.column_stack([errors, np.where(errors > 19, np.nan, errors)])
    assert interval_radius(two, 0.9).tolist() == [90, 18]
    with pytest.raises(InputError, match="coverage must be between 0 and 1"):
        interval_radius(errors, 1.0)


# -- classes -----------------------------------------------------------------------------------


def test_calibration_lowers_the_log_loss_of_new_examples_and_changes_no_network():
    """Networks that have learned their examples by heart are too sure of themselves."""
    model = fitted(epochs=40)
    calibrated = model.predict_each(THREADS[TEST])
    raw = tempered(calibrated, 1 / model.temperature_)
    np.testing.assert_array_equal(raw.argmax(axis=2), calibrated.argmax(axis=2))
    np.testing.assert_array_equal(model.predict_proba(THREADS[TEST]), calibrated.mean(axis=1))
    before, after = (
        log_losses(CODES[TEST], rows.mean(axis=1)[None]).mean() for rows in (raw, calibrated)
    )
    assert model.temperature_ > 1
    assert after < before


def test_networks_are_calibrated_by_what_each_has_not_seen():
    model = fitted(inner_folds=3, dtype="float64")
    rows, truth = THREADS[TRAIN[:60]], CODES[:60]
    each = tempered(model.predict_each(rows), 1 / model.temperature_)
    held_out = np.empty((2, 60, 2))
    splits = model.evaluation_.splits[0]
    assert model.network_.n_models == 2 * len(splits) == 6
    for number, (_, check) in enumerate(splits):
        held_out[:, check] = each[check, 2 * number : 2 * number + 2].swapaxes(0, 1)

    def temperature_by(among):
        return temperature_of(np.concatenate(held_out[:, among]), np.tile(truth[among], 2))

    assert model.temperature_ == pytest.approx(temperature_by(np.arange(60)), rel=1e-6)
    for _, check in splits:  # calibrated by what the others hold out
        others = np.setdiff1d(np.arange(60), check)
        expected = tempered(held_out[:, check], temperature_by(others)).mean(axis=0)
        np.testing.assert_allclose(model.evaluation_.outputs[0, check], expected, atol=1e-9)


def test_networks_without_inner_folds_are_not_calibrated():
    model = fitted(inner_folds=0)
    assert model.temperature_ == 1
    assert model.evaluation_ is None
    assert model.history_.validation_loss == []
    mean = model.predict_each(THREADS[TEST]).mean(axis=1)
    np.testing.assert_array_equal(model.predict_proba(THREADS[TEST]), mean)


@pytest.mark.parametrize(("inner_folds", "networks"), [(1, 2), (2, 4)])
def test_inner_folds_are_of_the_examples_with_a_weight(inner_folds, networks):
    model = saen.SAENClassifier(**QUICK, inner_folds=inner_folds)
    prepared, y = model.prepare(THREADS[:80]), THREADS.targets[:80]
    weights = (np.arange(80) < 50).astype(float)
    model.fit(prepared, y, sample_weight=weights)
    assert np.shape(model.history_.loss) == (6, networks)
    assert all(part.max() < 50 for pair in model.evaluation_.splits[0] for part in pair)
    shuffled = np.concatenate([y[:50], y[50:][::-1]])
    again = saen.SAENClassifier(**QUICK, inner_folds=inner_folds)
    assert again.fit(prepared, shuffled, weights).temperature_ == model.temperature_


def test_examples_count_in_the_temperature_by_their_weights():
    proba, codes = RNG.dirichlet([1, 1, 1], 200), RNG.integers(0, 3, 200)
    weights = RNG.integers(0, 3, 200).astype(float)
    copies = np.repeat(np.arange(200), weights.astype(int))
    one = temperature_of(proba, codes, weights)
    other = temperature_of(proba[copies], codes[copies], np.ones(len(copies)))
    assert one == pytest.approx(other, rel=0.02)  # the share of the prior differs a little
    assert one != pytest.approx(temperature_of(proba, codes, np.ones(200)), rel=1e-3)


def test_few_examples_are_not_calibrated_on():
    model = saen.SAENClassifier(**QUICK).fit(THREADS[:9], THREADS.targets[:9])
    assert model.temperature_ == 1


def test_a_run_directory_keeps_the_calibration(tmp_path, monkeypatch):
    undisturbed = fitted()
    trained, original = [], saen.network.training._Run.train_epoch

    def noted(self, batches):
        trained.append(self.epoch)
        original(self, batches)

    first = fitted(run_dir=tmp_path)
    monkeypatch.setattr(saen.network.training._Run, "train_epoch", noted)
    second = fitted(run_dir=tmp_path)
    assert not trained
    assert first.temperature_ == second.temperature_ == undisturbed.temperature_
    assert second.history_ == undisturbed.history_


def test_blends_are_calibrated_as_a_whole():
    members = [saen.SAENClassifier(**QUICK), saen.PartCountsClassifier("neighbourhoods(depth=1)")]
    model = saen.Classifier(candidates=members)
    model.fit(THREADS[TRAIN], THREADS.targets[TRAIN])
    mean = np.tensordot(model.weights_, model.predict_each(THREADS[TEST]), (0, 1))
    expected = tempered(mean, model.temperature_)
    np.testing.assert_allclose(model.predict_proba(THREADS[TEST]), expected)


# -- numbers -----------------------------------------------------------------------------------


def noisy_sizes(seed):
    rng = np.random.default_rng(seed)
    return THREADS.sizes + rng.normal(scale=3.0, size=len(THREADS))


@pytest.mark.parametrize(
    "kind", ["networks", "counts", pytest.param("blend", marks=pytest.mark.slow)]
)
def test_intervals_cover_what_they_say(kind):
    """Over several draws of training examples, since one coverage depends on its draw."""
    inside = []
    for seed in range(3):
        y, order = noisy_sizes(seed), np.random.default_rng(seed).permutation(260)
        train, test = order[:120], order[120:]
        networks = saen.SAENRegressor(**QUICK | {"epochs": 15})
        counts = saen.PartCountsRegressor("neighbourhoods(depth=1)")
        blend = saen.Regressor(candidates=[counts, clone(networks).set_params(n_models=1)])
        model = {"networks": networks, "counts": counts, "blend": blend}[kind]
        low, high = model.fit(THREADS[train], y[train]).predict_interval(THREADS[test], 0.8)
        np.testing.assert_allclose((low + high) / 2, model.predict(THREADS[test]))
        inside.append((low <= y[test]) & (y[test] <= high))
    assert 0.7 < np.mean(inside) < 0.92


def test_intervals_of_several_numbers_have_their_own_widths():
    y = np.column_stack([noisy_sizes(0), 100 * noisy_sizes(1)])
    y[::5, 1] = np.nan
    model = saen.SAENRegressor(**QUICK).fit(THREADS[TRAIN], y[TRAIN])
    low, high = model.predict_interval(THREADS[TEST])
    widths = high - low
    assert widths.shape == (140, 2)
    assert 50 < widths[0, 1] / widths[0, 0] < 200
    assert np.isfinite(model.errors_[:, 0]).all()
    assert np.isnan(model.errors_[:, 1]).sum() == 24


def test_without_inner_folds_an_interval_is_everything():
    model = saen.SAENRegressor(**QUICK, inner_folds=0).fit(THREADS[TRAIN], noisy_sizes(0)[TRAIN])
    low, high = model.predict_interval(THREADS[:2])
    assert (low == -np.inf).all()
    assert (high == np.inf).all()


@pytest.mark.parametrize("kind", ["networks", "counts"])
def test_cross_validation_says_how_many_lie_inside(kind, tmp_path):
    model = {
        "networks": saen.SAENRegressor(**QUICK | {"n_models": 1, "epochs": 12}),
        "counts": saen.PartCountsRegressor("neighbourhoods(depth=1)", C=1.0),
    }[kind]
    options = {"n_repeats": 1, "n_folds": 4, "run_dir": tmp_path}
    found = saen.cross_validate(model, THREADS, noisy_sizes(0), **options)
    again = saen.cross_validate(model, THREADS, noisy_sizes(0), **options)  # from its files
    np.testing.assert_array_equal(again.radius, found.radius)
    intervals = found.to_json()["intervals"]
    inside = np.abs(found.outputs - found.targets) <= found.radius
    assert intervals["observed"] == inside.mean()
    assert 0.82 < intervals["observed"] < 0.97
    assert intervals["width"] > 0


def test_cross_validation_has_intervals_of_several_numbers_from_part_counts():
    y = np.column_stack([noisy_sizes(0), 100 * noisy_sizes(1)])
    y[::5, 1] = np.nan
    model = saen.PartCountsRegressor("neighbourhoods(depth=1)", C=1.0)
    found = saen.cross_validate(model, THREADS, y, n_repeats=1, n_folds=4)
    assert found.radius.shape == found.outputs.shape == (1, len(y), 2)
    width = found.radius[0].mean(axis=0)
    assert 50 < width[1] / width[0] < 200


# -- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        saen.SAENClassifier(**QUICK),
        saen.SAENRegressor(**QUICK),
        saen.PartCountsRegressor("neighbourhoods(depth=1)"),
        saen.Regressor(candidates=[saen.PartCountsRegressor("neighbourhoods(depth=1)")]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_calibration_is_saved(model, tmp_path):
    classes = hasattr(model, "predict_proba")
    model.fit(THREADS[TRAIN], THREADS.targets[TRAIN] if classes else noisy_sizes(0)[TRAIN])
    model.save(tmp_path / "model.saen")
    again = saen.load(tmp_path / "model.saen")
    name = "predict_proba" if classes else "predict_interval"
    results = [getattr(each, name)(THREADS[TEST]) for each in (model, again)]
    np.testing.assert_array_equal(*results)


def test_intervals_are_wider_where_members_disagree():
    rng = np.random.default_rng(0)
    spreads = rng.uniform(0.1, 3.0, 2000)
    errors = np.abs(rng.normal(size=2000)) * spreads
    calibration = Calibration(errors=errors[:1000], spreads=spreads[:1000])
    radius = calibration.radius(spreads[1000:])
    assert (errors[1000:] <= radius).mean() == pytest.approx(0.9, abs=0.03)
    wide = spreads[1000:] > 2
    constant = calibration.radius()
    assert (errors[1000:] <= constant)[wide].mean() < (errors[1000:] <= radius)[wide].mean()
    assert calibration.radius(np.zeros(1))[0] > 0  # members that agree may still be wrong


def test_blends_of_numbers_have_intervals_of_their_own():
    threads = saen.generate_threads(80, average_nodes=15, seed=1)
    y = threads.sizes + np.random.default_rng(0).normal(size=80)
    model = saen.Regressor(budget="quick").fit(threads[:60], y[:60])
    low, high = model.predict_interval(threads[60:])
    assert len(np.unique((high - low).round(9))) > 1
    evaluation = saen.cross_validate(
        saen.Regressor(budget="quick"), threads, y, splits=[[(np.arange(60), np.arange(60, 80))]]
    )
    assert evaluation.radius is not None
    assert evaluation.radius[0, 60:] == pytest.approx((high - low) / 2)
