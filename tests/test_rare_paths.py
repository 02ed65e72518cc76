"""Paths that few calls take, each with the value that one wrong step would change."""

import inspect
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel, canonical_proba, displays
from sklearn_calib._cli import main
from sklearn_calib._cli._apply import _choose_unused_column_names
from sklearn_calib._cli._large import _parse_group_values
from sklearn_calib._files import rows as query_rows
from sklearn_calib._files.columns import TableBlock
from sklearn_calib._simplex_array import convert_log_odds
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import decision_curve
from sklearn_calib.displays import MurphyDisplay, ReliabilityDisplay
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import to_dict, to_json
from sklearn_calib.export._tabulate import tabulate_curve, tabulate_curves
from sklearn_calib.groups import group_calibration
from sklearn_calib.inference import calibrated_mean
from sklearn_calib.linear import estimate_angle
from sklearn_calib.linear._angle import compute_mean_gradient_quadratic_form
from sklearn_calib.maps import CallableMap, Identity, OneVsRest, PiecewiseCubic
from sklearn_calib.monitoring._record import BlockCounts, StreamCellCounts
from sklearn_calib.monitoring._result import MAX_COURSE_MOMENTS, StreamHistory
from sklearn_calib.recalibrators import PlattScaling, VectorScaling
from sklearn_calib.staged import find_staging
from sklearn_calib.summary._pattern_cells import ScoreGroupTable
from sklearn_calib.summary._values import ColumnValues
from sklearn_calib.theory import GaussianLogisticModel

P, Y = make_overconfident(2, 80, random_state=0)
X = np.column_stack([np.log(P[:, 1] / P[:, 0]), np.arange(80) % 7])


# -- monitors -------------------------------------------------------------------------------------


def test_a_course_begins_with_its_first_moment():
    course = StreamHistory()
    for number in range(1, 5 * MAX_COURSE_MOMENTS):
        if course.is_due(number):
            course.add((number, 0.0, 0.0, 1.0, 0.0, None))
    history = course.make_history((number, 0.0, 0.0, 1.0, 0.0, None))
    assert history.n_samples[0] == 1 and history.n_samples[-1] == number
    assert len(history.n_samples) <= MAX_COURSE_MOMENTS


def record_rows(behind):
    """A record of 60 rows, those above `behind` of them fresh."""
    record = StreamCellCounts(2)
    record.restart_fresh_counts_after(behind)
    number = np.arange(1, 61)
    record.add(X[:60, 0], Y[:60], number, None, Y[:60])
    return record.add_waiting_rows_in_place()


def test_fresh_rows_of_merged_records_are_those_of_both():
    first = record_rows(20)
    second = record_rows(45)
    first.merge(second, 60)
    assert first.fresh_counts[0].sum() == 40 + 15
    assert first.all_counts[0].sum() == 120
    assert first.blocks[-1].last == 120


def test_gains_of_a_block_follow_its_rows():
    blocks = record_rows(0).blocks
    block = BlockCounts(-1, 1, 32, None, blocks[0].counts, blocks[0].labels)
    before = block.compute_log_likelihood_ratios()
    block.merge_next_block(blocks[1])
    assert not np.allclose(block.compute_log_likelihood_ratios(), before)
    assert block.last == 60 and block.rows == 60


def test_rows_before_the_interval_of_the_onset_are_dropped():
    record = record_rows(0)
    record.drop_older_blocks_and_freeze_interval(0, 1)
    assert record.rows == 60 and record.kept == 60
    record.drop_older_blocks_and_freeze_interval(1, 1)
    assert record.rows == 28 and len(record.blocks) == 1


# -- exports --------------------------------------------------------------------------------------


def make_curve(amplitude, wave=lambda z: np.sin(3 * z)):
    """Log-odds with waves."""

    def predict(proba):
        proba = np.asarray(proba)
        with np.errstate(divide="ignore"):
            z = np.log(proba[:, 1]) - np.log(proba[:, 0])
        z = z.clip(-700, 700)
        return convert_log_odds(z + amplitude * wave(z))

    return CallableMap(input="logit", name="waves", predict=predict)


@pytest.mark.parametrize("bound", [0.05, 1e-3])
def test_a_table_is_within_its_bound_everywhere(bound):
    curve = make_curve(0.4)
    table = tabulate_curve(curve, bound)
    z = np.linspace(-12, 12, 20_001)
    wanted = np.asarray(curve.predict(convert_log_odds(z)))[:, 1]
    assert np.abs(expit(table.value(z)) - wanted).max() <= bound


