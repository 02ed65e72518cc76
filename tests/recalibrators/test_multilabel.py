"""Many labels per row: pooling, missing labels, and both forms of probabilities."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._ridge_logistic_groups import (
    COMMON_LINE_PENALTY,
    MultilabelRidgeInput,
    choose_shrunken_lines,
)
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import (
    IsotonicCalibration,
    MultilabelCalibration,
    PlattScaling,
    all_recalibrators,
)

RATES = (0.5, 0.2, 0.06)


def make_labels(n=400, rates=RATES, seed=0):
    """Overconfident scores of some labels, and the labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, len(rates))) + logit(np.array(rates))
    return expit(1.8 * z + 0.3), (rng.random(z.shape) < expit(z)).astype(float)


def lines(model):
    return np.array([[line.intercept_, line.slope_] for line in model.recalibrators_])


# -- pooling -----------------------------------------------------------------------------------


def test_shrinkage_0_is_none_and_infinity_is_all():
    p, Y = make_labels()
    platt = PlattScaling(smooth_targets=False)
    for shrinkage, near, pooling in ((0, 1e-9, "none"), (np.inf, 1e12, "all")):
        wanted = MultilabelCalibration(platt, pooling).fit(p, Y)
        exact = MultilabelCalibration(shrinkage=shrinkage).fit(p, Y)
        close = MultilabelCalibration(shrinkage=near).fit(p, Y)
        np.testing.assert_array_equal(exact.predict_proba(p), wanted.predict_proba(p))
        np.testing.assert_allclose(
            close.predict_proba(p), wanted.predict_proba(p), atol=1e-8
        )
        assert exact.shrinkage_ == shrinkage


def test_none_and_all_are_the_method_itself():
    p, Y = make_labels()
    each = MultilabelCalibration("isotonic", "none").fit(p, Y)
    for label in range(3):
        single = IsotonicCalibration().fit(p[:, label], Y[:, label].astype(int))
        np.testing.assert_array_equal(
            each.predict_proba(p)[:, label], single.predict_proba(p[:, label])[:, 1]
        )
    both = MultilabelCalibration("beta", "all").fit(p, Y)
    pooled = clone(all_recalibrators()["beta"]()).fit(
        p.T.ravel(), Y.T.ravel().astype(int)
    )
    np.testing.assert_allclose(
        both.predict_proba(p),
        pooled.predict_proba(p.ravel())[:, 1].reshape(p.shape),
        atol=1e-12,
    )
    assert both.recalibrators_[0] is both.recalibrators_[2] is both.pooled_


@pytest.mark.parametrize("tau", [0.1, 10.0])
def test_lines_minimise_the_penalised_loss(tau):
    p, Y = make_labels(200)
    Y[::7, 1] = np.nan
    model = MultilabelCalibration(shrinkage=tau).fit(p, Y)
    z, known = logit(p), ~np.isnan(Y)
    s = z[known].std()
    common = np.array([model.pooled_.intercept_, model.pooled_.slope_])
    for label, found in enumerate(lines(model)):
        rows = known[:, label]

        def loss(line, label=label, rows=rows):
            eta = line[0] + line[1] * z[rows, label]
            away = (line - common) * [1, s]
            return (
                np.sum(np.logaddexp(0, eta) - Y[rows, label] * eta)
                + tau / 2 * away @ away
            )

        direct = minimize(loss, common, tol=1e-12)
        np.testing.assert_allclose(found, direct.x, atol=2e-5)
        assert loss(found) <= direct.fun + 1e-9


def exact_leave_one_out(p, Y, tau):
    """The loss of each row by a fit without it."""
    z, losses = logit(p), []
    s = MultilabelRidgeInput(
        z, Y, np.ones_like(Y), np.ones_like(Y)
    ).score_standard_deviation
    for row in range(len(p)):
        rest = np.arange(len(p)) != row
        pooled = MultilabelCalibration(shrinkage=np.inf).fit(p[rest], Y[rest]).pooled_
        centre = np.array([pooled.intercept_, pooled.slope_])
        for label in range(p.shape[1]):
            x = z[rest, label], Y[rest, label]

            def loss(line, x=x, centre=centre):
                eta = line[0] + line[1] * x[0]
                away = (line - centre) * [1, s]
                return np.sum(np.logaddexp(0, eta) - x[1] * eta) + tau / 2 * away @ away

            line = centre if tau == np.inf else minimize(loss, centre, tol=1e-10).x
            eta = line[0] + line[1] * z[row, label]
            losses.append(np.logaddexp(0, eta) - Y[row, label] * eta)
    return np.mean(losses)


