"""Decision curves: golden values, the formulas row by row, intervals, bad input."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from cases import run_every_case
from golden_sets import golden_set
from scipy.stats import norm

from sklearn_calib._kernels._net_benefit import draw_max_abs_z_quantile
from sklearn_calib.decisions import decision_curve, decision_difference, regret_curve

Y, P = golden_set()
TABLE = {  # threshold: net benefit, its error, less treat-all, its error
    0.1: (0.4872222222, 0.0381976463, -0.0072222222, 0.0103362451),
    0.25: (0.405, 0.0408844918, 0.0116666667, 0.0220324886),
    0.5: (0.28, 0.0459129611, 0.19, 0.0481611877),
    0.75: (0.115, 0.0592357578, 0.935, 0.1235065788),
}
T = np.arange(1, 100) / 100
W = T / (1 - T)
ACTS = P[:, None] >= T
GAIN = np.where(Y[:, None] == 1, 1.0, -W)


def same(one, other):
    for name in ("difference", "standard_error", "low", "high"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-12), (
            name
        )


def test_golden_values():
    curve = decision_curve(Y, P, thresholds=list(TABLE))
    over = curve.over_all
    found = (
        curve.net_benefit,
        curve.standard_error,
        over.difference,
        over.standard_error,
    )
    assert pytest.approx(np.array([*TABLE.values()]), abs=1e-10) == np.array(found).T
    with pytest.raises(FrozenInstanceError):
        curve.level = 0.5


def test_formulas_row_by_row():
    curve = decision_curve(Y, P, harms=0.01)
    g = ACTS * GAIN
    assert curve.net_benefit == pytest.approx(g.mean(axis=0) - 0.01, abs=1e-14)
    assert curve.standard_error == pytest.approx(
        g.std(axis=0) / np.sqrt(200), abs=1e-14
    )
    assert curve.treat_all == pytest.approx(GAIN.mean(axis=0), abs=1e-12)
    rows = g - GAIN
    assert curve.over_all.difference == pytest.approx(
        rows.mean(axis=0) - 0.01, abs=1e-12
    )
    expected = rows.std(axis=0) / np.sqrt(200)
    assert curve.over_all.standard_error == pytest.approx(expected, abs=1e-10)
    assert curve.acted == pytest.approx(ACTS.mean(axis=0))
    assert curve.standardised == pytest.approx(curve.net_benefit / Y.mean())
    tn, fn = (
        (~ACTS & (Y == 0)[:, None]).mean(axis=0),
        (~ACTS & (Y == 1)[:, None]).mean(axis=0),
    )
    free = decision_curve(Y, P)
    assert free.net_benefit_untreated == pytest.approx(tn - fn / W, abs=1e-12)
    avoided = 100 * (free.net_benefit - free.treat_all) / W
    assert free.interventions_avoided == pytest.approx(avoided, abs=1e-9)
    table = curve.to_frame()
    assert (
        len(table) == 99
        and table["over_all"].tolist() == curve.over_all.difference.tolist()
    )
    assert {"over_all_band_low", "interventions_avoided", "acted"} < set(table.columns)


def test_difference_of_two_models():
    other = P**2
    found = decision_difference(Y, P, other, harms=(0.0, 0.02))
    rows = (1.0 * (other[:, None] >= T) - ACTS) * GAIN
    assert found.difference == pytest.approx(rows.mean(axis=0) - 0.02, abs=1e-12)
    assert found.standard_error == pytest.approx(
        rows.std(axis=0) / np.sqrt(200), abs=1e-12
    )
    one, two = decision_curve(Y, P), decision_curve(Y, other)
    plain = decision_difference(Y, P, other)
    assert plain.difference == pytest.approx(
        two.net_benefit - one.net_benefit, abs=1e-12
    )
    unpaired = np.hypot(one.standard_error, two.standard_error)
    assert (plain.standard_error[:50] < unpaired[:50] / 2).all()
    back = decision_difference(Y, other, P)
    assert back.low == pytest.approx(-plain.high) and back.difference == pytest.approx(
        -plain.difference
    )
    everyone = decision_difference(Y, np.ones(200), P)
    same(everyone, one.over_all)
    assert len(plain.to_frame()) == 99


def test_intervals():
    """Normal where many rows are acted on, around the estimate, never of no width."""
    many = decision_curve(np.tile(Y, 500), np.tile(P, 500), thresholds=[0.2, 0.5, 0.8])
    for end in (many.high - many.net_benefit, many.net_benefit - many.low):
        assert end == pytest.approx(1.959964 * many.standard_error, rel=2e-2)
    curve = decision_curve(Y, 0.9 * P, level=0.9)
    nobody = T > 0.9
    assert (curve.net_benefit[nobody] == 0).all() and (
        curve.standard_error[nobody] == 0
    ).all()
    assert (curve.low[nobody] < 0).all() and (curve.high[nobody] > 0).all()
    for result, value in (
        (curve, curve.net_benefit),
        (curve.over_all, curve.over_all.difference),
    ):
        assert (result.band_low < result.low).all() and (result.low < value).all()
        assert (value < result.high).all() and (result.high < result.band_high).all()
    again = decision_curve(Y, 0.9 * P, level=0.9, random_state=1)
    assert (again.band_high != curve.band_high).all()
    same(decision_curve(Y, 0.9 * P, level=0.9).over_all, curve.over_all)
    single = decision_curve(Y, P, thresholds=[0.5], n_resamples=20_000)
    # one threshold: no more
    assert single.band_high == pytest.approx(single.high, abs=5e-3)


def test_weights_and_labels():
    weight = np.arange(200) % 3
    weighted = decision_curve(Y, P, sample_weight=weight)
    repeated = decision_curve(np.repeat(Y, weight), np.repeat(P, weight))
    assert weighted.net_benefit == pytest.approx(repeated.net_benefit, abs=1e-12)
    scaled = decision_curve(Y, P, sample_weight=7 * weight)
    same(scaled.over_all, weighted.over_all)
    g = ACTS * GAIN
    share = (weight / weight.sum())[:, None]
    sandwich = np.sqrt((share**2 * (g - weighted.net_benefit) ** 2).sum(axis=0))
    assert weighted.standard_error == pytest.approx(sandwich, abs=1e-12)
    words = np.array(["no", "yes"])[Y]
    named = decision_curve(words, P, pos_label="yes")
    same(named.over_all, decision_curve(Y, P).over_all)
    turned = decision_curve(words, 1 - P, pos_label="no")
    same(turned.over_all, decision_curve(1 - Y, 1 - P).over_all)


def test_case_control():
    """Of a population with 10 % events: weighting each class to its share there."""
    curve = decision_curve(Y, P, prevalence=0.1)
    weight = np.where(Y == 1, 0.1 / Y.mean(), 0.9 / (1 - Y.mean()))
    weighted = decision_curve(Y, P, sample_weight=weight)
    assert curve.net_benefit == pytest.approx(weighted.net_benefit, abs=1e-12)
    assert curve.treat_all == pytest.approx(weighted.treat_all, abs=1e-12)
    assert curve.acted == pytest.approx(weighted.acted)
    assert curve.prevalence == 0.1
    rates = [ACTS[c == Y].mean(axis=0) for c in (1, 0)]
    known = [
        rate * (1 - rate) / (c == Y).sum()
        for c, rate in zip((1, 0), rates, strict=True)
    ]
    error = np.sqrt(0.01 * known[0] + (0.9 * W) ** 2 * known[1])
    assert curve.standard_error == pytest.approx(error, abs=1e-14)
    assert (curve.low <= curve.net_benefit).all() and (
        curve.net_benefit <= curve.high
    ).all()
    assert curve.standardised == pytest.approx(curve.net_benefit / 0.1)


def test_case_control_of_two_models():
    """The difference of a population with 10 % events, and its error within each class."""
    other = np.sqrt(P)
    found = decision_difference(Y, P, other, thresholds=T, prevalence=0.1)
    weight = np.where(Y == 1, 0.1 / Y.mean(), 0.9 / (1 - Y.mean()))
    weighted = decision_difference(Y, P, other, thresholds=T, sample_weight=weight)
    assert found.difference == pytest.approx(weighted.difference, abs=1e-12)
    change = (other[:, None] >= T) * 1.0 - ACTS
    one, none = (change[c == Y].var(axis=0) / (c == Y).sum() for c in (1, 0))
    error = np.sqrt(0.01 * one + (0.9 * W) ** 2 * none)
    assert found.standard_error == pytest.approx(error, abs=1e-14)


def test_no_event():
    curve = decision_curve(np.zeros(200, int), P, labels=[0, 1])
    assert (
        np.isnan(curve.standardised).all()
        and np.isfinite(curve.to_frame()["high"]).all()
    )
    assert curve.net_benefit == pytest.approx(-W * ACTS.mean(axis=0))


@run_every_case(
    ("options", "said"),
    [
        ({"thresholds": [0.0, 0.5]}, "thresholds strictly between 0 and 1, got 0"),
        ({"thresholds": [0.5, 1.0]}, "thresholds strictly between 0 and 1, got 1"),
        ({"thresholds": [0.5, np.nan]}, "thresholds strictly between 0 and 1, got nan"),
        ({"thresholds": [0.5, 0.2]}, "increasing thresholds, got 0.5 before 0.2"),
        ({"thresholds": []}, "at least one"),
        ({"thresholds": 0.5}, r"thresholds of shape \(n_thresholds,\)"),
        ({"level": 1}, "a level between 0 and 1, got 1"),
        ({"prevalence": 0}, "a prevalence strictly between 0 and 1, got 0"),
        ({"prevalence": 1.0}, "a prevalence strictly between 0 and 1, got 1.0"),
        ({"prevalence": "high"}, "a prevalence strictly between 0 and 1, got 'high'"),
        ({"harms": "high"}, "expected harms as "),
        ({"harms": np.nan}, "expected harms as "),
        ({"n_resamples": 0}, "n_resamples >= 1"),
        (
            {"y": np.arange(200) % 3, "p": np.full((200, 3), 1 / 3)},
            "two classes, got 3",
        ),
        (
            {"y": np.zeros(200, int), "labels": [0, 1], "prevalence": 0.1},
            "rows of both classes",
        ),
        ({"p": 2 * P}, r"probabilities in \[0, 1\]"),
    ],
)
def test_bad_input(options, said):
    options = dict(options)
    y, p = options.pop("y", Y), options.pop("p", P)
    with pytest.raises(ValueError, match=f"^expected .*{said}|^{said}"):
        decision_curve(y, p, **options)
    with pytest.raises(ValueError, match=f"^expected .*{said}|^{said}"):
        decision_difference(y, p, p, **options)


def test_printed_in_a_terminal_and_a_notebook():
    curve = decision_curve(Y, P, level=0.9)
    head, *lines, note = str(curve).splitlines()
    assert (
        head.split("  ")[-1] == "act on all"
        and "90 % interval" in head
        and "90 % band" in head
    )
    assert [line.split()[0] for line in lines[::9]] == ["0.01", "0.99"] and len(
        lines
    ) == 10
    at = np.flatnonzero(T == 0.45)[0]
    row = (
        f"0.45 {curve.net_benefit[at]:.4f} {curve.low[at]:.4f} to {curve.high[at]:.4f}"
    )
    assert row in [" ".join(line.split()[:5]) for line in lines]
    assert "10 of 99 thresholds" in note and f"prevalence {Y.mean():.4g}" in note
    assert curve._repr_html_().count("<tr>") == 11 and note in curve._repr_html_()
    two = str(decision_difference(Y, P, P**2, thresholds=[0.2, 0.4]))
    assert (
        "difference" in two
        and "2 of 2 thresholds" in two
        and len(two.splitlines()) == 4
    )


def covered(draws, n=500):
    """Whether the intervals at some thresholds, and the bands of all, hold the truth."""
    shown, some = (
        [0, 2, 5, 9],
        np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
    )
    grid = (np.arange(20_000) + 0.5) / 20_000
    law = 3 * (1 - grid) ** 2  # the density of Beta(1, 3)
    event = grid**1.3
    lost = (law * (1 - event))[:, None] * some / (1 - some)
    truth = ((grid[:, None] >= some) * ((law * event)[:, None] - lost)).mean(axis=0)
    rng = np.random.default_rng(5)
    for number in range(draws):
        p = rng.beta(1, 3, n)
        curve = decision_curve(
            rng.random(n) < p**1.3, p, thresholds=some, random_state=number
        )
        below, above = curve.low > truth, curve.high < truth
        band = ((curve.band_low <= truth) & (truth <= curve.band_high)).all()
        yield [*below[shown], *above[shown], band]


@pytest.mark.slow
def test_coverage_two_sided():
    """Each end is missed 2.5 % of the time where many rows act, at most that where few do."""
    found = np.mean([*covered(400)], axis=0)
    assert (
        (found[[0, 1, 2, 4, 5, 6]] >= 0.002) & (found[[0, 1, 2, 4, 5, 6]] <= 0.06)
    ).all()
    assert found[3] <= 0.06 and found[7] <= 0.06
    assert 0.93 <= found[8] <= 1


def test_a_score_at_a_threshold_is_acted_on():
    y, p = [0, 1, 0, 1], [0.1, 0.5, 0.5, 0.9]
    curve = decision_curve(y, p, thresholds=[0.5])
    assert curve.acted == pytest.approx([3 / 4])
    assert curve.net_benefit == pytest.approx([(2 - 1) / 4])
    none = decision_difference(y, p, [0.1, 0.4, 0.4, 0.9], thresholds=[0.5])
    assert none.difference == pytest.approx([0])  # one true and one false positive less


def test_the_positive_class_of_both_models():
    other = np.sqrt(P)
    expected = decision_difference(1 - Y, 1 - P, 1 - other, random_state=0)
    names = np.where(Y == 1, "yes", "no")
    columns = [np.column_stack([1 - p, p]) for p in (P, other)]
    found = decision_difference(names, *columns, pos_label="no", random_state=0)
    same(found, expected)
    assert np.abs(found.difference).max() > 0.01


@pytest.mark.parametrize("recalibrated", [np.sqrt(P), "platt"], ids=["rows", "method"])
def test_options_reach_the_regret(recalibrated):
    """Those of the curve, with the first class as the event and weights."""
    names, weight = np.where(Y == 1, "yes", "no"), 1.0 + np.arange(len(Y)) % 3
    more = {"sample_weight": weight, "level": 0.8, "n_resamples": 99, "random_state": 3}
    found = decision_curve(
        names, P, recalibrated=recalibrated, pos_label="no", **more
    ).regret
    expected = regret_curve(1 - Y, P, recalibrated, **more)
    t = np.linspace(0.05, 0.95, 19)
    assert found.at(t) == pytest.approx(expected.at(t), abs=1e-8)
    assert found.maximum_interval == pytest.approx(expected.maximum_interval, abs=1e-8)
    assert (
        found.level == 0.8
        and np.abs(found.at(t) - found.at(1 - t[::-1])[::-1]).max() > 1e-3
    )


@pytest.mark.parametrize("variances", [(1.0, 1.0), (1.0, 0.0), (0.0, 4.0)])
def test_thresholds_without_variance_count_as_one_that_is_independent(variances):
    """The largest of two independent normal numbers."""
    rng = np.random.default_rng(0)
    found = draw_max_abs_z_quantile(np.diag(variances), 0.95, 40_000, rng)
    assert found == pytest.approx(norm.isf((1 - 0.95**0.5) / 2), abs=0.03)
