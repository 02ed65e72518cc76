"""The validation table: golden values, intervals, what does not exist, how it looks."""

import importlib
import json
import sys
import warnings
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest
from cases import run_every_case
from error_fields import parse_error_fields, raises_invalid_input
from golden_sets import golden_set
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.metrics import log_loss, roc_auc_score

from sklearn_calib.decomposition import calibration_indices
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import (
    calibration_test,
    cox_test,
    spiegelhalter_test,
    validation_summary as validate,
)

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "validation"
FAST = {"n_resamples": 9}
ROWS = ["O/E", "calibration in the large", "intercept", "slope", "Cox chi-square"]
ROWS += ["ICI", "E50", "E90", "Emax"]
ROWS += ["Brier", "scaled Brier", "log loss", "AUC", "Nagelkerke R2"]


def close(found, wanted, digits=10):
    assert found == pytest.approx(wanted, abs=0.6 * 10.0**-digits)


# -- golden values --------------------------------------------------------------------------------


def test_golden_set():
    y, p = golden_set()
    found = validate(y, p, **FAST)
    rate, large, slope = found["O/E"], found["calibration in the large"], found["slope"]
    close(rate.estimate, 1.09)
    close(rate.low, 0.946518, 6)
    close(rate.high, 1.230774, 6)
    close(stats.norm.isf(rate.pvalue / 2), 1.638485, 6)
    close(large.estimate, 0.2986947793)
    close(large.low, -0.0584427, 7)
    close(large.high, 0.6570015, 7)
    close(large.pvalue, stats.chi2.sf(2.6864398, 1), 7)
    close(found["intercept"].estimate, 0.2506153387)
    close(slope.estimate, 0.7496974409, 9)
    close(slope.low, 0.5399819, 7)
    close(slope.high, 0.9822552, 7)
    close(slope.pvalue, 0.0356552, 7)
    close(stats.chi2.isf(slope.pvalue, 1), 4.4135215, 7)
    both = found["Cox chi-square"]
    close(both.estimate, 7.0999613, 7)
    close(both.pvalue, 0.0287252, 7)
    close(both.estimate, cox_test(y, p).statistic, 9)
    for name, value in zip(
        ("ICI", "E50", "E90", "Emax"),
        (0.0621726350, 0.0708367814, 0.1164376450, 0.1199954518),
        strict=True,
    ):
        close(found[name].estimate, value)
    cox = validate(y, p, smoother="cox", **FAST)
    close(cox["ICI"].estimate, 0.0609349988, 8)
    assert cox.smoother == "cox"


def test_golden_standard_errors():
    y, p = golden_set()
    found = validate(y, p, ci="wald", **FAST)
    wide = 2 * stats.norm.ppf(0.975)
    for name, error in (
        ("calibration in the large", 0.1824231661),
        ("intercept", 0.1683059459),
        ("slope", 0.1123554820),
    ):
        close((found[name].high - found[name].low) / wide, error)
    half = validate(y[::2], p[::2], ci="wald", **FAST)
    close(half["O/E"].estimate, 1.1050010, 7)
    close(half["calibration in the large"].estimate, 0.3469853, 7)
    close(half["slope"].estimate, 0.7184167, 7)
    for name, error in (("calibration in the large", 0.2581078), ("slope", 0.1556271)):
        close((half[name].high - half[name].low) / wide, error, 7)


def test_numbers_of_others():
    y, p = golden_set()
    found = validate(y, p, **FAST)
    close(found["AUC"].estimate, roc_auc_score(y, p))
    close(found["log loss"].estimate, log_loss(y, p))
    brier = np.mean((y - p) ** 2)
    close(found["Brier"].estimate, brier)
    close(found["scaled Brier"].estimate, 1 - brier / (0.545 * 0.455))
    close(found["Brier"].pvalue, spiegelhalter_test(y, p).pvalue)
    close(found["Brier"].null_mean, np.mean(p * (1 - p)))
    expected = log_loss(
        np.repeat([1, 0], 200), np.tile(p, 2), sample_weight=np.r_[p, 1 - p]
    )
    close(found["log loss"].null_mean, expected)
    null = log_loss(y, np.full(200, 0.545))
    r2 = (1 - np.exp(2 * (found["log loss"].estimate - null))) / (1 - np.exp(-2 * null))
    close(found["Nagelkerke R2"].estimate, r2)


