import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from laws import LAWS, kept_bits, sample
from scipy import stats

from sklearn_calib import inference, metrics
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import all_recalibrators, cross_fitted_proba
from sklearn_calib.summary import CalibrationSummary

CLASSICAL = {
    "spiegelhalter": inference.spiegelhalter_test,
    "hosmer_lemeshow": inference.hosmer_lemeshow_test,
    "cox": inference.cox_test,
    "kuiper": lambda y, p: inference.cumulative_test(y, p),
    "kolmogorov_smirnov": lambda y, p: inference.cumulative_test(
        y, p, statistic="kolmogorov_smirnov"
    ),
}


@pytest.mark.parametrize(
    "name", ["platt", "isotonic", "beta", "temperature", "histogram_binning"]
)
@pytest.mark.parametrize("law", ["uniform", "atoms", "saturated"])
def test_fits_are_those_of_the_rows_while_exact(name, law):
    p, y = sample(law, 1500)
    p = kept_bits(p)
    summary = CalibrationSummary().update(y, p)
    at = np.linspace(0.001, 0.999, 99)
    expected = all_recalibrators()[name]().fit(p, y).predict_proba(at)
    assert np.abs(summary.fit(name).predict_proba(at) - expected).max() < 1e-5


def test_fits_of_coarse_cells():
    p, y = sample("uniform", 100_000)
    summary = CalibrationSummary(4096).update(np.where(y, "yes", "no") == "yes", p)
    at = np.linspace(0.01, 0.99, 99)
    for name, error in (("platt", 1e-5), ("beta", 1e-5), ("isotonic", 0.02)):
        expected = all_recalibrators()[name]().fit(p, y).predict_proba(at)
        assert np.abs(summary.fit(name).predict_proba(at) - expected).max() < error


def test_classes_of_a_fit():
    p, y = sample("uniform", 500)
    words = np.where(y == 1, "yes", "no")
    for positive in ("no", "yes"):
        summary = CalibrationSummary(classes=["no", "yes"], pos_label=positive)
        own = p if positive == "yes" else 1 - p
        model = summary.update(words, own).fit("platt")
        expected = all_recalibrators()["platt"]().fit(p, words, classes=["no", "yes"])
        assert model.classes_.tolist() == ["no", "yes"]
        assert np.allclose(model.predict_proba(p), expected.predict_proba(p), atol=1e-6)


@pytest.mark.slow
def test_cross_validation_has_the_law_of_that_of_the_rows():
    p, y = sample("uniform", 2000)
    summary = CalibrationSummary(4096).update(y, p)
    names = ["identity", "platt", "isotonic"]
    cells = [summary.cross_validate(names, random_state=i) for i in range(12)]
    for name in names:
        rows = [
            metrics.log_loss(y, cross_fitted_proba(name, p, y, cv=5, random_state=i))
            for i in range(12)
        ]
        ours = [found[name]["log_loss"] for found in cells]
        spread = np.hypot(np.std(rows), np.std(ours)) / np.sqrt(12)
        assert abs(np.mean(ours) - np.mean(rows)) < 4 * spread + 1e-5
        if name == "platt":
            assert 0.3 < np.std(ours) / np.std(rows) < 3
    identity = cells[0]["identity"]
    assert identity["brier_loss"] == pytest.approx(metrics.brier_loss(y, p), abs=1e-5)
    assert identity.keys() == {"log_loss", "brier_loss", "expected_calibration_error"}


def test_cross_validation_of_weights_and_of_few_rows():
    p, y = sample("rates", 3000)
    w = np.random.default_rng(0).gamma(1.0, size=len(p))
    summary = CalibrationSummary().update(y, p, w)
    given = {"cv": 3, "measures": ["log_loss"]}
    # its only event is held out
    with pytest.warns(CalibrationWarning, match="got none of 1"):
        found = summary.cross_validate(["identity", "platt"], **given)
    assert found["identity"]["log_loss"] == pytest.approx(
        summary.measure("log_loss"), rel=1e-9
    )
    assert np.isfinite(found["platt"]["log_loss"])
    with pytest.warns(CalibrationWarning, match="got none of 1"):
        again = summary.cross_validate(["identity", "platt"], **given)
    assert again == found


@run_every_case("law", LAWS)
@run_every_case("name", CLASSICAL)
def test_classical_tests_of_the_rows_while_exact(law, name):
    p, y = sample(law, 2000)
    p = kept_bits(p)
    found = CalibrationSummary().update(y, p).test(name)
    expected = CLASSICAL[name](y, p)
    assert isinstance(found, inference.SignificanceResult)
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", CLASSICAL)
def test_classical_tests_of_coarse_cells(name):
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    y = rng.random(len(p)) < p
    found = CalibrationSummary(4096).update(y, p).test(name)
    assert np.allclose(found, CLASSICAL[name](y, p), rtol=0.05, atol=0.02)


