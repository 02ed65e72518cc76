"""PriorShift: the formulas to the last digit, the estimates, and what it rejects."""

import warnings

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from golden_sets import golden_set
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_calib import canonical_proba
from sklearn_calib._kernels import _label_shift, _mixture_proportions
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.recalibrators import PriorShift, TemperatureScaling

P3 = ((0.7, 0.2, 0.1), (0.1, 0.3, 0.6))
P4 = [0.02, 0.2, 0.5, 0.9]


def source_and_target():
    """The golden set, and the rows of it that are positive or every fourth."""
    y, p = golden_set(200, 0, 1)
    return p, y, p[(y == 1) | (np.arange(200) % 4 == 0)]


def three_classes(n, prior, rng):
    """Labels of these frequencies, and calibrated probabilities for equal ones."""
    y = rng.choice(3, n, p=prior)
    x = 1.2 * np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    point = x[y] + rng.normal(size=(n, 2))
    return softmax(point @ x.T - (x**2).sum(axis=1) / 2, axis=1), y


@pytest.mark.parametrize(
    ("given", "training", "rows", "expected"),
    [
        (0.1, 0.3, P4, [0.005263157895, 0.060869565217, 0.205882352941, 0.7]),
        (
            [0.9, 0.1],
            {1: 0.3, 0: 0.7},
            P4,
            [0.005263157895, 0.060869565217, 0.205882352941, 0.7],
        ),
        (pd.Series({1: 0.1, 0: 0.9}), [0.7, 0.3], P4[2:], [0.205882352941, 0.7]),
    ],
)
def test_known_frequencies(given, training, rows, expected):
    shift = PriorShift(given, training).fit(P4, [0, 0, 1, 1])
    assert np.abs(shift.predict_proba(rows)[:, 1] - expected).max() < 1e-11


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_known_frequencies_of_three_classes():
    expected = [
        [0.392523364486, 0.186915887850, 0.420560747664],
        [0.019607843137, 0.098039215686, 0.882352941176],
    ]
    shift = PriorShift([0.2, 0.2, 0.6], [0.5, 0.3, 0.2]).fit(
        P3, [0, 1], classes=[0, 1, 2]
    )
    assert np.abs(shift.predict_proba(P3) - expected).max() < 1e-11
    by_label = PriorShift(
        {"c": 0.6, "a": 0.2, "b": 0.2}, {"a": 0.5, "b": 0.3, "c": 0.2}
    )
    by_label.fit(P3, ["a", "b"], classes=["a", "b", "c"])
    assert np.array_equal(by_label.predict_proba(P3), shift.predict_proba(P3))


def test_class_weights_and_undersampling():
    p, y = [0.1, 0.5, 0.9], [0] * 30 + [1] * 7
    beta = 0.05
    kept = PriorShift.from_class_weight({0: beta, 1: 1}, y).predict_proba(p)[:, 1]
    expected = [0.005524861878, 0.047619047619, 0.310344827586]
    assert np.abs(kept - expected).max() < 1e-11
    assert np.abs(kept - [beta * q / (beta * q - q + 1) for q in p]).max() < 1e-15
    weighted = PriorShift.from_class_weight({1: 9}, y)
    assert (
        np.abs(weighted.predict_proba(p)[:, 1] - [0.012195121951, 0.1, 0.5]).max()
        < 1e-11
    )
    balanced = PriorShift.from_class_weight("balanced", y)
    by_hand = PriorShift("undo_resampling", training_prior=[0.5, 0.5]).fit(
        [0.5] * 36 + [0.4], y
    )
    assert np.allclose(balanced.predict_proba(p), by_hand.predict_proba(p), atol=1e-15)
    again = clone(balanced).fit(P4, [0, 0, 1, 1])
    assert np.array_equal(again.predict_proba(p), balanced.predict_proba(p))