def test_values_if_calibrated_are_those_of_the_test():
    y, p = golden_set()
    found = validate(y, p, n_resamples=99, random_state=3)["ICI"]
    options = {"n_resamples": 99, "random_state": 3}
    test = calibration_test(y, p, statistic="integrated_calibration_index", **options)
    assert found.pvalue == test.pvalue
    assert found.null_mean == pytest.approx(test.null_distribution.mean())


def test_pooled_draws():
    """Rows of equal predictions are drawn by cells."""
    rng = np.random.default_rng(0)
    p = rng.integers(1, 200, 3000) / 200
    y = (rng.random(3000) < p**1.1).astype(int)
    found = validate(y, p, n_resamples=19)["ICI"]
    test = calibration_test(
        y, p, statistic="integrated_calibration_index", n_resamples=19
    )
    assert (
        found.estimate == pytest.approx(test.statistic) and found.pvalue == test.pvalue
    )


# -- R: benchmarks/validation/against_r.py wrote these numbers -------------------------------------

KEPT = json.loads(
    (Path(__file__).parents[1] / "data" / "validation_r.json").read_text(
        encoding="utf-8"
    )
)
# splines of MASS; the k-d tree of loess
TOLERANCE = {
    "confint": 2e-5,
    "interpolate": 4e-3,
}


@pytest.mark.parametrize("name", ["golden", "breast cancer"])
def test_numbers_of_r(name, monkeypatch):
    """rms, MASS, pROC, sandwich and loess, to 1e-7, but for their own approximations."""
    if not BENCHMARK.exists():
        pytest.skip("not a checkout")
    monkeypatch.syspath_prepend(str(BENCHMARK))
    ours = importlib.import_module("against_r").ours
    for module in ("against_r", "runner"):
        sys.modules.pop(module, None)
    kept = KEPT[name]
    y, p = (np.array(kept[c]) for c in "yp") if "y" in kept else golden_set()
    found, theirs = ours(y, p), kept["R"]
    assert found.keys() <= theirs.keys() and len(found) > 50
    for quantity, value in found.items():
        kind = next((kind for kind in TOLERANCE if kind in quantity), None)
        assert value == pytest.approx(
            theirs[quantity], abs=TOLERANCE.get(kind, 1e-7)
        ), quantity


# -- intervals ------------------------------------------------------------------------------------


def test_profile_ends_are_where_the_likelihood_has_fallen():
    y, p = golden_set(60)
    z = logit(p)

    def fallen(a, b):
        eta = a + b * z
        return 2 * np.logaddexp(0, np.where(y == 1, -eta, eta)).sum()

    least = minimize(lambda c: fallen(*c), [0, 1], tol=1e-12).fun
    found = validate(y, p, level=0.8, **FAST)
    for end in (found["slope"].low, found["slope"].high):
        held = minimize(lambda c, b=end: fallen(c[0], b), [0.0], tol=1e-12).fun
        assert held - least == pytest.approx(stats.chi2.ppf(0.8, 1), abs=1e-5)
    for end in (found["intercept"].low, found["intercept"].high):
        held = minimize(lambda c, a=end: fallen(a, c[0]), [1.0], tol=1e-12).fun
        assert held - least == pytest.approx(stats.chi2.ppf(0.8, 1), abs=1e-5)