def test_a_certain_prediction_that_is_wrong():
    summary = CalibrationSummary().update([0, 1, 0], [0.5, 0.0, 0.2])
    assert summary.test("spiegelhalter") == (np.inf, 0.0)


def pvalues(statistic, n_rows, max_cells, repeats, **options):
    """Of calibrated rows."""
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.6, 2.0, n_rows)
        y = rng.random(n_rows) < p
        summary = CalibrationSummary(max_cells).update(y, p)
        yield summary.test(statistic, random_state=seed, **options).pvalue


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["smooth", "expected_calibration_error"])
def test_the_law_of_the_p_values(statistic, small_cells):
    found = np.array([*pvalues(statistic, 2000, 100, 100, n_resamples=39)])
    spread = found - np.random.default_rng(0).random(len(found)) / 40
    assert stats.kstest(spread, "uniform").pvalue > 0.001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "max_cells"),
    [
        ("smooth", 100),
        pytest.param("smooth", 2000, marks=pytest.mark.cross),
        pytest.param("expected_calibration_error", 100, marks=pytest.mark.cross),
        pytest.param("brier_loss", 2000, marks=pytest.mark.cross),
    ],
)
def test_the_level_of_the_tests(statistic, max_cells, small_cells):
    """Two-sided: neither too many nor too few rejections of calibrated rows."""
    found = np.array([*pvalues(statistic, 5000, max_cells, 300, n_resamples=39)])
    for level in (0.05, 0.1, 0.5):  # multiples of 1/40, which are reached exactly
        expected = 300 * level
        off = (found <= level + 1e-12).sum() - expected
        assert abs(off) < 3.3 * np.sqrt(expected * (1 - level)), (level, off)


def test_power():
    p, y = sample("uniform", 5000)
    summary = CalibrationSummary().update(y, p)
    result = summary.test("smooth", n_resamples=99)
    assert isinstance(result, inference.MonteCarloResult) and result.pvalue == 0.01
    assert (
        result.name == "smooth_calibration_error"
        and len(result.null_distribution) == 99
    )
    assert result.statistic > result.null_distribution.max()
    assert summary.test("smooth", n_resamples=9).pvalue == 0.1


def test_tests_of_several_classes():
    proba, y = make_overconfident(4, 3000)
    summary = CalibrationSummary().update(y, proba)
    assert summary.test("smooth", n_resamples=49).pvalue == 0.02
    found, expected = (
        summary.test("spiegelhalter"),
        inference.spiegelhalter_test(y, proba),
    )
    assert np.allclose(found, expected, rtol=1e-6)
    classwise = CalibrationSummary(multiclass="classwise").update(y, proba)
    with raises_invalid_input(ValueError, expected="one two-class problem", value="4"):
        classwise.test("smooth")


@pytest.mark.parametrize("law", ["uniform", "atoms", "float32"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile", "isotonic"])
def test_reliability_curves_of_the_rows_while_exact(law, strategy):
    p, y = sample(law, 1500)
    p = kept_bits(p)
    (found,) = CalibrationSummary().update(y, p).reliability_curve(strategy=strategy)
    (expected,) = metrics.reliability_curve(y, p, strategy=strategy)
    for name in ("predicted", "observed", "weight", "histogram"):
        assert np.allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    assert (found.title, found.strategy, found.level) == ("class 1", strategy, 0.9)
    bands = ["consistency_low", "consistency_high"]
    if strategy != "isotonic":  # Clopper and Pearson's, of the numbers of rows
        for name in ("confidence_low", "confidence_high"):
            assert np.allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    else:
        bands += ["confidence_low", "confidence_high"]
    for name in bands:  # other draws of the same law
        apart = np.abs(getattr(found, name) - getattr(expected, name))
        width = np.abs(getattr(expected, bands[1]) - getattr(expected, bands[0])).mean()
        assert apart.mean() < 0.5 * width + 1e-3


def test_the_belt_of_the_rows():
    p, y = sample("uniform", 3000)
    p = kept_bits(p)
    options = {"strategy": "polynomial"}
    (found,) = CalibrationSummary().update(y, p).reliability_curve(**options)
    (expected,) = metrics.reliability_curve(y, p, **options)
    for name in (
        "predicted",
        "observed",
        "weight",
        "confidence_low",
        "confidence_high",
    ):
        assert np.allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    assert found.consistency_low is expected.consistency_low is None


def test_bins_of_equal_width_of_coarse_cells():
    p, y = sample("uniform", 100_000)
    summary = CalibrationSummary(4096).update(y, p)
    assert not summary.exact
    options = {"strategy": "uniform", "n_bins": 20, "n_resamples": 0}
    (found,), (expected,) = (
        summary.reliability_curve(**options),
        metrics.reliability_curve(y, p, **options),
    )
    for name in ("predicted", "observed", "weight", "confidence_low", "histogram"):
        assert np.allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    assert found.consistency_low is None


def test_curves_of_weights_and_of_several_classes():
    proba, y = make_overconfident(3, 2000)
    w = np.random.default_rng(0).gamma(1.0, size=len(y))
    summary = CalibrationSummary(multiclass="classwise").update(y, proba, w)
    options = {"strategy": "uniform", "n_bins": 10, "n_resamples": 0}
    found = summary.reliability_curve(**options)
    expected = metrics.reliability_curve(
        y, proba, sample_weight=w, multiclass="classwise", **options
    )
    assert [curve.title for curve in found] == ["class 0", "class 1", "class 2"]
    for ours, theirs in zip(found, expected, strict=True):
        for name in ("predicted", "observed", "confidence_low", "confidence_high"):
            assert np.allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9)


def test_curves_are_drawn():
    p, y = sample("uniform", 2000)
    curves = CalibrationSummary().update(y, p).reliability_curve(n_resamples=20)
    display = ReliabilityDisplay({"model": curves}).plot()
    assert len(display.axes_) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["auto", "classwise"])
