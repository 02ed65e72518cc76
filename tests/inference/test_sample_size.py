"""Sizes of validations: formulas, another package, and that the stated errors are found."""

import json

import numpy as np
import pytest
from cases import run_every_case
from scipy.special import expit, logit, ndtr, ndtri
from scipy.stats import norm

from sklearn_calib._kernels._detectable_error import DetectableErrors
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.inference import validation_sample_size
from sklearn_calib.report import calibration_report

Z = norm.ppf(0.975)
PACKAGE = 2 * norm.cdf(1.96) - 1  # pmvalsampsize takes 1.96 for the quantile


def rows(size):
    return {one.target: one.n_samples for one in size.targets}


def test_formulas():
    """Riley et al. (2021): golden values of standard errors 0.051, 0.102 and 0.0255."""
    widths = {"oe_width": 2 * np.sinh(Z * 0.051), "c_width": 2 * Z * 0.0255}
    found = validation_sample_size(
        c_statistic=0.8, prevalence=0.1, slope_width=None, **widths
    )
    assert rows(found) == {"O/E": 3461, "C statistic": 837}
    assert (
        found.n_samples == 3461
        and found.n_events == 347
        and found.largest.target == "O/E"
    )
    given = {"oe_width": None, "c_width": None, "slope_width": 2 * Z * 0.102}
    (slope,) = validation_sample_size(linear_predictor=(-2.5, 1.2), **given).targets
    assert slope.n_samples == 1041 and slope.standard_error == pytest.approx(0.102)


@pytest.mark.slow
def test_law_of_c_statistic_and_prevalence():
    """The law has both, whichever they are; a sample of it gives the same sizes."""
    for c, phi in ((0.8, 0.1), (0.6, 0.5), (0.95, 0.01)):
        found = validation_sample_size(c_statistic=c, prevalence=phi, threshold=phi)
        rng = np.random.default_rng(0)
        variance = 2 * norm.ppf(c) ** 2
        event = rng.random(200_000) < phi
        z = np.log(phi / (1 - phi)) + (event - 0.5) * variance
        z += np.sqrt(variance) * rng.normal(size=len(z))
        drawn = validation_sample_size(expit(z), threshold=phi)
        assert drawn.c_statistic == pytest.approx(c, abs=0.005)
        assert drawn.prevalence == pytest.approx(phi, rel=0.05)
        for one, other in zip(found.targets, drawn.targets, strict=True):
            assert one.n_samples == pytest.approx(other.n_samples, rel=0.1), one.target


@pytest.mark.slow
def test_pmvalsampsize():
    """Version 0.2.1 of the Python package, type="b", its printed numbers.

    It draws a million log-odds with the seed 123456, takes steps of 1e-4 for standard
    errors, rounds those of net benefit and sensitivity to three digits, and takes 1.96
    for the quantile.
    """
    for law, given, expected in (
        ((-2.5, 1.2), (0.1, 0.8, 0.0510, 0.2, 0.1, None), (3461, 4154, 836)),
        ((-1.0, 0.8), (0.3, 0.75, 0.0763, 0.3, 0.05, 0.2), (401, 1815, 1726, 442)),
    ):
        phi, c, oe, slope, width, threshold = given
        p = expit(
            norm.rvs(*law, size=1_000_000, random_state=np.random.RandomState(123456))
        )
        shared = {
            "prevalence": phi,
            "c_statistic": c,
            "level": PACKAGE,
            "threshold": threshold,
        }
        shared |= {
            "oe_width": 2 * np.sinh(1.96 * oe),
            "slope_width": slope,
            "c_width": width,
        }
        found = validation_sample_size(p, net_benefit_width=2 * 1.96 * 0.051, **shared)
        sizes = [one.n_samples for one in found.targets]
        assert sizes[:3] == list(expected[:3])
        if threshold is not None:
            assert sizes[3] == pytest.approx(expected[3], rel=0.01)
        exact = validation_sample_size(linear_predictor=law, **shared)
        assert rows(exact)["calibration slope"] == pytest.approx(expected[1], rel=0.005)


