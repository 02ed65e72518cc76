"""Rating grades: beside probcal and scipy, fitted ones, their tests, from summaries."""

import itertools
import json
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy import stats

from sklearn_calib._kernels import _grades
from sklearn_calib._kernels._grades import (
    compute_joint_p_from_smallest_p,
    compute_order_likelihood_ratio,
    compute_order_p,
    compute_two_sided_total_events_p,
    compute_upper_binomial_p,
    fit_isotonic_rates,
)
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.groups import Grades, grade_calibration, group_calibration
from sklearn_calib.summary import CalibrationSummary

PEER = json.loads(
    (Path(__file__).parent.parent / "data" / "probcal_grades.json").read_text(
        encoding="utf-8"
    )
)


def counted(case):
    """Labels, probabilities and counts."""
    k, n, p = (np.array(case[name]) for name in ("events", "rows", "p"))
    y = np.repeat([1, 0], len(p))
    return {"y_true": y, "y_proba": np.tile(p, 2), "counts": np.concatenate([k, n - k])}


def repeated(given):
    """The same, row by row."""
    return (np.repeat(given[name], given["counts"]) for name in ("y_true", "y_proba"))


@pytest.mark.parametrize("case", PEER["cases"])
def test_beside_probcal(case):
    """Golden values of benchmarks/peers/probcal_grades.py."""
    given, grades = counted(case), Grades(PEER["edges"], PEER["names"])
    found = [
        row for row in grade_calibration(**given, grades=grades).rows if row.n_rows
    ]
    assert [row.grade for row in found] == case["grades"]
    assert [row.light for row in found] == case["light"]
    ours = ("n_rows", "events", "predicted", "binomial_p", "jeffreys_p", "observed_low",
            "observed_high", "prudent")  # fmt: skip
    theirs = ("n", "k", "predicted", "binomial", "jeffreys", "low", "high", "prudent")
    for name, key in zip(ours, theirs, strict=True):
        values = np.array([getattr(row, name) for row in found], dtype=float)
        # of which probcal's tails have some 3e-12 of error
        many = max(case["n"]) > 4000
        assert np.abs(values - case[key]).max() <= (1e-11 if many else 1e-12), name


def test_binomial_tail_of_many_rows_in_sixty_digits():
    with localcontext() as context:
        context.prec = 60
        n, k, p = 8959, 73, 0.0075
        term, total = (1 - Decimal(p)) ** n, Decimal(0)
        for j in range(k):
            total, term = (
                total + term,
                term * (n - j) / (j + 1) * Decimal(p) / (1 - Decimal(p)),
            )
        exact = float(1 - total)
    # scipy 1.10; newer ones 1e-15
    assert abs(float(compute_upper_binomial_p(k, n, p)) - exact) < 5e-12


def test_counts_are_rows_and_classes_may_be_swapped():
    given = counted(PEER["cases"][2])
    y, p = repeated(given)
    grades = Grades(PEER["edges"])
    first, second = (
        grade_calibration(**given, grades=grades),
        grade_calibration(y, p, grades),
    )
    for one, other in zip(first.rows, second.rows, strict=True):
        assert one[3:5] == other[3:5]
        assert one.jeffreys_p == pytest.approx(other.jeffreys_p, rel=1e-12)
    assert first.p_value == pytest.approx(second.p_value, rel=1e-9)
    assert first.order_p_value == second.order_p_value
    names = np.where(y == 1, "bad", "good")
    swapped = grade_calibration(
        names,
        np.column_stack([p, 1 - p]),
        grades,
        labels=["bad", "good"],
        pos_label="bad",
    )
    assert [row.events for row in swapped.rows] == [row.events for row in first.rows]


