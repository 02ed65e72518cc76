"""Rows that belong together: no group is split between folds, by any function."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib._cli import main
from sklearn_calib._cli._drawn import compute_clustered_difference
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_json
from sklearn_calib.inference import paired_difference
from sklearn_calib.metrics import LogLoss, log_loss
from sklearn_calib.recalibrators import StackedCalibration, cross_fitted_proba
from sklearn_calib.recalibrators._stacking import compute_fit_and_held_out_weights


def forecasts(n_groups=60, size=12, seed=0):
    """Elections, each with one outcome and forecasts that nearly repeat."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n_groups)
    y = (rng.random(n_groups) < expit(z)).astype(int)
    p = expit(np.repeat(z, size) + 1e-4 * rng.normal(size=n_groups * size))
    order = rng.permutation(n_groups * size)
    return (
        p[order],
        np.repeat(y, size)[order],
        np.repeat(np.arange(n_groups), size)[order],
    )


def two(p):
    return np.column_stack([1 - p, p])


@pytest.mark.parametrize("cv", [5, GroupKFold(4)])
def test_no_group_is_split(cv):
    p, y, groups = forecasts()
    folds = compute_fit_and_held_out_weights(
        two(p), y, np.ones(len(p)), cv, 10**6, groups=groups
    )
    assert len(folds) == (5 if cv == 5 else 4)
    for kept, left in folds:
        assert not set(groups[kept > 0]) & set(groups[left > 0])
        share = y[left > 0].mean() / y.mean()
        assert cv != 5 or 0.85 < share < 1.15  # stratified
    assert (sum(left for _, left in folds) == 1).all()


def test_folds_depend_on_no_order_and_no_name():
    p, y, groups = forecasts()
    order = np.random.default_rng(1).permutation(len(p))
    a = compute_fit_and_held_out_weights(
        two(p), y, np.ones(len(p)), 5, 10**6, groups=groups
    )
    b = compute_fit_and_held_out_weights(
        two(p[order]), y[order], np.ones(len(p)), 5, 10**6, groups=59 - groups[order]
    )
    for (_, one), (_, other) in zip(a, b, strict=True):
        assert (one[order] == other).all()


def test_many_small_groups_and_samples_of_rows():
    rng = np.random.default_rng(0)
    n = 12_000
    p, groups = rng.random(n), np.arange(n) // 2
    y = (rng.random(n) < p).astype(int)
    for most in (10**6, 3000):
        folds = compute_fit_and_held_out_weights(
            two(p), y, np.ones(n), 5, most, groups=groups
        )
        where = np.column_stack(
            [np.bincount(groups, left > 0) > 0 for _, left in folds]
        )
        assert where.sum(axis=1).max() == 1
        sizes = where.sum(axis=0)
        assert sizes.min() > 0.8 * sizes.max()


@pytest.mark.slow
def test_leaking_folds_tell_a_loss_that_groups_do_not():
    p, y, groups = forecasts()
    leaking = StackedCalibration().fit(p, y)
    honest = StackedCalibration().fit(p, y, groups=groups)
    names = [f"race {g}" for g in groups]
    again = StackedCalibration().fit(p, y, groups=names)
    assert again.weights_ == honest.weights_
    new_p, new_y, _ = forecasts(2000, 1, seed=1)
    losses = [log_loss(new_y, s.predict_proba(new_p)) for s in (leaking, honest)]
    assert losses[1] <= losses[0]
    told = [
        sum(w * s.cv_losses_[m][0] for m, w in s.weights_.items())
        for s in (leaking, honest)
    ]
    assert told[0] < told[1]
    assert abs(told[1] - losses[1]) < 0.12


@pytest.mark.slow
def test_rows_of_weight_zero_have_no_group():
    p, y, groups = forecasts(20, 6)
    weight = (np.arange(len(p)) % 3 > 0).astype(float)
    kept = weight > 0
    a = StackedCalibration().fit(p, y, sample_weight=weight, groups=groups)
    b = StackedCalibration().fit(p[kept], y[kept], groups=groups[kept])
    assert a.weights_ == b.weights_


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], "one value for each of the 240 rows"),
        (np.full(240, np.nan), "none in row 0"),
        ([*"ab" * 119, "c", None], "none in row 239"),
    ],
)
def test_bad_groups(groups, message):
    p, y, _ = forecasts(20, 12)
    with pytest.raises(ValueError, match=message):
        StackedCalibration().fit(p, y, groups=groups)