def test_every_option_counts():
    p = np.random.default_rng(0).beta(1, 4, 500)
    plain = rows(validation_sample_size(p))
    assert set(plain) == {"O/E", "calibration slope", "C statistic"}
    for name, target in (
        ("oe_width", "O/E"), ("slope_width", "calibration slope"), ("c_width", "C statistic"),
    ):  # fmt: skip
        short, none = (
            validation_sample_size(p, **{name: width}) for width in (0.05, None)
        )
        assert rows(short)[target] > plain[target] and target not in rows(none)
    assert all(
        rows(validation_sample_size(p, level=0.99))[t] > n for t, n in plain.items()
    )
    assert rows(validation_sample_size(p, prevalence=0.01))["O/E"] > plain["O/E"]
    assert (
        rows(validation_sample_size(p, c_statistic=0.9))["C statistic"]
        < plain["C statistic"]
    )
    wide, narrow = (
        rows(validation_sample_size(p, threshold=0.3, net_benefit_width=width))
        for width in (0.2, 0.1)
    )
    assert 3.9 < narrow["net benefit at 0.3"] / wide["net benefit at 0.3"] < 4.1
    twice = validation_sample_size(np.repeat(p, 1 + (p > 0.2)), error=0.02)
    weighted = validation_sample_size(p, error=0.02, sample_weight=1.0 + (p > 0.2))
    assert rows(weighted) == rows(twice) != rows(validation_sample_size(p, error=0.02))
    assert validation_sample_size(
        np.column_stack([1 - p, p])
    ) == validation_sample_size(p)


def test_net_benefit_by_simulation():
    """The variance of net benefit over prevalence, in samples of the law."""
    rng = np.random.default_rng(0)
    p = rng.beta(2, 5, 100_000)
    found = validation_sample_size(p, threshold=0.3, net_benefit_width=0.3)
    one = found.targets[-1]
    drawn = rng.choice(p, (2000, one.n_samples))
    y, acts = rng.random(drawn.shape) < drawn, drawn >= 0.3
    value = (y & acts).sum(axis=1) / y.sum(axis=1)
    value -= (acts & ~y).sum(axis=1) / y.sum(axis=1) * 0.3 / 0.7
    assert value.mean() == pytest.approx(one.anticipated, abs=0.01)
    assert value.std() == pytest.approx(one.standard_error, rel=0.08)


@pytest.mark.slow
def test_rows_and_errors_are_inverse():
    """With the rows of an error the smallest error seen is that error, as the verdict counts."""
    score = np.linspace(0.02, 0.6, 100)
    share, z = np.full(100, 1 / 100), np.log(score / (1 - score))
    errors = DetectableErrors(score, share, z)
    for size in (0.01, 0.02, 0.05):
        n = errors.count_rows_to_detect(size)
        critical = errors._draw_scaled_critical_value() / np.sqrt(n)
        assert errors.find_min_error_or_none_and_is_blind(share / n, critical)[
            0
        ] == pytest.approx(size, rel=0.02)
    assert (
        errors.count_rows_to_detect(0.01)
        > 3 * errors.count_rows_to_detect(0.02)
        > 9 * errors.count_rows_to_detect(0.05)
    )
    assert errors.count_rows_to_detect(0.9) is None


def test_the_verdict_says_the_same():
    """What a report of n rows finds takes n rows, from its scores alone."""
    proba, y = make_overconfident(2, 500)
    seen = calibration_report(
        y, proba, n_resamples=2
    ).verdict.evidence.minimum_detectable
    (one,) = validation_sample_size(
        proba, error=seen, oe_width=None, slope_width=None, c_width=None
    ).targets
    assert one.n_samples == pytest.approx(500, rel=0.15)


def test_results_are_exported():
    size = validation_sample_size(c_statistic=0.8, prevalence=0.1, error=[0.02, 0.05])
    content = json.loads(json.dumps(size.to_dict(), allow_nan=False))
    assert content["n_samples"] == size.n_samples == max(rows(size).values())
    assert content["targets"][-1]["target"] == "error of 0.05"
    assert len(size.to_frame()) == len(size.targets) == 5
    assert f"{size.n_samples}, some {size.n_events} of" in str(size)
    assert "error of 0.02" in str(size) and "<table" in size._repr_html_()


