"""Losses as objects: their contract, the beta family, and every place that takes them."""

import pickle

import numpy as np
import pytest
from cases import run_every_case
from scipy.integrate import quad, trapezoid
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

from sklearn_calib import RefineThenCalibrateCV, canonical_proba
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import regret_curve
from sklearn_calib.decomposition import (
    decompose_loss,
    proper_calibration_error,
    refinement_curve,
    refinement_error,
)
from sklearn_calib.displays import DecompositionDisplay, RefinementCurveDisplay
from sklearn_calib.metrics import (
    BetaFamilyLoss,
    ProperLoss,
    all_losses,
    brier_loss,
    get_loss,
    log_loss,
    measure,
    register_measures,
    spherical_loss,
    validate_predictions,
)
from sklearn_calib.testing import contract_checks
from sklearn_calib.theory import GaussianLogisticModel

BETAS = [
    BetaFamilyLoss(*ab)
    for ab in ((0, 0), (1, 1), (-0.5, -0.5), (2, 8), (0, 3), (0.3, -0.4))
]
LOSSES = [*all_losses().values(), *BETAS]


@run_every_case(
    "check",
    [
        pytest.param(c, id=f"{loss!r}-{name}")
        for loss in LOSSES
        for name, c in contract_checks(loss)
    ],
)
def test_contract(check):
    check()


EXTREMES = canonical_proba(
    [0.0, 1e-20, 1e-12, 1e-5, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-9, 1.0]
)


def test_members_of_the_beta_family():
    log, brier = (
        get_loss("log").compute_label_losses(EXTREMES),
        get_loss("brier").compute_label_losses(EXTREMES),
    )
    np.testing.assert_allclose(
        BetaFamilyLoss(0, 0).compute_label_losses(EXTREMES), log, atol=1e-12
    )
    np.testing.assert_allclose(
        BetaFamilyLoss(1, 1).compute_label_losses(EXTREMES), 3 * brier, atol=1e-12
    )
    inner = EXTREMES[3:9]
    boosting = 2 / np.pi * np.sqrt(inner[:, ::-1] / inner)
    np.testing.assert_allclose(
        BetaFamilyLoss(-0.5, -0.5).compute_label_losses(inner), boosting, rtol=1e-12
    )
    deep = canonical_proba([-700.0, -50.0, 3.0, 60.0], kind="logits")
    one, other = (
        x.without_floor().compute_label_losses(deep)
        for x in (BetaFamilyLoss(0, 0), get_loss("log"))
    )
    np.testing.assert_allclose(one, other, rtol=1e-12)


@run_every_case("loss", [*BETAS, BetaFamilyLoss(40, 90)], ids=repr)
def test_beta_family_by_its_definition(loss):
    """Costs of thresholds, weighted; evenly spread calibrated predictions lose a half."""
    a, b = loss.alpha, loss.beta
    unit = quad(lambda c: c**a * (1 - c) ** b, 0, 1)[0]
    for p in (0.04, 0.3, 0.77):
        event = quad(
            lambda c: c ** (a - 1) * (1 - c) ** b, p, 1, epsabs=0, epsrel=1e-10
        )[0]
        without = quad(
            lambda c: c**a * (1 - c) ** (b - 1), 0, p, epsabs=0, epsrel=1e-10
        )[0]
        found = loss.compute_label_losses(np.array([[1 - p, p]]))[0]
        np.testing.assert_allclose(
            found, np.array([without, event]) / unit, rtol=1e-7, atol=1e-12
        )
    z = np.linspace(-36, 36, 20_001)
    p = np.column_stack([expit(-z), expit(z)])
    spread = loss.expected(p, p) * p[:, 0] * p[:, 1]
    assert trapezoid(spread, z) == pytest.approx(0.5, rel=1e-5)


def test_thresholds_that_matter():
    """Two models alike to the Brier loss: the one that is right around 10 % is the better one."""
    y = np.repeat([0, 1, 0, 1], [90, 10, 10, 90])
    low, high = np.repeat([0.1, 0.75], 100), np.repeat([0.25, 0.9], 100)
    assert brier_loss(y, low) == pytest.approx(brier_loss(y, high))
    measure, truth = BetaFamilyLoss(2, 18).measure(), np.repeat([0.1, 0.9], 100)
    assert measure(y, low) - measure(y, truth) < 1e-3 * (
        measure(y, high) - measure(y, truth)
    )