def test_golden_values_of_one_grade():
    found = grade_calibration([1, 0], [0.02, 0.02], [0.01, 0.05], counts=[5, 95])
    row = found.rows[1]
    assert abs(row.jeffreys_p - 0.0286140335) < 1e-10
    assert abs(row.binomial_p - 0.0508304454) < 1e-10
    assert abs(row.prudent - 0.0733268377) < 1e-10
    assert row.binomial_p == pytest.approx(stats.binom.sf(4, 100, 0.02), rel=1e-12)


def test_the_joint_p_value_is_of_two_sides_and_all_grades():
    def found(events):
        y, p = np.repeat([1, 0], 3), np.tile([0.01, 0.03, 0.2], 2)
        counts = [*events, *(200 - k for k in events)]
        return grade_calibration(y, p, [0.02, 0.1], counts=counts)

    def chance(tail):
        """That one of the grades has a number of events with a tail as small as this."""
        quiet, k = 1.0, np.arange(201)
        for rate in (0.01, 0.03, 0.2):
            tails = stats.binom.cdf(k, 200, rate), stats.binom.sf(k - 1, 200, rate)
            quiet *= stats.binom.pmf(k, 200, rate)[
                np.min(tails, axis=0) > tail * (1 + 1e-9)
            ].sum()
        return 1 - quiet

    one = found([2, 6, 65])
    assert one.p_value == pytest.approx(chance(stats.binom.sf(64, 200, 0.2)), rel=1e-9)
    below = found([2, 6, 15])
    assert below.p_value == pytest.approx(
        chance(stats.binom.cdf(15, 200, 0.2)), rel=1e-9
    )
    assert [row.light for row in below.rows] == ["green"] * 3  # lights have one side
    assert found([2, 6, 40]).p_value > 0.9
    assert one.rows[2].light == "red" and one.summary.split(" = ")[0] in str(one)


def test_the_joint_p_value_is_the_chance_of_one_as_small_where_events_are_few():
    """Over all tables of three grades: P(p <= its value) is the value, not a fraction of it."""
    n, rates = np.array([4, 6, 9]), np.array([0.03, 0.1, 0.4])
    tables = np.stack(np.meshgrid(*(np.arange(k + 1.0) for k in n), indexing="ij"), -1)
    tables = tables.reshape(-1, 3)
    mass = stats.binom.pmf(tables, n, rates).prod(axis=1)
    p = np.array(
        [compute_joint_p_from_smallest_p(k, n.astype(float), rates) for k in tables]
    )
    for value in np.unique(p.round(12)):
        assert mass[p <= value + 1e-11].sum() == pytest.approx(value, rel=1e-9)


def test_lights_levels_and_draws_are_options():
    given = counted(PEER["cases"][1]) | {"grades": PEER["edges"]}
    usual = grade_calibration(**given)
    strict = grade_calibration(**given, lights=(0.9, 0.8))
    assert [r.light for r in usual.rows] != [r.light for r in strict.rows]
    wide = grade_calibration(**given, level=0.99)
    assert all(
        b.observed_high > a.observed_high
        for a, b in zip(usual.rows, wide.rows, strict=True)
    )
    high = grade_calibration(**given, prudent_level=0.95)
    assert all(
        b.prudent > a.prudent for a, b in zip(usual.rows, high.rows, strict=True)
    )
    assert usual.to_dict()["lights"] == [0.05, 0.01] and usual.n_resamples == 999
    assert usual.to_dict()["grades"][0]["grade"] == "1"
    y, p, edges = (
        np.repeat([0, 1, 0, 1], [30, 10, 34, 6]),
        np.repeat([0.1, 0.6], 40),
        [0.5],
    )
    few = grade_calibration(y, p, edges, n_resamples=9).order_p_value
    assert round(few * 10) == pytest.approx(few * 10)
    drawn = {
        grade_calibration(y, p, edges, random_state=s).order_p_value for s in range(4)
    }
    assert len(drawn) > 1


# -- the order --------------------------------------------------------------------------------