@pytest.mark.parametrize("counts", [(20, 20), (40, 41), (21, 20, 20)])
def test_equal_numbers_look_resampled(counts):
    y = np.repeat(np.arange(len(counts)), counts)
    with pytest.warns(
        CalibrationWarning, match="look resampled.*pass y as it was before"
    ):
        shift = PriorShift.from_class_weight("balanced", y)
    assert np.abs(shift.prior_ - shift.training_prior_).max() < 0.02
    # warnings are errors
    PriorShift.from_class_weight("balanced", np.repeat([0, 1], [20, 23]))
    PriorShift.from_class_weight({1: 9}, y)  # moves something


def test_maximum_likelihood():
    p, y, target = source_and_target()
    fitted = PriorShift("em", training_prior=0.5).fit(p, y)
    before = fitted.predict_proba(p)
    adapted = fitted.adapt(target)
    assert abs(adapted.prior_[1] - 0.795205733882) < 1e-11
    assert np.abs(adapted.prior_se_ - 0.063339790517).max() < 1e-11
    low, high = adapted.prior_interval_.T
    assert (low < adapted.prior_).all() and (adapted.prior_ < high).all()
    assert np.allclose(low, 1 - high[::-1], atol=1e-9)
    assert fitted.prior_.tolist() == [0.5, 0.5] and not hasattr(fitted, "prior_se_")
    assert np.array_equal(fitted.predict_proba(p), before) and np.allclose(
        before[:, 1], p
    )
    # the mean of the adapted probabilities is the estimate
    assert abs(adapted.predict_proba(target)[:, 1].mean() - adapted.prior_[1]) < 1e-12


def test_an_interval_ends_where_the_likelihood_says():
    p, y, target = source_and_target()
    adapted = PriorShift("em", training_prior=0.5).fit(p, y).adapt(target, level=0.9)

    def log_likelihood(b):
        return np.log(b * target / 0.5 + (1 - b) * (1 - target) / 0.5).sum()

    variance = adapted.prior_se_[1] ** 2
    scores = (2 * target - 2 * (1 - target)) / (
        adapted.prior_[1] * 2 * target + adapted.prior_[0] * 2 * (1 - target)
    )
    assert abs(variance * (scores**2).sum() - 1) < 1e-9
    falls = [
        2 * (log_likelihood(adapted.prior_[1]) - log_likelihood(end))
        for end in adapted.prior_interval_[1]
    ]
    assert np.allclose(falls, 2.705543454095, atol=1e-6)


@pytest.mark.parametrize(
    ("how", "ratios", "b"),
    [
        ("hard", (0.4025263158, 1.6095438597), 0.7967242105),
        ("soft", (0.4089625995, 1.6029775500), 0.7934738873),
    ],
)
def test_confusion_matrix(how, ratios, b):
    p, y, target = source_and_target()
    adapted = PriorShift("bbse", confusion=how).fit(p, y).adapt(target)
    assert np.abs(adapted.prior_ / adapted.training_prior_ - ratios).max() < 1e-10
    assert abs(adapted.prior_[1] - b) < 1e-10
    assert 0.07 < adapted.prior_se_[1] < 0.11
    low, high = adapted.prior_interval_[1]
    assert low < b < high


@pytest.mark.parametrize(
    ("level", "z"), [(0.95, 1.959963984540054), (0.8, 1.2815515655446004)]
)
def test_perfect_predictions_give_wilsons_interval(level, z):
    y = np.r_[np.zeros(500, int), np.ones(500, int)]
    target = np.r_[np.zeros(45), np.ones(5)]
    fitted = PriorShift("bbse", confusion="hard").fit(y.astype(float), y)
    adapted = fitted.adapt(target, level=level)
    z2 = z**2
    middle, half = (
        (0.1 + z2 / 100) / (1 + z2 / 50),
        np.sqrt(z2 * (0.09 + z2 / 200) / 50),
    )
    half /= 1 + z2 / 50
    assert np.allclose(
        adapted.prior_interval_[1], [middle - half, middle + half], atol=1e-12
    )


