"""Wrong versions that passed all tests of their sub-packages: each by hand or by the definition."""

import copy

import numpy as np
import pytest
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel
from sklearn_calib._random import make_generator
from sklearn_calib.datasets import make_sign_perturbed, make_two_gaussians
from sklearn_calib.decisions import SelectiveClassifier, risk_coverage_curve
from sklearn_calib.decomposition import refinement_curve
from sklearn_calib.displays import CumulativeDifferenceDisplay
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.groups import Grades
from sklearn_calib.metrics import averaged_two_bin_error, cumulative_differences
from sklearn_calib.monitoring import CalibrationMonitor, safe_calibration_test
from sklearn_calib.recalibrators import IsotonicCalibration, OrdinalCalibration
from sklearn_calib.summary import CellSample
from sklearn_calib.theory import GaussianLogisticModel


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return (
        X,
        (rng.random(n) < expit(X[:, 0])).astype(int),
        0.1 + rng.exponential(size=n),
    )


@pytest.mark.parametrize("groups", [None, np.arange(120) % 2])
def test_the_interval_of_a_coverage_knows_no_unit_of_weights(groups):
    X, y, weight = rows()
    model = FrozenEstimator(LogisticRegression().fit(X, y))
    found = []
    for unit in (1.0, 7.3):
        one = SelectiveClassifier(model, coverage=0.5)
        one.fit(X, y, groups=groups, sample_weight=unit * weight)
        by_group = () if groups is None else sorted(one.coverage_intervals_.items())
        found.append(
            np.hstack([one.coverage_interval_, *(ends for _, ends in by_group)])
        )
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_the_intervals_of_risks_know_no_unit_of_weights():
    X, y, weight = rows()
    one, other = (
        risk_coverage_curve(y, expit(X[:, 0]), sample_weight=unit * weight)
        for unit in (1, 7.3)
    )
    np.testing.assert_allclose([one.low, one.high], [other.low, other.high], rtol=1e-9)


def test_zeros_and_ones_of_a_safe_test_by_definition():
    _, y, _ = rows(40)
    p = np.random.default_rng(2).random(40)
    fit, judge = np.array_split(make_generator(0).permutation(40), 2)
    method = IsotonicCalibration().fit(p[fit], y[fit])
    fitted, judged = (method.predict_proba(p[part])[:, 1] for part in (fit, judge))
    assert ((judged == 0) | (judged == 1)).any()
    columns = []
    for one in (0, 1):
        share = judged if one else 1 - judged
        seen = fitted if one else 1 - fitted
        for end in (0, 1):
            hits = y[fit][seen == end] == one
            share = np.where(share == end, (hits.sum() + 0.5) / (len(hits) + 1), share)
        columns.append(share)
    says = np.choose(y[judge], columns) / np.sum(columns, axis=0)
    said = np.where(y[judge] == 1, p[judge], 1 - p[judge])
    found = safe_calibration_test(
        y, p, recalibrator="isotonic", n_splits=1, random_state=0
    )
    assert found.log_e_values[0] == pytest.approx(np.log(says / said).sum())


def test_evidence_of_a_group_is_the_mean_of_its_classes():
    rng = np.random.default_rng(0)
    proba, y, group = (
        rng.dirichlet(np.ones(3), 60),
        rng.integers(0, 3, 60),
        np.arange(60) % 2,
    )
    monitor = CalibrationMonitor(groups=[0, 1], multiclass="classwise")
    monitor.update(y, proba, groups=group)
    for name in (0, 1):
        rows = group == name
        each = [
            CalibrationMonitor().update((y == c)[rows], proba[rows, c])
            for c in range(3)
        ]
        assert monitor.e_values_[name] == pytest.approx(
            np.mean([one.e_value_ for one in each])
        )


def test_a_region_of_a_group_and_a_class_is_of_its_rows():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 120)
    y, group = rng.integers(0, 3, 120), np.array(["a", "b"])[np.arange(120) % 5 // 3]
    monitor = CalibrationMonitor(groups=["a", "b"], multiclass="classwise")
    monitor.update(y, proba, groups=group)
    for name, label in (("a", 1), ("b", 0)):
        there = group == name
        alone = (
            CalibrationMonitor()
            .update((y == label)[there], proba[there, label])
            .region()
        )
        found = monitor.region(stream=f"group {name}, class {label}")
        np.testing.assert_allclose(
            found.slope_interval, alone.slope_interval, rtol=1e-6
        )


def test_values_of_perturbed_signs_are_middles_of_equal_parts():
    values = np.unique(make_sign_perturbed(500, 4).proba)
    np.testing.assert_allclose(values, 1 / 3 + np.array([1, 3, 5, 7]) / 24)


def test_variances_are_a_diagonal_covariance_of_few_rows_too():
    one = make_two_gaussians(9, [0.5, 1.0], [2.0, 3.0])
    other = make_two_gaussians(9, [0.5, 1.0], np.diag([2.0, 3.0]))
    for part, same in zip(one, other, strict=True):
        np.testing.assert_allclose(part, same)


def test_a_scale_that_turns_three_classes_round_is_exported():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 90)
    y = np.array(["a", "b", "c"])[np.arange(90) % 3]
    model = OrdinalCalibration(order=["b", "c", "a"]).fit(
        proba, y, classes=["a", "b", "c"]
    )
    found = from_dict(to_dict(model)).predict_proba(proba)
    np.testing.assert_allclose(found, model.predict_proba(proba), atol=1e-12)