def test_isotonic_rates_by_their_definition():
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = rng.integers(5, 60, 5).astype(float)
        events = rng.binomial(rows.astype(int), 0.4).astype(float)
        fitted = fit_isotonic_rates(events, rows)
        assert (np.diff(fitted) >= -1e-12).all()
        levels = np.unique(np.round(fitted, 12))
        for level in levels:  # each block has the mean of its rows
            block = np.abs(fitted - level) < 1e-9
            assert events[block].sum() / rows[block].sum() == pytest.approx(level)
        assert compute_order_likelihood_ratio(events, rows) >= 0
    rising = np.array([1.0, 5.0, 9.0])
    assert compute_order_likelihood_ratio(
        rising, np.full(3, 10.0)
    ) == 0 and fit_isotonic_rates(rising, np.full(3, 10.0)) == pytest.approx(
        rising / 10
    )


def test_order_p_value_is_exact_where_all_tables_can_be_counted():
    """Two grades: the hypergeometric law of the events of the first."""
    events, rows = np.array([6.0, 1.0]), np.array([10.0, 12.0])
    exact = stats.hypergeom.sf(5, 22, 10, 7)
    drawn = compute_order_p(events, rows, 20_000, np.random.default_rng(0))
    assert abs(drawn - exact) < 4 * np.sqrt(exact / 20_000)
    assert compute_order_p(events[::-1], rows, 99, np.random.default_rng(0)) == 1.0
    assert compute_order_p(np.zeros(2), rows, 99, np.random.default_rng(0)) == 1.0


def test_events_of_any_number_of_rows_are_dealt_out_by_their_law(monkeypatch):
    rows, rng = np.array([5, 30, 3]), np.random.default_rng(0)
    monkeypatch.setattr(_grades, "_MAX_NUMPY_HYPERGEOMETRIC_ROWS", 0)
    drawn = _grades.draw_event_counts(rows, 12, 20_000, rng)
    assert (drawn.sum(axis=1) == 12).all()
    for column, n in zip(drawn.T, rows, strict=True):
        law = stats.hypergeom(38, n, 12).pmf(np.arange(n + 1))
        error = np.sqrt(law * (1 - law) / 20_000)
        assert (
            np.abs(np.bincount(column, minlength=n + 1) / 20_000 - law) <= 4 * error
        ).all()
    everywhere = _grades.draw_event_counts(np.array([3, 0, 4]), 7, 5, rng)
    assert everywhere.tolist() == [[3, 0, 4]] * 5


def test_counts_of_more_than_a_billion_rows():
    y, p = [1, 0, 1, 0], [0.02, 0.02, 0.2, 0.2]
    counts = [2 * 10**7, 98 * 10**7, 2 * 10**8, 8 * 10**8]
    found = grade_calibration(y, p, [0.05], counts=counts)
    assert found.order_p_value == 1 and found.p_value == 1
    fallen = grade_calibration(y, p, [0.05], counts=[2 * 10**8, 8 * 10**8, *counts[:2]])
    assert fallen.order_p_value == 0.001
    with raises_invalid_input(
        ValueError, expected=r"counts of 9e\+15 rows at most", value=r"4.61e\+18"
    ):
        grade_calibration(y, p, [0.05], counts=[1, 1, 1, 2**62])
    most = grade_calibration(y, p, [0.05], counts=[9 * 10**15 - 3, 1, 1, 1])
    assert most.rows[0].n_rows == 9 * 10**15 - 2
    with raises_invalid_input(ValueError, expected=r"counts of 9e\+15 rows at most"):
        grade_calibration(y, p, [0.05], counts=[9 * 10**15 - 2, 2, 1, 1])


