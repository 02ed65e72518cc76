"""paired_difference: the difference itself, what pairing is worth, and how often it is held."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy.stats import t

from sklearn_calib.inference import PairedLosses, confidence_interval, paired_difference
from sklearn_calib.metrics import all_metrics, get_loss
from sklearn_calib.summary import CalibrationSummary, CellSample


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n)
    truth = 1 / (1 + np.exp(-z))
    return (rng.random(n) < truth).astype(int), truth, 1 / (1 + np.exp(-2 * z))


@pytest.mark.slow
@pytest.mark.parametrize(
    "measure", ["log_loss", "brier_loss", "smooth_calibration_error"]
)
def test_the_difference_of_two_measures(measure):
    y, p, q = rows()
    found = paired_difference(y, p, q, measure, n_resamples=19)
    function = all_metrics()[measure]
    assert (
        found.first == pytest.approx(function(y, p)) == found.second - found.difference
    )
    assert found.second == pytest.approx(function(y, q))
    assert found.low <= found.difference <= found.high
    back = paired_difference(y, q, p, measure, n_resamples=19)
    assert back.difference == -found.difference
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low), abs=1e-12)


def test_the_normal_interval_is_that_of_the_mean_of_differences():
    y, p, q = rows()
    found = paired_difference(y, p, q, level=0.95)
    loss = [-np.log(np.where(y, s, 1 - s)) for s in (p, q)]
    d = loss[1] - loss[0]
    half = 1.959964 * d.std(ddof=1) / np.sqrt(len(d))
    assert found.method == "normal"
    assert (found.low, found.high) == pytest.approx(
        (d.mean() - half, d.mean() + half), rel=1e-6
    )
    apart = np.hypot(*(part.std(ddof=1) for part in loss)) / np.sqrt(len(d))
    assert half < 0.6 * 1.96 * apart, "pairing is worth something"
    accuracy = paired_difference(y, p, q, "accuracy")
    assert (accuracy.difference, accuracy.low, accuracy.high) == (0, 0, 0)


def test_weights_count_rows():
    y, p, q = rows(60)
    weight = np.random.default_rng(1).integers(1, 4, 60)
    repeated = [np.repeat(column, weight) for column in (y, p, q)]
    weighted = paired_difference(y, p, q, sample_weight=weight)
    assert weighted.difference == pytest.approx(paired_difference(*repeated).difference)
    flat = paired_difference(y, p, q, sample_weight=np.full(60, 3.0))
    assert (flat.low, flat.high) == pytest.approx(
        (paired_difference(y, p, q).low, paired_difference(y, p, q).high)
    )


@pytest.mark.slow
def test_the_combined_interval_holds_both_alone():
    y, p, q = rows(200)
    options = {"n_resamples": 39, "level": 0.9}
    one, two = (confidence_interval(y, s, **options) for s in (p, q))
    found = paired_difference(y, p, q, "smooth_calibration_error", **options)
    assert found.method == "combined"
    assert (found.low, found.high) == (two.low - one.high, two.high - one.low)
    assert found.high - found.low > max(one.high - one.low, two.high - two.low)


@pytest.mark.parametrize("name", ["log", "brier", "spherical"])
def test_losses_by_the_normal_law(name):
    y, p, q = rows()
    found = paired_difference(y, p, q, f"{name}_loss", level=0.95)
    first, second = (
        get_loss(name).compute_row_losses(np.column_stack([1 - s, s]), y)
        for s in (p, q)
    )
    d = second - first
    half = 1.959964 * d.std(ddof=1) / np.sqrt(len(d))
    assert found.method == "normal"
    assert (found.low, found.high) == pytest.approx(
        (d.mean() - half, d.mean() + half), rel=1e-6
    )


def test_other_proper_losses_by_the_bootstrap():
    """The ranked probability score, which of two classes is the Brier loss."""
    y, p, q = rows(300)
    normal = paired_difference(y, p, q, "brier_loss", level=0.9)
    found = paired_difference(
        y, p, q, "ranked_probability_score", level=0.9, n_resamples=499
    )
    assert found.method == "bootstrap" and found.difference == pytest.approx(
        normal.difference
    )
    width = normal.high - normal.low
    assert abs(found.low - normal.low) + abs(found.high - normal.high) < 0.2 * width


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "auc"}, r"expected a measure among accuracy, .*got 'auc'"),
        (
            {"level": 95},
            r"expected a level between 0 and 1, got 95\. Pass for instance 0\.95",
        ),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        paired_difference(*rows(20), **options)


@pytest.mark.slow
def test_coverage():
    """A small version of ``benchmarks/paired_coverage``, on both sides."""
    misses = np.zeros(2)
    for seed in range(300):
        y, p, q = rows(150, seed)
        found = paired_difference(y, p, q, "brier_loss", level=0.8)
        misses += found.low > TRUTH, found.high < TRUTH
    # 30 expected on each side
    assert (misses > 12).all() and (misses < 55).all(), misses


_z = 1.5 * np.random.default_rng(1).normal(size=1_000_000)
_truth, _sharp = 1 / (1 + np.exp(-_z)), 1 / (1 + np.exp(-2 * _z))
TRUTH = float(((_truth - _sharp) ** 2).mean())


@pytest.mark.parametrize(
    "measure", ["smooth_calibration_error", "ranked_probability_score"]
)
def test_weights_go_to_both_models(measure):
    y, p, q = rows(80)
    weight = 1 + 2 * y
    found = paired_difference(y, p, q, measure, n_resamples=39, sample_weight=weight)
    for value, proba in ((found.first, p), (found.second, q)):
        assert value == pytest.approx(
            all_metrics()[measure](y, proba, sample_weight=weight)
        )
        assert value != pytest.approx(all_metrics()[measure](y, proba))


# -- blocks of rows, and summaries --------------------------------------------------------------


def losses(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.gamma(1.0, 2.0, n),
        rng.gamma(1.0, 2.0, n),
        rng.random(n) * (rng.random(n) < 0.8),
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_add_up_to_the_rows(weighted):
    one, two, weight = losses()
    weight = weight if weighted else None
    whole = PairedLosses().add(one, two, weight)
    cut = PairedLosses()
    for rows in (slice(0, 1), slice(1, 1), slice(1, 130), slice(130, 300)):
        cut = cut.add(one[rows], two[rows], None if weight is None else weight[rows])
    assert cut.difference("loss") == whole.difference("loss"), "in every bit"
    assert cut.n_samples == 300
    w = np.ones(300) if weight is None else weight
    moved, total = two - one, w.sum()
    mean = w @ moved / total
    error = np.sqrt(w**2 @ (moved - mean) ** 2 / (total**2 - w @ w))
    found = whole.difference("loss", 0.8)
    assert found.difference == pytest.approx(mean, rel=1e-12)
    assert found.first == pytest.approx(w @ one / total, rel=1e-12)
    assert found.second == pytest.approx(w @ two / total, rel=1e-12)
    assert found.high - mean == pytest.approx(1.2815515655446004 * error, rel=1e-9)
    assert found.low + found.high == pytest.approx(2 * mean, rel=1e-9)
    assert (found.measure, found.level, found.method) == ("loss", 0.8, "normal")


def test_losses_far_from_zero_keep_their_spread():
    """Sums of squares cancel; they are exact."""
    one, two, _ = losses(200)
    found = PairedLosses().add(one, two + 1e6).difference("loss")
    near = PairedLosses().add(one, two).difference("loss")
    assert found.high - found.difference == pytest.approx(
        near.high - near.difference, rel=1e-6
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0.1], [0.2, 0.3]), "columns of one length"),
        (([0.1, np.inf], [0.2, 0.3]), "finite losses, got inf and 0.3 in row 1"),
        (([0.1, 0.2], [0.2, 0.3], [1.0]), "columns of one length"),
        (([0.1, 0.2], [0.2, 0.3], [1.0, -1.0]), "got -1 in row 1"),
    ],
)
def test_losses_that_are_refused(given, message):
    sums = PairedLosses()
    with pytest.raises(ValueError, match=message):
        sums.add(*given)
    assert sums.n_samples == 0
    with raises_invalid_input(
        ValueError, expected=".*rows of positive weight", value="none"
    ):
        sums.add([0.1], [0.2], [0.0]).difference("loss")
    with raises_invalid_input(ValueError, expected=".*level"):
        sums.difference("loss", 1.0)


def two_models(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p**1.2).astype(int)
    return y, p, p**1.6


@pytest.mark.slow
@pytest.mark.parametrize(
    "weighted", [pytest.param(False, marks=pytest.mark.cross), True]
)
def test_summaries_have_the_interval_of_their_rows(weighted):
    y, p, q = two_models(300)
    weight = np.random.default_rng(1).random(300) if weighted else None
    given = {"measure": "smooth_calibration_error", "level": 0.9, "n_resamples": 399}
    rows = paired_difference(y, p, q, sample_weight=weight, **given)
    one, two = (CalibrationSummary().update(y, scores, weight) for scores in (p, q))
    cells = paired_difference(None, one, two, **given)
    assert cells.method == rows.method == "combined"
    assert cells.difference == pytest.approx(rows.difference, abs=1e-12)
    assert cells.low == pytest.approx(rows.low, abs=0.03)  # other draws of the same law
    assert cells.high == pytest.approx(rows.high, abs=0.03)
    proper = {"measure": "brier_loss", "n_resamples": 399}
    ends = [confidence_interval(one, **proper), confidence_interval(y, p, sample_weight=weight,
                                                                    **proper)]  # fmt: skip
    assert ends[0].low == pytest.approx(ends[1].low, abs=0.004)
    assert ends[0].high == pytest.approx(ends[1].high, abs=0.004)


def test_the_law_of_labels_of_cells():
    counts = np.array([[300, 100], [100, 300]])
    sample = CellSample(np.array([[0.75, 0.25], [0.25, 0.75]]), counts, counts, counts)
    drawn = sample.simulate_labels(np.random.default_rng(0), law=np.array([0.0, 1.0]))
    assert drawn.weight.tolist() == [400, 0, 0, 400]


def test_what_summaries_do_not_have():
    y, p, q = two_models(40)
    one, two = (CalibrationSummary().update(y, scores) for scores in (p, q))
    for measure in ("log_loss", "accuracy", "brier_loss"):
        with pytest.raises(
            ValueError, match=r"do not contain pairs of rows\. Add up the losses"
        ):
            paired_difference(None, one, two, measure)
    with raises_invalid_input(ValueError, value="other arguments"):
        confidence_interval(one, p)
    with raises_invalid_input(
        ValueError, expected="a measure of one two-class problem"
    ):
        confidence_interval(one, None, "variational_calibration_error")
    several = CalibrationSummary(classes=[0, 1, 2])
    several.update([0, 1, 2, 2], [[0.5, 0.3, 0.2]] * 4)
    with raises_invalid_input(
        ValueError, expected="a measure of one two-class problem"
    ):
        confidence_interval(several, None, "log_loss")
    found = confidence_interval(
        several, None, "expected_calibration_error", n_resamples=20
    )
    assert found.sample_value == pytest.approx(0.25)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_cluster_that_comes_in_two_blocks_is_one(weighted):
    """Rows in blocks of seven, whose clusters go on in others: the sums of whole clusters."""
    rng = np.random.default_rng(0)
    one, two = rng.random((2, 40))
    groups, weight = np.arange(40) % 6, rng.random(40) + 0.5 if weighted else None
    pairs = PairedLosses()
    for start in range(0, 40, 7):
        part = slice(start, start + 7)
        pairs.add(
            one[part],
            two[part],
            weight if weight is None else weight[part],
            groups[part],
        )
    found = pairs.difference("log_loss")
    w = np.ones(40) if weight is None else weight
    mean = w @ (two - one) / w.sum()
    at_once = PairedLosses().add(one, two, weight, groups).difference("log_loss")
    half = at_once.high - mean
    assert 0.5 < half / (t.ppf(0.975, 5) * (two - one).std() / np.sqrt(40)) < 2
    ends = found.difference, found.low, found.high
    assert ends == pytest.approx((mean, mean - half, mean + half), abs=1e-12)
