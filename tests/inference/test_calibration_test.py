import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy import stats
from scipy.special import expit

from sklearn_calib._kernels._classical_tests import (
    compute_maximum_survival,
    compute_range_survival,
)
from sklearn_calib.datasets import make_overconfident, make_uniform_shift
from sklearn_calib.inference import (
    CalibrationTester,
    calibration_test,
    confidence_interval,
    cox_test,
    cumulative_test,
    hosmer_lemeshow_test,
    spiegelhalter_test,
)
from sklearn_calib.metrics import (
    brier_loss,
    expected_calibration_error,
    log_loss,
    measure,
    smooth_calibration_error,
)


def draw(seed, n=400, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 1.2, n)
    return (rng.random(n) < p**power).astype(int), p


TESTS = {
    "monte carlo": lambda y, p: calibration_test(
        y, p, n_resamples=19 if len(y) < 1000 else 99, random_state=len(y)
    ),
    "spiegelhalter": spiegelhalter_test,
    "hosmer_lemeshow": hosmer_lemeshow_test,
    "cox": cox_test,
    "kuiper": cumulative_test,
    "kolmogorov_smirnov": lambda y, p: cumulative_test(
        y, p, statistic="kolmogorov_smirnov"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow) if n == "monte carlo" else n
        for n in TESTS
    ],
)
def test_level_and_power(name):
    """A small version of the benchmark: 200 calibrated data sets, one miscalibrated."""
    test = TESTS[name]
    pvalues = np.array([test(*draw(seed)).pvalue for seed in range(200)])
    for level in (0.05, 0.2):
        spread = np.sqrt(level * (1 - level) / 200)
        assert (pvalues <= level).mean() <= level + 3.3 * spread
    assert (pvalues <= 0.5).mean() > 0.35  # not overly cautious
    assert test(*draw(0, 2000, 1.5)).pvalue <= 0.01


def test_pvalue_is_the_rank_among_replicates():
    y, p = draw(0, power=1.2)
    result = calibration_test(y, p, n_resamples=200, random_state=3)
    assert result.statistic == pytest.approx(smooth_calibration_error(y, p), abs=1e-15)
    above = (result.null_distribution >= result.statistic).sum()
    assert result.pvalue == (1 + above) / 201
    again = calibration_test(y, p, n_resamples=200, random_state=3, n_jobs=2)
    np.testing.assert_array_equal(again.null_distribution, result.null_distribution)


def test_any_statistic():
    y, p = draw(1, power=1.3)
    names = np.array(["no", "yes"])
    by_name = calibration_test(
        y,
        p,
        statistic="expected_calibration_error",
        n_bins=7,
        n_resamples=50,
        random_state=0,
    )

    def statistic(y_true, y_proba):
        assert set(y_true) <= {"no", "yes"}
        return expected_calibration_error(y_true, y_proba, labels=names, n_bins=7)

    how = {"statistic": statistic, "n_resamples": 50, "random_state": 0}
    by_hand = calibration_test(names[y], p, pos_label="yes", **how)
    np.testing.assert_allclose(by_name.null_distribution, by_hand.null_distribution)
    assert by_hand.name == "statistic"


@pytest.mark.parametrize("multiclass", ["confidence", "classwise"])
def test_several_classes(multiclass):
    proba, y = make_overconfident(4, 600)
    options = {"n_resamples": 60, "random_state": 0, "multiclass": multiclass}
    assert calibration_test(y, proba, **options).pvalue == pytest.approx(1 / 61)
    rng = np.random.default_rng(0)
    drawn = (rng.random((600, 1)) > np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)
    assert calibration_test(drawn, proba, **options).pvalue > 0.05


def test_progress_is_told():
    told = []
    y, p = draw(0)
    calibration_test(
        y, p, n_resamples=80, progress=lambda done, total: told.append((done, total))
    )
    assert told[-1] == (80, 80)
    assert len(told) > 1


@pytest.mark.slow
def test_null_laws():
    rng = np.random.default_rng(0)
    path = np.cumsum(rng.normal(size=(4000, 3000)), axis=1) / np.sqrt(3000)
    spread = np.maximum(path.max(axis=1), 0) - np.minimum(path.min(axis=1), 0)
    for x in (0.9, 1.5, 2.0, 3.0):
        assert compute_range_survival(x) == pytest.approx((spread > x).mean(), abs=0.03)
        largest = np.abs(path).max(axis=1)
        assert compute_maximum_survival(x) == pytest.approx(
            (largest > x).mean(), abs=0.03
        )
    # known quantiles (Arrieta-Ibarra et al. 2022): 5 % critical values
    assert compute_range_survival(2.4977) == pytest.approx(0.05, abs=2e-4)
    assert compute_maximum_survival(2.2414) == pytest.approx(0.05, abs=2e-4)
    assert compute_maximum_survival(1.9999) == pytest.approx(
        compute_maximum_survival(2.0001), abs=1e-4
    )
    assert compute_range_survival(0.1) == compute_maximum_survival(0.1) == 1
    # where the tail's series is not
    assert compute_maximum_survival(0.2) == pytest.approx(1, abs=1e-9)
    almost = 1 - 4 / np.pi * np.exp(-(np.pi**2) / 2)
    assert compute_maximum_survival(0.5) == pytest.approx(almost, abs=1e-9)