@pytest.mark.slow
@pytest.mark.parametrize("tau", [np.inf, 5.0])
def test_leave_one_out_is_that_of_refits(tau):
    p, Y = make_labels(40, (0.5, 0.3), seed=3)
    exact = exact_leave_one_out(p, Y, tau)
    weight = np.ones_like(Y)
    pooled = MultilabelCalibration(shrinkage=np.inf).fit(p, Y).pooled_
    line = pooled.intercept_, pooled.slope_
    found = choose_shrunken_lines(
        MultilabelRidgeInput(logit(p), Y, weight, weight), line, [tau]
    ).loss_by_penalty[tau]
    in_sample = MultilabelCalibration(shrinkage=tau).fit(p, Y).predict_proba(p)
    fitted = -np.mean(np.log(np.where(Y == 1, in_sample, 1 - in_sample)))
    assert exact - fitted > 0.01  # leaving out matters on 40 rows
    assert found == pytest.approx(exact, abs=0.05 * (exact - fitted))


def test_the_shrinkage_is_the_best_of_the_leave_one_out_losses():
    for seed in range(4):
        p, Y = make_labels(300, seed=seed)
        p[:, 0] = expit(0.3 * logit(p[:, 0]))  # its map is not that of the others
        model = MultilabelCalibration().fit(p, Y)
        losses = model.leave_one_out_
        assert list(losses) == [np.inf, 100.0, 10.0, 1.0, 0.1]
        assert losses[model.shrinkage_] <= min(losses.values()) + 1e-7
        assert model.shrinkage_ < 100 < np.inf
    p, Y = make_labels(300, (0.5, 0.5, 0.5, 0.05))  # one map for all
    assert MultilabelCalibration().fit(p, Y).shrinkage_ >= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spread", "n", "best", "least", "most"),
    [
        (0.0, 200, "all", 0.001, 0.006),
        (0.25, 200, "shrink", 0.0005, 0.003),
        (0.5, 200, "none", -0.001, 0.001),
        (0.25, 3000, "none", -0.0002, 0.0002),
    ],
)
def test_shrinking_is_near_the_best_pooling_whatever_the_labels(
    spread, n, best, least, most
):
    """Lines that are equal or differ, few rows or many: the sample of benchmarks/multilabel."""
    rates = 0.4 / np.arange(1, 17, 2)
    excess, over_none = [], []
    for draw in range(15):
        rng = np.random.default_rng([draw, n])
        slopes = 2 * np.exp(spread * rng.normal(size=8))
        shifts = spread * rng.normal(size=8)

        def labelled(n, rng=rng, slopes=slopes, shifts=shifts):
            eta = rng.normal(size=(n, 8)) + logit(rates)
            return (
                expit(slopes * (eta - shifts)),
                rng.random((n, 8)) < expit(eta),
                expit(eta),
            )

        p, Y, _ = labelled(n)
        Y[0], Y[1] = True, False  # each label has both kinds of rows
        new, _, truth = labelled(3000)
        loss = {}
        for pooling in ("none", "all", "shrink"):
            q = (
                MultilabelCalibration(pooling=pooling)
                .fit(p, Y.astype(int))
                .predict_proba(new)
            )
            q = np.clip(q, 1e-12, 1 - 1e-12)
            loss[pooling] = -np.mean(truth * np.log(q) + (1 - truth) * np.log1p(-q))
        excess.append(loss["shrink"] - loss[best])
        over_none.append(loss["none"] - loss["shrink"])
    assert abs(np.mean(excess)) < 0.001  # on the side of the best
    assert least < np.mean(over_none) < most


# -- weights and missing labels -----------------------------------------------------------------


@pytest.mark.parametrize("pooling", ["none", "all", "shrink"])
def test_weights_are_repetition_and_rows_have_no_order(pooling):
    p, Y = make_labels(150)
    Y[::5, 1] = np.nan
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, len(p))
    order = rng.permutation(np.repeat(np.arange(len(p)), weight))
    model = MultilabelCalibration(pooling=pooling)
    weighted = clone(model).fit(p, Y, weight)
    repeated = clone(model).fit(p[order], Y[order])
    np.testing.assert_allclose(
        weighted.predict_proba(p), repeated.predict_proba(p), atol=1e-9
    )
    if pooling == "shrink":
        for tau, loss in weighted.leave_one_out_.items():
            assert loss == pytest.approx(repeated.leave_one_out_[tau], abs=1e-9)