def test_a_table_sees_waves_that_are_zero_in_the_middle_of_its_first_pieces():
    knots = tabulate_curve(make_curve(0.0), 0.05).knots
    numbers = np.arange(len(knots))
    wave = make_curve(0.9, lambda z: np.sin(4 * np.pi * np.interp(z, knots, numbers)))
    assert len(tabulate_curve(wave, 0.05).knots) > len(knots)


def test_a_cubic_that_ends_flat_rises():
    rng = np.random.default_rng(0)
    for _ in range(30):
        first, width, start = rng.random(3) + 0.1
        end = 0.1 + width * start / 2
        cubic = PiecewiseCubic(
            input="logit",
            knots=np.array([first, first + width, first + 2 * width]),
            values=np.array([0.1, end, end]),
            slopes=np.array([start, 0.0, 0.0]),
            domain=None,
        )
        assert cubic.direction() == 1


def test_the_error_of_several_tables_is_the_largest():
    parts = (make_curve(0.4), Identity())
    for ordered in (parts, parts[::-1]):
        _, error = tabulate_curves(OneVsRest(parts=ordered), 1e-3)
        assert error == 1e-3


# -- models ---------------------------------------------------------------------------------------


def test_rows_that_come_later_leave_earlier_recalibrators_alone():
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    model = CalibratedModel(frozen, "online").fit(X, Y)
    first = model.recalibrator_
    before = first.predict_proba(P)
    model.partial_fit_recalibrator(X, 1 - Y)
    assert model.recalibrator_ is not first
    assert np.array_equal(first.predict_proba(P), before)


@pytest.mark.slow
def test_folds_of_shares_are_large_enough_by_their_items():
    """Of 24 items with two shares each a fold has eight, too few for a map of its own."""
    shares = np.where(Y == 1, 0.8, 0.2)
    few = CalibratedModel(LogisticRegression(), "platt", cv=3)
    few.fit(X[:24], shares[:24], soft_labels=True)
    assert len(few.calibrated_pairs_) == 1
    enough = CalibratedModel(LogisticRegression(), "platt", cv=3)
    enough.fit(X[:60], shares[:60], soft_labels=True)
    assert len(enough.calibrated_pairs_) == 3


def test_stages_switch_early_stopping_off():
    boosting = GradientBoostingClassifier(n_estimators=9, n_iter_no_change=2)
    limited = find_staging(boosting).with_max_stages(boosting, 4)
    assert (limited.n_estimators, limited.n_iter_no_change) == (4, None)
    histogram = HistGradientBoostingClassifier(max_iter=9, early_stopping=True)
    limited = find_staging(histogram).with_max_stages(histogram, 4)
    assert (limited.max_iter, limited.early_stopping) == (4, False)


def test_a_truncated_adaboost_has_as_many_weights_and_errors():
    boosting = AdaBoostClassifier(n_estimators=5, random_state=0).fit(X, Y)
    short = find_staging(boosting).truncate_to_stage(boosting, 2)
    for name in ("estimators_", "estimator_weights_", "estimator_errors_"):
        assert len(getattr(short, name)) == 2, name


@pytest.mark.parametrize(("ratio", "n_samples"), [(0.3, 9), (0.5, 7), (0.01, 5)])
def test_features_of_a_theory_are_rounded(ratio, n_samples):
    rows = GaussianLogisticModel(ratio, 0.2).sample(n_samples)[0]
    assert rows.shape == (n_samples, max(1, round(ratio * n_samples)))