@pytest.mark.slow
def test_level_of_the_order_and_of_all_grades():
    """At equal rates the order is rejected as often as it states; two-sided."""
    rng, sets, rows = (
        np.random.default_rng(1),
        600,
        np.array([200.0, 100.0, 150.0, 300.0]),
    )
    p = np.array(
        [
            compute_order_p(
                rng.binomial(rows.astype(int), 0.1).astype(float), rows, 99, rng
            )
            for _ in range(sets)
        ]
    )
    for level in (0.1, 0.2):
        share, three = (
            np.mean(p <= level + 1e-12),
            3 * np.sqrt(level * (1 - level) / sets),
        )
        assert abs(share - level) <= three
    held, joint, rates = [], [], np.array([0.01, 0.05, 0.2])
    for _ in range(sets):
        k = rng.binomial(1000, rates)
        given = {"counts": [*k, *(1000 - k)], "n_resamples": 9}
        found = grade_calibration(
            [1, 1, 1, 0, 0, 0], np.tile(rates, 2), [0.03, 0.1], **given
        )
        joint.append(found.p_value)
        held += [
            r.observed_low <= t <= r.observed_high
            for r, t in zip(found.rows, rates, strict=True)
        ]
    three = 3 * np.sqrt(0.9 * 0.1 / len(held))
    assert 0.9 - three <= np.mean(held) <= 0.96  # Clopper and Pearson's hold more often
    share = np.mean(np.array(joint) <= 0.1)
    assert 0.02 <= share <= 0.1 + 3 * np.sqrt(0.09 / sets)


# -- making grades ----------------------------------------------------------------------------


def test_edges_belong_to_the_grade_above():
    grades = Grades([0.01, 0.02], names=["A", "B", "C"])
    scores = [0.0, np.nextafter(0.01, 0), 0.01, np.nextafter(0.02, 0), 0.02, 1.0]
    assert grades.assign(scores).tolist() == list("AABBCC")
    assert grades.transform(
        np.column_stack([1 - np.array(scores), scores])
    ).tolist() == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]
    assert grades.bands == {"A": 0.0, "B": 0.01, "C": 0.02}
    assert (
        Grades(**grades.to_dict()) == grades
        and Grades(**json.loads(json.dumps(grades.to_dict()))) == grades
    )
    assert grades.assign(np.float32([0.01]))[0] == "A"  # the float32 is below


@pytest.mark.parametrize("column", [pd.Series, np.array, pd.Index, tuple])
def test_edges_and_names_may_be_columns(column):
    assert Grades(column([0.1, 0.2]), column([*"abc"])) == Grades([0.1, 0.2], [*"abc"])


def test_quantiles():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 20, 1000)
    grades = Grades.from_quantiles(p, 5)
    assert np.abs(np.bincount(grades.transform(p)) - 200).max() <= 1
    tied = Grades.from_quantiles(
        np.repeat([0.1, 0.2], [90, 10]), 4, names=["low", "high"]
    )
    assert tied.edges == (0.2,) and tied.names == ("low", "high")
    with pytest.raises(ValueError, match=r".*equal ones"):
        Grades.from_quantiles([0.3, 0.3])


def test_fitted_grades_rise_and_have_events():
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(-3, 1.5, 6000)))
    y = (rng.random(6000) < p).astype(int)
    for least, most in ((10, 10), (40, 4), (1, 50)):
        grades = Grades.fit(y, p, min_events=least, max_grades=most)
        place = grades.transform(p)
        events, rows = np.bincount(place, weights=y), np.bincount(place)
        assert 2 <= len(rows) <= most and (events >= least).all()
        assert (np.diff(events / rows) > 0).all()
    assert grade_calibration(y, p, grades).order_p_value == 1.0
    finest = len(Grades.fit(y, p, min_events=10, max_grades=50).names)
    assert finest > 4
    swapped = Grades.fit(1 - y, np.column_stack([p, 1 - p]), pos_label=0, max_grades=4)
    assert swapped == Grades.fit(y, p, max_grades=4)


def test_joining_loses_least():
    """Of three grades the two nearest ones are joined."""
    y = np.concatenate([np.arange(1000) < k for k in (20, 24, 300)]).astype(int)
    p = np.repeat([0.02, 0.04, 0.3], 1000)
    assert Grades.fit(y, p, min_events=5, max_grades=2).edges == (0.3,)


