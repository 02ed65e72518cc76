import json
import re
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from golden_sets import golden_set
from numpy.testing import assert_allclose
from scipy.special import expit, logsumexp

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._logistic_grid import (
    COARSE_LINE_GRID,
    compute_line_gains_and_impossible,
)
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.monitoring._result import StreamHistory


def stream():
    y, p = golden_set()
    order = 73 * np.arange(200) % 200
    return y[order], p[order]


def drawn(n, rng, slope=1.0, shift=0.0):
    """Labels, and probabilities whose true log-odds are shift + slope * theirs."""
    z = 1.5 * rng.normal(size=n)
    return (rng.random(n) < expit(shift + slope * z)).astype(int), expit(z)


def whole(monitor):
    return json.dumps(monitor.state_dict(), allow_nan=False)


# -- golden values --------------------------------------------------------------------------------


def test_golden_values():
    y, p = stream()
    monitor, found = CalibrationMonitor(), []
    for rows in np.split(np.arange(200), 4):
        monitor.update(y[rows], p[rows])
        found.append((monitor.log_e_value_, monitor.log_detector_))
    assert_allclose(
        found,
        [
            (-0.8868088424, 3.4217380902),
            (-1.2045020834, 3.7169432825),
            (0.9579698593, 6.3828383812),
            (0.8488484330, 5.8173752093),
        ],
        atol=1e-9,
    )
    assert abs(monitor.p_value_ - 0.2175206820) < 1e-9
    assert (
        abs(CalibrationMonitor().update(*golden_set()).log_e_value_ - 0.8488484330)
        < 1e-9
    )


def test_by_definition():
    """Two pairs written out: the mixture, the recursion and the posterior."""
    y, p = stream()
    monitor, test = (
        CalibrationMonitor().update(y, p),
        CalibrationMonitor("test").update(y, p),
    )
    z, prior, total, detector = np.log(p / (1 - p)), {}, {}, {}
    for b in (0.25, 0.5, 0.75, 1, 1.5, 2):
        for a in (-2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2):
            q = expit(a + b * z)
            ratio = np.where(y == 1, q / p, (1 - q) / (1 - p))
            prior[b, a] = -(np.log2(b) ** 2) / 2 - a**2 / 2
            total[b, a] = np.log(ratio).sum()
            m = 0.0
            for r in ratio:
                m = (1 + m) * r
            detector[b, a] = m
    prior, total, m = (np.array([*d.values()]) for d in (prior, total, detector))
    prior -= logsumexp(prior)
    assert_allclose(monitor.log_e_value_, logsumexp(prior + total), atol=1e-10)
    assert_allclose(monitor.log_detector_, np.log(np.exp(prior) @ m), atol=1e-10)
    assert_allclose(
        monitor.posterior_.ravel(), np.exp(prior) * m / (np.exp(prior) @ m), atol=1e-12
    )
    expected = np.exp(prior + total - logsumexp(prior + total))
    assert_allclose(test.posterior_.ravel(), expected, atol=1e-12)
    assert_allclose(test.shift_, expected.reshape(6, 9).sum(axis=0) @ test.shifts_)


# -- guarantees -----------------------------------------------------------------------------------


def share_of_rejections(streams, n):
    rng, found = np.random.default_rng(0), 0
    for _ in range(streams):
        found += (
            CalibrationMonitor("test").update(*drawn(n, rng)).rejected_at_ is not None
        )
    return found / streams


def test_calibrated_streams_are_rarely_rejected():
    assert share_of_rejections(60, 256) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.slow
def test_level_of_the_test():
    assert 0.005 < share_of_rejections(400, 1000) <= 0.05


@pytest.mark.slow
def test_mean_run_length():
    rng, lengths = np.random.default_rng(1), []
    for _ in range(80):
        monitor = CalibrationMonitor(average_run_length=60)
        while not monitor.alarm_:
            monitor.update(*drawn(64, rng))
        lengths.append(monitor.alarms_[0].n_samples)
    error = np.std(lengths) / np.sqrt(len(lengths))
    assert 60 - 2 * error < np.mean(lengths) < 180


