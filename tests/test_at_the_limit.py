"""Conditions and limits met exactly and missed by one, and what Ctrl-C leaves of a file."""

import io
import os
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_calib._cli._result import parse_conditions
from sklearn_calib._files import csv_text, input_files
from sklearn_calib._files.atomic import lock_file, open_atomically
from sklearn_calib._kernels._cells import encode_float_keys, find_cell_start_keys
from sklearn_calib._kernels._cluster_sums import compute_expected_over_observed_squares
from sklearn_calib._kernels._expected_metrics import choose_best_actions
from sklearn_calib._kernels._picture_axes import _mark_points_not_in_rare_ends
from sklearn_calib._kernels._polynomial_test import fit_logistic_spline
from sklearn_calib._kernels._probability_floor import MAX_FLOOR, estimate_floor
from sklearn_calib.classifiers._refine_then_calibrate import _warn_few_validation_rows
from sklearn_calib.exceptions import InvalidInputError
from sklearn_calib.groups import _cells as groups_cells, group_calibration
from sklearn_calib.inference import calibrated_mean
from sklearn_calib.linear import _fit as linear_fit, approximate_leave_one_out
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary
from sklearn_calib.summary._problems import make_empty_cell_states

RNG = np.random.default_rng(0)
P = RNG.random(60).round(2)
Y = (RNG.random(60) < P).astype(int)
X = np.column_stack([P, np.arange(60) % 7, np.arange(60) % 5])


@pytest.mark.parametrize(
    ("sign", "below", "equal", "above"),
    [
        (">", False, False, True),
        (">=", False, True, True),
        ("<", True, False, False),
        ("<=", True, True, False),
    ],
)
def test_conditions_at_their_number(sign, below, equal, above):
    [condition] = parse_conditions([f"accuracy {sign} 0.75"])
    for value, holds in ((0.7499, below), (0.75, equal), (0.7501, above)):
        assert condition.evaluate_condition({"value": value})[0] is holds


@pytest.mark.parametrize(("n_characters", "fits"), [(20, True), (21, False)])
def test_rows_of_the_longest_length_are_read(monkeypatch, n_characters, fits):
    monkeypatch.setattr(csv_text, "MAX_ROW_CHARACTERS", 20)
    row = n_characters * "x"
    stream = io.BytesIO(f"a,b\n{row}\n1,2\n".encode())
    # The first block ends with the row, so that it is not known how long it will be.
    blocks = csv_text.iter_text_blocks(stream, "utf-8", ",", 4 + n_characters, "t.csv")
    assert next(blocks) == "a,b\n"
    if fits:
        assert "".join(blocks) == f"{row}\n1,2\n"
    else:
        with pytest.raises(InvalidInputError, match="at most 20 characters"):
            next(blocks)


def test_a_row_of_several_lines_may_be_longer_while_each_line_is_not(monkeypatch):
    monkeypatch.setattr(csv_text, "MAX_ROW_CHARACTERS", 20)
    row = '"' + 2 * (10 * "x" + "\n") + 'x",1\n'
    stream = io.BytesIO(f"a,b\n{row}".encode())
    # The first block ends inside of the quotes, and the second one with the row.
    blocks = csv_text.iter_text_blocks(stream, "utf-8", ",", 4 + 23, "t.csv")
    assert [*blocks] == ["a,b\n", row]


@pytest.mark.skipif(os.name == "nt", reason="no permissions of others on Windows")
def test_others_may_take_a_lock_as_far_as_the_mask_allows(tmp_path):
    before = os.umask(0o022)
    try:
        with lock_file(tmp_path / "a", 0):
            (name,) = tmp_path.iterdir()
            assert name.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_nothing_is_left_of_a_file_that_was_given_up(tmp_path, error):
    (tmp_path / "new.txt").write_bytes(b"yesterday")
    with pytest.raises(error), open_atomically(tmp_path / "new.txt") as file:
        file.write(b"to")
        raise error
    assert os.listdir(tmp_path) == ["new.txt"]
    assert (tmp_path / "new.txt").read_bytes() == b"yesterday"