def test_hosmer_lemeshow_by_hand():
    y, p = draw(0, 500)
    order = np.argsort(p)
    total = 0.0
    for part in np.array_split(order, 10):
        mean = p[part].mean()
        total += (y[part].sum() - p[part].sum()) ** 2 / (len(part) * mean * (1 - mean))
    found = hosmer_lemeshow_test(y, p)
    assert found.statistic == pytest.approx(total, rel=1e-12)
    parts = [p[part] for part in np.array_split(order, 10)]
    expected = np.array([min(part.sum(), (1 - part).sum()) for part in parts])
    scale = 1.0
    if expected.min() < 5:
        share = np.array([part.mean() * (1 - part.mean()) for part in parts])
        scale += np.mean((1 - 6 * share) / (2 * 50 * share))
    assert found.pvalue == pytest.approx(stats.chi2.sf(total / scale, 10 / scale))
    # 15 expected events in a bin: the chi-square law
    even = np.tile([0.3, 0.4, 0.5, 0.6], 50)
    plain = hosmer_lemeshow_test(np.arange(200) % 2, even, n_bins=4)
    assert plain.pvalue == stats.chi2.sf(plain.statistic, 4)
    training = hosmer_lemeshow_test(y, p, held_out=False)
    assert training.pvalue == pytest.approx(stats.chi2.sf(total, 8))


def test_certain_predictions():
    p = np.array([0.0, 0.0, 1.0, 1.0])
    for test in (spiegelhalter_test, hosmer_lemeshow_test, cumulative_test):
        assert test([0, 0, 1, 1], p).pvalue == 1
        assert test([0, 1, 1, 1], p).pvalue == 0
    assert cox_test([0, 0, 1, 1], p).pvalue == pytest.approx(1, abs=1e-6)


def test_weights_of_the_cumulative_and_spiegelhalter_tests():
    y, p = draw(0, 300, 1.3)
    for test in (spiegelhalter_test, cumulative_test):
        plain = test(y, p)
        scaled = test(y, p, sample_weight=np.full(300, 3.0))
        assert scaled.pvalue == pytest.approx(plain.pvalue)


@pytest.mark.parametrize("method", ["smooth", "distance"])
def test_testers(method):
    n = CalibrationTester(0.3, delta=0.05, method=method).sample_size()
    good = make_uniform_shift(n, 0.0, random_state=0)
    bad = make_uniform_shift(n, 0.3, random_state=0)
    for n_parts in (1, 3):
        tester = CalibrationTester(
            0.3, method=method, delta=0.05, n_parts=n_parts, random_state=0
        )
        verdict = tester.test(good.y, good.proba)
        assert verdict.calibrated
        assert verdict.required == verdict.n_samples == n
        assert len(verdict.statistics) == n_parts
        assert not tester.test(bad.y, bad.proba).calibrated
    tolerant = CalibrationTester(0.3, tolerance=0.06, method=method)
    slightly = make_uniform_shift(20_000, 0.05, random_state=0)
    assert tolerant.test(slightly.y, slightly.proba).calibrated


def test_required_rows():
    for delta in (1 / 3, 0.05):
        root = 2 + np.sqrt(2 * np.log(1 / delta))
        near = CalibrationTester(0.1, tolerance=0.02, delta=delta)
        assert near.sample_size() == np.ceil((root / 0.005) ** 2)
        far = CalibrationTester(0.1, tolerance=0.02, delta=delta, method="distance")
        assert far.sample_size() == np.ceil((root / 0.04) ** 2)
    assert CalibrationTester(0.1).sample_size() > CalibrationTester(0.2).sample_size()
    with raises_invalid_input(
        ValueError,
        expected="0 <= 4 tolerance [+] 1e-9 < epsilon <= 1",
        value=r"tolerance=0\.05",
    ):
        CalibrationTester(0.1, tolerance=0.05).sample_size()
    with raises_invalid_input(ValueError, expected="0 < delta < 1"):
        CalibrationTester(0.1, delta=0).sample_size()
    with raises_invalid_input(ValueError, expected="an odd n_parts"):
        CalibrationTester(0.1, n_parts=2).test([0, 1], [0.2, 0.4])
    with raises_invalid_input(ValueError, expected="method among smooth, distance"):
        CalibrationTester(0.1, method="slow").test([0, 1], [0.2, 0.4])
    with raises_invalid_input(ValueError, expected="at least 5 rows", value="2"):
        CalibrationTester(0.1, n_parts=5).test([0, 1], [0.2, 0.4])