def test_sandwich():
    """By hand: the weighted score equation and its sandwich."""
    y, p = golden_set()
    w = np.random.default_rng(0).uniform(0.2, 3, 200)
    found = validate(y, p, sample_weight=w, **FAST)
    assert found.ci == "sandwich"
    z, large = logit(p), found["calibration in the large"]
    mean = expit(z + large.estimate)
    assert w @ (y - mean) == pytest.approx(0, abs=1e-8)
    error = np.sqrt(w**2 @ (y - mean) ** 2) / (w @ (mean * (1 - mean)))
    assert large.high - large.estimate == pytest.approx(stats.norm.ppf(0.975) * error)
    assert large.pvalue == pytest.approx(2 * stats.norm.sf(abs(large.estimate) / error))
    assert found["AUC"].estimate == pytest.approx(roc_auc_score(y, p, sample_weight=w))
    assert found["O/E"].estimate == pytest.approx(w @ y / (w @ p))
    alone = validate(y, p, ci="sandwich", **FAST)
    nearly = validate(y, p, sample_weight=np.r_[np.ones(199), 1 + 2e-6], **FAST)
    assert alone["slope"].low == pytest.approx(nearly["slope"].low, abs=1e-6)
    assert alone["slope"].pvalue == pytest.approx(nearly["slope"].pvalue, abs=1e-6)


def test_equal_weights_are_none():
    y, p = golden_set(80)
    plain, flat = (
        validate(y, p, sample_weight=w, **FAST) for w in (None, np.full(80, 0.3))
    )
    assert str(plain) == str(flat) and flat.ci == "profile"


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_a_common_factor_of_the_weights_says_nothing(scale):
    y, p = golden_set()
    weight = 1.5 + np.arange(200) % 3
    options = {"smoother": "cox", "n_resamples": 2}
    found = validate(y, p, sample_weight=weight, **options).to_frame()
    scaled = validate(y, p, sample_weight=scale * weight, **options).to_frame()
    for name in ("estimate", "low", "high", "pvalue"):
        np.testing.assert_allclose(scaled[name], found[name], rtol=1e-6)


def simulated(n, draws, **options):
    """Shares of intervals above and below the truth; slope 0.8, intercept 0.3."""
    large = 0.3
    if "sample_weight" not in options:
        z = np.random.default_rng(99).normal(size=400_000)
        mean = expit(0.3 + 0.8 * z).mean()
        for _ in range(8):  # calibration in the large of the population
            q = expit(large + z)
            large += (mean - q.mean()) / (q * (1 - q)).mean()
    truth = {"calibration in the large": large, "intercept": 0.3, "slope": 0.8}
    missed = {name: np.zeros(2) for name in truth}
    for seed in range(draws):
        rng = np.random.default_rng([n, seed])
        z = rng.normal(size=n)
        y = (rng.random(n) < expit(0.3 + 0.8 * z)).astype(int)
        found = validate(y, expit(z), n_resamples=1, smoother="cox", **options)
        for name, value in truth.items():
            missed[name] += found[name].low > value, found[name].high < value
    return missed


@pytest.mark.slow
@pytest.mark.parametrize("ci", ["profile", "wald"])
def test_coverage(ci):
    """A small version of ``benchmarks/validation``, on both sides."""
    for name, missed in simulated(150, 50, level=0.8, ci=ci).items():
        assert 3 <= missed.sum() <= 19, (name, missed)  # 10 expected, sd 2.8


@pytest.mark.cross
@pytest.mark.parametrize("ci", ["profile", "sandwich"])
def test_coverage_two_sided(ci):
    for name, missed in simulated(300, 300, level=0.9, ci=ci).items():
        # 15 expected, sd 3.8
        assert (missed >= 4).all() and (missed <= 27).all(), (
            name,
            missed,
        )


# -- what does not exist --------------------------------------------------------------------------


def missing(found):
    return [name for name in ROWS if np.isnan(found[name].estimate)]


def test_one_outcome():
    with pytest.warns(
        CalibrationWarning, match=r"expected both outcomes, got the same in all rows"
    ):
        found = validate([0] * 9, np.linspace(0.1, 0.5, 9), labels=[0, 1], **FAST)
    assert missing(found) == [*ROWS[1:5], "scaled Brier", "AUC", "Nagelkerke R2"]
    assert found["O/E"].estimate == found["O/E"].low == 0 < found["O/E"].high
    assert 0 < found["O/E"].pvalue < 1 and found["Brier"].estimate > 0