def test_the_inverse_of_a_sample_covariance_is_shrunk():
    """By 1 - (d + 1) / (n - 1), which the mean of an inverse Wishart matrix needs."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 3))
    y = (features[:, 0] + rng.normal(size=60) > 0).astype(int)
    model = LogisticRegression(C=0.5, tol=1e-10).fit(features, y)
    unlabelled = rng.normal(size=(9, 3))
    covariance = np.cov(unlabelled, rowvar=False)
    by_rows = estimate_angle(model, features, y, unlabelled)
    by_matrix = estimate_angle(model, features, y, covariance)
    residual = y - model.predict_proba(features)[:, 1]
    quadratic = compute_mean_gradient_quadratic_form(features, residual, covariance)
    change = by_rows.diagnostics["t2"] - by_matrix.diagnostics["t2"]
    assert change == pytest.approx(-4 / 8 * quadratic, rel=1e-4)
    with pytest.raises(ValueError, match="more than 5 rows without labels"):
        estimate_angle(model, features, y, unlabelled[:5])


def test_numbers_between_the_ends_are_part_of_an_event_and_part_of_none():
    """Scores that give the outcome up to rounding make the mean far more precise."""
    score = np.linspace(0.02, 0.98, 60)
    outcome = (10 * score**2).round(1)
    others = np.tile(score, 20)
    found = calibrated_mean(
        outcome, score, others, recalibrator="platt", bounds=(0, 10)
    )
    assert found.se < 0.3 * found.labels_se


@pytest.mark.parametrize("n_folds", [5, None])
def test_ten_rows_six_times_each_are_enough_for_five_folds(n_folds):
    features = np.repeat(np.random.default_rng(0).normal(size=(10, 2)), 6, axis=0)
    model = CalibratedModel(LogisticRegression(), "platt", cv=n_folds)
    with pytest.warns(CalibrationWarning, match="The folds keep them together"):
        model.fit(features, np.arange(60) % 6 < 2)


# -- tables, columns and pictures -----------------------------------------------------------------


def test_a_printed_decision_curve_has_each_threshold_in_its_own_line():
    curve = decision_curve(Y, P, n_resamples=9)
    shown = {}
    for line in str(curve).splitlines():
        numbers = re.findall(r"-?\d+\.\d+", line)
        if len(numbers) > 4:
            shown[numbers[0]] = (numbers[1], numbers[-1])
    columns = zip(curve.threshold, curve.net_benefit, curve.treat_all, strict=True)
    lines = {f"{t:.4g}": (f"{b:.4f}", f"{a:.4f}") for t, b, a in columns}
    assert len(shown) >= 8 and shown.items() <= lines.items()


@pytest.mark.parametrize("present", [1, 2, 3])
def test_the_next_number_is_in_the_name_of_a_new_column(present):
    taken = ["P_calibrated", "p_calibrated_2", "p_calibrated_3"][:present]
    options = SimpleNamespace(name=None)
    (found,) = _choose_unused_column_names(["p"], ["p", *taken], options)
    assert found == f"p_calibrated_{present + 1}"


@pytest.mark.parametrize("order", ["abc", "cab", "bca"])
def test_columns_of_several_classes_come_in_any_order(tmp_path, monkeypatch, order):
    monkeypatch.chdir(tmp_path)
    proba, codes = make_overconfident(3, 80, random_state=0)
    fitted = VectorScaling().fit(proba, np.array([*"abc"])[codes])
    Path("m.json").write_text(json.dumps(to_dict(fitted)), encoding="utf-8")
    pd.DataFrame(proba, columns=[*"abc"])[[*order]].to_csv("t.csv", index=False)
    names = ",".join(order)
    words = ["--prob", names, "--classes", names, "--out", "o.csv"]
    assert main(["apply", "m.json", "t.csv", *words]) == 0
    found = pd.read_csv("o.csv")[["a_calibrated", "b_calibrated", "c_calibrated"]]
    np.testing.assert_allclose(found, fitted.predict_proba(proba), rtol=1e-9)


@pytest.mark.parametrize("kind", ["proba", "logits"])
def test_a_column_of_the_first_class_gives_that_of_the_first_class(
    tmp_path, monkeypatch, kind
):
    monkeypatch.chdir(tmp_path)
    scores = P[:, 1] if kind == "proba" else X[:, 0]
    fitted = PlattScaling().fit(canonical_proba(scores, kind=kind), Y)
    wanted = fitted.predict_proba(canonical_proba(scores, kind=kind))[:, 0]
    to_json(fitted, "m.json", input=kind)
    turned = 1 - scores if kind == "proba" else -scores
    pd.DataFrame({"s": turned}).to_csv("t.csv", index=False)
    words = ["--prob", "s", "--positive", "0", "--out", "o.csv"]
    more = [] if kind == "proba" else ["--scale", "logits"]
    assert main(["apply", "m.json", "t.csv", *words, *more]) == 0
    found = pd.read_csv("o.csv")["s_calibrated"]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_rows_of_an_iterator_come_in_pieces_of_one_size(monkeypatch):
    monkeypatch.setattr(query_rows, "PIECE_ROWS", 3)
    pieces = query_rows.iter_pieces(((i, i / 10) for i in range(7)), ["a", "b"])
    found = [piece["a"].tolist() for piece in pieces]
    assert found == [[0, 1, 2], [3, 4, 5], [6]]


def test_merged_values_keep_the_decimal_sign():
    first, second = ColumnValues("g"), ColumnValues("g")
    first.add(TableBlock(pd.DataFrame({"g": [0.5, 1.5]}), "t.csv", ","))
    first.merge(second)
    assert first.decimal == ","
    second.merge(first)
    assert second.decimal == ","


def test_merged_values_keep_the_coarser_of_both_shifts():
    first, second = ColumnValues("g"), ColumnValues("g")
    first._shift = 7
    first.merge(second)
    assert first._shift == 7
    second.merge(first)
    assert second._shift == 7


def test_dates_of_several_files_with_a_missing_one_are_dates():
    dates = np.array(["2020-01-05", "2020-02-01", None], dtype=object)
    found = _parse_group_values(dates, ColumnValues("g"))
    assert found.dtype.kind == "M" and np.isnat(found[2])


def test_edges_of_large_whole_numbers_have_every_digit():
    income = 1_000_001.0 + np.arange(80) // 2
    found = group_calibration(Y, P, {"income": income}, min_rows=10, n_resamples=2)
    names = [row.group for row in found.rows[1:]]
    assert len(names) > 2
    for name in names:
        assert re.search(r"10000\d\d$", name), name


@pytest.mark.slow
@pytest.mark.parametrize("n_certain", [0, 3, 40])
def test_the_histogram_is_as_high_as_its_highest_column(n_certain):
    """On log-odds, scores of exactly 1 are a line beside the columns."""
    proba = np.append(P[:, 1], np.ones(n_certain))
    y = np.append(Y, np.ones(n_certain, dtype=int))
    display = ReliabilityDisplay.from_predictions(
        y, proba, n_resamples=0, scale="logit"
    )
    (histogram,) = display.histogram_axes_
    heights = [patch.get_data().values.max() for patch in histogram.patches]
    heights.append(n_certain / len(y))
    assert histogram.get_ylim() == pytest.approx((0, 1.05 * max(heights)))


def test_merged_groups_keep_the_coarser_of_both_resolutions():
    for shifts in ((5, 9), (9, 5)):
        first, second = (ScoreGroupTable(), ScoreGroupTable())
        first._shift, second._shift = shifts
        first.merge(second)
        assert first._shift == 9


@pytest.mark.slow
def test_bands_of_elementary_scores_end_at_zero_but_not_those_of_differences():
    one = MurphyDisplay.from_predictions(Y, P[:, 1], n_resamples=9)
    assert min_of_bands(one) == 0
    pair = {"a": P[:, 1], "b": 0.5 * P[:, 1] + 0.1}
    two = MurphyDisplay.from_predictions(Y, pair, n_resamples=9, difference=True)
    assert min_of_bands(two) < 0


def min_of_bands(display):
    return min(
        path.vertices[:, 1].min()
        for band in display.ax_.collections
        for path in band.get_paths()
    )


def displays_with_names():
    """Classes of displays whose fitted model can have a name."""
    for word in displays.__all__:
        maker = getattr(getattr(displays, word), "from_estimator", None)
        if maker is not None and "name" in inspect.signature(maker).parameters:
            yield word


@pytest.mark.slow
@pytest.mark.parametrize("word", displays_with_names())
def test_the_model_of_a_display_has_the_name_that_is_given(word):
    maker = getattr(displays, word).from_estimator
    known = inspect.signature(maker).parameters
    few = {"n_resamples": 9, "groups": Y == 1, "min_rows": 5, "grades": [0.4]}
    few = {key: one for key, one in few.items() if key in known}
    made = maker(LogisticRegression().fit(X, Y), X, Y, name="mine", **few)
    held = [one for one in vars(made).values() if isinstance(one, dict)]
    assert any([*one] == ["mine"] for one in held), vars(made).keys()


def test_a_scale_has_two_different_ends():
    model = CalibratedModel(FrozenEstimator(LogisticRegression().fit(X, Y)), "platt")
    fitted = model.fit(X, Y).recalibrator_
    assert to_dict(fitted, scale=(0, 100))["scale"] == [0, 100]
    with pytest.raises(ValueError, match="scale as two numbers, the lower one first"):
        to_dict(fitted, scale=(5, 5))
