"""Scores against plain counting."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from saen import InputError
from saen.learning.metrics import (
    CLASSIFICATION_METRICS,
    REGRESSION_METRICS,
    calibrate,
    classification_scores,
    corrected_interval,
    find_metric,
    log_losses,
    prediction_scores,
    regression_scores,
    several_scores,
)


@st.composite
def predictions(draw):
    """Targets (n,), probabilities (repeats, n, classes)."""
    n, classes = draw(st.integers(1, 8)), draw(st.integers(2, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Few different numbers, so that ties and the edges of bins occur.
    weights = random.integers(
        1, draw(st.sampled_from([3, 1000])), (draw(st.integers(1, 3)), n, classes)
    )
    return random.integers(0, classes, n), weights / weights.sum(axis=2, keepdims=True)


@given(predictions(), st.integers(1, 12))
def test_calibration_error_is_the_weighted_gap_of_the_bins(given, bins):
    targets, probabilities = given
    members = {}
    for repeat in probabilities:
        for target, row in zip(targets, repeat, strict=True):
            confidence = max(row)
            place = min(math.floor(confidence * bins), bins - 1)
            correct = list(row).index(confidence) == target
            members.setdefault(place, []).append((confidence, correct))
    calibration = calibrate(targets, probabilities, bins)
    error, total = 0.0, probabilities.shape[0] * len(targets)
    for place in range(bins):
        mine = members.get(place, [])
        assert calibration.counts[place] == len(mine)
        if mine:
            confidence = sum(c for c, _ in mine) / len(mine)
            accuracy = sum(correct for _, correct in mine) / len(mine)
            assert calibration.confidence[place] == pytest.approx(confidence)
            assert calibration.accuracy[place] == pytest.approx(accuracy)
            error += abs(accuracy - confidence) * len(mine) / total
    assert calibration.error == pytest.approx(error, abs=1e-12)


@given(predictions())
def test_classification_scores_count_every_repeat(given):
    targets, probabilities = given
    classes = np.array(["a", "b", "c", "d"])[: probabilities.shape[2]]
    scores = classification_scores(classes[targets], probabilities, classes)
    confusion = np.zeros((len(classes), len(classes)), dtype=int)
    for repeat in probabilities:
        for target, row in zip(targets, repeat, strict=True):
            confusion[target, list(row).index(max(row))] += 1
    np.testing.assert_array_equal(scores.confusion, confusion)
    assert scores.accuracy == pytest.approx(confusion.trace() / confusion.sum())
    assert scores.interval[0] <= scores.accuracy <= scores.interval[1]
    assert scores.majority == pytest.approx(confusion.sum(axis=1).max() / confusion.sum())
    for code in range(len(classes)):
        true, predicted = confusion[code].sum(), confusion[:, code].sum()
        recall = confusion[code, code] / true if true else math.nan
        precision = confusion[code, code] / predicted if predicted else math.nan
        assert scores.recall[code] == pytest.approx(recall, nan_ok=True)
        assert scores.precision[code] == pytest.approx(precision, nan_ok=True)
    assert scores.log_loss == pytest.approx(log_losses(targets, probabilities).mean())
    assert scores.calibration.error == calibrate(targets, probabilities, 10).error
    assert json.loads(json.dumps(scores.to_json())) == {
        **{name: getattr(scores, name) for name in ("accuracy", "majority", "log_loss")},
        "interval": list(scores.interval),
        "calibration_error": scores.calibration.error,
        "confusion": confusion.tolist(),
    }


def test_classification_scores_refuse_nothing_and_unknown_classes():
    with pytest.raises(InputError, match="no predictions"):
        classification_scores([], np.empty((0, 2)), ["a", "b"])
    with pytest.raises(InputError, match="unknown class 'z'"):
        classification_scores(["z"], [[0.5, 0.5]], ["a", "b"])


@given(predictions())
def test_log_losses_are_means_over_repeats(given):
    targets, probabilities = given
    for test, target in enumerate(targets):
        each = [-math.log(repeat[test][target]) for repeat in probabilities]
        assert log_losses(targets, probabilities)[test] == pytest.approx(sum(each) / len(each))


def test_log_losses_of_the_impossible_are_finite():
    assert log_losses([0], [[[0.0, 1.0]]])[0] == pytest.approx(12 * math.log(10))
    assert str(log_losses([1], [[[0.0, 1.0]]])[0]) == "0.0"  # not -0.0
    assert calibrate([1], [[0.0, 1.0]]).counts.tolist() == [0] * 9 + [1]


def test_regression_scores_by_hand():
    true, predicted = [1.0, 2.0, 4.0], [1.0, 3.0, 4.0]
    scores = regression_scores(true, predicted, baseline=2.0)
    assert scores.r2 == pytest.approx(1 - 1 / (14 / 3))
    assert scores.rmse == pytest.approx((1 / 3) ** 0.5)
    assert scores.mae == pytest.approx(1 / 3)
    error = np.std([0, 1, 0], ddof=1) / 3**0.5  # 4.303: Student's t of two degrees of freedom
    assert scores.interval == (0.0, pytest.approx(1 / 3 + 4.303 * error, rel=1e-3))
    assert scores.mae_of_mean == pytest.approx(1.0)
    assert json.loads(json.dumps(scores.to_json()))["r2"] == scores.r2
    both = regression_scores(np.column_stack([true, true]), np.column_stack([predicted, true]))
    assert both.r2 == pytest.approx((scores.r2 + 1) / 2)
    assert both.mae == pytest.approx(scores.mae / 2)


def test_regression_scores_without_spread_have_no_r2():
    scores = regression_scores([2.0], [3.0])
    assert (scores.r2, scores.mae, scores.interval) == (None, 1.0, None)
    with pytest.raises(InputError, match="no predictions"):
        regression_scores([], [])


def test_prediction_scores_need_targets_of_the_same_kind():
    classes, numbers = np.array(["a", "b"]), np.array([1.0, 2.0])
    words = np.array(["a", "b"])
    assert prediction_scores(classes, words, words) == {"accuracy": 1.0}
    assert prediction_scores(classes, words[[0, 0]], words) == {"accuracy": 0.5}
    assert prediction_scores(classes, np.array(["a", "?"]), words) == {"accuracy": 0.5}
    assert prediction_scores(None, numbers, numbers) == {"r2": 1.0, "mae": 0.0}
    assert prediction_scores(None, numbers * 0, numbers) == {"mae": 1.5}
    assert prediction_scores(classes, None, words) == {}
    assert prediction_scores(classes, np.array(["x", "y"]), words) == {}
    assert prediction_scores(None, words, numbers) == {}
    assert prediction_scores(None, np.ones((2, 2)), numbers) == {}


# -- metrics by name ---------------------------------------------------------------------------


def draw(n_classes, seed=0, n=60):
    noise = np.random.default_rng(seed)
    y = noise.integers(0, n_classes, n)
    rows = noise.random((n, n_classes)) + 0.7 * np.eye(n_classes)[y]
    return y, rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_metrics_of_classes_are_scikit_learn_s(n_classes):
    y, rows = draw(n_classes)
    predicted, one_hot = rows.argmax(axis=1), np.eye(n_classes)[y]
    auc_rows = rows[:, 1] if n_classes == 2 else rows
    expected = {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "f1": metrics.f1_score(y, predicted, average="macro"),
        "roc_auc": metrics.roc_auc_score(y, auc_rows, multi_class="ovr"),
        "average_precision": metrics.average_precision_score(y, rows[:, 1])
        if n_classes == 2
        else metrics.average_precision_score(one_hot, rows),
        "log_loss": metrics.log_loss(y, rows),
        "mcc": metrics.matthews_corrcoef(y, predicted),
    }
    found = {name: metric(y, rows) for name, metric in CLASSIFICATION_METRICS.items()}
    assert found == pytest.approx(expected)


def test_metrics_of_numbers_are_scikit_learn_s():
    noise = np.random.default_rng(1)
    y, predicted = noise.normal(size=(2, 30))
    found = {name: metric(y, predicted) for name, metric in REGRESSION_METRICS.items()}
    assert found == pytest.approx(
        {
            "mae": metrics.mean_absolute_error(y, predicted),
            "rmse": metrics.root_mean_squared_error(y, predicted),
            "r2": metrics.r2_score(y, predicted),
        }
    )


def test_metrics_without_a_definition_are_nan():
    rows = np.array([[0.9, 0.1], [0.2, 0.8]])
    undefined = {n for n, m in CLASSIFICATION_METRICS.items() if np.isnan(m([0, 0], rows))}
    assert undefined == {"roc_auc", "average_precision", "mcc"}
    assert np.isnan(REGRESSION_METRICS["r2"]([1.0, 1.0], [0.5, 1.5]))


def test_metrics_leave_out_classes_that_a_fold_does_not_test():
    assert CLASSIFICATION_METRICS["roc_auc"]([0, 1, 0], np.eye(2)[[0, 1, 0]]) == 1.0
    y, rows = draw(3)
    y, rows = y[y != 2], rows[y != 2]
    expected = np.mean([metrics.roc_auc_score(y == code, rows[:, code]) for code in (0, 1)])
    assert CLASSIFICATION_METRICS["roc_auc"](y, rows) == pytest.approx(expected)


def test_goodness_turns_losses_around():
    assert CLASSIFICATION_METRICS["accuracy"].goodness(0.5) == 0.5
    for metric in (CLASSIFICATION_METRICS["log_loss"], *list(REGRESSION_METRICS.values())[:2]):
        assert metric.goodness(0.5) == -0.5
    assert REGRESSION_METRICS["r2"].goodness(0.5) == 0.5


def test_unknown_metrics_are_refused():
    with pytest.raises(InputError, match="metric for real numbers is one of mae, rmse, r2"):
        find_metric("accuracy", regression=True)
    with pytest.raises(InputError, match="metric for classes is one of accuracy"):
        find_metric("mae", regression=False)
    defaults = [find_metric(None, regression=regression).name for regression in (False, True)]
    assert defaults == ["accuracy", "mae"]


def test_corrected_interval_covers_what_the_naive_one_does_not():
    scores = np.array([0.7, 0.8, 0.9, 0.75, 0.85])
    low, high = corrected_interval(scores, 0.25)
    error = np.sqrt((1 / 5 + 1 / 4) * np.var(scores, ddof=1))
    assert (high - low) / 2 == pytest.approx(2.7764451 * error)
    assert (high + low) / 2 == pytest.approx(0.8)
    assert corrected_interval([0.5], 0.25) is None
    assert corrected_interval([0.4, 0.9], 0.25, (0.0, 1.0)) == (0.0, 1.0)


# -- what mutants survived ---------------------------------------------------------------------


def test_classification_scores_take_classes_in_any_order():
    scores = classification_scores(
        ["a", "b", "b"], [[0.1, 0.9], [0.8, 0.2], [0.7, 0.3]], ["b", "a"]
    )
    assert scores.accuracy == 1.0
    assert scores.confusion.tolist() == [[2, 0], [0, 1]]


def test_classification_scores_have_the_interval_of_wilson():
    scores = classification_scores([0] * 8 + [1] * 2, [[0.9, 0.1]] * 10, [0, 1])
    p, n, z = 0.8, 10, 1.959963984540054
    centre, half = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    expected = ((centre - half) / (1 + z**2 / n), (centre + half) / (1 + z**2 / n))
    assert scores.interval == pytest.approx(expected)
    assert scores.to_json()["majority"] == 0.8


def test_regression_scores_have_no_r2_if_one_of_several_targets_is_constant():
    true = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    assert regression_scores(true, true + 0.5).r2 is None
    assert regression_scores(true[:, :1], true[:, :1]).r2 == 1.0


def test_prediction_scores_need_one_target_per_prediction():
    words = np.array(["a", "b", "a"])
    assert prediction_scores(np.array(["a", "b"]), words[:2], words) == {}
    assert prediction_scores(np.array(["a", "b"]), words[:0], words[:0]) == {}


def test_balanced_accuracy_leaves_out_classes_that_are_only_predicted():
    rows = np.eye(3)[[0, 2, 1]]
    assert CLASSIFICATION_METRICS["balanced_accuracy"](np.array([0, 0, 1]), rows) == 0.75


def test_regression_scores_of_several_targets_against_the_mean_of_each():
    true = np.array([[0.0, 10.0], [2.0, 30.0]])
    scores = regression_scores(true, true + np.array([[1.0], [3.0]]))
    assert scores.mae_of_mean == (1 + 10) / 2
    assert scores.interval == (0.0, pytest.approx(2 + 12.706 * 1, rel=1e-4))
    assert regression_scores(true, true, baseline=[0.0, 10.0]).mae_of_mean == (0 + 2 + 0 + 20) / 4


def test_f1_and_mcc_of_classes_that_are_rare_only_predicted_or_nowhere():
    codes, predicted = np.array([0, 0, 1]), [0, 2, 1]
    f1, mcc = (CLASSIFICATION_METRICS[name] for name in ("f1", "mcc"))
    assert f1(codes, np.eye(4)[predicted]) == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert mcc(codes, np.eye(4)[codes]) == 1.0
    assert mcc(codes, np.eye(4)[[0, 0, 0]]) == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_scores_equal_scikit_learns_with_ties_and_missing_classes(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    codes = rng.integers(0, n_classes - (seed % 2), 40)  # every other time a class is missing
    if seed % 2 and n_classes == 2:
        codes[:3] = 1
    rows = rng.integers(1, 5, (40, n_classes)).astype(float)  # many equal scores
    rows /= rows.sum(axis=1, keepdims=True)
    predicted, present = rows.argmax(axis=1), np.unique(codes)
    against_rest = [1] if n_classes == 2 else present.tolist()

    def mean(function):
        return np.mean([function(codes == code, rows[:, code]) for code in against_rest])

    expected = {
        "accuracy": metrics.accuracy_score(codes, predicted),
        "balanced_accuracy": metrics.recall_score(
            codes, predicted, labels=present, average="macro"
        ),
        "f1": metrics.f1_score(codes, predicted, average="macro", zero_division=0.0),
        "roc_auc": mean(metrics.roc_auc_score),
        "average_precision": mean(metrics.average_precision_score),
        "mcc": metrics.matthews_corrcoef(codes, predicted),
    }
    for name, value in expected.items():
        assert CLASSIFICATION_METRICS[name](codes, rows) == pytest.approx(value, abs=1e-12), name


def test_several_scores_name_every_target_and_leave_out_what_is_not_defined():
    codes, proba = np.array([[0, 1], [1, -1], [1, 1]]), np.array([[0.1, 0.3], [0.6, 0.9], [0.2, 1]])
    scores = several_scores(codes, proba, ["a", "b"])
    assert {*scores} == {*CLASSIFICATION_METRICS, "targets"}
    assert (scores["accuracy"], scores["roc_auc"]) == (pytest.approx((2 / 3 + 1 / 2) / 2), 1.0)
    assert [scores["targets"][name]["roc_auc"] for name in "ab"] == [1.0, None]
    constant = np.array([[-1.0, np.nan], [-1.0, 2.0]])
    numbers = several_scores(constant, constant + 1, ["a", "b"])
    assert (numbers["mae"], numbers["r2"]) == (1.0, None)
    assert [numbers["targets"][name]["mae"] for name in "ab"] == [1.0, 1.0]


def test_values_are_shown_in_the_unit_of_their_metric():
    shown = [(m.show(0.123456), m.unit) for m in CLASSIFICATION_METRICS.values()]
    assert shown == [("12.3", " %")] * 5 + [("0.1235", "")] * 2


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_regression_scores_do_not_depend_on_the_unit(unit):
    y, predicted = np.array([1.0, 2.0, 4.0]), np.array([4.0, -2.0, 1.0])
    scores = regression_scores(unit * y, unit * predicted)
    plain = regression_scores(y, predicted)
    assert scores.r2 == pytest.approx(plain.r2)
    assert scores.r2 < 0
    assert scores.rmse == pytest.approx(unit * plain.rmse)
    assert scores.interval == pytest.approx(tuple(unit * each for each in plain.interval))