def test_equal_predictions():
    with pytest.warns(CalibrationWarning, match="at least two different predictions"):
        found = validate([0, 1, 1, 1], np.full(4, 0.5), **FAST)
    assert missing(found) == ["intercept", "slope", "Cox chi-square"]
    close(found["calibration in the large"].estimate, logit(0.75))
    assert found["AUC"].estimate == 0.5


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("ci", ["profile", "wald", "sandwich"])
def test_separated_outcomes(rising, ci):
    p = np.linspace(0.05, 0.95, 20)
    y = (p > 0.4) == rising
    with pytest.warns(
        CalibrationWarning, match=r"a threshold that separates them \(class 1\)"
    ):
        found = validate(y.astype(int), p, ci=ci, **FAST)
    assert missing(found) == ["intercept", "Cox chi-square"][: 1 + (ci == "sandwich")]
    slope = found["slope"]
    assert slope.estimate == (np.inf if rising else -np.inf)
    assert np.isfinite(found["calibration in the large"].high)
    assert np.isnan(slope.pvalue) if ci == "sandwich" else slope.pvalue < 0.05
    if ci != "profile":
        assert np.isnan([slope.low, slope.high]).all()
        return
    end, other = (slope.low, slope.high) if rising else (slope.high, slope.low)
    assert other == slope.estimate and np.isfinite(end)
    z = logit(p)
    held = minimize(
        lambda c: np.logaddexp(0, np.where(y, -1, 1) * (c[0] + end * z)).sum(), [0.0]
    )
    assert 2 * held.fun == pytest.approx(stats.chi2.ppf(0.95, 1), abs=1e-5)


def test_certain_and_right():
    y = np.arange(40) % 2
    with pytest.warns(CalibrationWarning, match="threshold that separates them"):
        found = validate(y, y.astype(float), n_resamples=2)
    # any shift fits as well
    assert np.isnan(found["calibration in the large"].estimate)
    assert found["slope"].estimate == np.inf
    assert found["O/E"].estimate == 1


def test_certain_and_wrong():
    y, p = golden_set(50)
    with pytest.warns(CalibrationWarning, match="1 of 51 rows have probability 0 or 1"):
        found = validate(np.r_[y, 1], np.r_[p, 0.0], **FAST)
    assert found["slope"].pvalue < 1e-10
    z = (y.sum() + 1 - p.sum()) / np.sqrt((p * (1 - p)).sum())
    assert found["O/E"].pvalue == pytest.approx(2 * stats.norm.sf(abs(z)))
    assert np.isfinite(found["slope"].low)
    right = validate(np.r_[y, 0], np.r_[p, 0.0], **FAST)
    assert right["O/E"].pvalue > 0.01