@pytest.mark.parametrize(
    ("n_rows", "n_errors", "warns"),
    [(1000, 10, False), (999, 10, True), (1000, 9, True)],
)
def test_validation_rows_that_are_enough(n_rows, n_errors, warns):
    scores = np.tile([0.9, 0.1], (n_rows, 1))
    scores[:n_errors] = [0.1, 0.9]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        _warn_few_validation_rows(scores, np.zeros(n_rows, dtype=int))
    assert bool(found) is warns


@pytest.mark.parametrize(("most", "fits"), [(3, True), (2, False)])
def test_the_hessian_is_of_the_smaller_of_rows_and_columns(monkeypatch, most, fits):
    monkeypatch.setattr(linear_fit, "MAX_HESSIAN_ORDER", most)
    model = LogisticRegression(tol=1e-10).fit(X, Y)
    if fits:
        approximate_leave_one_out(model, X, Y)
    else:
        with pytest.raises(InvalidInputError, match=r"at most 2 rows .*, got 3"):
            approximate_leave_one_out(model, X, Y)


@pytest.mark.parametrize(
    "bounds", [(0, np.inf), (-np.inf, 9), (0, np.nan), (5, 5), (9, 0), (0, 5, 9), "05"]
)
def test_bounds_are_two_finite_numbers_the_lower_one_first(bounds):
    with pytest.raises(InvalidInputError, match=r"bounds as \(lowest, highest\)"):
        calibrated_mean(10 * P, P, P, bounds=bounds)


def test_classes_that_touch_at_one_score_are_separated():
    """The slope has no finite maximum likelihood estimate, although the score is shared."""
    score = np.repeat([0.2, 0.3, 0.5, 0.7], 20)
    event = np.append(np.arange(60) >= 50, np.ones(20, dtype=bool)).astype(int)
    for y, slope in ((event, np.inf), (1 - event, -np.inf)):
        found = group_calibration(y, score, np.zeros(80), n_resamples=2)
        assert {row.slope for row in found.rows} == {slope}


@pytest.mark.parametrize(("exponent", "is_noise"), [(-9, False), (-10, True)])
def test_a_value_is_noise_next_to_zeros_if_ten_exponents_above_it_are_empty(
    exponent, is_noise
):
    low = 1.37 * 2.0**exponent
    table = np.array([[0.0, 1.0], [low, 1 - low], [0.3173, 0.6827]])
    assert estimate_floor(table) == (MAX_FLOOR if is_noise else low / 2)


@pytest.mark.parametrize(
    ("predicted", "weight", "frequent"),
    [
        ([0.6, 0.9], [1e-6, 1], [True, True]),
        ([0.4, 0.9], [1e-6, 1], [False, True]),
        ([0.1, 0.6], [1, 1e-6], [True, False]),
        ([0.1, 0.4], [1, 1e-6], [True, True]),
        (
            [0.0, 0.1, 0.4, 0.9, 1.0],
            [0, 1, 0, 1, 1e-6],
            [True, True, False, True, True],
        ),
    ],
)
def test_few_rows_of_an_axis_are_rare_at_their_own_end(predicted, weight, frequent):
    """Points of exactly 0 and 1 are kept, those of no weight are not."""
    curve = SimpleNamespace(
        predicted=np.array(predicted), weight=np.array(weight, dtype=float)
    )
    assert _mark_points_not_in_rare_ends(curve).tolist() == frequent


def test_a_spline_of_two_scores_has_two_coefficients():
    """Its curve goes through the shares of events at both scores."""
    rows = np.array([10.0, 20.0, 5.0])
    events = np.array([3.0, 15.0, 2.0])
    curve = fit_logistic_spline(np.array([-1.0, 1.0, -1.0]), rows, events)
    assert len(curve.coef) == 2
    log_odds = curve.basis(np.array([-1.0, 1.0])) @ curve.coef
    np.testing.assert_allclose(log_odds, np.log([5 / 10, 15 / 5]), rtol=1e-6)


