"""Soft labels are weighted rows with one label each: the same function, and everything after it."""

import inspect
import re

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_functions import FUNCTIONS, call as call_function, rows
from words import QUICKER, differ, same

import sklearn_calib
from sklearn_calib import CalibratedModel
from sklearn_calib._validation import validate_soft_labels
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.groups import GroupRecalibration, MulticalibratedScores
from sklearn_calib.inference import (
    calibration_test,
    confidence_interval,
    paired_difference,
    spiegelhalter_test,
    validation_summary,
)
from sklearn_calib.metrics import (
    all_metrics,
    brier_loss,
    calibration_error,
    get_scorer,
    kernel_calibration_error,
    log_loss,
    lp_calibration_error,
)
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    AdaptiveCalibration,
    PlattScaling,
    StackedCalibration,
    all_recalibrators,
)
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

SLOW = {
    *("AdaptiveCalibration", "RestrictedPolynomialRegression", "StackedCalibration"),
    *("BBQ", "ENIR", "TrendFiltering", "TrendFilteringEnsemble", "AngularCalibration"),
}


def shares(k, n=60, seed=0):
    """Scores, shares that mostly follow them, and weights; a third of the shares are 0 or 1."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), n)
    soft = 0.7 * proba + 0.3 * rng.dirichlet(np.ones(k), n)
    sure = [rng.choice(k, p=row) for row in proba[: n // 3]]
    soft[: n // 3] = np.eye(k)[sure]
    soft /= soft.sum(axis=1, keepdims=True)
    return proba, soft, rng.random(n) + 0.5


def doubled(soft, weight):
    """Items, labels and weights of the rows, made by hand; those of weight 0 stay."""
    n, k = soft.shape
    return (
        np.repeat(np.arange(n), k),
        np.tile(np.arange(k), n),
        (soft * weight[:, None]).ravel(),
    )


RECALIBRATORS = [
    pytest.param(cls, marks=pytest.mark.slow if cls.__name__ in SLOW else ())
    for cls in all_recalibrators().values()
    if not cls.capabilities.order_dependent
]


@pytest.mark.filterwarnings("ignore")
@run_every_case("cls", RECALIBRATORS)
def test_a_recalibrator_learns_what_doubled_weighted_rows_tell(cls):
    method = cls(**QUICKER.get(cls.__name__, {}))
    for k in (2, 3):
        proba, soft, weight = shares(k)
        items, labels, mass = doubled(soft, weight)
        together = {"groups": items} if isinstance(method, StackedCalibration) else {}
        given = soft if k > 2 else soft[:, 1]
        fitted = method.fit(proba, given, weight, soft_labels=True).predict_proba(proba)
        expected = method.fit(proba[items], labels, mass, **together).predict_proba(
            proba
        )
        # which end a quasi-Newton method, or an interior point, reaches is told by last
        # bits
        ends = {"AngularCalibration": 1e-7, "RestrictedPolynomialRegression": 1e-11}
        within = ends.get(cls.__name__, 1e-12)
        np.testing.assert_allclose(fitted, expected, rtol=0, atol=within)


MEASURES = [
    pytest.param(name, marks=pytest.mark.slow if name.startswith("variational") else ())
    for name in sorted(all_metrics())
]


@run_every_case("name", MEASURES)
def test_a_measure_is_that_of_doubled_weighted_rows(name):
    measure = all_metrics()[name]
    for k in (2, 3):
        proba, soft, weight = shares(k)
        items, labels, mass = doubled(soft, weight)
        for option in ({"multiclass": "classwise"}, {}):
            if set(option) - set(measure.option_names):
                continue
            one = measure(soft, proba, sample_weight=weight, soft_labels=True, **option)
            same = measure(labels, proba[items], sample_weight=mass, **option)
            assert one == pytest.approx(same, abs=1e-12)
            assert one != measure(
                soft.argmax(axis=1), proba, sample_weight=weight, **option
            )
    two = measure(soft[:, 1] + soft[:, 2], proba[:, 0], soft_labels=True)
    both = np.column_stack([soft[:, 0], soft[:, 1] + soft[:, 2]])
    assert two == pytest.approx(measure(both, proba[:, 0], soft_labels=True), abs=1e-12)


def test_votes_of_a_count_are_rows():
    rng = np.random.default_rng(1)
    n, score = rng.integers(1, 30, 200), rng.random(200)
    votes = rng.binomial(n, score)
    again = np.repeat(score, n)
    labels = (
        np.concatenate([np.arange(m) < k for k, m in zip(votes, n, strict=True)]) * 1
    )
    for dtype in (np.float64, np.float32):
        rows = validate_soft_labels((votes / n).astype(dtype), n)
        assert (rows.weight == np.floor(rows.weight)).all()
        assert (
            np.bincount(rows.codes, rows.weight).tolist()
            == np.bincount(labels).tolist()
        )
    found = PlattScaling().fit(score, votes / n, n, soft_labels=True)
    assert found.slope_ == pytest.approx(
        PlattScaling().fit(again, labels).slope_, rel=1e-7
    )
    rows = validate_soft_labels([1 / 3, 0.5], [2.5, 1])  # no counts: as they are
    np.testing.assert_allclose(rows.weight, [5 / 3, 5 / 6, 0.5, 0.5], rtol=1e-15)


def test_labels_that_are_certain_are_labels():
    proba, _, weight = shares(2)
    y = (np.arange(60) % 3 == 0).astype(int)
    rows = validate_soft_labels(y, weight)
    assert rows.items.tolist() == list(range(60)) and rows.labels.tolist() == y.tolist()
    assert rows.weight.tolist() == weight.tolist()
    assert brier_loss(y == 1, proba, soft_labels=True) == brier_loss(y, proba)
    fitted = PlattScaling().fit(proba, y, soft_labels=True, classes=["no", "yes"])
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.slope_ == PlattScaling().fit(proba, y).slope_
    named = {"soft_labels": True, "labels": ["a", "b"]}
    quarter = np.full(60, 0.25)
    error = calibration_error(quarter, proba, **named, pos_label="a", n_bins=3)
    assert error == pytest.approx(
        calibration_error(1 - quarter, proba[:, 0], n_bins=3, **named)
    )


@run_every_case(
    ("y", "said"),
    [
        (
            [0.5, 1.2],
            r"soft labels in \[0, 1\], got 1.2 in row 1 .*k votes of n pass k / n",
        ),
        ([0.5, -0.1], "got -0.1 in row 1"),
        ([np.nan, 1], "got nan in row 0"),
        ([None, 1], "got nan in row 0"),
        (["a", "b"], "as soft labels, got dtype <U1"),
        ([[0.5, 0.5], [0.5, 0.6]], "rows sum to 1, got 1.1 in row 1"),
        ([[0.5, 0.5], [1.5, -0.5]], "got 1.5 in row 1, column 0"),
        (
            [[3, 2], [0, 5]],
            "whole numbers, which may be counts of votes .*as sample_weight",
        ),
        ([0.5, 0.5, 1], "as many labels as rows of scores, got 3 labels and 2 rows"),
        ([[0.2, 0.3, 0.5]] * 2, "2 columns"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
    ],
)
def test_what_is_no_share_is_refused(y, said):
    for call in (
        lambda: brier_loss(y, [0.2, 0.7], soft_labels=True),
        lambda: PlattScaling().fit([0.2, 0.7], y, soft_labels=True),
    ):
        with pytest.raises((ValueError, TypeError), match=rf"(?s)expected.*{said}"):
            call()


def test_fractions_without_the_word_name_it():
    model = CalibratedModel(LogisticRegression())
    for call in (
        lambda: brier_loss([0.3, 1.0], [0.2, 0.7]),
        lambda: PlattScaling().fit([0.2, 0.7], [0.3, 1.0]),
        lambda: model.fit([[0.2], [0.7]], [0.3, 1.0]),
        lambda: brier_loss([[0.3, 0.7], [1, 0]], [0.2, 0.7]),
    ):
        with raises_invalid_input(ValueError, hint=".*soft_labels=True"):
            call()
    with raises_invalid_input(
        ValueError, expected=".*2 classes, as the soft labels have", value="3"
    ):
        PlattScaling().fit([0.2, 0.7], [0.3, 1.0], classes=[0, 1, 2], soft_labels=True)


def test_what_needs_rows_of_one_label_is_refused():
    proba, soft, _ = shares(3)
    online = sklearn_calib.recalibrators.get_recalibrator("online")
    with pytest.raises(ValueError, match=r"rows in their order.*Draw a label"):
        online.fit(proba, soft, soft_labels=True)
    with raises_invalid_input(
        ValueError, expected="soft_labels without multilabel", value="both"
    ):
        brier_loss(soft, proba, soft_labels=True, multilabel="macro")
    for measure, option, way in (
        (
            kernel_calibration_error,
            {"estimator": "unbiased", "multiclass": "canonical"},
            "biased",
        ),
        (
            kernel_calibration_error,
            {"estimator": "linear", "multiclass": "canonical"},
            "biased",
        ),
        (lp_calibration_error, {"estimator": "unbiased"}, "plugin"),
        (calibration_error, {"debias": True}, "debias=False"),
    ):
        with pytest.raises(ValueError, match=f"one label each.*{way}"):
            measure(soft, proba, soft_labels=True, **option)
    canonical = {"soft_labels": True, "multiclass": "canonical"}
    biased = kernel_calibration_error(soft, proba, estimator="biased", **canonical)
    assert kernel_calibration_error(soft, proba, **canonical) == biased
    # the squared norm of residuals y - p, by its definition
    gap, distance = soft - proba, np.abs(proba[:, None] - proba[None]).sum(axis=2) / 2
    assert biased == pytest.approx((np.exp(-distance) * (gap @ gap.T)).mean(), rel=1e-9)


def test_an_exported_map_checks_shares():
    proba, soft, _ = shares(2)
    read = from_dict(to_dict(PlattScaling().fit(proba, soft, soft_labels=True)))
    assert read.fit(proba, soft[:, 1], soft_labels=True) is read
    with raises_invalid_input(ValueError, value="-1", row=0):
        read.fit(proba, -np.ones(60), soft_labels=True)


def test_rows_of_an_item_stay_in_one_fold():
    """The folds of "auto" are those of groups: with others it takes other weights."""
    proba, soft, weight = shares(2, 120)
    items, labels, mass = doubled(soft, weight)
    method = StackedCalibration(["temperature", "isotonic"], cv=2)
    found = method.fit(proba, soft, weight, soft_labels=True).weights_
    assert found != method.fit(proba[items], labels, mass).weights_
    pairs = np.arange(120) // 2
    by_pairs = method.fit(proba, soft, weight, groups=pairs, soft_labels=True).weights_
    assert (
        by_pairs == method.fit(proba[items], labels, mass, groups=pairs[items]).weights_
    )
    assert by_pairs != found


def test_tables_and_intervals_beside_the_scores():
    proba, soft, weight = shares(2, 80)
    items, labels, mass = doubled(soft, weight)
    table = {"a": np.arange(80) % 2, "b": np.arange(80.0)}
    again = {name: column[items] for name, column in table.items()}
    method = GroupRecalibration()
    found = method.fit(proba, soft, {"a": table["a"]}, weight, soft_labels=True)
    expected = GroupRecalibration().fit(proba[items], labels, {"a": again["a"]}, mass)
    np.testing.assert_allclose(found.slopes_, expected.slopes_, atol=1e-12)
    fold = np.arange(80) % 2
    pairs = [(np.flatnonzero(fold == f), np.flatnonzero(fold != f)) for f in (0, 1)]
    copies = [
        tuple(np.flatnonzero(np.isin(items, part)) for part in pair) for pair in pairs
    ]
    found = MulticalibratedScores(n_rounds=1, cv=pairs)
    found.fit(proba, soft, table, weight, soft_labels=True)
    expected = MulticalibratedScores(n_rounds=1, cv=copies).fit(
        proba[items], labels, again, mass
    )
    one, two = found.predict_proba(proba, table), expected.predict_proba(proba, table)
    np.testing.assert_allclose(one, two, atol=1e-12)
    ends = np.clip(proba[:, 1:] + [-0.1, 0.1], 0, 1)
    method = AdaptiveCalibration("interval")
    one = method.fit(
        proba, soft, weight, intervals=ends, soft_labels=True
    ).predict_proba(proba)
    method.fit(proba[items], labels, mass, intervals=ends[items])
    np.testing.assert_allclose(one, method.predict_proba(proba), atol=1e-12)


def features(n=90):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2))
    return X, rng.binomial(4, 1 / (1 + np.exp(-X[:, 0]))) / 4


def test_models_learn_from_doubled_weighted_rows_of_whole_items():
    X, y = features()
    items, labels, mass = doubled(np.column_stack([1 - y, y]), np.full(90, 4.0))
    folds = [*KFold(3).split(X)]
    copies = [
        tuple(np.flatnonzero(np.isin(items, part)) for part in pair) for pair in folds
    ]
    expected = CalibratedModel(LogisticRegression(), "platt", cv=copies)
    expected = expected.fit(X[items], labels, mass).predict_proba(X)
    for cv in (folds, KFold(3)):
        for ensemble in (True, False):
            model = CalibratedModel(
                LogisticRegression(), "platt", cv=cv, ensemble=ensemble
            )
            found = model.fit(X, y, np.full(90, 4), soft_labels=True).predict_proba(X)
            if ensemble:
                np.testing.assert_allclose(found, expected, atol=1e-12)
    assert model.classes_.tolist() == [0, 1]
    model = CalibratedModel(LogisticRegression(), "platt", cv=3)
    soft = {"soft_labels": True, "groups": np.arange(90) // 3}
    assert not np.allclose(
        model.fit(X, y, soft_labels=True).predict_proba(X),
        model.fit(X, y, **soft).predict_proba(X),
    )


def test_models_that_are_fitted_or_take_no_weights():
    X, y = features()
    fitted = LogisticRegression().fit(X, np.where(y > 0.4, "yes", "no"))
    model = CalibratedModel(FrozenEstimator(fitted), "platt").fit(
        X, y, soft_labels=True
    )
    alone = PlattScaling().fit(fitted.predict_proba(X), y, soft_labels=True)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.recalibrator_.slope_ == pytest.approx(alone.slope_, rel=1e-6)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    for estimator in (KNeighborsClassifier(), pipe):
        with raises_invalid_input(
            ValueError, expected=".*takes sample_weight, the shares of soft labels"
        ):
            CalibratedModel(estimator).fit(X, y, soft_labels=True)
    with raises_invalid_input(
        ValueError, expected=".*folds for soft labels", value="cv='alo'"
    ):
        CalibratedModel(LogisticRegression(), cv="alo").fit(X, y, soft_labels=True)


@pytest.mark.slow
def test_scorers_and_searches():
    X, y = features()
    scorer = get_scorer("neg_log_loss", soft_labels=True)
    model = CalibratedModel(LogisticRegression(), "platt", cv=3).fit(
        X, y, soft_labels=True
    )
    loss = log_loss(y, model.predict_proba(X), soft_labels=True)
    assert scorer(model, X, y) == -loss
    search = GridSearchCV(
        model, {"recalibrator": ["platt", "identity"]}, scoring=scorer, cv=2
    )
    search.fit(X, y, soft_labels=True)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    given = {"soft_labels": True}
    found = cross_val_score(model, X, y, scoring=scorer, cv=2, params=given)
    assert np.isfinite(found).all()


def test_metadata_routing_takes_the_shares_to_whom_they_are_for():
    X, y = features()
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    with config_context(enable_metadata_routing=True):
        pipe[0].set_fit_request(sample_weight=False)
        pipe[1].set_fit_request(sample_weight=True)
        model = CalibratedModel(pipe, "platt", cv=KFold(2)).fit(X, y, soft_labels=True)
        turned = CalibratedModel(pipe, "platt", cv=KFold(2)).fit(
            X, 1 - y, soft_labels=True
        )
        np.testing.assert_allclose(
            model.predict_proba(X), turned.predict_proba(X)[:, ::-1], atol=1e-6
        )
        assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.02)
        pipe[1].set_fit_request(sample_weight=False)
        with raises_invalid_input(
            ValueError, expected=".*the shares of soft labels", value="Pipeline"
        ):
            CalibratedModel(pipe, "platt").fit(X, y, soft_labels=True)
        search = GridSearchCV(
            CalibratedModel(
                LogisticRegression().set_fit_request(sample_weight=True), "platt"
            ).set_fit_request(soft_labels=True),
            {"cv": [2, 3]},
            scoring=get_scorer("neg_log_loss").set_score_request(soft_labels=True),
            cv=2,
        )
        assert search.fit(X, y, soft_labels=True).best_score_ < 0


# -- uncertainty: items are drawn, not the rows that stand for them -------------------------------

SUMS = {"n_resamples": 60, "random_state": 0}


def inferences():
    """Each function with soft labels as a function of (y, proba, weight, groups, soft_labels)."""
    yield lambda y, p, **how: spiegelhalter_test(y, p, **how).pvalue
    yield lambda y, p, **how: calibration_test(y, p, **SUMS, **how).pvalue
    yield lambda y, p, **how: confidence_interval(y, p, "brier_loss", **SUMS, **how)
    yield lambda y, p, **how: paired_difference(
        y, p, p**1.5, "brier_loss", **SUMS, **how
    )
    yield lambda y, p, **how: validation_summary(y, p, **SUMS, **how).tables[0].rows


def tables(n=80):
    rng = np.random.default_rng(3)
    p = rng.random(n)
    return p, rng.binomial(5, p) / 5


@pytest.mark.parametrize("number", range(5))
def test_tests_and_intervals_count_items(number):
    function = [*inferences()][number]
    p, y = tables()
    items, labels, mass = doubled(np.column_stack([1 - y, y]), np.full(80, 5.0))
    found = function(y, p, sample_weight=np.full(80, 5), soft_labels=True)
    rows = {"sample_weight": mass, "labels": [0, 1]}
    same(
        function(labels, p[items], groups=items, **rows), found, rtol=1e-9, exact=False
    )
    assert differ(function(labels, p[items], **rows), found)
    pairs = np.arange(80) // 2
    found = function(y, p, sample_weight=np.full(80, 5), soft_labels=True, groups=pairs)
    same(
        function(labels, p[items], groups=pairs[items], **rows),
        found,
        rtol=1e-9,
        exact=False,
    )


def test_a_report_counts_items():
    p, y = tables()
    weight = np.full(80, 5)
    report = calibration_report(
        y, p, sample_weight=weight, soft_labels=True, n_resamples=20
    )
    assert (report.n_samples, report.n_clusters) == (80, 80)
    loss = next(row for row in report.rows if row.measure == "log_loss")
    assert loss.value == pytest.approx(
        log_loss(y, p, sample_weight=weight, soft_labels=True)
    )
    items, labels, mass = doubled(np.column_stack([1 - y, y]), weight)
    rows = calibration_report(
        labels, p[items], sample_weight=mass, groups=items, n_resamples=20
    ).rows
    for one, other in zip(report.rows, rows, strict=True):
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-6)
    assert all("soft_labels=True" in code for code in report._codes.values())
    assert "80 rows in 80 clusters" in str(report)
    pairs = np.arange(80) // 2
    report = calibration_report(y, p, groups=pairs, soft_labels=True, n_resamples=20)
    assert (report.n_samples, report.n_clusters) == (80, 40)
    with raises_invalid_input(ValueError, expected="soft labels without by"):
        calibration_report(y, p, soft_labels=True, by={"a": pairs})
    with raises_invalid_input(
        ValueError, expected=".*rows, for soft labels", value="summaries"
    ):
        calibration_report(CalibrationSummary().update(y > 0.5, p), soft_labels=True)


@pytest.mark.slow
def test_coverage_of_shares():
    """Overdispersed votes, each item another number: intervals hold the truth, tests their level.

    400 draws of 120 items: of 0.95 two standard errors are 0.022.
    """
    rng, held, kept = np.random.default_rng(4), np.zeros(3), 0
    for _ in range(400):
        p = rng.beta(2, 2, 120)
        n = rng.integers(1, 10, 120)
        # what an item's annotators say, on average p
        own = rng.beta(4 * p, 4 * (1 - p))
        y = rng.binomial(n, own) / n
        given = {"sample_weight": n, "soft_labels": True}
        summary = validation_summary(y, p, n_resamples=2, **given)
        rate, slope = summary["O/E"], summary["slope"]
        held += [
            rate.low < 1 < rate.high,
            slope.low < 1 < slope.high,
            rate.pvalue > 0.05,
        ]
        kept += spiegelhalter_test(y, p, **given).pvalue > 0.05
    for share in (*held / 400, kept / 400):
        assert 0.925 <= share <= 0.985, (held, kept)


def sure_and_wrong():
    rng = np.random.default_rng(0)
    p = np.append(rng.choice([0.6, 0.8, 1.0], 89), 1.0)
    y = np.append(rng.binomial(4, 0.8 * p[:-1]) / 4, 0.5)
    return y, p


def test_a_report_says_how_many_items_are_certain():
    """Not how many rows they stand for."""
    y, p = sure_and_wrong()
    report = calibration_report(y, p, soft_labels=True, n_resamples=2)
    said, sure, wrong = (
        " ".join(str(report).split()),
        int((p == 1).sum()),
        int((y[p == 1] < 1).sum()),
    )
    assert (
        f"{sure} of the predictions are exactly 0 or 1, and {wrong} of these are wrong"
        in said
    )
    assert f"in {wrong} rows (exactly 0 in {wrong})" in said


@pytest.mark.slow
def test_advice_says_how_many_items():
    y, p = sure_and_wrong()
    report = calibration_report(y, p, soft_labels=True, n_resamples=2, advice=True)
    (advice,) = report.advice.values()
    assert advice.n_rows == 90 and "Mean losses of 90 items, each" in str(report)
    said = " ".join(str(report).split())
    assert "90 items, each judged by a fit that has not seen it" in said


def test_shares_of_fewer_rows_than_scores_are_refused():
    """By every function, recalibrator and stream that takes shares; both numbers are named."""
    proba = np.full((9, 2), 0.5)
    shares = np.linspace(0.1, 0.9, 8)
    calls = {
        name: lambda f=function: call_function(
            f,
            rows(2) | {"y": shares, "first": proba, "second": proba},
            soft_labels=True,
        )
        for name, function in FUNCTIONS.items()
        if "soft_labels" in inspect.signature(function).parameters
    }
    for name, cls in all_recalibrators().items():
        if not cls.capabilities.order_dependent:
            calls[name] = lambda c=cls: c().fit(proba, shares, soft_labels=True)
    calls["summary"] = lambda: CalibrationSummary(classes=[0, 1]).update(
        shares, proba, soft_labels=True
    )
    calls["monitor"] = lambda: CalibrationMonitor(classes=[0, 1]).update(
        shares, proba, soft_labels=True
    )
    assert len(calls) > 60
    for name, ask in calls.items():
        with pytest.raises(ValueError, match=r"\b9\b") as error:
            ask()
        message = str(error.value)
        assert re.search(r"\b8\b", message), f"{name}: expected 8, got {message!r}"


def predict_by_first_feature(X):
    return 1 / (1 + np.exp(-X[:, 0]))


def test_one_column_of_shares_is_that_of_the_second_class():
    """Also of a function, whose classes are counted from the columns."""
    X = np.column_stack([np.linspace(-2, 2, 40), np.arange(40) % 5])
    y = (np.arange(40) % 7 > 40 // 2 - np.arange(40)).astype(int)
    model = CalibratedModel(FrozenEstimator(predict_by_first_feature), "platt")
    share = 0.2 + 0.6 * y
    found = [
        model.fit(X, shares, soft_labels=True).predict_proba(X)
        for shares in (share, share[:, None], np.column_stack([1 - share, share]))
    ]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-9)