@pytest.mark.parametrize("pooling", ["none", "all", "shrink"])
def test_a_missing_label_counts_nothing_and_the_rest_of_its_row_does(pooling):
    p, Y = make_labels(150)
    partly = Y.copy()
    partly[:50, 1] = np.nan
    model = MultilabelCalibration(pooling=pooling, shrinkage=5.0).fit(p, partly)
    other = partly.copy()
    p_other = p.copy()
    p_other[:50, 1] = 0.123  # its score does not matter either
    same = clone(model).fit(p_other, other)
    np.testing.assert_allclose(model.predict_proba(p), same.predict_proba(p), atol=1e-9)
    if pooling == "none":
        rows = clone(model).fit(p[50:], Y[50:])  # label 1 saw these rows, label 0 more
        np.testing.assert_allclose(lines(model)[1], lines(rows)[1], atol=1e-9)
        assert abs(lines(model)[0] - lines(rows)[0]).max() > 1e-3


def test_a_label_without_rows_gets_the_common_map():
    p, Y = make_labels()
    Y[:, 1] = np.nan
    frame = pd.DataFrame(Y, columns=["rain", "hail", "snow"])
    for pooling in ("all", "shrink"):
        with pytest.warns(
            CalibrationWarning, match=r"a row whose label.*for label hail\. The map"
        ):
            model = MultilabelCalibration(pooling=pooling).fit(p, frame)
        found, wanted = model.recalibrators_[1], model.pooled_
        assert (found.slope_, found.intercept_) == pytest.approx(
            (wanted.slope_, wanted.intercept_), abs=1e-12
        )


def test_without_pooling_a_label_without_information_stays():
    p, Y = make_labels()
    Y[:, 0], Y[:, 2] = np.nan, 0
    with pytest.warns(
        CalibrationWarning, match="one kind or none for labels 0, 2.*stay as"
    ):
        model = MultilabelCalibration("isotonic", "none").fit(p, Y)
    after = model.predict_proba(p)
    np.testing.assert_array_equal(after[:, [0, 2]], p[:, [0, 2]])
    assert abs(after[:, 1] - p[:, 1]).max() > 0.01


@pytest.mark.parametrize("pooling", ["none", "all", "shrink"])
def test_all_labels_of_one_kind(pooling):
    p, Y = make_labels(50)
    with pytest.warns(CalibrationWarning, match="stay as they are"):
        model = MultilabelCalibration(pooling=pooling).fit(p, np.zeros_like(Y))
    np.testing.assert_array_equal(model.predict_proba(p), p)


def test_shrinking_learns_from_a_label_that_nobody_has():
    """No row has it: the maximum likelihood is infinite, the penalised one is not."""
    p, Y = make_labels()
    Y[:, 2] = 0
    model = MultilabelCalibration(shrinkage=1.0).fit(p, Y)
    after = model.predict_proba(p)
    assert 0 < after[:, 2].mean() < p[:, 2].mean()


# -- forms ---------------------------------------------------------------------------------------


def test_the_output_has_the_form_of_the_input():
    p, Y = make_labels(100)
    pairs = [np.column_stack([1 - column, column]) for column in p.T]
    model = MultilabelCalibration().fit(pairs, Y)
    table, listed = model.predict_proba(p), model.transform(pairs)
    assert isinstance(table, np.ndarray) and table.shape == (100, 3)
    assert (
        isinstance(listed, list) and [part.shape for part in listed] == [(100, 2)] * 3
    )
    assert all(abs(part.sum(axis=1) - 1).max() <= 1e-12 for part in listed)
    np.testing.assert_allclose(
        np.column_stack([q[:, 1] for q in listed]), table, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(pairs), (table > 0.5).astype(int))
    assert model.get_feature_names_out()[2] == "multilabelcalibration2"


def test_logits_keep_their_digits():
    rng = np.random.default_rng(0)
    z = rng.normal(scale=60, size=(300, 2))  # probabilities of 1 - 1e-26
    Y = (rng.random(z.shape) < expit(z / 40)).astype(int)
    pairs = [canonical_proba(column, kind="logits") for column in z.T]
    model = MultilabelCalibration(shrinkage=1e9).fit(pairs, Y)
    pooled = PlattScaling(smooth_targets=False).fit(
        canonical_proba(z.T.ravel(), kind="logits"), Y.T.ravel()
    )
    np.testing.assert_allclose(model.recalibrators_[0].slope_, pooled.slope_, rtol=1e-5)
    assert model.predict_proba(pairs)[0][:, 1].max() < 1