@run_every_case(
    ("call", "message"),
    [
        (lambda: BetaFamilyLoss(-1, 0), r"expected alpha above -1.*got -1\."),
        (lambda: BetaFamilyLoss(0, 1e4), "expected beta above -1, at most 1000"),
        (lambda: BetaFamilyLoss(float("nan"), 0), "expected alpha above -1.*got nan"),
        (
            lambda: BetaFamilyLoss(1, 1).compute_label_losses(np.eye(3)),
            "2 classes for beta_family, got 3",
        ),
        (lambda: get_loss("brire"), "expected a loss among brier, log, .*'brire'"),
        (lambda: get_loss(3), "expected a loss among .*, got 3"),
        (lambda: refinement_error([0, 1], [0.2, 0.7], loss="zero"), "expected a"),
        (lambda: refinement_curve([0, 1], [[0.2, 0.7]], loss="0"), "expected a"),
        (
            lambda: refinement_curve([0, 1, 2], [np.eye(3)], loss=BetaFamilyLoss(1, 4)),
            "expected 2 classes for beta_family, got 3",
        ),
        (
            lambda: refinement_error(
                [0, 1, 2], np.eye(3), loss=BetaFamilyLoss(1, 4), cv=None
            ),
            "expected 2 classes for beta_family, got 3",
        ),
        (
            lambda: BetaFamilyLoss(1, 4).measure()([0, 1, 2], np.eye(3)),
            "expected 2 classes for beta_family, got 3",
        ),
        (
            lambda: refinement_error(
                [0, 1], [0.2, 0.7], loss="spherical", label_smoothing=True
            ),
            "expected label_smoothing with .*log loss.*, got 'temperature', spherical loss",
        ),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_measures_of_losses():
    proba, y = make_overconfident(3)
    direct = -(proba[np.arange(len(y)), y] / np.linalg.norm(proba, axis=1)).mean()
    assert spherical_loss(y, proba) == pytest.approx(direct, rel=1e-14)
    two, y2 = make_overconfident(2)
    measure = BetaFamilyLoss(1, 1).measure()
    assert measure(y2, two) == pytest.approx(3 * brier_loss(y2, two))
    scorer = BetaFamilyLoss(2, 8).measure().scorer()
    again = pickle.loads(pickle.dumps(scorer))
    assert again == scorer != measure.scorer() and hash(again) == hash(scorer)
    assert again._score_func(y2, two) == BetaFamilyLoss(2, 8).measure()(y2, two)
    assert get_loss("log").measure()(y, proba) == log_loss(y, proba)


@pytest.mark.parametrize(
    "loss", ["spherical", BetaFamilyLoss(2, 8), BetaFamilyLoss(-0.3, 0)], ids=repr
)
@pytest.mark.parametrize("cv", [None, 4])
@pytest.mark.parametrize("recalibrator", ["temperature", "isotonic", "platt"])
def test_every_form_of_refinement_is_of_the_loss(loss, recalibrator, cv):
    """The same number from all functions, and that of the recalibrated probabilities by hand."""
    proba, y = make_overconfident(2, 400)
    weight = np.random.default_rng(0).uniform(0.5, 2, 400)
    given = {
        "loss": loss,
        "recalibrator": recalibrator,
        "cv": cv,
        "sample_weight": weight,
    }
    parts = decompose_loss(y, proba, **given)
    curve = refinement_curve(y, [proba, np.full_like(proba, 0.5)], **given)
    assert refinement_error(y, proba, **given) == pytest.approx(
        parts.refinement, abs=1e-12
    )
    assert curve.refinement[0] == pytest.approx(parts.refinement, abs=1e-12)
    assert curve.risk[0] == pytest.approx(parts.risk, abs=1e-12)
    assert proper_calibration_error(y, proba, **given) == pytest.approx(
        parts.calibration
    )
    case = validate_predictions(y, proba, weight)
    assert parts.risk == pytest.approx(get_loss(loss).mean(case))
    share = weight @ y / weight.sum()
    even = np.array([[1 - share, share]])
    assert parts.uncertainty == pytest.approx(get_loss(loss).expected(even, even)[0])
    if cv is None and recalibrator == "temperature":
        grid = np.exp(np.linspace(-3, 1, 4001))
        z = np.log(proba[:, 1] / proba[:, 0])
        margin = np.where(y, z, -z)
        best = grid[np.argmin([weight @ np.logaddexp(0, -b * margin) for b in grid])]
        scaled = case.with_proba(np.column_stack([expit(-best * z), expit(best * z)]))
        assert parts.refinement == pytest.approx(get_loss(loss).mean(scaled), rel=1e-3)


def test_an_instance_is_its_name():
    proba, y = make_overconfident(3, 300)
    for name, loss in all_losses().items():
        one, other = (
            decompose_loss(y, proba, loss=name),
            decompose_loss(y, proba, loss=loss),
        )
        assert one.loss == name and other.loss is loss
        for term in ("risk", "calibration", "uncertainty"):
            assert getattr(one, term) == getattr(other, term)
            assert one.interval(term) == other.interval(term)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@pytest.mark.parametrize("loss", ["spherical", BetaFamilyLoss(1, 4)], ids=repr)
def test_refine_then_calibrate(loss):
    X, y = make_classification(600, n_informative=6, flip_y=0.1, random_state=0)
    learner = HistGradientBoostingClassifier(max_iter=8, random_state=0)
    model = clone(RefineThenCalibrateCV(learner, cv=3, loss=loss)).fit(X, y)
    curve = model.refinement_curve_
    assert repr(curve.loss) == repr(loss)
    log = RefineThenCalibrateCV(learner, cv=3).fit(X, y).refinement_curve_
    assert (curve.risk != log.risk).all() and (curve.refinement != log.refinement).all()
    split = [(np.arange(300), np.arange(300, 600))]
    plain = RefineThenCalibrateCV(
        learner, cv=split, loss=loss, stages=None, refit=False
    ).fit(X, y)
    own = clone(learner).fit(X[:300], y[:300]).predict_proba(X[300:])
    assert plain.cv_results_["risk"][0] == pytest.approx(
        get_loss(loss).measure()(y[300:], own)
    )


@pytest.mark.parametrize(
    ("loss", "title"),
    [
        ("log", "log loss [nats]"),
        ("brier", "Brier loss"),
        ("spherical", "spherical loss"),
        (BetaFamilyLoss(1, 4), "beta-family loss (1, 4)"),
    ],
)
def test_displays_are_titled_by_the_loss(loss, title):
    plt = pytest.importorskip("matplotlib.pyplot")
    proba, y = make_overconfident(2, 200)
    bars = DecompositionDisplay.from_predictions(y, proba, loss=loss)
    assert bars.ax_.get_xlabel().startswith(title)
    left = bars.ax_.patches[0].get_x()
    assert left == get_loss(loss).range[0], "bars begin at the best value"
    end = bars.ax_.patches[0].get_width() + left
    assert end == pytest.approx(decompose_loss(y, proba, loss=loss).refinement)
    curve = RefinementCurveDisplay.from_predictions(y, [proba, proba], loss=loss)
    assert curve.ax_.get_ylabel() == title
    assert curve.ax_.get_legend_handles_labels()[1][1] == get_loss(loss).title
    plt.close("all")


@run_every_case("loss", LOSSES, ids=repr)
def test_theory(loss):
    """Against the mean over a fine grid of the two Gaussians."""
    found = GaussianLogisticModel.compute_weight_loss(2.0, 3.0, loss)
    t = np.linspace(-9, 9, 20_001)
    total = []
    for label, sign in enumerate((-1, 1)):
        z = sign + 3.0 * t
        p = canonical_proba(np.column_stack([-z / 2, z / 2]), kind="logits")
        rows = get_loss(loss).without_floor().compute_label_losses(p)[:, label]
        total.append(trapezoid(rows * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi), t))
    assert found.risk == pytest.approx(np.mean(total), rel=1e-7)
    assert (
        found.calibration > 0
        and GaussianLogisticModel.compute_weight_loss(2.0, np.sqrt(2), loss).calibration
        < 1e-12
    )


@run_every_case("loss", LOSSES, ids=repr)
def test_the_part_of_a_regret_curve(loss):
    """The regret, weighted over the thresholds, is the difference of the losses."""
    proba, y = make_overconfident(2, 500)
    better = np.clip(proba, 0.1, 0.9)
    curve = regret_curve(y, proba, better)
    rule = get_loss(loss)
    difference = rule.measure()(y, proba) - rule.measure()(y, better)
    assert curve.part(loss) == pytest.approx(difference, abs=1e-11)
    if loss in ("log", "brier"):
        assert curve.part(loss) == pytest.approx(getattr(curve, f"{loss}_part"))


def test_a_registered_loss_is_taken_by_its_name(monkeypatch):
    class Middle(ProperLoss):
        name, title, range, n_classes = "middle", "middle loss", (0.0, 1.0), 2

        def compute_label_losses(self, proba):
            q = 1 - np.asarray(proba)
            return 4 * q**3 - 3 * q**4

    @measure(loss=Middle(), in_report=False)
    def middle_loss(predictions):
        """The mean."""
        return middle_loss.spec.loss.mean(predictions)

    from sklearn_calib import metrics

    monkeypatch.setattr(metrics, "_MEASURE_REGISTRY", dict(metrics._MEASURE_REGISTRY))
    assert register_measures([middle_loss]) == ["middle_loss"]
    proba, y = make_overconfident(2, 300)
    parts = decompose_loss(y, proba, loss="middle")
    assert parts.risk == pytest.approx(middle_loss(y, proba), rel=1e-14)
    assert middle_loss.spec.range == (0.0, 1.0) and middle_loss.spec.proper
    assert parts.refinement == decompose_loss(y, proba, loss=Middle()).refinement
