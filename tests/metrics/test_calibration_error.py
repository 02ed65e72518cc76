import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from hypothesis import given, settings, strategies as st

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import (
    calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
)


def reference(y, p, n_bins, strategy, norm, bin_weight):
    """Loops over rows and bins, from the definition."""
    n = len(y)
    if strategy == "uniform":
        number = [max(int(np.ceil(round(v * n_bins, 9))) - 1, 0) for v in p]
    else:
        middle = {v: (np.sum(p < v) + np.sum(p == v) / 2) / n for v in p}
        number = [int(middle[v] * n_bins) for v in p]
    gaps, masses = [], []
    for b in set(number):
        rows = [i for i in range(n) if number[i] == b]
        gaps.append(abs(np.mean([y[i] - p[i] for i in rows])))
        masses.append(len(rows))
    weights = np.array(masses if bin_weight == "mass" else np.ones(len(gaps))) * 1.0
    weights /= weights.sum()
    if norm == "max":
        return max(gaps)
    power = 2 if norm == "l2" else 1
    return np.dot(weights, np.power(gaps, power)) ** (1 / power)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("bin_weight", ["mass", "equal"])
@pytest.mark.parametrize("ties", [False, True])
def test_slow_reference(norm, strategy, bin_weight, ties):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 101):
        p = rng.random(n).round(1 if ties else 5)
        y = (rng.random(n) < p).astype(int)
        value = calibration_error(
            y,
            p,
            n_bins=5,
            norm=norm,
            strategy=strategy,
            bin_weight=bin_weight,
            labels=[0, 1],
        )
        expected = reference(y, p, 5, strategy, norm, bin_weight)
        assert value == pytest.approx(expected, abs=1e-12)


def test_bins_cover_the_ends():
    y, p = [0, 1, 1], [0.0, 1.0, 0.5]
    assert expected_calibration_error(
        y, p, strategy="uniform", n_bins=2
    ) == pytest.approx(1 / 6)
    # 0.5 belongs to the first of two bins, which close on the right
    assert maximum_calibration_error(
        y, p, strategy="uniform", n_bins=2
    ) == pytest.approx(0.25)


def test_equation_70():
    """ECE and MCE of Wang et al. (2019): equal-frequency bins, all weighted equally."""
    rng = np.random.default_rng(1)
    p = np.sort(rng.random(1000))
    y = (rng.random(1000) < p**2).astype(int)
    gaps = [
        abs(a.mean() - b.mean())
        for a, b in zip(np.split(p, 100), np.split(y, 100), strict=True)
    ]
    ece = expected_calibration_error(y, p, n_bins=100, bin_weight="equal")
    mce = maximum_calibration_error(y, p, n_bins=100)
    assert ece == pytest.approx(np.mean(gaps)) and mce == pytest.approx(np.max(gaps))
    assert mce >= ece


def test_kinds_of_multiclass():
    proba, y = make_overconfident(3, 300)
    top = proba.argmax(axis=1)
    confidence = proba.max(axis=1)
    options = {"n_bins": 8, "norm": "l2"}
    assert calibration_error(y, proba, **options) == pytest.approx(
        calibration_error(top == y, confidence, labels=[False, True], **options)
    )
    per_class = [calibration_error(y == c, proba[:, c], **options) for c in range(3)]
    assert calibration_error(
        y, proba, multiclass="classwise", **options
    ) == pytest.approx(np.sqrt(np.mean(np.square(per_class))))
    parts = [
        (
            np.mean(top == c),
            calibration_error(y[top == c] == c, confidence[top == c], **options),
        )
        for c in range(3)
    ]
    assert calibration_error(
        y, proba, multiclass="top_label", **options
    ) == pytest.approx(np.sqrt(sum(share * error**2 for share, error in parts)))
    two, y2 = make_overconfident(2)
    assert calibration_error(y2, two) == calibration_error(y2, two[:, 1])
    assert calibration_error(y2, two, multiclass="confidence") != calibration_error(
        y2, two
    )


def test_pos_label():
    proba, y = make_overconfident(2, 201)
    labels = np.array(["no", "yes"])[y]
    flipped = calibration_error(labels, proba, pos_label="no")
    assert flipped == pytest.approx(calibration_error(y == 0, proba[:, 0]))
    with raises_invalid_input(
        ValueError, expected=r"pos_label among \['no', 'yes'\]", value="'maybe'"
    ):
        calibration_error(labels, proba, pos_label="maybe")


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_debiased_is_nearer_to_the_truth(norm):
    """Calibrated predictions: the plain error grows with the bins, the debiased one does not."""
    rng = np.random.default_rng(2)
    plain, debiased = [], []
    for _ in range(60):
        p = rng.random(400)
        y = (rng.random(400) < p).astype(int)
        plain.append(calibration_error(y, p, norm=norm, n_bins=20))
        debiased.append(calibration_error(y, p, norm=norm, n_bins=20, debias=True))
    assert np.mean(debiased) < 0.65 * np.mean(plain)


def test_debiased_square_is_unbiased():
    rng = np.random.default_rng(3)
    true, values = 0.1**2, []
    for _ in range(400):
        p = np.repeat([0.2, 0.5, 0.7], 20)
        y = (rng.random(60) < p + 0.1).astype(int)
        gaps = [(y[p == v] - v).mean() for v in (0.2, 0.5, 0.7)]
        variances = [(y[p == v]).var(ddof=1) / 20 for v in (0.2, 0.5, 0.7)]
        values.append(np.mean(np.square(gaps) - variances))
        ours = calibration_error(y, p, norm="l2", n_bins=3, debias=True)
        assert ours == pytest.approx(np.sqrt(max(values[-1], 0)), abs=1e-9)
    assert abs(np.mean(values) - true) < 3 * np.std(values) / np.sqrt(400)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 20),
    st.sampled_from(["quantile", "uniform"]),
)
def test_order_of_norms(rows, n_bins, strategy):
    p, y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    l1, l2, top = (
        calibration_error(
            y, p, norm=n, n_bins=n_bins, strategy=strategy, labels=[False, True]
        )
        for n in ("l1", "l2", "max")
    )
    assert -1e-12 <= l1 <= l2 + 1e-9 <= top + 2e-9 <= 1 + 3e-9


@run_every_case(
    ("options", "message"),
    [
        ({"norm": "l3"}, "expected norm among l1, l2, max, got 'l3'"),
        ({"strategy": "mass"}, "expected strategy among quantile, uniform, got 'mass'"),
        ({"bin_weight": 3}, "expected bin_weight among mass, equal, got 3"),
        ({"n_bins": 0}, "expected n_bins >= 1, 'cube_root' or 'sweep', got 0"),
        ({"n_bins": 2.5}, "expected n_bins >= 1, 'cube_root' or 'sweep', got 2.5"),
        (
            {"multiclass": "all"},
            "expected multiclass among auto, confidence, top_label",
        ),
        (
            {"norm": "max", "debias": True},
            "expected debias with norm 'l1' or 'l2', got 'max'",
        ),
    ],
)
def test_refused_options(options, message):
    with pytest.raises(ValueError, match=message):
        calibration_error([0, 1], [0.2, 0.8], **options)


@pytest.mark.slow
def test_a_million_rows():
    rng = np.random.default_rng(4)
    p = rng.random(1_000_000, dtype=np.float32)
    y = rng.random(1_000_000) < p
    assert calibration_error(y, p) < 0.005