@run_every_case(
    "make",
    [
        sparse.csr_matrix,
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(np.int8),
        lambda Y: Y.tolist(),
        lambda Y: pd.DataFrame(Y).astype("Int64"),
        pd.DataFrame,
    ],
)
def test_kinds_of_label_tables(make):
    p, Y = make_labels(100)
    wanted = MultilabelCalibration(shrinkage=1.0).fit(p, Y).predict_proba(p)
    found = MultilabelCalibration(shrinkage=1.0).fit(p, make(Y)).predict_proba(p)
    np.testing.assert_array_equal(found, wanted)


def test_missing_labels_of_pandas():
    p, Y = make_labels(100)
    frame = pd.DataFrame(Y).astype("Int64")
    frame.iloc[3, 1] = pd.NA
    Y[3, 1] = np.nan
    wanted = MultilabelCalibration(shrinkage=1.0).fit(p, Y).predict_proba(p)
    np.testing.assert_array_equal(
        MultilabelCalibration(shrinkage=1.0).fit(p, frame).predict_proba(p), wanted
    )


def test_forests_say_0_and_1():
    p, Y = make_labels(300)
    rough = np.round(p * 5) / 5
    model = MultilabelCalibration().fit(rough, Y)
    after = model.predict_proba(np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    assert (after > 0).all() and (after < 1).all()


# -- the estimator ------------------------------------------------------------------------------


def test_contract_of_an_estimator():
    p, Y = make_labels(100)
    before = p.copy(), Y.copy()
    model = MultilabelCalibration("platt", shrinkage=3.0)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict_proba(p)
    model.fit(p, Y)
    np.testing.assert_array_equal(p, before[0])
    np.testing.assert_array_equal(Y, before[1])
    after = model.predict_proba(p)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(p), after
    )
    np.testing.assert_allclose(model.predict_proba(p[7:8]), after[7:8], rtol=1e-14)
    assert (
        model.n_features_in_ == 3
        and [c.tolist() for c in model.classes_] == [[0, 1]] * 3
    )
    assert get_tags(model).classifier_tags.multi_label
    assert "multilabel" not in all_recalibrators()  # its rows do not sum to 1
    with pytest.raises(ValueError, match=r"^"):
        model.fit(p, Y + 1)
    with pytest.raises(NotFittedError):
        model.predict_proba(p)


def test_columns_of_a_table_have_names():
    p, Y = make_labels(100)
    frame = pd.DataFrame(p, columns=["a", "b", "c"])
    model = MultilabelCalibration().fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.predict_proba(frame).shape == (100, 3)


def test_any_classifier_is_a_map():
    p, Y = make_labels(100)
    model = MultilabelCalibration(LogisticRegression(), "none").fit(p, Y)
    assert model.predict_proba(p).shape == (100, 3)


@run_every_case(
    ("change", "message"),
    [
        (
            lambda p, Y: (p[:, :2], Y),
            r"labels of shape \(60, 2\), as many.*got shape \(60, 3\)",
        ),
        (lambda p, Y: ([*p.T[:2]], Y), r"expected .*got shape"),
        (
            lambda p, Y: (p + 0.9, Y),
            r"label 0: expected probabilities in \[0, 1\], got 1",
        ),
        (lambda p, Y: (-p, Y), r"label 0: expected probabilities in \[0, 1\], got -0"),
        (lambda p, Y: (np.where(p > 0.9, np.nan, p), Y), "label 0: expected finite"),
        (
            lambda p, Y: (p[:, 0], Y[:, 0]),
            r"expected scores of shape \(n_samples, n_labels\)",
        ),
        (lambda p, Y: (p, Y[:, 0]), r"labels of shape \(60, 3\).*got shape \(60,\)"),
        (lambda p, Y: (p, Y[:-1]), r"got shape \(59, 3\)"),
        (lambda p, Y: (p, 2 * Y), r"labels 0, 1 or NaN \(unknown\), got 2 in row"),
        (
            lambda p, Y: (p, np.full_like(Y, np.nan)),
            "at least one known label, got NaN every",
        ),
        (lambda p, Y: (p[:0], Y[:0]), "at least one row and one label"),
        (lambda p, Y: (p[:, :0], Y[:, :0]), "at least one row and one label"),
        (
            lambda p, Y: ([p, p, p], Y),
            r"label 0: expected an array of shape \(n_samples, 2\)",
        ),
        (
            lambda p, Y: (
                [p[:, :2] / p[:, :2].sum(axis=1)[:, None], np.ones((9, 2)) / 2],
                Y,
            ),
            r"as many rows for each label, got \[9, 60\] rows",
        ),
        (
            lambda p, Y: (np.stack([p, p]), Y),
            r"or a list of arrays.*got shape \(2, 60, 3\)",
        ),
    ],
)
def test_bad_input_is_refused(change, message):
    X, y = change(*make_labels(60, (0.5, 0.5, 0.3)))
    with pytest.raises(ValueError, match=message):
        MultilabelCalibration().fit(X, y)