@pytest.mark.parametrize(
    ("slope", "shift", "said"),
    [
        (0.5, 0.0, "too extreme"),
        (2.0, 0.0, "too cautious"),
        (1, 1.0, "too low"),
        (1, -1, "too high"),
    ],
)
def test_a_change_is_found_and_named(slope, shift, said):
    rng = np.random.default_rng(2)
    monitor = CalibrationMonitor(average_run_length=2000).update(*drawn(500, rng))
    assert not monitor.alarms_
    monitor.update(*drawn(500, rng, slope, shift))
    assert monitor.alarm_
    first = monitor.alarms_[0]
    assert 500 < first.n_samples < 800
    assert said in first.meaning
    assert str(first.n_samples) in str(monitor)
    assert (first.slope < 1) == (slope < 1) or slope == 1


@pytest.mark.parametrize("bound", [1.5, 20.0, 1e4])
def test_alarms_are_those_of_the_recursion(bound):
    """Row by row as it is defined: alarms beside each other, far apart, and at certain events."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.6, 700)
    y = rng.random(700) < p**0.5
    p[[31, 32, 255, 256, 600]], y[[31, 32, 255, 256, 600]] = 0.0, True
    gain, certain = compute_line_gains_and_impossible(
        np.log(np.maximum([1 - p, p], 1e-300)).T, y, COARSE_LINE_GRID
    )
    certain |= p == 0
    gain[certain] = 0.0
    weight, m, expected = (
        np.exp(COARSE_LINE_GRID.log_prior),
        np.zeros(len(COARSE_LINE_GRID.slope)),
        [],
    )
    for row in range(700):
        m = (1 + m) * np.exp(gain[row])
        if certain[row] or weight @ m >= bound:
            expected.append(row + 1)
            m = np.zeros(len(m))
    monitor = CalibrationMonitor(average_run_length=bound)
    found = []
    for part in np.split(np.arange(700), [1, 40, 300, 555]):
        monitor.update(y[part], p[part])
        found += [alarm.n_samples for alarm in monitor.new_alarms_]
    if bound > 2:
        assert found == expected and len(expected) >= 5
    assert monitor.n_alarms_ == len(expected)
    assert_allclose(np.exp(monitor.log_detector_), weight @ m, rtol=1e-9)


@pytest.mark.slow
def test_the_detector_starts_anew():
    rng = np.random.default_rng(3)
    monitor = CalibrationMonitor(average_run_length=100)
    y, p = drawn(400, rng, 0.3)
    for row in range(400):
        monitor.update(y[row], p[row])
        if monitor.alarm_:
            assert monitor.log_detector_ == -np.inf
            assert monitor.n_samples_ == row + 1
    at_once = CalibrationMonitor(average_run_length=100).update(y, p)
    assert [a.n_samples for a in at_once.alarms_] == [
        a.n_samples for a in monitor.alarms_
    ]
    assert len(monitor.alarms_) > 2
    assert_allclose(at_once.log_detector_, monitor.log_detector_)


def test_the_test_rejects_once_and_remembers():
    rng = np.random.default_rng(4)
    monitor = CalibrationMonitor("test").update(*drawn(600, rng, 0.4))
    assert monitor.alarm_ and monitor.n_alarms_ == 1
    assert monitor.rejected_at_ == monitor.alarms_[0].n_samples
    before = monitor.p_value_
    assert before <= monitor.alpha
    monitor.update(*drawn(300, rng))
    assert monitor.alarm_ and monitor.n_alarms_ == 1
    assert monitor.p_value_ <= before
    assert monitor.reset().p_value_ == 1.0
    assert monitor.n_samples_ == 0 and not monitor.alarm_ and not monitor.alarms_


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, ["a", "b"]])
@pytest.mark.parametrize("alarm", ["test", "detector"])
def test_an_alarm_knows_no_later_row(alarm, groups):
    """However many rows come at once: what it states, and its moment of the history."""
    rng = np.random.default_rng(0)
    p = rng.random(240)
    y = (rng.random(240) < p**3).astype(int)
    p[200], y[200] = 0.0, 1
    names = np.array(groups or [None])[np.arange(240) % len(groups or "a")]
    alarms, moments = [], []
    for size in (240, 60, 1):
        monitor = CalibrationMonitor(alarm, groups=groups)
        for start in range(0, 240, size):
            rows = slice(start, start + size)
            given = {} if groups is None else {"groups": names[rows]}
            monitor.update(y[rows], p[rows], **given)
        alarms.append(
            [(a.n_samples, a.meaning, a.stream, a.diagnosis) for a in monitor.alarms_]
        )
        numbers = [(a.log_statistic, a.slope, a.shift) for a in monitor.alarms_]
        moments.append(np.array(numbers))
    assert len(alarms[0]) >= 1 and alarms[0] == alarms[1] == alarms[2]
    for found in moments[1:]:
        np.testing.assert_allclose(found, moments[0], rtol=1e-9)


def test_an_impossible_event():
    monitor = CalibrationMonitor("test").update([0, 1, 0], [0.3, 0.8, 0.0])
    assert np.isfinite(monitor.log_e_value_) and monitor.impossible_ == 0
    monitor.update([0, 1, 0], [0.3, 0.0, 1.0])
    assert monitor.e_value_ == np.inf and monitor.p_value_ == 0.0
    assert monitor.rejected_at_ == 5 and monitor.impossible_ == 2
    assert "ALARM at row 5: 1 event of probability 0 happened" in str(monitor)
    assert "2 events of probability 0 happened" in monitor.meaning_
    assert np.isfinite(monitor.slope_)
    detector = CalibrationMonitor().update([0, 1, 0], [0.3, 0.0, 0.2])
    assert [alarm.n_samples for alarm in detector.alarms_] == [2]
    assert "1 event of probability 0" in detector.alarms_[0].meaning
    again = CalibrationMonitor.from_state_dict(json.loads(whole(detector)))
    assert again.alarms_ == detector.alarms_
    # 0 and 1 as numbers, but known better
    far = canonical_proba([-800.0, 900.0], kind="logits")
    logits = CalibrationMonitor().update([1, 1], far)
    assert logits.impossible_ == 0 and 100 < logits.log_e_value_ < 1000


# -- several classes and groups -------------------------------------------------------------------


def test_largest_probability():
    proba, y = make_overconfident(4, 800)
    monitor = CalibrationMonitor().update(y, proba)
    hit = (proba.argmax(axis=1) == y).astype(int)
    assert_allclose(
        monitor.log_e_value_,
        CalibrationMonitor().update(hit, proba.max(axis=1)).log_e_value_,
    )
    assert "confidences are" in monitor.meaning_
    named = CalibrationMonitor(classes=["a", "b", "c", "d"])
    assert_allclose(
        named.update(np.array(["a", "b", "c", "d"])[y], proba).log_e_value_,
        monitor.log_e_value_,
    )


def test_classwise():
    proba, y = make_overconfident(3, 300)
    monitor = CalibrationMonitor(multiclass="classwise").update(y[:200], proba[:200])
    monitor.update(y[200:], proba[200:])
    each = [
        CalibrationMonitor().update((y == c).astype(int), proba[:, c]) for c in range(3)
    ]
    assert_allclose(
        [*monitor.e_values_.values()], [m.e_value_ for m in each], rtol=1e-9
    )
    assert_allclose(monitor.e_value_, np.mean([m.e_value_ for m in each]), rtol=1e-9)
    if not any(m.alarms_ for m in [monitor, *each]):
        mean = np.mean([np.exp(m.log_detector_) for m in each])
        assert_allclose(np.exp(monitor.log_detector_), mean)


@pytest.mark.slow
def test_groups():
    rng, names = np.random.default_rng(5), ["north", "south", "east"]
    monitor = CalibrationMonitor("test", groups=names)
    y, p = drawn(600, rng)
    group = np.array(names)[rng.integers(0, 3, 600)]
    south = group == "south"
    y[south] = rng.random(south.sum()) < expit(0.2 * np.log(p[south] / (1 - p[south])))
    parts = {name: CalibrationMonitor("test") for name in names}
    path = []
    for row in range(600):
        parts[group[row]].update(y[row], p[row])
        path.append(np.mean([part.e_value_ for part in parts.values()]))
    monitor.update(y, p, groups=group)
    expected = {name: part.e_value_ for name, part in parts.items()}
    assert_allclose(
        [monitor.e_values_[name] for name in names], [*expected.values()], rtol=1e-9
    )
    assert_allclose(monitor.e_value_, path[-1], rtol=1e-9)
    assert_allclose(monitor.p_value_, 1 / max(path), rtol=1e-9)
    assert monitor.rejected_at_ == 1 + int((np.array(path) >= 20).argmax())
    assert monitor.flagged_ == ["south"]
    assert monitor.alarms_[0].stream == "group south"
    watched = CalibrationMonitor(average_run_length=1e12, groups=names)
    alone = CalibrationMonitor(average_run_length=1e12)
    watched.update(y[:300], p[:300], groups=group[:300])
    total = sum(
        np.exp(alone.reset().update(y[:300][m], p[:300][m]).log_detector_)
        for m in (group[:300] == name for name in names)
    )
    assert_allclose(np.exp(watched.log_detector_), total)


# -- state ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_state_goes_on_as_if_nothing_had_happened():
    rng = np.random.default_rng(6)
    y, p = drawn(1200, rng, 0.6)
    time = np.arange(1200) + np.datetime64("2026-01-01")
    options = {
        "average_run_length": 300,
        "groups": ["a", "b"],
        "classes": ["no", "yes"],
    }
    label, group = np.array(["no", "yes"])[y], np.array(["a", "b"])[np.arange(1200) % 2]
    one, two = CalibrationMonitor(**options), CalibrationMonitor(**options)
    for part in np.array_split(np.arange(1200), 7):
        for monitor in (one, two):
            monitor.update(label[part], p[part], groups=group[part], time=time[part])
        two = CalibrationMonitor.from_state_dict(json.loads(whole(two)))
    assert whole(one) == whole(two)
    assert one.alarms_ and one.alarms_[0].time.startswith("2026-")


def test_states_of_other_versions_and_damaged_ones():
    state = CalibrationMonitor().update(*stream()).state_dict()
    for change, said in (
        ({"version": 5}, "a state of version 1, got version 5"),
        ({"version": 0}, "a state of version 1, got version 0"),
        ({"version": True}, "a state of version 1, got version True"),
        ({"version": None}, "a state of version 1, got version None"),
        ({"format": "x"}, "the state of a monitor"),
        ({"detector": [[[0.0]]]}, "unchanged"),
        ({"detector": None}, "unchanged"),
        ({"settings": {"alarm": "x"}}, "unchanged"),
        ({"course": [[1]]}, "unchanged"),
        ({"stride": 0}, "unchanged.*stride is 0"),
        ({"n_samples": 199}, "unchanged.*another checksum"),
    ):
        with pytest.raises(ValueError, match=said):
            CalibrationMonitor.from_state_dict({**state, **change})
    for entry in ("sha256", "records", "time_as_given"):
        left = {key: value for key, value in state.items() if key != entry}
        with pytest.raises(
            ValueError, match=f"an unchanged state, got KeyError: '{entry}'"
        ):
            CalibrationMonitor.from_state_dict(left)
    for wrong in (None, [], {}):
        with raises_invalid_input(ValueError, expected="the state of a monitor"):
            CalibrationMonitor.from_state_dict(wrong)
    dates = CalibrationMonitor(groups=np.array(["2026-01-01"], dtype="datetime64[D]"))
    with raises_invalid_input(
        ValueError, expected="groups that are numbers, booleans or text"
    ):
        dates.state_dict()


@run_every_case(
    ("change", "said"),
    [
        ({"y": [0, np.nan]}, "labels"),
        ({"y": [0, 2]}, "labels among"),
        (
            {"y": ["no", "yes"]},
            r"got .*no.*classes=\['no', 'yes'\]\), or drop those rows",
        ),
        ({"y": [0]}, "as many labels"),
        ({"y_proba": [0.2, np.nan]}, "finite"),
        ({"y_proba": [0.2, 1.2]}, r"\[0, 1\]"),
        ({"y_proba": [[0.2, 0.3, 0.5]] * 2}, "scores of 2 classes"),
        ({"time": [5, 2]}, "rows from 3 on.*got one of 2.*Time runs backwards"),
        ({"time": ["2026-01-01"] * 2}, "numbers as times, as before, got dates"),
        ({"time": [4, np.nan]}, "times that are numbers"),
        ({"time": ["x", "y"]}, "times that are numbers"),
        ({"time": [4]}, "one time per row"),
        ({"groups": None}, "groups=, the group of each row"),
        ({"groups": ["a", "c"]}, "groups among"),
        ({"groups": ["a"]}, "one group per row"),
    ],
)
def test_after_an_error_the_monitor_is_as_before(change, said):
    monitor = CalibrationMonitor(groups=["a", "b"])
    given = {"y": [0, 1], "y_proba": [0.2, 0.7], "groups": ["a", "b"], "time": [1, 3]}
    monitor.update(**given)
    before = whole(monitor)
    given["time"] = [3, 4]
    with pytest.raises(ValueError, match=said):
        monitor.update(**{**given, **change})
    assert whole(monitor) == before
    monitor.update(**given)


def test_rows_of_a_batch_are_put_in_the_order_of_their_times():
    y, p = stream()
    day = datetime(2026, 3, 1, tzinfo=timezone.utc)
    times = [(day + timedelta(hours=i)).isoformat() for i in range(200)]
    order = np.random.default_rng(0).permutation(200)
    one = CalibrationMonitor(average_run_length=30).update(y, p, time=times)
    two = CalibrationMonitor(average_run_length=30)
    two.update(y[order], p[order], time=[times[i] for i in order])
    assert whole(one) == whole(two)
    assert one.alarms_[0].time == str(
        np.datetime64(times[one.alarms_[0].n_samples - 1][:16])
    )


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (lambda i: f" 2026-03-01 {i // 60:02}:{i % 60:02}+02:00", "2026-03-01 00:"),
        (lambda i: 20260301 + i, "2026"),
        (
            lambda i: np.datetime64("2026-03-01T00:00") + np.timedelta64(i, "m"),
            "2026-03-01T",
        ),
    ],
)
def test_times_are_shown_as_they_came(write, shown):
    y, p = stream()
    times = [write(i) for i in range(200)]
    monitor = CalibrationMonitor(average_run_length=30).update(y, p, time=times)
    monitor = CalibrationMonitor.from_state_dict(json.loads(whole(monitor)))
    alarm = monitor.alarms_[0]
    came = str(times[alarm.n_samples - 1]).strip()
    assert came.startswith(shown) and f"row {alarm.n_samples} ({came})" in str(alarm)
    with raises_invalid_input(
        ValueError, expected=re.escape(f"rows after {str(times[-1]).strip()}, the time")
    ):
        monitor.update(1, 0.5, time=times[0], only_later=True)


@run_every_case(
    ("options", "said"),
    [
        ({"alarm": "x"}, "alarm among"),
        ({"average_run_length": 1}, "above 1"),
        ({"alpha": 1.0}, "alpha between 0 and 1"),
        ({"multiclass": "top"}, "multiclass among"),
        ({"classes": [1]}, "at least 2 of the classes, got 1"),
        ({"groups": ["a", "a"]}, "different"),
        ({"groups": []}, "at least 1 of the groups, got 0"),
    ],
)
def test_arguments(options, said):
    with pytest.raises(ValueError, match=said):
        CalibrationMonitor(**options)


def test_no_groups_without_names():
    with raises_invalid_input(ValueError, expected="rows without groups"):
        CalibrationMonitor().update([0], [0.5], groups=["a"])


def test_each_monitor_that_is_merged_brings_its_alarm_of_the_test():
    y, p = np.ones(60), np.full(60, 0.5)
    first, second = (CalibrationMonitor("test").update(y[:n], p[:n]) for n in (60, 40))
    (alarm,), (other,) = first.alarms_, second.alarms_
    merged = first.merge(second)
    assert merged.alarms_ == [alarm, other] and merged.n_alarms_ == 2
    assert merged.rejected_at_ == alarm.n_samples
    assert merged.update(1, 0.5).n_alarms_ == 2


def test_merge():
    y, p = stream()
    halves = [
        CalibrationMonitor().update(y[part], p[part])
        for part in np.split(np.arange(200), 2)
    ]
    total = sum(np.exp(half.log_detector_) for half in halves)
    other = whole(halves[1])
    merged = halves[0].merge(halves[1])
    both = CalibrationMonitor().update(y, p)
    assert_allclose(merged.log_e_value_, both.log_e_value_)
    assert_allclose(np.exp(merged.log_detector_), total)
    assert merged.n_samples_ == 200
    assert merged.p_value_ == pytest.approx(
        min(1.0, np.exp(-max(0, merged.log_e_value_)))
    )
    assert whole(halves[1]) == other
    empty = CalibrationMonitor().merge(merged)
    assert empty.log_e_value_ == merged.log_e_value_
    assert whole(merged.merge(CalibrationMonitor())) == whole(merged)
    for wrong in (CalibrationMonitor("test"), CalibrationMonitor(alpha=0.1), None):
        with raises_invalid_input(ValueError, expected=".*the same settings"):
            merged.merge(wrong)
    dated, before = (
        CalibrationMonitor().update(0, 0.2, time="2026-01-01"),
        whole(merged),
    )
    with raises_invalid_input(ValueError, expected="times of one kind"):
        dated.merge(CalibrationMonitor().update(0, 0.2, time=3))
    assert dated.n_samples_ == 1
    with raises_invalid_input(ValueError, expected=".*the same classes"):
        merged.merge(CalibrationMonitor().update([0], [[0.2, 0.3, 0.5]]))
    assert whole(merged) == before


@pytest.mark.parametrize("kind", ["numbers", "dates"])
@pytest.mark.parametrize("late_first", [True, False])
def test_after_a_merge_time_goes_on_from_the_later_one(kind, late_first):
    early, middle, late = 3, 5, 8
    if kind == "dates":
        early, middle, late = "2026-03-01", "2026-04-01", "2026-05-01"
    monitors = [
        CalibrationMonitor().update(0, 0.2, time=when) for when in (early, late)
    ]
    merged = monitors[late_first].merge(monitors[not late_first])
    before = whole(merged)
    with pytest.raises(ValueError, match=f"rows from {late} on.*Time runs backwards"):
        merged.update(0, 0.2, time=middle)
    with raises_invalid_input(ValueError, expected=f"rows after {late}"):
        merged.update(0, 0.2, time=late, only_later=True)
    assert whole(merged) == before
    assert merged.update(0, 0.2, time=late).n_samples_ == 3
    # also one that had no rows
    for dated in (
        merged,
        CalibrationMonitor().merge(merged),
    ):
        # nor by one without times
        untimed = dated.merge(CalibrationMonitor().update(0, 0.2))
        with raises_invalid_input(ValueError, expected=f"rows from {late} on"):
            untimed.update(0, 0.2, time=middle)


def test_merging_can_raise_an_alarm():
    y, p = (part[:150] for part in stream())
    watched = CalibrationMonitor(average_run_length=1e12).update(y, p)
    bound = np.exp(watched.log_detector_)
    parts = [
        CalibrationMonitor(average_run_length=1.5 * bound).update(y, p, time=k)
        for k in range(2)
    ]
    assert not parts[0].alarms_
    merged = parts[0].merge(parts[1])
    assert merged.alarm_ and merged.log_detector_ == -np.inf
    assert_allclose(merged.alarms_[0].log_statistic, np.log(2 * bound))


def test_of_many_alarms_the_first_are_kept():
    monitor = CalibrationMonitor(groups=["a"], average_run_length=100).update(
        0, 0.1, groups="a"
    )
    monitor.update([1] * 120, [1e-9] * 120, groups=["a"] * 120)
    assert monitor.n_alarms_ == 120
    assert [alarm.n_samples for alarm in monitor.new_alarms_] == [*range(2, 52)]
    assert "ALARM at row 2: " in str(monitor) and ", and 119 more; " in str(monitor)
    for row in range(55):
        monitor.update(1, 1e-9, groups="a")
        assert [alarm.n_samples for alarm in monitor.new_alarms_] == [122 + row]
    assert len(monitor.alarms_) == 100 and monitor.n_alarms_ == 175


@pytest.mark.slow
def test_the_history_is_short():
    rng = np.random.default_rng(8)
    monitor = CalibrationMonitor()
    for _ in range(700):
        monitor.update(*drawn(1, rng))
    history = monitor.history_
    assert 200 < len(history.n_samples) <= 512
    assert history.n_samples[-1] == 700 and (np.diff(history.n_samples) > 0).all()
    assert history.log_e_value[-1] == monitor.log_e_value_
    assert history.time is None
    assert len(CalibrationMonitor().history_.n_samples) == 0


@pytest.mark.slow
def test_the_history_has_no_more_moments_than_it_says():
    """512, the row of now among them: one more than are kept."""
    course, lengths = StreamHistory(), []
    for row in range(1, 3001):
        moment = (row, 0.0, 0.0, 1.0, 0.0, None)
        if course.is_due(row):
            course.add(moment)
        lengths.append(len(course.make_history(moment).n_samples))
    assert max(lengths) == 512 and min(lengths[512:]) >= 256


@pytest.mark.parametrize("alpha", [1e-4, 0.05, 0.6])
def test_flagged_groups_by_the_definition_of_e_bh(alpha):
    """The k largest e-values for the largest k with the k-th at least n / (k alpha)."""
    rng = np.random.default_rng(0)
    groups = np.arange(900) % 3
    p = rng.uniform(0.2, 0.8, 900)
    y = (
        rng.random(900) < np.clip(p + np.array([0.0, 0.07, 0.11])[groups], 0, 1)
    ).astype(int)
    monitor = CalibrationMonitor(alpha=alpha, groups=[0, 1, 2]).update(
        y, p, groups=groups
    )
    values = sorted(monitor.e_values_.items(), key=lambda pair: -pair[1])
    enough = [k for k in (1, 2, 3) if values[k - 1][1] >= 3 / (k * alpha)]
    expected = {name for name, _ in values[: max(enough, default=0)]}
    assert {*monitor.flagged_} == expected


@pytest.mark.parametrize("alarm", ["detector", "test"])
def test_the_line_of_an_alarm_has_the_number_that_raised_it(alarm):
    """The evidence of all rows may still be small: many were right before."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 6000)
    chance = np.where(np.arange(6000) < 4000, p, 0.5)
    y = (rng.random(6000) < chance).astype(int)
    monitor = CalibrationMonitor(alarm=alarm)
    first = None
    for start in range(0, 6000, 50):
        rows = slice(start, start + 50)
        monitor.update(y[rows], p[rows])
        if monitor.alarm_:
            first = monitor.alarms_[0]
            break
        assert "no alarm; " in str(monitor) and "(p = " in str(monitor)
    assert first.n_samples > 4000
    name, limit = ("detector", 10000) if alarm == "detector" else ("evidence e =", 20)
    found = float(np.exp(first.log_statistic))
    assert found >= limit
    assert str(monitor).endswith(f"rows, {name} {found:.3g} of {limit} there")
    assert "(p = " not in str(monitor).rpartition("; ")[2]
