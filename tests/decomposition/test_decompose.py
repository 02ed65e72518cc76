import warnings

import numpy as np
import pytest
from boosters import imported
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import isotonic_regression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate

from sklearn_calib import canonical_proba
from sklearn_calib._kernels._temperature import fit_temperature
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import (
    as_eval_metric,
    decompose_loss,
    proper_calibration_error,
    refinement_curve,
    refinement_error,
    temperature_refinement_log_loss,
)
from sklearn_calib.decomposition._decompose import raise_zeros_to_floor
from sklearn_calib.metrics import (
    BetaFamilyLoss,
    all_metrics,
    brier_loss,
    get_scorer,
    log_loss,
    validate_predictions,
)
from sklearn_calib.recalibrators import BetaCalibration, TemperatureScaling
from sklearn_calib.report import calibration_report


@pytest.mark.parametrize(
    "name", ["ts_random_binary", "ts_random_3class", "ts_random_3class_weighted"]
)
def test_oracles(oracle, name):
    case = oracle("temperature.json")[name]
    scores = canonical_proba(case["logits"], kind="logits")
    y, weight = np.array(case["y"]), case["weights"]
    log = decompose_loss(y, scores, sample_weight=weight)
    assert log.risk == pytest.approx(case["risk_log"], rel=1e-12)
    assert log.refinement == pytest.approx(case["ts_refinement_log"], rel=1e-9)
    assert log.calibration == pytest.approx(case["calibration_log"], rel=1e-7)
    assert log.uncertainty == pytest.approx(case["uncertainty_log"], rel=1e-12)
    assert log.sharpness == pytest.approx(case["sharpness_log"], rel=1e-7)
    brier = decompose_loss(y, scores, loss="brier", sample_weight=weight)
    factor = 2 if len(case["logits"][0]) == 2 else 1  # the oracle adds both classes
    assert factor * brier.risk == pytest.approx(case["risk_brier"], rel=1e-12)
    assert factor * brier.refinement == pytest.approx(case["brier_after_ts"], rel=1e-6)
    assert factor * brier.uncertainty == pytest.approx(
        case["uncertainty_brier"], rel=1e-12
    )
    smooth = refinement_error(
        y, scores, recalibrator=TemperatureScaling(laplace=True), sample_weight=weight
    )
    assert smooth == pytest.approx(case["ts_refinement_log_smoothed"], rel=1e-7)


def test_cross_validated_oracle(oracle):
    data = oracle("temperature.json")
    case, cv = data["ts_random_3class"], data["ts_cv_3class"]
    scores, y = canonical_proba(case["logits"], kind="logits"), case["y"]
    everything = np.arange(len(y))
    folds = [
        (np.setdiff1d(everything, test), np.array(test)) for test in cv["eval_folds"]
    ]
    for recalibrator, key in (
        (TemperatureScaling(), "oof_log"),
        (TemperatureScaling(laplace=True), "oof_log_smoothed"),
    ):
        value = decompose_loss(
            y, scores, recalibrator=recalibrator, cv=folds
        ).refinement
        assert value == pytest.approx(cv[key], rel=1e-6)
    brier = decompose_loss(y, scores, loss="brier", cv=folds)
    assert brier.refinement == pytest.approx(cv["oof_brier"], rel=1e-6)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_isotonic_is_corp(loss):
    rng = np.random.default_rng(0)
    p = rng.random(400).round(2).clip(0.01, 0.99)
    y = (rng.random(400) < p**2).astype(int)
    parts = decompose_loss(y, p, loss=loss, recalibrator="isotonic")
    _, where = np.unique(p, return_inverse=True)
    mass = np.bincount(where)
    fit = isotonic_regression(np.bincount(where, y) / mass, sample_weight=mass)[where]

    def mean_loss(q):
        if loss == "brier":
            return np.mean((q - y) ** 2)
        return -np.mean(np.log(np.where(y == 1, q, 1 - q)))

    base = np.full(400, y.mean())
    assert parts.risk == pytest.approx(mean_loss(p))
    assert parts.calibration == pytest.approx(mean_loss(p) - mean_loss(fit))  # MCB
    assert parts.sharpness == pytest.approx(mean_loss(base) - mean_loss(fit))  # DSC
    assert parts.uncertainty == pytest.approx(mean_loss(base))  # UNC
    assert parts.calibration >= 0 and parts.sharpness >= 0


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("recalibrator", ["temperature", "isotonic", BetaCalibration()])
@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("loss", ["log", "brier"])
def test_identities(k, recalibrator, cv, loss):
    proba, y = make_overconfident(k, 400)
    labels = np.array(["a", "b", "c", "d"])[y]
    parts = decompose_loss(labels, proba, loss=loss, recalibrator=recalibrator, cv=cv)
    assert parts.risk == pytest.approx(parts.calibration + parts.refinement)
    assert parts.refinement == pytest.approx(parts.uncertainty - parts.sharpness)
    measure = log_loss if loss == "log" else brier_loss
    assert parts.risk == pytest.approx(measure(labels, proba))
    assert parts.refinement == pytest.approx(
        refinement_error(labels, proba, loss=loss, recalibrator=recalibrator, cv=cv),
        rel=1e-6,
    )
    assert parts.calibration == pytest.approx(
        proper_calibration_error(
            labels, proba, loss=loss, recalibrator=recalibrator, cv=cv
        )
    )
    assert all(error is None or error >= 0 for error in parts.standard_errors.values())


