"""Region, onset and what is enough, beside their definitions on the rows themselves."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from error_fields import raises_invalid_input
from golden_sets import golden_set
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import chdtrc, expit, log_expit, logit, logsumexp

from sklearn_calib import recalibrators
from sklearn_calib._files.checksum import compute_checksum
from sklearn_calib._kernels._log_odds_cells import (
    FINE_LOG_ODDS_GRID,
    is_in_confidence_region,
    locate_onset_block_and_interval,
    split_cells_into_atoms,
)
from sklearn_calib.monitoring import CalibrationMonitor, Diagnosis


def drawn(n, rng, change=lambda z: z, mean=0.0):
    z = mean + 1.5 * rng.normal(size=n)
    return (rng.random(n) < expit(change(z))).astype(int), expit(z)


def changed(change, good=600, bad=3000, seed=0):
    """A stream whose first rows are calibrated."""
    rng = np.random.default_rng(seed)
    parts = drawn(good, rng), drawn(bad, rng, change)
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def gain(y, p, shift, slope):
    """The log-likelihood of pairs less that of the predictions."""
    z, sign = logit(p), np.where(y == 1, 1.0, -1.0)
    pair = np.multiply.outer(slope, z) + np.asarray(shift)[..., None]
    return (log_expit(sign * pair) - log_expit(sign * z)).sum(axis=-1)


# -- the region -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_region_by_definition():
    """The mean likelihood as a sum over a fine lattice, of the rows themselves."""
    y, p = golden_set()
    shift, slope = np.meshgrid(np.linspace(-5, 5, 101), np.linspace(-1.5, 3.5, 101))
    log = gain(y, p, shift.ravel(), slope.ravel())
    log += -(shift.ravel() ** 2) / 2 - 2 * (slope.ravel() - 1) ** 2 - np.log(np.pi)
    bound = logsumexp(log) + np.log(0.1 * 0.05)
    monitor = CalibrationMonitor().update(y, p)
    for level in (0.5, 0.95):
        seen = monitor.region(level)
        assert_allclose(gain(y, p, *seen.border.T), bound + np.log1p(-level), atol=2e-3)
        assert seen.shift_interval == (seen.border[:, 0].min(), seen.border[:, 0].max())
        assert seen.slope_interval == (seen.border[:, 1].min(), seen.border[:, 1].max())
        assert seen.calibrated == (gain(y, p, 0.0, 1.0) >= bound + np.log1p(-level))
        assert seen.n_samples == 200 and seen.level == level
        best = gain(y, p, shift.ravel(), slope.ravel()).max()
        assert best - 1e-3 < gain(y, p, seen.shift, seen.slope) < best + 0.1


def share_outside(streams, looks, change=(0.5, 0.7), level=0.8):
    """Of streams whose own pair was outside at some look."""
    rng, ever = np.random.default_rng(0), 0
    for _ in range(streams):
        y, p = drawn(looks[-1], rng, lambda z: change[0] + change[1] * z)
        counts, out = 0, False
        for first, end in pairwise([0, *looks]):
            part = np.zeros(end - first, dtype=np.intp)
            counts = (
                counts
                + FINE_LOG_ODDS_GRID.sum_row_moments_by_part_and_cell(
                    logit(p[first:end]), y[first:end], part, 1
                )[0]
            )
            out |= not is_in_confidence_region(
                split_cells_into_atoms(counts, FINE_LOG_ODDS_GRID), level, *change
            )
        ever += out
    return ever / streams


@pytest.mark.cross
def test_region_holds_at_every_look():
    """1000 streams, 20 looks; at a level at which a region of half the size would be noticed."""
    share = share_outside(
        1000, np.unique(np.geomspace(3, 1500, 20).astype(int)).tolist()
    )
    assert 0.02 < share <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 1000)


def test_region_shrinks_around_the_truth():
    monitor = CalibrationMonitor(average_run_length=1e12)
    rng, widths = np.random.default_rng(1), []
    for _ in range(3):
        monitor.update(*drawn(2000, rng, lambda z: 0.4 + 0.7 * z))
        seen = monitor.region()
        assert seen.shift_interval[0] < 0.4 < seen.shift_interval[1]
        assert seen.slope_interval[0] < 0.7 < seen.slope_interval[1]
        widths.append(np.ptp(seen.shift_interval))
    assert widths[0] > 1.2 * widths[1] > 1.2 * widths[2] and not seen.calibrated


def test_few_rows_leave_all_open():
    empty = CalibrationMonitor().region()
    assert empty.shift_interval == (-np.inf, np.inf) == empty.slope_interval
    assert (
        empty.calibrated
        and empty.n_samples == 0
        and (empty.shift, empty.slope) == (0, 1)
    )
    one_value = CalibrationMonitor().update([0, 1, 0, 0, 1], [0.3] * 5).region()
    assert one_value.slope_interval == (-np.inf, np.inf)
    events = CalibrationMonitor().update([1] * 40, [0.3] * 40).region()
    assert not events.calibrated and events.n_samples == 40


def test_calibrated_is_said_at_the_level_that_is_asked_for():
    """(0, 1) is in the region of a level as long as the mean likelihood is below 1 / (1 - level).

    The likelihood of a pair is over that of calibrated rows.
    """
    y, p = golden_set()
    shift, slope = np.meshgrid(np.linspace(-4, 4, 33), np.linspace(-1, 3, 33))
    prior = np.exp(-(shift.ravel() ** 2) / 2 - 2 * (slope.ravel() - 1) ** 2)
    n = 90
    mean = (
        np.exp(gain(y[:n], p[:n], shift.ravel(), slope.ravel())) @ prior / prior.sum()
    )
    assert 2 < mean < 10  # at 0.95 it were 20
    monitor = CalibrationMonitor().update(y[:n], p[:n])
    assert not monitor.region(1 - 1.1 / mean).calibrated
    assert monitor.region(1 - 0.9 / mean).calibrated


def test_rows_since_the_alarm():
    y, p = changed(lambda z: 0.4 * z, bad=600)
    monitor = CalibrationMonitor().update(y, p)
    last = monitor.alarms_[-1].n_samples
    fresh = CalibrationMonitor(average_run_length=1e12).update(y[last:], p[last:])
    for alarm, start in zip(monitor.region(since="alarm"), fresh.region(), strict=True):
        assert np.array_equal(alarm, start)
    assert monitor.region().n_samples == 1200


# -- the onset ------------------------------------------------------------------------------------


def test_onset_by_definition():
    rng = np.random.default_rng(2)
    gains, rows, prior = (
        rng.normal(size=(7, 3)),
        rng.integers(1, 40, 7),
        np.log([0.5, 0.3, 0.2]),
    )
    behind = [
        sum(np.exp(prior[j] + gains[i:, j].sum()) for j in range(3)) for i in range(7)
    ] + [1.0]
    mass = np.array([rows[i] * (behind[i] + behind[i + 1]) / 2 for i in range(7)])
    share = np.cumsum(mass) / mass.sum()
    likely, low, high = locate_onset_block_and_interval(gains, rows, prior, 0.9)
    assert likely == np.argmax(behind[:-1])
    assert low == np.argmax(share >= 0.05) and high == np.argmax(share >= 0.95)


@pytest.mark.parametrize("timed", [False, True])
def test_the_onset_of_a_change(timed):
    y, p = changed(lambda z: z + 1, bad=400, seed=1)
    time = np.datetime64("2026-03-01") + np.arange(len(y)) if timed else None
    monitor = CalibrationMonitor().update(y, p, time=time)
    found = monitor.alarms_[0].diagnosis
    assert found.onset_interval[0] <= 601 <= found.onset_interval[1]
    assert found.onset_interval[0] > 300 and abs(found.onset - 601) < 70
    assert found.onset_time == (str(time[found.onset - 1]) if timed else None)
    assert f"off since about row {found.onset} (" in str(monitor)
    alarm = monitor.alarms_[0].n_samples
    assert found.n_samples == alarm - found.onset + 1
    rows = slice(found.onset - 1, alarm)
    assert found.event_rate == pytest.approx(y[rows].mean())
    assert found.mean_proba == pytest.approx(p[rows].mean(), abs=1e-3)


# -- what is enough -------------------------------------------------------------------------------


def test_score_test_of_the_slope_by_definition():
    y, p = golden_set()
    z = logit(p)
    monitor = CalibrationMonitor("test", alpha=0.5).update(y, p)
    record = monitor._records[0]
    shift = brentq(lambda a: (y - expit(a + z)).sum(), -3, 3)
    q = expit(shift + z)
    w = q * (1 - q)
    left = (w * z * z).sum() - (w * z).sum() ** 2 / w.sum()
    expected = chdtrc(1, ((y - q) * z).sum() ** 2 / left)
    from sklearn_calib._kernels._log_odds_cells import (
        COARSE_LOG_ODDS_GRID,
        fit_shift_and_line_with_tests,
    )

    offset, line, pvalue_slope, pvalue_curvature = fit_shift_and_line_with_tests(
        record.add_waiting_rows_in_place().get_cells_since_block(0),
        COARSE_LOG_ODDS_GRID,
    )
    assert_allclose(offset, [shift, 1.0], atol=1e-3)
    assert_allclose(pvalue_slope, expected, rtol=0.01)
    assert gain(y, p, *line) >= gain(y, p, shift, 1.0) and 0 < pvalue_curvature < 1


@pytest.mark.parametrize(
    ("change", "enough", "said"),
    [
        (lambda z: z - 0.8, "offset", "an offset is enough so far: add -0."),
        (lambda z: 0.5 * z, "line", "or fit PlattScaling() to these rows"),
        (lambda z: np.where(z > 0, 0.2, 2.0) * z, "refit", "a line is not enough"),
        (lambda z: -0.5 * z, "refit", "the order of the scores is lost"),
    ],
)
def test_what_is_enough(change, enough, said):
    monitor = CalibrationMonitor().update(*changed(change))
    found = monitor.diagnose()
    assert found.repair == enough and said in found.advice
    assert (found.slope == 1) == (enough == "offset")
    assert monitor.alarms_[-1].diagnosis.repair in ("offset", "line", "refit")


@pytest.mark.parametrize("change", [lambda z: z - 0.8, lambda z: 0.5 * z + 0.3])
def test_the_call_of_the_advice_mends_the_rows(change):
    """What it names exists, and does what the numbers beside it say."""
    y, p = changed(change)
    found = CalibrationMonitor(average_run_length=1e6).update(y, p).diagnose()
    calls = re.findall(r"fit (\w+\(.*?\)) to these rows", found.advice)
    assert (
        len(calls) == 1
        and f"mean={found.event_rate:.4g})" * (found.slope == 1) in calls[0]
    )
    rows = slice(found.onset - 1, None)
    mended = (
        eval(calls[0], vars(recalibrators))
        .fit(p[rows], y[rows])
        .predict_proba([0.2, 0.7])
    )
    by_hand = found.shift + found.slope * logit([0.2, 0.7])
    assert_allclose(logit(mended[:, 1]), by_hand, atol=0.01)


def test_a_mean_that_cannot_be_is_not_advised():
    found = CalibrationMonitor().update([1] * 400, [0.9] * 400).diagnose()
    assert found.repair == "offset" and "PriorShift" not in found.advice
    most = found._replace(event_rate=1 - 1e-6, class_rates=(1e-6, 1 - 1e-6))
    assert "PriorShift(mean=0.999999)" in most.advice


def shifted_classes(n, weights, rng, classes=None):
    """Rows of three classes whose frequencies have changed from the first third on."""
    proba = rng.dirichlet(np.ones(len(weights)), n)
    truth = np.where(np.arange(n)[:, None] < n // 3, proba, proba * weights)
    code = (rng.random((n, 1)) * truth.sum(1, keepdims=True) > truth.cumsum(1)).sum(1)
    return code if classes is None else np.array(classes)[code], proba


def advised_mean(found):
    """What the advice states, as Python reads it."""
    (call,) = re.findall(r"fit (PriorShift\(.*?\)) to these rows", found.advice)
    return eval(call, vars(recalibrators) | {"diagnosis": found})


@pytest.mark.parametrize(
    ("multiclass", "classes"), [("auto", ["b", "a", "c"]), ("classwise", [0, 1, 2])]
)
def test_the_mean_that_is_advised_fits_several_classes(multiclass, classes):
    """Class by class, and of all rows, those of probability 1 too; frequencies that come back."""
    weights = np.array([1.0, 1.0, 9.0])
    y, proba = shifted_classes(3000, weights, np.random.default_rng(5), classes)
    proba[::3], y[::3] = np.eye(3)[2], classes[2]  # sure, and right
    monitor = CalibrationMonitor(
        average_run_length=1e6, classes=classes, multiclass=multiclass
    ).update(y, proba)
    found = monitor.diagnose(
        stream="class 2" if multiclass == "classwise" else None
    )._replace(repair="offset")
    rows = slice(found.onset - 1, None)
    shares = [np.mean(y[rows] == label) for label in classes]
    assert_allclose(found.class_rates, shares, rtol=1e-12)
    advised = advised_mean(found)
    assert_allclose(advised.mean, found.class_rates, rtol=1e-3)
    fitted = advised.fit(proba[rows], y[rows], classes=classes)
    assert_allclose(
        fitted.predict_proba(proba[rows]).mean(axis=0), advised.mean, atol=1e-6
    )
    assert_allclose(fitted.offset_ - fitted.offset_[0], np.log(weights), atol=0.3)
    confidence = multiclass == "auto"
    assert (
        found.confidence == confidence == ("of the largest probability" in found.advice)
    )
    assert confidence == (
        "TemperatureScaling() if not (mean probability" in found.advice
    )


def test_the_mean_of_many_classes_and_of_absent_ones():
    rng = np.random.default_rng(6)
    y, proba = shifted_classes(1500, np.r_[np.ones(11), 30.0], rng)
    kept = y != 4
    monitor = CalibrationMonitor(average_run_length=1e6).update(y[kept], proba[kept])
    found = monitor.diagnose()._replace(repair="offset")
    rows = slice(found.onset - 1, None)
    count = np.bincount(y[kept][rows], minlength=12) + 0.5
    assert_allclose(found.class_rates, count / count.sum(), rtol=1e-12)
    assert "PriorShift(mean=diagnosis.class_rates)" in found.advice
    # no warning
    advised_mean(found).fit(proba[kept][rows], y[kept][rows], classes=np.arange(12))


@pytest.mark.parametrize("stream", [None, "class 0"])
def test_the_mean_of_two_classes_is_that_of_the_second_among_all_rows(stream):
    """Many customers of probability 0: they are among the rows to which the offset is fitted."""
    y, p = changed(lambda z: z - 0.8)
    y, p = np.repeat(y, 2), np.repeat(p, 2)
    y[1::2], p[1::2] = 0, 0.0
    multiclass = "auto" if stream is None else "classwise"
    monitor = CalibrationMonitor(average_run_length=1e6, multiclass=multiclass).update(
        y, p
    )
    found = monitor.diagnose(stream=stream)
    rows = slice(found.onset - 1, None)
    assert found.repair == "offset" and 1.8 < len(y[rows]) / found.n_samples < 2.2
    assert advised_mean(found).mean == pytest.approx(y[rows].mean(), rel=1e-3)
    sign = 1 if stream is None else -1
    offset = advised_mean(found).fit(p[rows], y[rows]).offset_[1]
    assert offset == pytest.approx(sign * found.shift, abs=0.01)


def test_the_labels_of_a_state():
    """The same for every batching."""
    y, proba = shifted_classes(900, [1, 1, 9], np.random.default_rng(7))
    proba[100:400:2] = np.eye(3)[y[100:400:2]]
    whole = CalibrationMonitor(average_run_length=1e12).update(y, proba)
    parts = CalibrationMonitor(average_run_length=1e12)
    for row in range(0, 900, 61):
        parts.update(y[row : row + 61], proba[row : row + 61])
        if row % 5 == 0:
            parts = CalibrationMonitor.from_state_dict(parts.state_dict())
    assert parts.state_dict()["records"] == whole.state_dict()["records"]
    merged = parts.merge(whole)._records[0]
    assert merged.count_labels_since_block(0).tolist() == (2 * np.bincount(y)).tolist()
    state = CalibrationMonitor().update(y, proba).state_dict()
    state["records"][0][0]["blocks"][0][-1] = [[3, 8]]
    with raises_invalid_input(ValueError, value=".*counts that cannot be"):
        CalibrationMonitor.from_state_dict(state | {"sha256": compute_checksum(state)})


def test_no_diagnosis_of_an_impossible_event():
    monitor = CalibrationMonitor().update([0, 1, 0, 0], [0.3, 0.0, 0.2, 0.0])
    assert monitor.alarms_[0].diagnosis is None and "off since" not in str(monitor)
    assert monitor.region().n_samples == 2 and monitor.diagnose().n_samples == 2


# -- the state ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_in_every_bit_for_every_batching():
    y, p = changed(lambda z: 0.3 * z, good=100, bad=200)
    states = []
    for size in (1, 37, 300):
        monitor = CalibrationMonitor(average_run_length=50)
        for start in range(0, 300, size):
            rows = slice(start, start + size)
            monitor.update(y[rows], p[rows])
            if start % 50 == 0:
                monitor = CalibrationMonitor.from_state_dict(monitor.state_dict())
        found = (
            monitor.diagnose(),
            monitor.region()[:4],
            [a.diagnosis for a in monitor.alarms_],
        )
        states.append((json.dumps(monitor.state_dict()["records"]), found))
    assert states[0] == states[1] == states[2]
    assert monitor.n_alarms_ > 3


def test_blocks_do_not_grow_with_the_rows():
    monitor = CalibrationMonitor(average_run_length=1e12)
    rng, rows = np.random.default_rng(3), 16_384
    monitor.update(*drawn(rows, rng))
    blocks = monitor._records[0].add_waiting_rows_in_place().blocks
    assert len(blocks) <= 8 * (np.log2(rows / 32 / 8) + 1) + 1
    assert sum(block.rows for block in blocks) == rows
    assert [b.first for b in blocks[1:]] == [b.last + 1 for b in blocks[:-1]]


def test_changed_counts_are_refused():
    state = CalibrationMonitor().update([0, 1, 1], [0.2, 0.9, 0.4]).state_dict()
    text = json.dumps(state["records"])
    for old, new in (
        ('"rows": 3', '"rows": 4'),
        ("[95, 1, 0", "[95, 1, 2"),
        ("[[{", "[{"),
    ):
        assert old in text
        records = json.loads(text.replace(old, new) if old != "[[{" else text[1:-1])
        with raises_invalid_input(ValueError, expected=".*unchanged state"):
            CalibrationMonitor.from_state_dict(state | {"records": records})


def test_merged_counts():
    y, p = changed(lambda z: 0.3 * z, bad=300)
    parts = [
        CalibrationMonitor().update(y[rows], p[rows])
        for rows in (slice(600), slice(600, 900))
    ]
    merged, both = parts[0].merge(parts[1]), CalibrationMonitor().update(y, p)
    for one, other in zip(merged.region(), both.region(), strict=True):
        assert np.array_equal(one, other)
    assert merged.diagnose().repair == "line"
    assert merged._records[0].blocks[-1].last == 900
    again = CalibrationMonitor.from_state_dict(merged.state_dict()).update(y, p)
    assert again.region().n_samples == 1800


# -- several streams, and what is rejected ---------------------------------------------------------


@pytest.mark.slow
def test_groups_and_classes_by_name():
    rng = np.random.default_rng(4)
    y, p = drawn(1600, rng)
    group = np.arange(1600) % 2
    other = rng.random(1600) < expit(0.3 * logit(p))
    y = np.where(group == 1, other, y)
    monitor = CalibrationMonitor(groups=["north", "south"])
    monitor.update(y, p, groups=np.array(["north", "south"])[group])
    assert monitor.alarms_[-1].stream == "group south"
    alone = CalibrationMonitor().update(y[1::2], p[1::2])
    seen = monitor.region(stream="group south")
    assert seen[:4] == alone.region()[:4] and seen.n_samples == 800
    assert monitor.region(stream="group north").calibrated and not seen.calibrated
    assert monitor.diagnose() == monitor.diagnose(stream="group south")
    assert monitor.diagnose().onset % 2 == 0  # rows of the whole stream are counted
    assert "; group south off since" in str(monitor)
    for wrong in (None, "south"):
        with pytest.raises(
            ValueError, match="stream among 'group north', 'group south', got"
        ):
            monitor.region(stream=wrong)
    proba = np.column_stack([p / 2, p / 2, 1 - p])
    classes = CalibrationMonitor(multiclass="classwise", average_run_length=1e12)
    classes.update(np.where(y == 1, np.arange(1600) % 2, 2), proba)
    assert classes.region(stream="class 2").n_samples == 1600


def test_what_is_refused():
    monitor = CalibrationMonitor().update([0, 1], [0.2, 0.7])
    for level in (0, 1.0, "x"):
        with raises_invalid_input(ValueError, expected="a level between 0 and 1"):
            monitor.region(level)
    with raises_invalid_input(ValueError, expected="since among"):
        monitor.region(since="yesterday")
    with raises_invalid_input(
        ValueError, expected=".*no stream, as there is only one", value="'a'"
    ):
        monitor.region(stream="a")
    with raises_invalid_input(
        ValueError, expected=".*has raised an alarm", value="one without alarms"
    ):
        monitor.diagnose()


def test_alarms_close_together_share_a_diagnosis():
    y, p = changed(lambda z: 0.1 * z, good=10, bad=1500)
    monitor = CalibrationMonitor(average_run_length=30).update(y, p)
    found = [alarm.diagnosis for alarm in monitor.alarms_]
    assert all(isinstance(one, Diagnosis) for one in found) and len(found) > 40
    assert len(set(found)) < len(found) / 1.5