@run_every_case(
    ("edges", "names", "match"),
    [
        ([0.02, 0.01], None, "edges that increase, between 0 and 1"),
        ([0.01, 0.01], None, "edges that increase"),
        ([0, 0.5], None, "edges that increase"),
        ([2, 5], None, "2 percent are 0.02"),
        ([2, 1, 2, 1], None, "already are groups: group_calibration"),
        ([float("nan")], None, "edges that increase"),
        ([], None, "edges that increase"),
        ("0.1", None, "edges that increase"),
        (0.1, None, "edges that increase"),
        ([0.1], ["a"], "2 different names"),
        ([0.1], ["a", "a"], "2 different names"),
        ([0.1], ["a", 1], "2 different names"),
        ([0.1], "ab", "2 different names"),
    ],
)
def test_bad_grades(edges, names, match):
    with pytest.raises(ValueError, match=match):
        Grades(edges, names)


def test_bad_rows():
    y, p = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]
    falls = np.arange(400) < 40
    for call, match in (
        (
            lambda: Grades.fit(y, p),
            "at least 40 events, 20 for each of two grades, got 2",
        ),
        (
            lambda: Grades.fit(falls.astype(int), np.linspace(0.1, 0.9, 400)),
            "rates that rise",
        ),
        (lambda: Grades.fit(y, p, min_events=0), "min_events >= 1"),
        (lambda: Grades.fit(y, p, max_grades=1), "max_grades >= 2"),
        (lambda: Grades.from_quantiles(p, 1), "n_grades >= 2"),
        (
            lambda: grade_calibration(y, p, [0.2], counts=[1, 2, 3]),
            "counts, 4 whole numbers",
        ),
        (
            lambda: grade_calibration(y, p, [0.2], counts=[1, 2, 3, 0.5]),
            "whole numbers >= 0",
        ),
        (
            lambda: grade_calibration(y, p, [0.2], counts=[1, 2, 3, -1]),
            "whole numbers >= 0",
        ),
        (
            lambda: grade_calibration(y, p, [0.2], counts=[0, 0, 0, 0]),
            "at least one row",
        ),
        (
            lambda: grade_calibration(y, p, [0.2], lights=(0.01, 0.05)),
            "the larger level first",
        ),
        (lambda: grade_calibration(y, p, [0.2], lights=0.05), "two lights"),
        (
            lambda: grade_calibration(y, p, [0.2], prudent_level=75),
            "prudent_level between 0",
        ),
        (lambda: grade_calibration(y, p, {"edge": [0.2]}), '"edges"'),
        (lambda: grade_calibration([0, 1, 2], np.eye(3), [0.2]), "two classes"),
        (lambda: Grades.fit([0, 1, 2], np.eye(3)), "two classes"),
    ):
        with pytest.raises(ValueError, match=match):
            call()


def test_grades_without_rows():
    found = grade_calibration([0, 1, 0, 1], [0.1, 0.1, 0.3, 0.3], [0.05, 0.2, 0.9])
    empty, *_, last = found.rows
    assert np.isnan(empty.predicted) and empty.jeffreys_p == 1.0 and last.prudent == 1.0
    assert found.to_dict()["grades"][0]["observed"] is None
    json.dumps(found.to_dict(), allow_nan=False)
    assert "Without rows: 1, 4." in found.summary and "-" in str(found)


# -- with the rest ----------------------------------------------------------------------------


def test_group_calibration_takes_grades():
    proba, y = make_overconfident(2, 600)
    grades = Grades([0.2, 0.7], names=["low", "middle", "high"])
    own = group_calibration(y, proba, grades, n_resamples=99)
    by_hand = group_calibration(
        y, proba, {"grade": grades.assign(proba)}, n_resamples=99
    )
    assert own.to_dict() == by_hand.to_dict()
    assert {row.group for row in own.rows[1:]} == {
        "grade = low",
        "grade = middle",
        "grade = high",
    }