def test_signs_that_the_docstring_allows():
    rng = np.random.default_rng(1)
    y = (rng.random(2000) < 0.05).astype(int)
    useless = rng.uniform(0.4, 0.6, 2000)
    # no class frequencies in temperature scaling
    assert decompose_loss(y, useless).sharpness < 0
    assert decompose_loss(y, useless, recalibrator="isotonic").sharpness >= 0


def _normal_logits(n, k=4, weighted=False):
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(n, k))
    y = (0.5 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return (
        canonical_proba(z, kind="logits"),
        y,
        rng.exponential(size=n) ** (5 * weighted),
    )


def _heavy_tails(n, weighted=False):
    rng = np.random.default_rng(1)
    z = 2 * rng.standard_t(2, size=(n, 4))
    y = (0.5 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return (
        canonical_proba(z, kind="logits"),
        y,
        rng.exponential(size=n) ** (5 * weighted),
    )


def _few_errors(errors):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(6000, 3)) * 3
    y = z.argmax(axis=1)
    y[:errors] = (y[:errors] + 1) % 3
    return canonical_proba(z, kind="logits"), y, np.ones(6000)


def _exact_zeros(n):
    rng = np.random.default_rng(3)
    p = rng.beta(0.1, 0.1, size=n).round(2)
    return canonical_proba(p), (rng.random(n) < 0.02 + 0.96 * p).astype(int), np.ones(n)


CROSS_VALIDATED = {
    "200 rows": lambda: _normal_logits(200),
    "2000 rows": lambda: _normal_logits(2000),
    "200,000 rows": lambda: _normal_logits(200_000, 2),  # a step is short enough
    "unequal weights": lambda: _normal_logits(2000, weighted=True),
    "heavy tails": lambda: _heavy_tails(2000),
    "heavy tails, unequal weights": lambda: _heavy_tails(2000, weighted=True),
    "1 error": lambda: _few_errors(1),
    "2 errors": lambda: _few_errors(2),
    "5 errors": lambda: _few_errors(5),
    "20 errors": lambda: _few_errors(20),
    "exact zeros, 1500": lambda: _exact_zeros(1500),
    "exact zeros, 4000": lambda: _exact_zeros(4000),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@pytest.mark.parametrize("name", CROSS_VALIDATED)
def test_cross_validated_refinement_is_that_of_five_fits(name):
    proba, y, weight = CROSS_VALIDATED[name]()
    k = proba.shape[1]
    scores = raise_zeros_to_floor(
        validate_predictions(y, proba)
    ).proba  # one floor for all folds
    recalibrated = np.empty(proba.shape)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
        fitted = TemperatureScaling().fit(
            scores[train], y[train], weight[train], classes=range(k)
        )
        recalibrated[test] = fitted.predict_proba(scores[test])
    expected = log_loss(y, recalibrated, sample_weight=weight)
    options = {"cv": 5, "sample_weight": weight}
    assert refinement_error(y, proba, **options) == pytest.approx(expected, abs=1e-8)
    assert decompose_loss(y, proba, **options).refinement == pytest.approx(
        expected, abs=1e-8
    )


def test_one_definition_with_exact_zeros():
    """The value in sample is the log loss of the recalibrated probabilities; so is loss_."""
    proba, y, _ = _exact_zeros(1500)
    assert (np.asarray(proba)[np.arange(1500), y] == 0).sum() > 5
    fitted = TemperatureScaling().fit(proba, y)
    after = log_loss(y, fitted.predict_proba(proba))
    assert refinement_error(y, proba) == pytest.approx(after, abs=1e-9)
    assert decompose_loss(y, proba).refinement == pytest.approx(after, abs=1e-9)
    assert fitted.loss_ == pytest.approx(after, abs=1e-9)
    # one error among certain scores: it is cut off
    sharp = np.repeat([0.0, 1.0], [3000, 3000])
    y = sharp.astype(int)
    y[0] = 1
    after = log_loss(y, TemperatureScaling().fit(sharp, y).predict_proba(sharp))
    assert refinement_error(y, sharp) == pytest.approx(after, abs=1e-9)


@pytest.mark.slow
def test_no_row_costs_more_than_the_floor():
    """Hand computation: 20,000 rows right by 1, one wrong by 10."""
    z = np.repeat([[0.0, 1.0], [0.0, 10.0]], [20_000, 1], axis=0)
    y = np.repeat([1, 0], [20_000, 1])
    fit = fit_temperature(z, y, np.ones(20_001))
    lost = np.logaddexp(0, -fit.beta * np.r_[np.ones(20_000), -10.0])
    assert lost[-1] > 70
    lost[-1] = -np.log(np.finfo(float).eps)
    assert fit.loss == pytest.approx(lost.mean(), abs=1e-9)
    proba = canonical_proba(z, kind="logits")
    assert refinement_error(y, z, kind="logits") == fit.loss
    assert decompose_loss(y, proba).refinement == pytest.approx(fit.loss, abs=1e-9)
    assert refinement_curve(y, [z], kind="logits").refinement[0] == pytest.approx(
        fit.loss
    )


@pytest.mark.slow
def test_label_smoothed_selection():
    """Perfect accuracy: plain refinement ties at 0, the smoothed form still orders the models."""
    y = np.tile([0, 1, 2], 20)
    rng = np.random.default_rng(0)
    clean, vague = np.eye(3)[y] * 4, np.eye(3)[y] * 1 + 0.45 * rng.random((60, 3))
    plain, smooth = (
        [
            refinement_error(y, z, kind="logits", label_smoothing=s)
            for z in (clean, vague)
        ]
        for s in (False, True)
    )
    assert max(plain) < 1e-6
    assert smooth[0] < smooth[1]
    z, eps = vague - vague.max(axis=1, keepdims=True), 1 / 61
    target = (1 - eps) * np.eye(3)[y] + eps / 3
    betas = np.geomspace(0.1, 50, 4000)
    losses = [
        -np.mean((target * np.log(canonical_proba(b * z, kind="logits"))).sum(1))
        for b in betas
    ]
    assert smooth[1] == pytest.approx(min(losses), rel=1e-5)


@pytest.mark.slow
def test_scorers_in_model_selection():
    X, y = make_classification(
        300, n_informative=5, n_classes=3, flip_y=0.2, random_state=0
    )
    y = np.array(["a", "b", "c"])[y]
    names = [one.spec.scorer_name for one in all_metrics().values()]
    wanted = [name for name in names if "refinement" in name]
    assert len(wanted) == 4
    scoring = {name: get_scorer(name) for name in wanted}
    scoring["cross-validated"] = get_scorer("neg_temperature_refinement_log_loss", cv=3)
    scoring["smoothed"] = get_scorer(
        "neg_temperature_refinement_log_loss", label_smoothing=True
    )
    results = cross_validate(LogisticRegression(), X, y, scoring=scoring)
    assert all((results[f"test_{name}"] < 0).all() for name in scoring)
    search = GridSearchCV(
        LogisticRegression(), {"C": [0.01, 1]}, scoring=scoring, refit="smoothed"
    ).fit(X, y)
    assert search.best_score_ < 0
    boosted = HistGradientBoostingClassifier(
        max_iter=10,
        early_stopping=True,
        scoring=get_scorer("neg_temperature_refinement_log_loss"),
    ).fit(X, y)
    assert len(boosted.validation_score_) > 1


@pytest.mark.parametrize("k", [2, 3])
def test_xgboost(k):
    xgboost = imported("xgboost")
    X, y = make_classification(
        400, n_informative=5, n_classes=k, flip_y=0.2, random_state=0
    )
    model = xgboost.XGBClassifier(
        n_estimators=60,
        eval_metric=as_eval_metric("xgboost", label_smoothing=True),
        early_stopping_rounds=10,
        disable_default_eval_metric=1,
        n_jobs=1,
    ).fit(X[:250], y[:250], eval_set=[(X[250:], y[250:])], verbose=False)
    curve = model.evals_result()["validation_0"]["temperature_refinement_log_loss"]
    best = model.predict_proba(X[250:], iteration_range=(0, int(np.argmin(curve)) + 1))
    expected = temperature_refinement_log_loss(y[250:], best, label_smoothing=True)
    assert min(curve) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("k", [2, 3])
def test_lightgbm(k):
    lightgbm = imported("lightgbm")
    X, y = make_classification(
        400, n_informative=5, n_classes=k, flip_y=0.2, random_state=0
    )
    model = lightgbm.LGBMClassifier(
        n_estimators=60, metric="None", verbose=-1, n_jobs=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of LightGBM, about names of its arguments
        model.fit(
            X[:250],
            y[:250],
            eval_set=[(X[250:], y[250:])],
            eval_metric=as_eval_metric("lightgbm"),
            callbacks=[lightgbm.early_stopping(10, verbose=False)],
        )
    curve = model.evals_result_["valid_0"]["temperature_refinement_log_loss"]
    expected = temperature_refinement_log_loss(y[250:], model.predict_proba(X[250:]))
    assert min(curve) == pytest.approx(expected, abs=1e-9)


@run_every_case(
    ("call", "message"),
    [
        (
            lambda y, p: decompose_loss(y, p, loss="hinge"),
            "expected a loss among brier, log, spherical, got 'h",
        ),
        (
            lambda y, p: decompose_loss(
                *make_overconfident(3)[::-1], loss=BetaFamilyLoss(1, 1)
            ),
            "expected 2 classes for beta_family, got 3",
        ),
        (
            lambda y, p: refinement_error(y, p, loss="brier", label_smoothing=True),
            "expected label_smoothing with temperature scaling, log loss and no folds",
        ),
        (
            lambda y, p: decompose_loss(y, p, cv=[(np.arange(50), np.arange(50, 100))]),
            "expected folds that test every row, got 108 rows left out",
        ),
        (
            lambda y, p: decompose_loss(
                y, p, cv=[(np.arange(9), np.arange(9, len(y)))]
            ),
            "expected folds that test every row, got 9 rows left out",
        ),
        (
            lambda y, p: refinement_error(y, 5 * p),
            r"expected probabilities in \[0, 1\]",
        ),
        (lambda y, p: as_eval_metric("xgboost", "nothing"), "expected a measure among"),
        (
            lambda y, p: as_eval_metric("catboost"),
            "expected library among xgboost, lightgbm",
        ),
        (
            lambda y, p: as_eval_metric("lightgbm", smooth=1),
            "expected options of temperature_refinement_log_loss among",
        ),
    ],
)
def test_refused(call, message):
    proba, y = make_overconfident(2)
    with pytest.raises(ValueError, match=message):
        call(y, proba)


def test_splitter_objects():
    proba, y = make_overconfident(3, 300)
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    first = refinement_error(y, proba, cv=cv)
    assert first == pytest.approx(decompose_loss(y, proba, cv=cv).refinement, abs=1e-5)


@pytest.mark.parametrize("kind", ["proba", "logits"])
def test_errors_name_the_probabilities(kind):
    scores = np.array([0.2, np.nan, 0.7])
    with raises_invalid_input(
        ValueError, expected="finite scores", argument="y_proba", row=1
    ):
        refinement_error([0, 1, 1], scores, kind=kind, recalibrator="isotonic", cv=2)
    with raises_invalid_input(
        ValueError, expected="finite scores", argument=r"staged_proba\[0\]", row=1
    ):
        refinement_curve([0, 1, 1], [scores], kind=kind)
    with raises_invalid_input(
        ValueError, expected="finite scores", argument="y_proba", row=1
    ):
        calibration_report([0, 1, 1], scores, normalize=True)