def test_events_of_cells_have_the_weight_of_their_rows():
    counts = np.array([[30, 10], [10, 30]])
    proba = np.array([[0.75, 0.25], [0.25, 0.75]])
    one, other = (
        CellSample(proba, counts, unit * counts, unit**2 * counts) for unit in (1, 2.5)
    )
    drawn, heavier = (
        cells.draw_event_weights(9, np.random.default_rng(0)) for cells in (one, other)
    )
    np.testing.assert_allclose(heavier, 2.5 * drawn)


def test_an_elastic_net_adds_nothing_to_the_information():
    from sklearn_calib._kernels._logistic import (
        compute_model_covariance,
        compute_standard_error,
    )
    from sklearn_calib.linear import logistic_intervals

    X, y, _ = rows()
    model = LogisticRegression(solver="saga", max_iter=5000, C=0.3)
    model = model.set_params(l1_ratio=0.5)
    if "penalty" in model.get_params() and model.penalty == "l2":
        model.set_params(penalty="elasticnet")
    model.fit(X, y)
    Z, z = np.column_stack([X, np.ones(len(X))]), model.decision_function(X)
    error = compute_standard_error(
        Z, compute_model_covariance(Z, np.ones(len(X)), z, np.zeros(3))
    )
    found = logistic_intervals(model, X, X)
    np.testing.assert_allclose(
        found[:, 1], expit(z + 1.959963984540054 * error), rtol=1e-6
    )


def test_the_limit_of_a_loss_is_of_this_loss():
    found = GaussianLogisticModel().limit(0.1, "brier")
    wanted = GaussianLogisticModel.compute_weight_loss(
        found.inner[0], found.norm[0], "brier"
    )
    np.testing.assert_allclose([part[0] for part in found[:4]], wanted, rtol=1e-9)


def test_grades_of_quantiles_are_cut_where_the_rows_are():
    assert Grades.from_quantiles([0.1] + [0.2] * 5 + [0.3] * 4, 2).edges == (0.3,)
    assert Grades.from_quantiles([0.1] * 5 + [0.2] * 4 + [0.3], 2).edges == (0.2,)


def test_the_criterion_of_a_stage_counts_weights():
    X, y, _ = rows(40)
    p = expit(3 * X[:, 0])
    one = refinement_curve(y, [p], sample_weight=np.full(40, 2))
    other = refinement_curve(np.repeat(y, 2), [np.repeat(p, 2)])
    np.testing.assert_allclose(one.criterion, other.criterion, rtol=1e-9)


def test_later_labels_of_a_model_have_their_weights():
    X, y, weight = rows()
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    model = CalibratedModel(frozen, "online").fit(X, y)
    wanted = copy.deepcopy(model.recalibrator_)
    wanted.partial_fit(frozen.predict_proba(X), y, sample_weight=weight)
    plain = copy.deepcopy(model).partial_fit_recalibrator(X, y).predict_proba(X)
    found = model.partial_fit_recalibrator(X, y, sample_weight=weight).predict_proba(X)
    assert model.recalibrator_.slope_ == pytest.approx(wanted.slope_, rel=1e-6)
    assert np.abs(found - plain).max() > 1e-6


def test_chance_is_taken_off_each_class():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    y = np.arange(60) % 3
    found = averaged_two_bin_error(y, proba, multiclass="classwise", debias=True)
    each = [averaged_two_bin_error(y == c, proba[:, c], debias=True) for c in range(3)]
    assert found == pytest.approx(np.mean(each), rel=1e-9)


def test_ties_of_cells_count_half():
    counts = np.array([[3, 1], [2, 4]])
    sample = CellSample(np.array([[0.7, 0.3], [0.4, 0.6]]), counts, counts, counts)
    # ones below, and half of the equal ones
    assert sample.backwards[0] == 3 * 0.5 + 2 * (1 + 2)


def test_what_is_above_a_threshold_is_not_what_is_below():
    X, y, _ = rows()
    found = cumulative_differences(y, expit(2 * X[:, 0] + 1))
    [[below, above]] = CumulativeDifferenceDisplay(
        found, axis="score"
    ).get_plotted_data()
    np.testing.assert_allclose(below[1] + above[1], found.difference[-1])
    assert (below[1][0], above[1][-1]) == (0, 0)