@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
def test_only_certain_predictions_of_which_one_is_wrong_have_no_chance():
    y = np.arange(40) % 2
    assert validate(y, np.r_[1.0, y[1:]], n_resamples=2)["O/E"].pvalue == 0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny(n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        found = validate([0, 1, 0][:n], [0.3, 0.4, 0.6][:n], labels=[0, 1], **FAST)
    assert found["O/E"].low <= found["O/E"].estimate <= found["O/E"].high
    assert str(found)


@run_every_case(
    ("options", "message"),
    [
        ({"level": 95}, "a level between 0 and 1, got 95. Pass for instance 0.95"),
        ({"ci": "bootstrap"}, "ci among profile, wald, sandwich, got 'bootstrap'"),
        ({"n_resamples": 0}, "a whole number n_resamples >= 1, got 0"),
        ({"n_resamples": 9.5}, "a whole number n_resamples >= 1, got 9.5"),
        ({"smoother": "lowess"}, "a smoother among loess, cox, .*, got 'lowess'"),
        ({"multiclass": "ovr"}, "multiclass among .*, got 'ovr'"),
    ],
)
def test_what_is_refused(options, message):
    with raises_invalid_input(ValueError, **parse_error_fields(message)):
        validate([0, 1, 0, 1], [0.2, 0.4, 0.5, 0.9], **options)


def test_nothing_expected():
    with raises_invalid_input(
        ValueError,
        expected=".*a prediction above 0",
        value=r"0 in all rows \(class 1\)",
    ):
        validate([0, 1, 0], np.zeros(3), **FAST)


# -- several classes, looks -----------------------------------------------------------------------


@pytest.mark.slow
def test_one_table_per_problem():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([2, 2, 2], 300)
    y = np.array(["a", "b", "c"])[
        (rng.random(300)[:, None] > proba.cumsum(axis=1)).sum(axis=1)
    ]
    found = validate(y, proba, multiclass="classwise", **FAST)
    assert [table.problem for table in found.tables] == [
        "class a",
        "class b",
        "class c",
    ]
    for c, table in enumerate(found.tables):
        alone = validate(y == "abc"[c], proba[:, c], **FAST).tables[0]
        assert [row.estimate for row in table.rows] == pytest.approx(
            [row.estimate for row in alone.rows], abs=1e-9
        )
    frame = found.to_frame()
    assert len(frame) == 3 * len(ROWS) and frame["problem"].nunique() == 3
    with raises_invalid_input(KeyError, expected="one table", value="3 tables"):
        found["slope"]
    with raises_invalid_input(KeyError, expected="one table", value="3 tables"):
        list(found)
    (confidence,) = validate(y, proba, **FAST).tables
    assert confidence.problem == "confidence"
    weighted = validate(
        y, proba, multiclass="top_label", sample_weight=rng.random(300), **FAST
    )
    assert sum(table.n_samples for table in weighted.tables) == 300


def test_pos_label():
    y, p = golden_set(80)
    one, other = (validate(y, q, pos_label=c, **FAST) for c, q in ((1, p), (0, 1 - p)))
    assert other["slope"].estimate == pytest.approx(one["slope"].estimate)
    assert other["intercept"].estimate == pytest.approx(-one["intercept"].estimate)
    assert other["AUC"].estimate == pytest.approx(one["AUC"].estimate)
    indices = calibration_indices(y, 1 - p, pos_label=0)
    assert other["Emax"].estimate == pytest.approx(indices.emax)


def test_text_and_frame():
    found = validate(*golden_set(), **FAST)
    lines = str(found).splitlines()
    assert lines[0] == "class 1: 200 rows, event rate 0.545"
    assert "95 % interval" in lines[1]
    assert [line.split("  ")[0] for line in lines[2 : 2 + len(ROWS)]] == ROWS
    assert lines[5].split() == [
        "slope",
        "0.7497",
        "0.5400",
        "to",
        "0.9823",
        "1.0000",
        "0.036",
    ]
    frame = found.to_frame()
    assert frame["quantity"].tolist() == ROWS
    assert frame.loc[3, "low"] == found["slope"].low
    assert (
        [*found] == [*found.tables[0]] == ROWS
        and "slope" in found
        and "Slope" not in found
    )
    with raises_invalid_input(KeyError, value="'Slope'"):
        found["Slope"]
    with pytest.raises(FrozenInstanceError):
        found.level = 0.9


def test_html_is_escaped():
    y, p = golden_set(60)
    names = np.array(["no", "<script>alert(1)</script>"])
    found = validate(names[y], p, labels=names, **FAST)
    page = found._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert page.count("<tr>") == 1 + len(ROWS)


def test_the_interval_of_the_ratio_counts_rows_by_kish():
    """Clopper and Pearson's, of (sum w)^2 / sum w^2 rows."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 300)
    y, weight = (
        (rng.random(300) < p).astype(int),
        np.where(np.arange(300) % 3, 1.0, 5.0),
    )
    n, share = weight.sum() ** 2 / (weight @ weight), weight @ y / weight.sum()
    low = stats.beta.ppf(0.025, n * share, n * (1 - share) + 1)
    high = stats.beta.ppf(0.975, n * share + 1, n * (1 - share))
    scale = weight.sum() / (weight @ p)
    found = validate(y, p, sample_weight=weight, n_resamples=1)["O/E"]
    assert (found.low, found.high) == pytest.approx((low * scale, high * scale))