def test_one_group_says_so():
    p, y, _ = forecasts(20, 12)
    with pytest.warns(CalibrationWarning, match="at least two groups"):
        stack = StackedCalibration().fit(p, y, groups=np.zeros(240))
    assert stack.cv_losses_ == {}


def test_cross_fitted_rows_have_not_seen_their_group():
    p, y, groups = forecasts()
    losses = [
        log_loss(y, cross_fitted_proba("isotonic", p, y, groups=own))
        for own in (None, groups)
    ]
    assert losses[0] < 0.7 * losses[1]


class Spy(StackedCalibration):
    """Notes the groups that its fits get."""

    seen = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, classes=None, groups=None):
        self.seen.append(None if groups is None else np.asarray(groups))
        return super().fit(
            X, y, sample_weight=sample_weight, classes=classes, groups=groups
        )


def rows(n_groups=60, size=8):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_groups), size)
    X = rng.normal(size=(n_groups, 3))[groups] + 0.01 * rng.normal(
        size=(n_groups * size, 3)
    )
    y = (rng.random(n_groups) < expit(2 * X[::size, 0])).astype(int)[groups]
    return X, y, groups


@pytest.mark.parametrize("cv", [None, 3, GroupKFold(4)])
def test_a_calibrated_model_passes_groups_on(cv):
    X, y, groups = rows()
    Spy.seen.clear()
    CalibratedModel(LogisticRegression(), Spy(["identity", "platt"]), cv=cv).fit(
        X, y, groups=groups
    )
    folds = [set(part) for part in Spy.seen if len(part) > len(y) / 10]
    assert all(part is not None for part in Spy.seen)
    first = [part for part in folds if len(part) >= 60 / 5 - 1]
    assert len({frozenset(part) for part in first}) >= {None: 5, 3: 3}.get(cv, 4)
    whole = {frozenset(part) for part in first}
    assert len(set.union(*map(set, whole))) == 60


def test_frozen_and_single_models_pass_groups_on():
    X, y, groups = rows()
    model = LogisticRegression().fit(X, y)
    for options in ({"estimator": FrozenEstimator(model)}, {"ensemble": False}):
        Spy.seen.clear()
        given = {
            "estimator": LogisticRegression(),
            "recalibrator": Spy(["identity", "platt"]),
        }
        CalibratedModel(**{**given, **options}).fit(X, y, groups=groups)
        assert sorted(Spy.seen[0]) == sorted(groups)
    steps = make_pipeline("passthrough", Spy(["identity", "platt"]))
    Spy.seen.clear()
    CalibratedModel(FrozenEstimator(model), steps).fit(X, y, groups=groups)
    assert sorted(Spy.seen[0]) == sorted(groups)


@pytest.mark.slow
def test_metadata_routing_passes_groups_to_auto():
    X, y, groups = rows()
    with config_context(enable_metadata_routing=True):
        Spy.seen.clear()
        method = Spy(["identity", "platt"]).set_fit_request(groups=True)
        CalibratedModel(LogisticRegression(), method).fit(X, y, groups=groups)
        assert all(part is not None for part in Spy.seen)
        auto = CalibratedModel(FrozenEstimator(LogisticRegression().fit(X, y)), "auto")
        routed = auto.fit(X, y, groups=groups).recalibrator_.weights_
    plain = auto.fit(X, y, groups=groups).recalibrator_.weights_
    assert routed == plain != auto.fit(X, y).recalibrator_.weights_


class Folds(LogisticRegression):
    """Notes the rows that it is fitted to, by their third feature."""

    seen = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.seen.append(set(X[:, 2]))
        return super().fit(X, y, sample_weight)


