"""Options beside weights, groups, blocks and other options: what no signature shows.

Each test is of a wrong version that passed all others, by hand or by the definition.
"""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.multioutput import MultiOutputClassifier

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib._cli import main
from sklearn_calib._files.columns import TableBlock
from sklearn_calib.decisions import decision_difference
from sklearn_calib.decomposition import _curve, refinement_curve
from sklearn_calib.groups import MulticalibratedScores
from sklearn_calib.inference import (
    CalibrationTester,
    PairedLosses,
    binning_sample_size,
    hosmer_lemeshow_test,
    paired_difference,
)
from sklearn_calib.metrics import (
    expected_calibration_error,
    lower_distance_interval,
    lower_distance_to_calibration,
)
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import MulticlassBinning, MultilabelCalibration
from sklearn_calib.report import calibration_report, multilabel_report
from sklearn_calib.report._label_sections import describe_finding
from sklearn_calib.report._pictures import draw_model_comparison_if_several
from sklearn_calib.summary import CalibrationSummary, CellSample
from sklearn_calib.summary._sources import iter_groups


def rows(n=200, seed=0):
    """Labels, and two models' probabilities."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n)
    return (rng.random(n) < expit(z)).astype(int), expit(z), expit(0.6 * z + 0.3)


# -- binning of several classes -------------------------------------------------------------------


def leaves(n=3000):
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.ones(3), 6)
    leaf = rng.integers(0, 6, n)
    return law[leaf], (
        rng.random((n, 1)) > np.cumsum(0.7 * law + 0.1, axis=1)[leaf]
    ).sum(axis=1)


@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
def test_delta_scales_the_noise_of_pools():
    """The scale of equation (2 / (n log(4 b k / delta))) ** 0.5: the same draws, times a factor."""
    proba, y = leaves(400)
    drawn = {}
    for delta in (0.01, 0.5):
        how = {"pools": "paper", "noise": "laplace", "delta": delta, "max_iter": 5}
        model = MulticlassBinning.paper(np.inf, 0.05, **how)
        drawn[delta] = model.fit(proba, y).predict_proba(proba)
    assert np.abs(drawn[0.01] - drawn[0.5]).max() > 1e-6


@pytest.mark.parametrize("p", [2.0, 4.0, np.inf])
def test_the_bound_of_a_split_knows_delta_and_p(p):
    proba, y = leaves()
    cell = {}
    for delta in (0.01, 0.3):
        model = MulticlassBinning(p, 0.1, split=True, keep=False, delta=delta).fit(
            proba, y
        )
        bound, b, k, size = model.error_bound_, len(model.bins_), 3, len(y) / 2
        cell[delta] = bound if p == np.inf else (bound**p / 2) ** (1 / (p - 1))
        alpha = np.sqrt((b * np.log(2) + np.log(8 * k / delta)) / (2 * size))
        gap = max(
            np.abs(g.mass * (g.prediction - g.frequency)).max() for g in model.groups_
        )
        # m so that a cell of this mass is seen as light with probability delta m / 2
        light = cell[delta] - alpha - gap
        least = max(20 / size, model.beta_ / 6)
        bite = size * light * (1 - least / light) ** 2 / 2
        if p == np.inf:
            assert bite == pytest.approx(np.log(2 / (light * delta)), rel=1e-6)
    assert cell[0.01] > cell[0.3]


# -- tests, testers and bounds --------------------------------------------------------------------


@pytest.mark.parametrize("resolution", [0.2, 0.01])
def test_the_bound_of_a_rounded_distance_is_a_cell_at_least(resolution):
    y, p, _ = rows()
    found = lower_distance_interval(y, p, method="rounded", resolution=resolution)
    assert resolution <= found.bound <= 2.5 * resolution


def test_a_tester_of_small_distances_rounds_less():
    y, p, _ = rows()
    (found,) = CalibrationTester(0.004, method="distance").test(y, p).statistics
    assert found == lower_distance_to_calibration(y, p, resolution=0.0005)
    assert found != lower_distance_to_calibration(y, p, resolution=0.001)


def test_the_seed_of_a_tester_draws_its_parts():
    y, p, _ = rows()
    found = [
        CalibrationTester(0.3, n_parts=3, random_state=i).test(y, p) for i in (0, 0, 1)
    ]
    same, again, other = (one.statistics.tolist() for one in found)
    assert same == again != other


def test_delta_of_the_paper_counts_in_each_part():
    """At most k n_levels cells of positive size: the choice, the masses and the labels."""
    found = {
        d: binning_sample_size(2, 0.3, d, 4, n_bins=1, method="paper")
        for d in (0.2, 0.02)
    }
    beta = MulticlassBinning(2, 0.3).fit(*leaves(200)).beta_
    steps = np.log(10)  # of each of the logarithms
    masses = 2 * 41472 * steps / beta**2
    choice = max(steps / (2 * (beta / 12) ** 2), 8 / (3 * beta / 12) * steps)
    assert found[0.02] - found[0.2] == pytest.approx(masses + choice, rel=1e-9, abs=2)


def test_bins_of_a_test_of_a_summary():
    y, p, _ = rows()
    p = p.round(2)
    found = CalibrationSummary().update(y, p).test("hosmer_lemeshow", n_bins=5)
    assert np.allclose(found, hosmer_lemeshow_test(y, p, n_bins=5), rtol=1e-6)


# -- differences of two models --------------------------------------------------------------------


def test_clusters_without_weight_are_none():
    _, first, second = rows(60)
    group = np.arange(60) // 3
    weight = 1.0 * (group % 4 > 0)
    there = weight > 0
    whole = PairedLosses().add(first, second, weight, group).difference("log_loss")
    part = PairedLosses().add(first[there], second[there], None, group[there])
    assert whole == part.difference("log_loss")


def test_shares_of_soft_labels_weigh_a_difference_of_calibration_errors():
    _, p, q = rows(60)
    share = np.random.default_rng(0).random(60)
    soft = np.column_stack([1 - share, share])
    measure, options = (
        "expected_calibration_error",
        {"n_resamples": 5, "soft_labels": True},
    )
    found = paired_difference(soft, p, q, measure, **options)
    y, weight = np.tile([0, 1], 60), soft.ravel()
    for value, proba in ((found.first, p), (found.second, q)):
        by_rows = expected_calibration_error(
            y, np.repeat(proba, 2), sample_weight=weight
        )
        assert value == pytest.approx(by_rows, rel=1e-9)


def test_the_picture_of_two_models_has_their_weights_and_level():
    y, p, q = rows(120)
    weight = 1 + np.arange(120) % 3
    more = {"n_resamples": 2, "advice": False, "measures": ["log_loss"]}
    for level in (0.5, 0.99):
        models = {"a": p, "b": q}
        report = calibration_report(
            y, models, sample_weight=weight, level=level, **more
        )
        found = decision_difference(
            y, q, p, sample_weight=weight, level=level, random_state=report._seed
        )
        better = 100 * (found.high < 0).mean()
        worse = 100 * (found.low > 0).mean()
        text = draw_model_comparison_if_several(report)
        assert f"at {better:.0f} % of the thresholds b is better beyond chance" in text
        assert f"at {worse:.0f} % a is" in text
        assert f"{100 * level:.0f} % interval" in text


# -- labels ---------------------------------------------------------------------------------------


def test_few_positives_are_counted_as_rows():
    """A weight of 0.01 for all rows is uninformative else."""
    p = np.random.default_rng(0).random((300, 2)) / 2
    y = (np.random.default_rng(1).random((300, 2)) < p).astype(float)
    more = {"n_resamples": 0, "measures": ["log_loss"]}
    for weight in (None, np.full(300, 0.01)):
        report = multilabel_report(y, p, sample_weight=weight, **more)
        assert [describe_finding(row) for row in report.labels] == [
            "nothing",
            "nothing",
        ]


class Logits(ClassifierMixin, BaseEstimator):
    """Its features are its logits."""

    def fit(self, X, Y, sample_weight=None):
        self.classes_ = [np.arange(2)] * Y.shape[1]
        return self

    def predict_proba(self, X):
        return expit(X)


def test_weights_go_with_the_halves_that_labels_are_judged_by(monkeypatch):
    """The second fits, on half of the rows each, weigh the rows of this half."""
    z = np.random.default_rng(0).normal(size=(600, 2))
    y = (np.random.default_rng(1).random((600, 2)) < expit(z)).astype(int)
    weight, seen = 1 + np.arange(600) % 5, []
    fit = MultilabelCalibration._fit_validated_labels

    def spy(self, pairs, table, sample_weight):
        seen.append(np.asarray(sample_weight).tolist())
        return fit(self, pairs, table, sample_weight)

    monkeypatch.setattr(MultilabelCalibration, "_fit_validated_labels", spy)
    everything = [(np.arange(600), np.arange(600))]
    CalibratedModel(Logits(), cv=everything).fit(z, y, sample_weight=weight)
    halves = [weight[::2].tolist(), weight[1::2].tolist()]
    assert seen == [weight.tolist(), *halves]


@pytest.mark.parametrize("cv", [2, 4])
def test_folds_of_many_labels_with_groups(cv):
    x = np.random.default_rng(0).normal(size=(80, 2))
    y = (x + np.random.default_rng(1).normal(size=x.shape) > 0).astype(int)
    model = MultiOutputClassifier(LogisticRegression())
    group = np.arange(80) // 4
    found = CalibratedModel(model, "temperature", cv=cv).fit(x, y, groups=group)
    pairs = list(GroupKFold(cv).split(x, y, group))
    expected = CalibratedModel(model, "temperature", cv=pairs).fit(x, y)
    assert len(found.calibrated_pairs_) == cv
    for one, other in zip(
        found.predict_proba(x), expected.predict_proba(x), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)


# -- exact logarithms, blocks, stages -------------------------------------------------------------


def test_trees_that_see_the_other_class_keep_exact_scores():
    """The more frequent class first or last: what is beyond float64 below 1 stays apart."""
    z = np.random.default_rng(0).normal(size=(400, 1)) + 33.0
    y = (np.random.default_rng(1).random(400) < 0.9).astype(int)
    scores = canonical_proba(np.hstack([0 * z, z]), kind="logits")
    turned = canonical_proba(np.hstack([z, 0 * z]), kind="logits")
    groups = {"a": np.arange(400) % 2}
    one, other = (
        MulticalibratedScores(n_rounds=1, min_samples_leaf=5.0).fit(
            s, labels, groups=groups
        )
        for s, labels in ((scores, y), (turned, 1 - y))
    )
    given = (one, scores), (other, turned)
    found, back = (model.predict_proba(s, groups=groups) for model, s in given)
    np.testing.assert_allclose(back[:, ::-1], found, rtol=1e-9)
    margin = [
        model._compute_clipped_log_odds(model._swap_columns_if_second_more_frequent(s))
        for model, s in given
    ]
    assert len(np.unique(margin[0])) > 300
    np.testing.assert_allclose(margin[1], margin[0], rtol=1e-12)


def test_the_onset_ends_with_a_block():
    """An interval from the first row of a block to the last row of one."""
    y, p, _ = rows(600)
    y = np.r_[y, np.ones(400, int)]
    monitor = CalibrationMonitor("test").update(y, np.r_[p, p[:400]])
    blocks = monitor._records[0].add_waiting_rows_in_place().blocks
    low, high = monitor.diagnose().onset_interval
    assert low in {one.first for one in blocks}
    assert high in {one.last for one in blocks} - {one.first for one in blocks}


@pytest.mark.slow
def test_more_groups_than_16_bits_number():
    """Of two rows each."""
    n = 70_000
    group = np.random.default_rng(0).permutation(2 * n) % n
    data = {"y": group % 2, "p": np.full(2 * n, 0.5), "g": group}
    found = dict(iter_groups(TableBlock(data), ["g"]))
    assert len(found) == n
    pairs = group[np.array([*found.values()])]
    assert (pairs == np.array([*found])).all()


def test_standard_errors_of_some_rows_take_their_weights(monkeypatch):
    """Of rows that come twice, every second one shows all."""
    y, p, q = (np.repeat(one, 2) for one in rows(100))
    weight = np.repeat(np.random.default_rng(3).gamma(0.5, size=100), 2)
    stages = [np.column_stack([1 - one, one]) for one in (p, q, np.roll(p, 20))]
    exact = refinement_curve(y, stages, sample_weight=weight)
    monkeypatch.setattr(_curve, "_MAX_STANDARD_ERROR_ROWS", 100)
    some = refinement_curve(y, stages, sample_weight=weight)
    np.testing.assert_allclose(
        some.standard_error, exact.standard_error, rtol=1e-5, atol=1e-9
    )


# -- folds of cells -------------------------------------------------------------------------------


class Seen(ClassifierMixin, BaseEstimator):
    """Predicts the mean label of what it was fitted to."""

    def fit(self, X, y, sample_weight=None, classes=None):
        self.classes_ = np.arange(2)
        self.mean_ = float(np.average(y, weights=sample_weight))
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.mean_, self.mean_], (len(X), 1))


def test_folds_of_cells_keep_squares_and_are_left_out():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 30, (12, 2))
    weight = counts * rng.gamma(3, size=counts.shape)
    p = np.linspace(0.05, 0.95, 12)
    sample = CellSample(
        np.column_stack([1 - p, p]), counts, weight, 2 * weight**2 / counts
    )
    folds = sample.split_into_folds(4, rng)
    for fold in folds[:1]:
        np.testing.assert_allclose(fold.squares * counts, sample.squares * fold.counts)
    case, _, _ = sample.recalibrate_held_out(Seen(), folds)
    means = [
        (weight - fold.weight)[:, 1].sum() / (weight - fold.weight).sum()
        for fold in folds
    ]
    assert np.unique(case.proba[:, 1]) == pytest.approx(np.sort(means))


# -- the command line, a table in colours ---------------------------------------------------------


def test_a_gate_names_the_end_that_it_judges(tmp_path, capsys):
    y, p, _ = rows()
    pd.DataFrame({"y": y, "p": p}).to_csv(tmp_path / "t.csv", index=False)
    given = [
        "audit",
        str(tmp_path / "t.csv"),
        "--label",
        "y",
        "--prob",
        "p",
        "--out",
        "none",
    ]
    assert (
        main(
            [*given, "--resamples", "5", "--no-advice", "--fail-if", "log_loss.low > 0"]
        )
        == 3
    )
    assert "log_loss.low is 0." in capsys.readouterr().err


def test_weights_of_labels_in_two_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    p = rng.random((80, 2))
    y = (rng.random((80, 2)) < p).astype(int)
    data = {
        "a": y[:, 0],
        "b": y[:, 1],
        "pa": p[:, 0],
        "pb": p[:, 1],
        "w": rng.integers(1, 9, 80),
    }
    frame, found = pd.DataFrame(data), []
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame[:40].to_csv(tmp_path / "one.csv", index=False)
    frame[40:].to_csv(tmp_path / "two.csv", index=False)
    more = [
        "--label",
        "a,b",
        "--prob",
        "pa,pb",
        "--weight",
        "w",
        "--resamples",
        "2",
        "--out",
        "none",
    ]
    for files in (["all.csv"], ["one.csv", "two.csv"]):
        where = [str(tmp_path / file) for file in files]
        assert (
            main(
                ["audit-multilabel", *where, *more, "--json", str(tmp_path / "r.json")]
            )
            == 0
        )
        content = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        found.append((content["labels"], content["averages"]))
    capsys.readouterr()
    assert found[0] == found[1]