def test_group_calibration_grades_the_probability_of_the_positive_class():
    proba, y = make_overconfident(2, 600)
    grades, positive = Grades([0.2, 0.7]), {"pos_label": 0, "n_resamples": 99}
    groups = group_calibration(y, proba, grades, **positive).rows
    rows = grade_calibration(y, proba, grades, **positive).rows
    assert {row.group: row.n_rows for row in groups if row.group != "all rows"} == {
        f"grade = {row.grade}": row.n_rows for row in rows
    }


def test_summaries_and_cells_across_edges():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 20, 30_000)
    y = (rng.random(30_000) < p).astype(int)
    grades = Grades([0.01, 0.05, 0.2])
    direct = grade_calibration(y, p, grades)
    for cells in (65_536, 4096):
        summary = CalibrationSummary(cells).update(y, p)
        rows = summary.rows()
        found = grade_calibration(rows.y, rows.proba, grades, counts=rows.sample_weight)
        unsure = summary.rows_across(grades.edges)
        assert (unsure == 0) == summary.exact
        apart = [
            abs(a.n_rows - b.n_rows)
            for a, b in zip(found.rows, direct.rows, strict=True)
        ]
        assert max(itertools.accumulate(apart, max)) <= unsure < 300
    assert CalibrationSummary(4096).update(y, p).rows_across([0.999]) <= 3
    with raises_invalid_input(ValueError, expected=".*two classes"):
        CalibrationSummary().update([0, 1, 2], np.eye(3)).rows_across([0.5])


def test_the_portfolio_finds_grades_that_are_all_a_little_too_low():
    rates = np.array([0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3])
    rows = np.full(7, 1000.0)
    rng = np.random.default_rng(0)
    for factor, least, most in ((1.0, 0.02, 0.05 + 3 * 0.0098), (1.15, 0.9, 1.0)):
        draws = rng.binomial(1000, factor * rates, (500, 7)).astype(float)
        rejected = np.mean(
            [
                compute_two_sided_total_events_p(events, rows, rates) <= 0.05
                for events in draws
            ]
        )
        assert least <= rejected <= most, (factor, rejected)
    events = rng.binomial(1000, 1.15 * rates, (200, 7)).astype(float)
    smallest = np.mean(
        [compute_joint_p_from_smallest_p(k, rows, rates) <= 0.05 for k in events]
    )
    together = np.mean(
        [compute_two_sided_total_events_p(k, rows, rates) <= 0.05 for k in events]
    )
    assert together > smallest + 0.1


def test_the_portfolio_p_value_is_the_binomial_one_of_equal_rates_and_has_a_row():
    found = grade_calibration([1, 0], [0.02, 0.02], [0.01, 0.05], counts=[5, 95])
    both = [stats.binom.sf(4, 100, 0.02), stats.binom.cdf(5, 100, 0.02)]
    assert found.portfolio_p_value == pytest.approx(2 * min(both), rel=1e-9)
    few = grade_calibration([1, 0], [0.2, 0.2], [0.1, 0.5], counts=[5, 95])
    assert few.portfolio_p_value == pytest.approx(
        2 * stats.binom.cdf(5, 100, 0.2), rel=1e-9
    )
    last = found.section().tables[0].rows[-1]
    assert last[:4] == ("portfolio", "100", "5", "2 %")
    assert last[6] == f"{found.portfolio_p_value:.3g}"
    assert found.to_dict()["portfolio_p_value"] == found.portfolio_p_value
    assert (
        f"p = {found.portfolio_p_value:.3g} for the number of events" in found.summary
    )


@pytest.mark.parametrize(("label", "expected"), [(0, 1.0), (1, 0.0)])
def test_a_portfolio_of_certain_grades_is_right_or_wrong(label, expected):
    found = grade_calibration([label] * 3, [0.0] * 3, [0.1, 0.5])
    assert found.portfolio_p_value == expected