def test_bad_arguments_are_refused():
    p, Y = make_labels(60)
    for method in ("isotonic", PlattScaling(prior_weight=1.0)):
        with raises_invalid_input(
            ValueError, expected=".*PlattScaling with prior_weight=0 for pooling='shr"
        ):
            MultilabelCalibration(method).fit(p, Y)
    with pytest.raises(ValueError, match="'pooling' parameter"):
        MultilabelCalibration(pooling="some").fit(p, Y)
    with pytest.raises(ValueError, match="'shrinkage' parameter"):
        MultilabelCalibration(shrinkage=-1).fit(p, Y)
    with raises_invalid_input(
        TypeError, expected="a recalibrator: a name or an instance"
    ):
        MultilabelCalibration(3).fit(p, Y)
    model = MultilabelCalibration().fit(p, Y)
    with raises_invalid_input(ValueError, expected=".*scores of 3 labels", value="2"):
        model.predict_proba(p[:, :2])
    with raises_invalid_input(ValueError, expected="sample_weight >= 0"):
        MultilabelCalibration().fit(p, Y, -np.ones(60))


# -- the kernel at its limits --------------------------------------------------------------------


def test_the_kernel_at_its_limits():
    rng = np.random.default_rng(0)
    one = np.ones((1, 2))
    single = choose_shrunken_lines(
        MultilabelRidgeInput(0 * one, np.array([[0.0, 1.0]]), one, one), [0.0, 1.0]
    )
    assert (
        np.isfinite(single.lines).all()
        and np.isfinite([*single.loss_by_penalty.values()]).all()
    )
    z = np.array([[1e5], [-1e5], [0.1], [0.2]]) * np.ones(2)
    far = choose_shrunken_lines(
        MultilabelRidgeInput(
            z, (rng.random(z.shape) < 0.5) * 1.0, np.ones_like(z), np.ones_like(z)
        ),
        [0, 1.0],
    )
    assert (
        np.isfinite(far.lines).all()
        and np.isfinite([*far.loss_by_penalty.values()]).all()
    )
    assert COMMON_LINE_PENALTY in far.loss_by_penalty


def test_no_warning_of_numpy():
    p, Y = make_labels(30, (0.5, 0.02), seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        MultilabelCalibration().fit(
            p, np.column_stack([Y[:, 0], p[:, 1] > np.median(p[:, 1])])
        )


def test_one_half_is_not_predicted():
    """What the method documents of a tie: a label is set above 1/2."""
    Y = np.tile([[0, 1], [1, 0]], (20, 1))
    same = MultilabelCalibration("identity", pooling="none").fit(
        np.tile([[0.3, 0.7], [0.7, 0.3]], (20, 1)), Y
    )
    rows = [[0.5, np.nextafter(0.5, 1)], [np.nextafter(0.5, 0), 0.5]]
    assert same.predict(rows).tolist() == [[0, 1], [0, 0]]


@pytest.mark.slow
def test_a_row_of_any_weight_is_left_out_whole():
    """Of weights that are not counts: refits of the common line without the row say the loss."""
    p, Y = make_labels(40, (0.5, 0.3), seed=3)
    weight = 0.07 * (1 + np.arange(40) % 3)
    z, each = logit(p), []
    for row in range(40):
        rest = np.arange(40) != row
        all_of_them = MultilabelCalibration(shrinkage=np.inf)
        line = all_of_them.fit(p[rest], Y[rest], weight[rest]).pooled_
        eta = line.intercept_ + line.slope_ * z[row]
        each.append((np.logaddexp(0, eta) - Y[row] * eta).mean())
    exact = np.average(each, weights=weight)
    model = MultilabelCalibration().fit(p, Y, weight)
    own = expit(model.pooled_.intercept_ + model.pooled_.slope_ * z)
    fitted = np.average(
        -np.log(np.where(Y == 1, own, 1 - own)).mean(axis=1), weights=weight
    )
    assert exact - fitted > 0.01
    assert model.leave_one_out_[np.inf] == pytest.approx(
        exact, abs=0.1 * (exact - fitted)
    )