P = np.linspace(0.1, 0.9, 99)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "expected y_proba, or linear_predictor, or c_statistic with prevalence, got none"),
        ({"c_statistic": 0.8}, "got none"),
        ({"y_proba": P, "linear_predictor": (0, 1)}, "got both of the first"),
        ({"y_proba": P[:49]}, "expected at least 50 rows of y_proba, got 49"),
        ({"y_proba": np.full(99, 0.3)}, "expected predictions that differ"),
        ({"y_proba": np.arange(100) % 2}, "expected predictions that differ"),
        ({"y_proba": np.full((99, 3), 1 / 3)}, "expected probabilities of two classes, got 3"),
        ({"y_proba": P, "error": 2}, "expected an error strictly between 0 and 0.5, got 2"),
        ({"y_proba": P, "error": [0.1, "x"]}, "strictly between 0 and 0.5, got 'x'"),
        ({"y_proba": P, "error": 1e-8}, "expected an error that some 1e12 rows of such"),
        ({"y_proba": P, "oe_width": 0}, "expected oe_width between 1e-6 and 1e6, got 0"),
        ({"y_proba": P, "net_benefit_width": -1}, "net_benefit_width between 1e-6 and 1e6, got -1"),
        ({"y_proba": P, "threshold": 1}, "expected threshold strictly between 1e-09 and 1, got 1"),
        ({"y_proba": P, "prevalence": 10}, "prevalence strictly between 1e-09 and 1, got 10"),
        ({"y_proba": P, "c_statistic": 0.5}, "c_statistic strictly between 0.5 and 1, got 0.5"),
        ({"linear_predictor": (0, 0)}, "expected linear_predictor as"),
        ({"linear_predictor": 3}, "expected linear_predictor as"),
        ({"linear_predictor": (0, 1), "sample_weight": [1]}, "sample_weight needs y_proba"),
        ({"y_proba": P, "level": 95}, "level"),
        (
            {"y_proba": P, "oe_width": None, "slope_width": None, "c_width": None},
            "expected at least one target, got none",
        ),
    ],
)  # fmt: skip
def test_bad_input(given, said):
    with pytest.raises(ValueError, match=r"^") as error:
        validation_sample_size(**given)
    assert said in str(error.value)


def test_a_prevalence_beside_a_sample_counts_in_the_net_benefit():
    """Shares of events and of others that are acted on stay; how many there are is what is said."""
    p, t, phi = np.random.default_rng(0).beta(2, 5, 400), 0.3, 0.05
    one = validation_sample_size(
        p, prevalence=phi, threshold=t, net_benefit_width=0.4
    ).targets[-1]
    hits, alarms = p[p >= t].sum() / p.sum(), (1 - p)[p >= t].sum() / (1 - p).sum()
    odds = (1 - phi) / phi * t / (1 - t)
    assert one.anticipated == pytest.approx(hits - odds * alarms)
    counts = hits * (1 - hits) / phi + odds**2 * alarms * (1 - alarms) / (1 - phi)
    rows = (counts + (odds * alarms) ** 2 / (phi * (1 - phi))) / (0.4 / (2 * Z)) ** 2
    assert one.n_samples == int(np.ceil(rows))


@run_every_case("seed", range(40))
def test_the_rows_for_a_net_benefit_are_those_of_the_normal_laws_to_the_last_one(seed):
    """Sensitivity and specificity of two normal laws of log-odds, by their distribution."""
    rng = np.random.default_rng(seed)
    c, phi, t = rng.uniform(0.6, 0.95), rng.uniform(0.02, 0.5), rng.uniform(0.02, 0.6)
    width = rng.uniform(0.05, 0.4)
    deviation = np.sqrt(2) * ndtri(c)
    events, others = (logit(phi) + sign * deviation**2 / 2 for sign in (1, -1))
    hits, alarms = (ndtr((mean - logit(t)) / deviation) for mean in (events, others))
    odds = (1 - phi) / phi * t / (1 - t)
    variance = hits * (1 - hits) / phi + odds**2 * alarms * (1 - alarms) / (1 - phi)
    variance += (odds * alarms) ** 2 / (phi * (1 - phi))
    rows = np.ceil(variance * (2 * ndtri(0.975) / width) ** 2)
    given = {
        "c_statistic": c,
        "prevalence": phi,
        "threshold": t,
        "net_benefit_width": width,
    }
    found = validation_sample_size(
        **given, oe_width=None, slope_width=None, c_width=None
    )
    assert found.n_samples == max(rows, 1), given