@pytest.mark.slow
def test_intervals_of_a_calibration_error_cover():
    """Near 0 too, where the bootstrap's interval lies above the truth."""
    options = {"n_resamples": 99, "random_state": 0}
    inside = {"zero": 0, "shift": 0}
    boot = 0
    for seed in range(20):
        for name, eps in (("zero", 0.0), ("shift", 0.08)):
            data = make_uniform_shift(400, eps, random_state=seed)
            found = confidence_interval(
                data.y, data.proba, "smooth_calibration_error", level=0.9, **options
            )
            assert found.method == "inversion"
            inside[name] += found.low <= eps <= found.high
            if eps == 0:
                other = confidence_interval(
                    data.y,
                    data.proba,
                    "smooth_calibration_error",
                    level=0.9,
                    method="bootstrap",
                    **options,
                )
                boot += other.low <= 0
    assert inside["zero"] >= 15
    assert inside["shift"] >= 14
    assert boot == 0


@pytest.mark.cross  # as the benchmark
@pytest.mark.parametrize(
    "measure", ["smooth_calibration_error", "expected_calibration_error"]
)
def test_intervals_hold_a_moderate_error(measure):
    """A small version of ``benchmarks/interval_coverage``, where the estimate is often far below.

    The true error is 2.7 standard errors of its estimate.
    """
    inside = 0
    for seed in range(80):
        data = make_uniform_shift(500, 0.05, random_state=seed)
        options = {"n_resamples": 99, "random_state": seed}
        found = confidence_interval(data.y, data.proba, measure, **options)
        inside += found.low <= 0.05 <= found.high
    assert 73 <= inside <= 79


@pytest.mark.slow
def test_intervals_of_a_proper_loss():
    y, p = draw(0, 1000)
    rows = -np.log(np.where(y, p, 1 - p))
    for level, z in ((0.95, 1.96), (0.8, 1.2816)):
        found = confidence_interval(y, p, "log_loss", level=level, n_resamples=2000)
        assert found.method == "bootstrap"
        half = z * rows.std() / np.sqrt(1000)
        assert found.low == pytest.approx(log_loss(y, p) - half, abs=0.1 * half)
        assert found.high == pytest.approx(log_loss(y, p) + half, abs=0.1 * half)


@pytest.mark.slow
def test_both_ends_of_an_inverted_interval():
    """With one bin the error is the mean residual, whose normal interval is known."""
    data = make_uniform_shift(400, 0.2, random_state=0)
    true = data.proba + 0.2 if np.ndim(data.proba) == 1 else data.proba[:, 1] + 0.2
    half = 1.645 * np.sqrt((true * (1 - true)).sum()) / 400
    found = confidence_interval(
        data.y,
        data.proba,
        "expected_calibration_error",
        n_bins=1,
        level=0.9,
        n_resamples=999,
    )
    assert found.method == "inversion"
    assert found.low == pytest.approx(found.estimate - half, abs=0.12 * half)
    assert found.high == pytest.approx(found.estimate + half, abs=0.12 * half)


def test_a_measure_that_is_greater_for_better_predictions():
    @measure(greater_is_better=True, range=(0, 1), perfect=1.0)
    def skill(predictions):
        """One less the Brier loss."""
        return 1 - brier_loss.evaluate(predictions)

    y, p = draw(0, 200, 1.5)
    turned, plain = (calibration_test(y, p, statistic=s) for s in (skill, brier_loss))
    assert turned.statistic == pytest.approx(plain.statistic - 1)
    np.testing.assert_allclose(turned.null_distribution, plain.null_distribution - 1)
    assert turned.pvalue == plain.pvalue
    assert len(plain.null_distribution) == 999


def test_replicates_equal_to_the_statistic_count():
    y, p = draw(0, 50)
    same = calibration_test(y, p, statistic=lambda y_true, y_proba: 0.3, n_resamples=19)
    assert same.pvalue == 1


@run_every_case(
    "call, message",
    [
        (
            lambda y, p: calibration_test(y, p, statistic="smoth"),
            "a statistic among smooth, .*'sm",
        ),
        (lambda y, p: calibration_test(y, p, n_resamples=0), "n_resamples >= 1, got 0"),
        (lambda y, p: cumulative_test(y, p, statistic="x"), "statistic among kuiper"),
        (
            lambda y, p: hosmer_lemeshow_test(y, p, n_bins=2, held_out=False),
            "n_bins >= 3",
        ),
        (lambda y, p: confidence_interval(y, p, "ece"), "expected a measure among"),
        (
            lambda y, p: confidence_interval(y, p, "log_loss", level=95),
            "between 0 and 1, got 95",
        ),
        (
            lambda y, p: confidence_interval(y, p, "log_loss", method="bca"),
            "method among auto",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(*draw(0, 20))


@pytest.mark.parametrize(("shift", "n"), [(-5, 300), (-4.6, 300)])
def test_hosmer_lemeshow_keeps_its_level_where_events_are_rare(shift, n):
    rng = np.random.default_rng(n)
    p = expit(shift + rng.normal(size=n))
    labels = rng.random((150, n)) < p
    found = [hosmer_lemeshow_test(y, p, labels=[False, True]).pvalue for y in labels]
    rejected = np.mean(np.array(found) <= 0.05)
    # the chi-square law rejects 0.065 to 0.14
    assert rejected <= 0.05 + 2 * 0.018, rejected