def test_squares_of_residuals_of_0_are_those_expected():
    ones = np.ones(4)
    ratio = compute_expected_over_observed_squares
    assert ratio(0 * ones, 0 * ones, ones) == 1
    assert ratio(ones, ones / 4, ones) == 1 / 4


@pytest.mark.parametrize(("most", "fits"), [(6, True), (5, False)])
def test_files_of_json_are_at_most_so_long(tmp_path, monkeypatch, most, fits):
    monkeypatch.setattr(input_files, "_MAX_JSON_BYTES", most)
    (tmp_path / "m.json").write_text('{"a":1', encoding="utf-8")
    if fits:
        assert input_files.read_uncompressed_json_text(tmp_path / "m.json") == '{"a":1'
    else:
        with pytest.raises(OSError, match="more than 5 bytes"):
            input_files.read_uncompressed_json_text(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("n_classes", "most", "each"),
    [(10, 65_536, 6553), (16, 65_536, 4096), (100, 65_536, 4096), (3, 4096, 4096)],
)
def test_classes_share_the_cells_of_a_summary(n_classes, most, each):
    """As many for each as one problem of all would have, but at least 4096."""
    states = make_empty_cell_states("classwise", n_classes, most)
    assert [state.max_cells for state in states] == n_classes * [each]


def test_cells_of_many_rows_are_drawn_row_by_row_beside_cells_of_one():
    summary = CalibrationSummary().update(
        [0, 1, 1], [0.2, 0.5, 0.5], counts=[1, 40, 60]
    )
    (sample,) = summary.samples()
    drawn = sample.draw_event_weights(50, np.random.default_rng(0))
    assert set(drawn[:, 0]) == {0.0, 1.0}
    assert 30 < drawn[:, 1].min() < 50 < drawn[:, 1].max() < 70


def test_of_actions_that_cost_the_same_the_first_is_chosen():
    proba = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    for costs in (
        np.zeros((2, 2)),
        np.ones((2, 3)),
        np.array([[1.0, 1.0], [3.0, 3.0]]),
    ):
        assert choose_best_actions(proba, costs).tolist() == [0, 0, 0]


def test_cells_below_2_to_the_minus_24_are_32_times_as_wide():
    keys = encode_float_keys(np.nextafter([2.0**-23, 2.0**-25], 0))
    starts = find_cell_start_keys(keys, False, 20)
    assert (starts == [keys[0] >> 20 << 20, keys[1] >> 25 << 25]).all()


def test_groups_of_a_report_are_of_at_most_two_columns():
    number = np.arange(480)
    table = {"a": number % 2, "b": number // 2 % 2, "c": number // 4 % 2}
    report = calibration_report(
        np.tile(Y, 8), np.tile(P, 8), by=table, n_resamples=0, measures=["brier_loss"]
    )
    depth = {row.group.count(" = ") for row in report.groups["model"].rows}
    assert depth == {0, 1, 2}


def test_coarse_cells_of_groups_are_at_most_so_many(monkeypatch):
    monkeypatch.setattr(groups_cells, "MAX_FINE_CELLS", 16)
    monkeypatch.setattr(groups_cells, "MAX_POOLED_CELLS", 24)
    proba = np.linspace(0.2501, 0.2599, 100)
    ones = np.ones((100, 2))
    found = groups_cells.pool_and_coarsen_cells(
        np.arange(100) % 2, np.column_stack([1 - proba, proba]), ones, ones, ones
    )
    assert 12 < len(found.proba) <= 24


@pytest.mark.parametrize("count", [10**9, 10**11])
def test_offsets_are_packed_only_if_64_bits_hold_them(tmp_path, count):
    proba = np.random.default_rng(0).random(9000)
    summary = CalibrationSummary(max_cells=4096)
    summary.update(np.arange(9000) % 2, proba, counts=np.full(9000, count))
    summary.to_parquet(tmp_path / "s.parquet")
    assert CalibrationSummary.from_parquet(tmp_path / "s.parquet") == summary