def test_penalised_weights_minimise_their_objective():
    rng = np.random.default_rng(0)
    p, y = three_classes(80, [0.4, 0.3, 0.3], rng)
    target, _ = three_classes(60, [0.8, 0.1, 0.1], rng)
    for penalty in (0.01, 0.5, 1.0, 100.0):
        fitted = PriorShift("rlls", penalty=penalty).fit(p, y)
        weights = fitted.adapt(target).prior_ / fitted.training_prior_
        joint = p.T @ np.eye(3)[y] / 80
        few = np.log(2 * 3 / 0.05) / 80
        rho = penalty * 3 * (2 * few / 3 + np.sqrt(2 * few))

        def objective(w, joint=joint, rho=rho):
            return np.linalg.norm(
                joint @ w - target.mean(axis=0)
            ) + rho * np.linalg.norm(w - 1)

        starts = [np.ones(3) + 1e-3 * rng.normal(size=3), weights]
        options = {"xatol": 1e-10, "fatol": 1e-14}
        found = [
            minimize(objective, s, method="Nelder-Mead", options=options)
            for s in starts
        ]
        best = min(found, key=lambda result: result.fun).x
        kept = np.maximum(best, 0) * fitted.training_prior_
        assert np.abs(weights - kept / kept.sum() / fitted.training_prior_).max() < 1e-5
    # the largest penalty leaves everything as it is
    assert np.array_equal(weights, np.ones(3))


def test_absent_classes_are_found_and_said():
    rng = np.random.default_rng(1)
    source, y = three_classes(600, [1 / 3, 1 / 3, 1 / 3], rng)
    target, _ = three_classes(400, [0.0, 0.0, 1.0], rng)
    fitted = PriorShift("em", training_prior=[1 / 3] * 3).fit(source, y)
    with pytest.warns(
        CalibrationWarning, match=r"an estimated frequency of 0 for \[1\]"
    ):
        adapted = fitted.adapt(target)
    assert adapted.prior_[1] == 0 and adapted.prior_[2] > 0.95
    ratio = target * 3
    slope = (ratio / (ratio @ adapted.prior_)[:, None]).mean(axis=0)
    assert np.allclose(slope[[0, 2]], 1) and slope[1] < 1  # no better frequencies exist
    assert adapted.prior_interval_[:2, 0].tolist() == [0, 0]
    assert (adapted.prior_interval_[:2, 1] > 0).all() and adapted.prior_interval_[
        2, 1
    ] == 1
    rows = np.vstack([target[:50], np.eye(3), [[0.5, 0.5, 0.0]]])
    out = adapted.predict_proba(rows)
    assert np.array_equal(out[:, 1], np.zeros(54))
    assert np.abs(from_dict(to_dict(adapted)).predict_proba(rows) - out).max() < 1e-12