@pytest.mark.slow
def test_models_of_the_folds_see_whole_groups():
    X, y, groups = rows(125)
    X[:, 2] = groups
    Folds.seen.clear()
    CalibratedModel(Folds(), "platt").fit(X, y, groups=groups)
    RefineThenCalibrateCV(Folds(), {"C": [1.0]}, cv=5).fit(X, y, groups=groups)
    CalibratedModel(MultiOutputClassifier(Folds())).fit(
        X, np.column_stack([y, 1 - y]), groups=groups
    )
    split = [part for part in Folds.seen if len(part) < 125]
    assert len(split) == 5 + 5 + 10
    assert all(len(part) == 100 for part in split)


@pytest.mark.slow
def test_fit_by_group_on_the_command_line(tmp_path, capsys):
    p, y, groups = forecasts(100, 10)
    table = tmp_path / "t.csv"
    frame = pd.DataFrame({"p": p, "y": y, "race": [f"r{g}" for g in groups]})
    frame.to_csv(table, index=False)
    out = tmp_path / "map.json"
    call = ["fit", str(table), "--label", "y", "--prob", "p", "--out", str(out)]
    assert main([*call, "--recalibrator", "isotonic", "--allow", "no-gain"]) == 0
    leaking = capsys.readouterr().out
    assert main([*call, "--recalibrator", "isotonic"]) == 0, leaking  # it seems to help
    capsys.readouterr()
    assert main([*call, "--recalibrator", "isotonic", "--cluster", "race"]) == 3
    assert main([*call, "--cluster", "race", "--allow", "no-gain"]) == 0
    assert "too short" not in capsys.readouterr().out
    rows, fitted = (
        p[:50],
        StackedCalibration().fit(p, y, groups=[f"r{g}" for g in groups]),
    )
    assert np.allclose(
        from_json(out).predict_proba(rows), fitted.predict_proba(rows), atol=1e-9
    )
    leaking = StackedCalibration().fit(p, y).predict_proba(rows)
    assert not np.allclose(leaking, fitted.predict_proba(rows), atol=1e-3)
    frame.loc[3, "race"] = None
    frame.to_csv(table, index=False)
    assert main([*call, "--cluster", "race"]) == 2
    assert "expected a group in every row" in capsys.readouterr().err


def test_few_groups_make_an_interval_that_is_too_short(tmp_path, capsys):
    p, y, groups = forecasts(49, 5)
    pd.DataFrame({"p": p, "y": y, "race": groups}).to_csv(
        table := tmp_path / "t.csv", index=False
    )
    call = [
        "fit",
        str(table),
        "--label",
        "y",
        "--prob",
        "p",
        "--out",
        str(tmp_path / "map.json"),
    ]
    call += ["--recalibrator", "platt", "--allow", "no-gain"]
    assert main(call) == 0
    assert "wants some" not in capsys.readouterr().out
    assert main([*call, "--cluster", "race"]) == 0
    assert "wants some 50 groups, here are 49" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [50, 300])
def test_the_interval_of_the_gain_covers_where_rows_of_a_group_are_alike(n_groups):
    """A fixed map: without the factor for folds, 90 % of the intervals hold the expected gain."""
    rng = np.random.default_rng(0)

    def drawn(count):
        z = rng.normal(size=count).repeat(10)
        before = expit(z + 0.05 * rng.normal(size=len(z)))
        return z, before, expit(0.8 * z)

    z, *both = drawn(200_000)
    truth = expit(z)
    loss = [-(truth * np.log(p) + (1 - truth) * np.log1p(-p)).mean() for p in both]
    wanted, inside, apart = loss[1] - loss[0], [], []
    groups = np.arange(n_groups).repeat(10)
    for _ in range(800):
        z, before, after = drawn(n_groups)
        y = (rng.random(n_groups) < expit(z[::10])).astype(int).repeat(10)
        found = paired_difference(y, before, after, level=0.9)
        moved = LogLoss().compute_row_losses(
            two(after), y
        ) - LogLoss().compute_row_losses(two(before), y)
        own = compute_clustered_difference(found, moved, np.ones(len(y)), groups)
        inside.append(own.low <= wanted <= own.high)
        apart.append(found.low <= wanted <= found.high)
    assert 0.86 < np.mean(inside) < 0.94
    assert np.mean(apart) < 0.6


def test_splitters_without_groups_still_work():
    p, y, _ = forecasts(20, 12)
    assert StackedCalibration(cv=KFold(3)).fit(p, y).cv_losses_