def test_coarsen(kind):
    proba, y = make_overconfident(3, 20_000)
    fine = CalibrationSummary(65_536, multiclass=kind).update(y, proba)
    coarse = fine.coarsen(4096)
    assert coarse == CalibrationSummary(4096, multiclass=kind).update(y, proba)
    assert fine.max_cells == 65_536 and coarse.max_cells == 4096
    assert coarse + fine == fine + coarse


EXACT = CalibrationSummary().update([0, 1, 1, 0], [0.2, 0.4, 0.6, 0.9])
THREE = CalibrationSummary().update([0, 1, 2], np.full((3, 3), 1 / 3))


@run_every_case(
    ("call", "message"),
    [
        (lambda: EXACT.fit("plat"), "plat"),
        (lambda: EXACT.fit(3), "expected a recalibrator"),
        (
            lambda: CalibrationSummary().fit("platt"),
            "expected a summary of at least one row",
        ),
        (
            lambda: THREE.fit("platt"),
            "expected a summary of two classes, got a summary of 3 classes",
        ),
        (lambda: THREE.cross_validate(["platt"]), "expected a summary of two classes"),
        (
            lambda: EXACT.cross_validate(cv=1),
            "cv as a number of folds, at least 2, got 1",
        ),
        (lambda: EXACT.cross_validate(measures=["loss"]), "a measure among"),
        (
            lambda: CalibrationSummary().cross_validate(),
            "a summary of at least one row",
        ),
        (lambda: EXACT.test("smoth"), "a statistic among smooth, spiegelhalter"),
        (lambda: EXACT.test("smooth", n_resamples=0), "n_resamples >= 1, got 0"),
        (
            lambda: EXACT.test("smooth", bins=3),
            "expected options of smooth_calibration_error among multiclass, got 'bins'",
        ),
        (lambda: EXACT.test("cox", n_bins=3), "no options of 'cox', got 'n_bins'"),
        (lambda: EXACT.test("hosmer_lemeshow", n_bins=0), "n_bins >= 1, got 0"),
        (
            lambda: (EXACT + CalibrationSummary().update([0], [0.5], [0.5])).test(
                "cox"
            ),
            "rows without sample_weight for this test, got weighted ones",
        ),
        (lambda: CalibrationSummary().test("smooth"), "a summary of at least one row"),
        (lambda: EXACT.reliability_curve(strategy="equal"), "strategy among quantile"),
        (lambda: EXACT.reliability_curve(level=90), "a level between 0 and 1, got 90"),
        (
            lambda: CalibrationSummary().reliability_curve(),
            "a summary of at least one row",
        ),
        (lambda: EXACT.coarsen(100_000), "max_cells of at most 65536"),
        (lambda: EXACT.coarsen(100), "max_cells from 4096"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_measures_that_need_single_rows_are_refused():
    summary = CalibrationSummary().update([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4])
    # exact cells are the rows
    assert summary.measure("variational_calibration_error") >= 0
    y, p = np.arange(9000) % 2, np.random.default_rng(0).random(9000)
    coarse = CalibrationSummary(4096).update(y, p)
    asked = (
        lambda: coarse.measure("variational_calibration_error"),
        lambda: summary.test("variational_calibration_error", n_resamples=3),
        lambda: summary.cross_validate(
            ["identity"], measures=["variational_calibration_error"]
        ),
    )
    for ask in asked:
        with raises_invalid_input(
            ValueError, expected="a measure that cells are enough for"
        ):
            ask()