def test_newton_ends_at_the_optimum_where_em_crawls():
    rng = np.random.default_rng(2)
    p = softmax(0.3 * rng.normal(size=(300, 5)), axis=1)  # nearly uninformative
    y = np.arange(300) % 5
    fitted = PriorShift("em").fit(p, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        b = fitted.adapt(p[::3]).prior_
    ratio = p[::3] / fitted.training_prior_
    slope = (ratio / (ratio @ b)[:, None]).mean(axis=0)
    assert slope.max() - 1 < 1e-11
    assert np.abs(slope[b > 0] - 1).max() < 1e-9


def test_more_classes_than_newton_takes():
    rng = np.random.default_rng(3)
    k, n = 300, 600
    y = np.arange(2 * k) % k
    logits = rng.normal(size=(n, k))
    logits[np.arange(n), rng.integers(0, 20, n)] += 12  # 20 classes only
    p = softmax(logits, axis=1)
    fitted = PriorShift("em", training_prior=np.full(k, 1 / k)).fit(
        np.eye(k)[y] * 0.7 + 1e-3, y
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        adapted = fitted.adapt(p)
    assert adapted.prior_[:20].sum() > 0.99
    assert (
        np.isfinite(adapted.prior_se_).all() and (adapted.prior_se_[:20] < 0.02).all()
    )
    low, high = adapted.prior_interval_.T
    assert ((low <= adapted.prior_) & (adapted.prior_ <= high)).all()


def test_one_target_row_says_little():
    p, y, _ = source_and_target()
    with pytest.warns(CalibrationWarning, match="frequency of 0"):
        adapted = PriorShift("em").fit(p, y).adapt([0.7])
    assert adapted.prior_.tolist() == [0.0, 1.0]
    assert adapted.prior_se_.min() > 0.5
    assert adapted.prior_interval_.tolist() == [[0, 1], [0, 1]]


def test_classes_that_no_row_tells_apart():
    rng = np.random.default_rng(4)
    p = np.repeat(rng.dirichlet([2, 2], 100), [1, 2], axis=1) / [1, 2, 2]
    adapted = PriorShift("em", [0.4, 0.3, 0.3]).fit(p, np.arange(100) % 3).adapt(p[:60])
    assert np.isfinite(adapted.prior_se_[0]) and np.isinf(adapted.prior_se_[1:]).all()
    assert adapted.prior_interval_[1:].tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("prior", ["em", "bbse", "rlls"])
def test_weights(prior):
    p, y, target = source_and_target()
    rng = np.random.default_rng(5)
    weight = rng.integers(1, 4, len(target))
    fitted = PriorShift(prior).fit(p, y)
    weighted = fitted.adapt(target, sample_weight=weight)
    repeated = fitted.adapt(np.repeat(target, weight))
    assert np.abs(weighted.prior_ - repeated.prior_).max() < 1e-9
    scaled = fitted.adapt(target, sample_weight=0.37 * weight)
    assert np.abs(weighted.prior_ - scaled.prior_).max() < 1e-9
    dropped = fitted.adapt(target, sample_weight=np.arange(len(target)) < 100)
    assert np.abs(dropped.prior_ - fitted.adapt(target[:100]).prior_).max() < 1e-9
    if prior != "rlls":
        assert np.allclose(weighted.prior_se_, scaled.prior_se_)
        assert (
            weighted.prior_se_ > repeated.prior_se_
        ).all()  # as many observations as rows


@pytest.mark.parametrize("scale", [1e-300, 1e300])
@pytest.mark.parametrize("prior", ["em", "bbse", "rlls"])
def test_a_common_factor_of_the_weights_says_nothing(prior, scale):
    p, y, target = source_and_target()
    given = [1.0 + np.arange(len(rows)) % 3 for rows in (p, target)]
    fits = []
    for one in (1.0, scale):
        fitted = PriorShift(prior).fit(p, y, sample_weight=one * given[0])
        fits.append(fitted.adapt(target, sample_weight=one * given[1]))
    np.testing.assert_allclose(fits[1].prior_, fits[0].prior_, rtol=1e-9)
    if prior != "rlls":
        np.testing.assert_allclose(fits[1].prior_se_, fits[0].prior_se_, rtol=1e-6)


def test_each_array_is_its_own():
    p, y, _ = source_and_target()
    fitted = PriorShift("em").fit(p, y)
    assert not np.shares_memory(fitted.prior_, fitted.training_prior_)


def test_strength_and_balance():
    p, y = make_overconfident(3, 300)
    weight = 1.0 + (y == 0)
    fitted = PriorShift("uniform", strength=0.6).fit(p, y, sample_weight=weight)
    expected = softmax(np.log(p) - 0.6 * np.log(fitted.training_prior_), axis=1)
    assert np.abs(fitted.predict_proba(p) - expected).max() < 1e-14
    nothing = PriorShift("uniform", strength=0).fit(p, y)
    assert np.array_equal(nothing.predict_proba(p), p)


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_logits_keep_what_their_exponentials_lose():
    scores = canonical_proba([800.0, -800.0, 0.0], kind="logits")
    shift = PriorShift(0.1, 0.5).fit(scores, [1, 0, 0])
    assert shift.predict_proba(scores)[2, 1] == pytest.approx(0.1)
    assert shift.predict_proba(scores)[:2, 1].tolist() == [1.0, 0.0]
    far = canonical_proba([[1000.0, 0.0, 1.0]], kind="logits")
    out = PriorShift([0, 0.5, 0.5], [0.4, 0.3, 0.3]).fit(far, [0], classes=range(3))
    assert np.allclose(out.predict_proba(far), [[0, 1 / (1 + np.e), np.e / (1 + np.e)]])


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_zeros_stay():
    shift = PriorShift([0.2, 0.2, 0.6], [0.5, 0.3, 0.2]).fit(
        P3, [0, 1], classes=[0, 1, 2]
    )
    assert np.array_equal(shift.predict_proba(np.eye(3)), np.eye(3))
    assert shift.predict_proba([[0.5, 0.5, 0.0]])[0, 2] == 0


def test_pipeline_with_calibration():
    rng = np.random.default_rng(6)
    proba, y = three_classes(3000, [0.4, 0.3, 0.3], rng)
    target, truth = three_classes(3000, [0.1, 0.2, 0.7], rng)
    # overconfident
    proba, target = (softmax(2 * np.log(p), axis=1) for p in (proba, target))
    pipe = make_pipeline(TemperatureScaling(), PriorShift("em")).fit(proba, y)
    shift = pipe[-1].adapt(pipe[:-1].transform(target))
    moved = make_pipeline(pipe[:-1], shift)
    assert np.abs(shift.prior_ - np.bincount(truth) / 3000).max() < 0.05
    out = moved.predict_proba(target)
    hit = -np.log(out[np.arange(3000), truth]).mean()
    before = -np.log(pipe.predict_proba(target)[np.arange(3000), truth]).mean()
    assert hit < before - 0.08


@run_every_case(
    ("shift", "message"),
    [
        (PriorShift([0.5, 0.6]), "sum 1 in prior, got 1.1. Divide"),
        (PriorShift([-0.1, 1.1]), ">= 0 in prior, got -0.1"),
        (PriorShift([np.nan, 1.0]), "finite numbers"),
        (PriorShift([0.2, 0.3, 0.5]), "expected 2 numbers in prior"),
        (PriorShift({0: 1.0}), r"none of \[1\]"),
        (PriorShift({0: 0.5, 7: 0.5}), r"labels among \[0, 1\], got 7"),
        (PriorShift(["a", "b"]), "numbers in prior"),
        (
            PriorShift([0.5, 0.5], [1.0, 0.0]),
            "training_prior above 0 for every class, got 0 for .1.",
        ),
        (PriorShift("undo_resampling"), "expected training_prior with"),
        (PriorShift("EM"), "'prior' parameter"),
        (PriorShift(1.5), "'prior' parameter"),
        (PriorShift(strength=-1), "'strength' parameter"),
    ],
)
def test_refused_at_fit(shift, message):
    with pytest.raises(ValueError, match=message):
        shift.fit(P4, [0, 0, 1, 1])


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_refused_later():
    p, y, target = source_and_target()
    with raises_invalid_input(
        ValueError, expected=".*rows of every class in fit", value=r"none of \[1\]"
    ):
        PriorShift([0.5, 0.5]).fit(P4, [0, 0, 0, 0], classes=[0, 1])
    with raises_invalid_input(
        ValueError, expected=".*3 numbers in prior", value=r"0\.1"
    ):
        PriorShift(0.1).fit(P3, [0, 1], classes=range(3))
    waiting = PriorShift("em").fit(P4, [0, 0, 0, 0], classes=[0, 1])
    with raises_invalid_input(
        ValueError, expected="rows of every class", value=r"none of \[1\]"
    ):
        waiting.adapt(P4)
    counted = PriorShift("bbse", [0.5, 0.5]).fit(P4, [0, 0, 0, 0], classes=[0, 1])
    with raises_invalid_input(ValueError, expected="rows of every class"):
        counted.adapt(P4)
    with pytest.raises(
        ValueError, match=r"a prior that is estimated.*given frequencies"
    ):
        PriorShift([0.5, 0.5]).fit(p, y).adapt(target)
    with raises_invalid_input(
        ValueError,
        expected=".*a fit with prior='bbse'",
        value="a fit with another prior",
    ):
        PriorShift([0.5, 0.5]).fit(p, y).set_params(prior="bbse").adapt(target)
    fitted = PriorShift("em").fit(p, y)
    with raises_invalid_input(ValueError, expected="2 columns"):
        fitted.adapt(P3)
    with raises_invalid_input(ValueError, expected="finite"):
        fitted.adapt([0.2, np.nan])
    frame = pd.DataFrame({"a": 1 - p, "b": p})
    named = PriorShift("em").fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        named.adapt(frame.set_axis(["a", "c"], axis=1))
    exchanged = named.adapt(frame[["b", "a"]])  # follows the names
    np.testing.assert_array_equal(exchanged.prior_, named.adapt(frame).prior_)
    with raises_invalid_input(ValueError, expected=r".*level between 0 and 1"):
        fitted.adapt(target, level=95)
    with raises_invalid_input(ValueError, expected=".*sample_weight"):
        fitted.adapt(target, sample_weight=[1, 2])
    same = PriorShift("bbse", confusion="hard").fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    with raises_invalid_input(ValueError, expected=".*tell the classes apart"):
        same.adapt(target)


@run_every_case(
    ("weights", "y", "message"),
    [
        ({0: 0, 1: 1}, [0, 1], "above 0, got 0"),
        ({0: 1, 1: np.inf}, [0, 1], "above 0, got inf"),
        ({2: 3}, [0, 1], r"labels among \[0, 1\], got 2"),
        ("balance", [0, 1], "'balanced', got 'balance'"),
        (None, [0, 1], "a dict of labels to numbers, got None"),
        ([1, 9], [0, 1], r"a dict of labels to numbers, got \[1, 9\]"),
        ({0: "heavy"}, [0, 1], "a number for 0, got 'heavy'"),
        ({0: 1}, [0, 0], "at least two classes"),
    ],
)
def test_class_weights_that_are_refused(weights, y, message):
    with pytest.raises(ValueError, match=message):
        PriorShift.from_class_weight(weights, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prior", "how"), [("em", "soft"), ("bbse", "soft"), ("bbse", "hard")], ids="-".join
)
@pytest.mark.parametrize("truth", [(0.2, 0.5, 0.3), (0.02, 0.9, 0.08)], ids=str)
def test_standard_errors_and_intervals_hold(prior, how, truth):
    """A sample of benchmarks/prior_shift: both sides of 300 intervals, and spread against error."""
    found, errors, covered = [], [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        source, y = three_classes(400, [1 / 3] * 3, rng)
        target, _ = three_classes(200, truth, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            adapted = PriorShift(prior, confusion=how).fit(source, y).adapt(target)
        found.append(adapted.prior_)
        errors.append(adapted.prior_se_)
        low, high = adapted.prior_interval_.T
        covered.append((low <= truth) & (truth <= high))
    assert (np.abs(np.mean(covered, axis=0) - 0.95) < 0.04).all()
    if min(truth) > 0.05:  # no estimate is cut off at 0
        ratio = np.mean(errors, axis=0) / np.std(found, axis=0)
        assert (np.abs(ratio - 1) < 0.12).all()


@pytest.mark.parametrize("confusion", ["hard", "soft"])
@pytest.mark.parametrize("prior", ["em", "bbse"])
def test_weights_of_the_labelled_rows(prior, confusion):
    p, y, target = source_and_target()
    weight = 1 + 3 * (p > 0.5) + np.arange(len(y)) % 2
    weighted = PriorShift(prior, confusion=confusion).fit(p, y, sample_weight=weight)
    repeated = clone(weighted).fit(np.repeat(p, weight), np.repeat(y, weight))
    plain = clone(weighted).fit(p, y)
    priors = [one.adapt(target).prior_ for one in (weighted, repeated, plain)]
    assert priors[0] == pytest.approx(priors[1], abs=1e-9)
    assert np.abs(priors[0] - priors[2]).max() > 0.01


def test_weights_of_the_labelled_rows_within_a_class():
    """The penalised weights use them too: by hand without a penalty."""
    p, y, target = source_and_target()
    weight = 1.0 + 3 * (p > 0.5)
    found = PriorShift("rlls", penalty=0.0, confusion="soft").fit(
        p, y, sample_weight=weight
    )
    both = np.column_stack([1 - p, p])
    given = [np.average(both[y == c], axis=0, weights=weight[y == c]) for c in (0, 1)]
    expected = np.linalg.solve(np.transpose(given), [1 - target.mean(), target.mean()])
    assert (expected > 0).all()
    assert found.adapt(target).prior_ == pytest.approx(expected, abs=1e-6)


def test_labelled_rows_with_weights_count_as_effective_rows():
    """What their number adds to the variance falls as one over it, which two numbers show."""
    p, _, target = source_and_target()
    p, y = p[:160], np.arange(160) % 2
    weight = np.where(np.arange(160) // 2 % 2, 3.0, 1.0)  # in both classes alike

    def variance(times, **options):
        source = np.tile(p, times), np.tile(y, times)
        return PriorShift("em").fit(*source, **options).adapt(target).prior_se_ ** 2

    once, twice = variance(1), variance(2)
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert effective == 128
    expected = twice + (once - twice) * (160 / effective - 1 / 2) / (1 - 1 / 2)
    np.testing.assert_allclose(variance(1, sample_weight=weight), expected, rtol=1e-9)
    assert (expected > 1.01 * once).all()


def test_with_two_classes_the_other_one_is_in_a_fixed_proportion(monkeypatch):
    """The way of many classes, which keeps the others in proportion, is then exact."""
    rng = np.random.default_rng(0)
    proba = rng.random(80)
    source = np.array([0.6, 0.4])
    ratio = np.column_stack([1 - proba, proba]) / source
    weight = rng.random(80) + 0.2
    prior = _mixture_proportions.fit_proportions(ratio, weight, source).prior
    results = []
    for most in (2, 1):
        monkeypatch.setattr(_mixture_proportions, "MAX_NEWTON_CLASSES", most)
        results.append(
            _mixture_proportions.compute_proportion_se_and_interval(
                ratio, weight, prior, source, np.inf, 0.9
            )
        )
    for by_hessian, by_class in zip(*results, strict=True):
        assert (by_hessian < 1).all()
        np.testing.assert_allclose(by_class, by_hessian, rtol=1e-9)


def test_a_class_whose_mean_fits_leaves_the_penalty_of_the_others():
    means = np.full((3, 3), 0.125) + 0.625 * np.eye(3)
    frequencies = np.array([0.25, 0.25, 0.5])
    table = _label_shift.ConfusionTable(
        means, None, frequencies, np.array([50.0, 50.0, 100.0])
    )
    found = []
    for rest in (0.0, 1e-9):
        mean = means @ frequencies + [0.125, rest - 0.125, -rest]
        proba = np.tile(mean, (4, 1))
        found.append(
            _label_shift.estimate_regularised_prior(table, proba, np.ones(4), 0.3)
        )
    # Neither error is worth its penalty.
    np.testing.assert_allclose(found, [frequencies, frequencies], atol=1e-6)
