"""Documented calls, as a typed program writes them: pyright checks this file in strict mode."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import sklearn_calib
from sklearn_calib import (
    CalibratedModel,
    RefineThenCalibrateCV,
    canonical_labels,
    canonical_proba,
    compile_kernels,
    log_proba,
)
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.datasets import (
    make_high_dimensional,
    make_overconfident,
    make_sign_perturbed,
    make_two_gaussians,
    make_uniform_shift,
)
from sklearn_calib.decisions import (
    CostSensitiveClassifier,
    DecisionCurve,
    SelectiveClassifier,
    calibration_decision_loss,
    decision_curve,
    decision_difference,
    expected_cost_score,
    expected_cost_test,
    expected_metrics,
    regret_curve,
    risk_coverage_curve,
)
from sklearn_calib.decomposition import (
    LossDecomposition,
    as_eval_metric,
    decompose_loss,
    proper_calibration_error,
    refinement_curve,
    refinement_error,
    temperature_refinement_log_loss,
)
from sklearn_calib.displays import (
    CalibratingFunctionDisplay,
    CumulativeDifferenceDisplay,
    DecisionCurveDisplay,
    DecompositionDisplay,
    NullDistributionDisplay,
    RefinementCurveDisplay,
    RegretDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    WitnessDisplay,
)
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import (
    CalibrationTester,
    binning_sample_size,
    calibration_test,
    confidence_interval,
    cox_test,
    cumulative_test,
    hosmer_lemeshow_test,
    lp_calibration_bound,
    polynomial_test,
    simulate_bootstrap_distribution,
    simulate_null_distribution,
    spiegelhalter_test,
    validation_summary,
)
from sklearn_calib.linear import (
    approximate_leave_one_out,
    estimate_angle,
    logistic_intervals,
)
from sklearn_calib.metrics import (
    BinaryOptions,
    BinaryProblem,
    Measure,
    Predictions,
    all_metrics,
    binary_measure,
    brier_loss,
    calibration_error,
    calibration_witness,
    convolved_calibration_error,
    expected_calibration_error,
    get_scorer,
    interval_calibration_error,
    kernel_calibration_error,
    log_loss,
    lower_distance_interval,
    lower_distance_to_calibration,
    lp_calibration_error,
    lp_calibration_test,
    maximum_calibration_error,
    random_interval_calibration_error,
    reliability_curve,
    smooth_calibration_error,
    validate_predictions,
)
from sklearn_calib.recalibrators import (
    BBQ,
    ENIR,
    AdaptiveCalibration,
    AngularCalibration,
    BetaCalibration,
    Capabilities,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MulticlassBinning,
    NearIsotonicCalibration,
    OneVsRest,
    PlattScaling,
    Recalibrator,
    RestrictedPolynomialRegression,
    TemperatureScaling,
    TopLabel,
    TrendFiltering,
    VennAbers,
    all_recalibrators,
    get_recalibrator,
)
from sklearn_calib.report import calibration_report
from sklearn_calib.staged import Staging, find_staging, register_staging
from sklearn_calib.testing import check_contract
from sklearn_calib.theory import GaussianLogisticModel

if TYPE_CHECKING:
    from typing_extensions import Unpack

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


# -- README -------------------------------------------------------------------------------


def readme(
    model: object, learner: object, X: Floats, y: Integers
) -> tuple[Floats, float]:
    fitted = CalibratedModel(model, "temperature").fit(X, y)
    crossed = CalibratedModel(model, "platt", cv=5).fit(X, y)
    print(
        log_loss(y, fitted.predict_proba(X)),
        fitted.classes_,
        fitted.calibrated_pairs_[0],
    )
    print(expected_calibration_error(y, fitted.predict_proba(X), n_bins=10))
    score: float = get_scorer("neg_brier_loss")(crossed, X, y)
    ReliabilityDisplay.from_estimator({"before": model, "after": fitted}, X, y)
    search = RefineThenCalibrateCV(learner, {"learning_rate": [0.1, 0.3]}, cv=3).fit(
        X, y
    )
    print(search.best_params_, search.best_stage_, log_loss(y, search.predict_proba(X)))
    return search.predict_proba(X), score


def lazily() -> tuple[float, type[Warning]]:
    """Sub-packages as attributes of the package."""
    error = sklearn_calib.metrics.brier_loss([0, 1], [0.2, 0.9])
    test = sklearn_calib.inference.cox_test([0, 1, 1, 0], [0.2, 0.9, 0.4, 0.3])
    print(sklearn_calib.__version__, test.pvalue)
    return error, CalibrationWarning


# -- scores and recalibrators -------------------------------------------------------------


def scores() -> Floats:
    classes, codes = canonical_labels(["no", "yes", "no"])
    print(classes, codes)
    proba = canonical_proba([[2.0, 0.0], [0.0, 1.0]], kind="logits")
    return log_proba(canonical_proba(proba, tolerance=0.01, n_classes=2))


def recalibrated(p: Floats, y: Integers) -> list[Floats]:
    temperature: float = TemperatureScaling(laplace=True).fit(p, y).temperature_
    slope: float = PlattScaling(scale="proba").fit(p, y).slope_
    print(temperature, slope, BetaCalibration(parameters="abm").fit(p, y).a_)
    methods: list[Recalibrator] = [
        HistogramBinning(n_bins=10, strategy="uniform"),
        HistogramBinning("bdeu"),
        IsotonicCalibration(centred=True),
        NearIsotonicCalibration(penalty=2.0),
        RestrictedPolynomialRegression([4, 6], l1=[1.0, 10.0]),
        RestrictedPolynomialRegression.paper(),
        OneVsRest("venn_abers"),
        TopLabel("platt", per_class=True),
        DirichletCalibration(0.1, intercept_penalty=1.0),
        MulticlassBinning(
            2, 0.1, noise="laplace", random_state=np.random.default_rng(0)
        ),
        AdaptiveCalibration("interval", share=0.1),
        AngularCalibration(0.5, link="probit"),
        TrendFiltering("bic"),
        BBQ(),
        ENIR("aic"),
        get_recalibrator("histogram_binning", n_bins=7),
    ]
    methods += [kind() for kind in all_recalibrators().values()]
    print(all_recalibrators(), methods[0].capabilities.cost)
    return [method.fit(p, y, sample_weight=None).predict_proba(p) for method in methods]


def interval(p: Floats, y: Integers) -> Floats:
    return VennAbers().fit(p, y).predict_interval(p)


class Halfway(Recalibrator):
    """A recalibrator of one's own."""

    capabilities = Capabilities(multiclass="native", monotone=True)

    def _fit(self, proba: Floats, codes: NDArray[np.intp], weight: Floats) -> None:
        self.mean_ = float(weight @ codes / weight.sum())

    def _predict_proba(self, proba: Floats) -> Floats:
        return (proba + 1.0 / proba.shape[1]) / 2


# -- measures -----------------------------------------------------------------------------


def measures(y: Integers, p: Floats) -> list[float]:
    found = lower_distance_interval(y, p, resolution=0.01)
    tested = lp_calibration_test(y, p, p=1.0, n_levels=10, random_state=1)
    witness = calibration_witness(y, p)
    witnesses = witness if isinstance(witness, list) else [witness]
    highest = [float(one([0.0, 0.5, 1.0]).max()) for one in witnesses]
    print(found.distance, found.bound, tested.pvalue, highest)
    print(calibration_error.spec.range, calibration_error.option_names)
    return [
        calibration_error(y, p, n_bins=10, strategy="uniform", bin_weight="equal"),
        calibration_error(y, p, norm="l2", debias=True),
        expected_calibration_error(
            y, p, multiclass="top_label", sample_weight=[1.0] * len(y)
        ),
        maximum_calibration_error(y, p, labels=[0, 1]),
        smooth_calibration_error(y, p, pos_label=1),
        kernel_calibration_error(y, p, multiclass="confidence", bandwidth=0.4),
        convolved_calibration_error(y, p),
        interval_calibration_error(y, p),
        random_interval_calibration_error(y, p, width=0.2),
        lower_distance_to_calibration(y, p),
        lp_calibration_error(y, p, p=2.0),
        brier_loss.evaluate(validate_predictions(y, p)),
        *[measure(y, p) for measure in all_metrics().values()],
    ]


@binary_measure(range=(-1, 1))
def bias(problem: BinaryProblem, **shared: "Unpack[BinaryOptions]") -> float:
    weight = problem.weight / problem.weight.sum()
    return float(weight @ (problem.score - problem.hit))


def own_measure(y: Integers, p: Floats, model: object) -> Measure[...]:
    check_contract(bias)
    check_contract(Halfway(), n_classes=(2, 3))
    scorer = bias.scorer(multiclass="classwise")
    print(bias(y, p), bias.spec.scorer_name, scorer(model, p, y), bias.scorer())
    return bias


# -- inference and decomposition ----------------------------------------------------------


def mean_score(case: Predictions) -> float:
    return case.mean(case.second)


def tests(y: Integers, p: Floats) -> list[float]:
    result = calibration_test(y, p, statistic="smooth", n_resamples=99, random_state=0)
    ends = confidence_interval(y, p, "brier_loss", level=0.9, n_jobs=2)
    verdict = CalibrationTester(0.1, tolerance=0.01, n_parts=3).test(y, p)
    case = validate_predictions(y, p)
    drawn = (
        simulate_null_distribution(case, mean_score, 99),
        simulate_bootstrap_distribution(case, mean_score, 99),
    )
    print(ends.low, ends.high, verdict.calibrated, [values.mean() for values in drawn])
    print(
        CalibrationTester(0.1).sample_size(),
        binning_sample_size(2, 0.1),
        result.null_distribution.mean(),
    )
    return [
        result.pvalue,
        cox_test(y, p).pvalue,
        polynomial_test(y, p, held_out=True).pvalue,
        validation_summary(y, p, ci="wald", smoother="cox")["slope"].low,
        spiegelhalter_test(y, p).statistic,
        hosmer_lemeshow_test(y, p, n_bins=10, held_out=False).pvalue,
        cumulative_test(y, p, statistic="kolmogorov_smirnov").pvalue,
        lp_calibration_bound(y, p, level=0.9),
    ]


def decomposed(y: Integers, p: Floats) -> LossDecomposition:
    parts = decompose_loss(y, p, loss="brier", recalibrator="isotonic", cv=5)
    ends = parts.interval("refinement", level=0.9)
    if ends is not None:
        print(ends[0] < parts.refinement < ends[1], parts.standard_errors["risk"])
    curve = refinement_curve(y, [p, p], stages=[1, 2], kind="proba")
    best: int = curve.stage[curve.best("one_standard_error")]
    print(best, refinement_error(y, p), proper_calibration_error(y, p, cv=3))
    stopping: Callable[..., float] = as_eval_metric("xgboost", label_smoothing=True)
    print(
        stopping(y, p),
        as_eval_metric("lightgbm")(y, p)[0],
        temperature_refinement_log_loss(y, p),
    )
    return parts


# -- decisions ----------------------------------------------------------------------------


def decided(learner: object, X: Floats, y: Integers, p: Floats) -> DecisionCurve:
    costs = [[0, 1], [5, 0]]
    acting = CostSensitiveClassifier(
        CalibratedModel(learner), costs, actions=["pass", "stop"]
    )
    print(
        acting.fit(X, y).predict(X, costs=costs),
        acting.expected_cost(X).mean(),
        acting.threshold_,
    )
    careful = SelectiveClassifier(learner, max_risk=0.1, abstain_label="ask").fit(X, y)
    print(
        careful.predict(X), careful.coverage_, careful.risk_bound_, careful.score(X, y)
    )
    curve = decision_curve(
        y, p, thresholds=[0.1, 0.2], prevalence=0.1, recalibrated="platt"
    )
    print(curve.interventions_avoided, curve.over_all.low, curve.to_frame())
    print(decision_difference(y, p, p**2).band_low, risk_coverage_curve(y, p).excess)
    print(
        regret_curve(y, p, p**2).at([0.3]), regret_curve(y, p, cv=None).worst_threshold
    )
    print(
        regret_curve(y, p, level=0.9).decision_loss_interval[0],
        calibration_decision_loss(y, p),
    )
    found = expected_metrics(p, threshold=0.2, costs=costs, y_true=y)
    print(found.auc, found.z_score("auc"), found.realised["auc"])
    print(
        expected_cost_score(y, p, costs=costs), expected_cost_test(y, p, costs).pvalue
    )
    DecisionCurveDisplay({"model": curve}).plot()
    RegretDisplay.from_predictions(y, p)
    RiskCoverageDisplay.from_predictions(y, {"model": p})
    return curve


# -- pictures and reports -----------------------------------------------------------------


def pictures(model: object, X: Floats, y: Integers, p: Floats) -> None:
    curves = reliability_curve(y, p, strategy="isotonic", n_resamples=0)
    print(curves[0].predicted, curves[0].consistency_low)
    display = ReliabilityDisplay.from_predictions(
        y, {"a": p, "b": p}, bands="none", n_bins=10
    )
    print(display.plot(ax=display.axes_).figure_)
    print(DecompositionDisplay.from_predictions(y, p, name="mine").ax_)
    WitnessDisplay.from_predictions(y, p)
    CumulativeDifferenceDisplay.from_predictions(y, p).plot()
    NullDistributionDisplay(calibration_test(y, p)).plot(bins=20)
    CalibratingFunctionDisplay.from_predictions(y, p, ["platt", "isotonic"])
    CalibratingFunctionDisplay.from_predictions(
        y, p, {"mine": PlattScaling()}, n_points=11
    )
    RefinementCurveDisplay.from_predictions(y, [p, p], loss="log")
    search = RefineThenCalibrateCV(model, {"C": [0.1, 1.0]}, stages=None).fit(X, y)
    RefinementCurveDisplay(search.refinement_curve_, chosen=0).plot()
    report = calibration_report(
        y, {"model": p}, measures=["brier_loss"], n_resamples=99
    )
    print(report, report.rows[0].value, report.accuracy["model"], report.to_frame())
    report.to_html("report.html", title="Calibration")


# -- linear models, stages, data, theory --------------------------------------------------


def linear(model: object, X: Floats, y: Integers) -> list[Floats]:
    angle = estimate_angle(model, X, y, "identity", link_slope=3.0)
    own = AngularCalibratedClassifier(model, link="probit", sign="cv").fit(X, y)
    print(angle.theta, angle.inner_product, angle.diagnostics["df"], own.cos_theta_)
    return [
        approximate_leave_one_out(model, X, y),
        logistic_intervals(model, X, X, level=0.9),
        own.predict_proba(X),
        CalibratedModel(model, cv="alo", ensemble=False).fit(X, y).predict(X),
    ]


def stages(learner: object, X: Floats) -> int:
    register_staging("mine.Boosting", Staging())
    staging = find_staging(learner)
    return 0 if staging is None else staging.n_stages(learner)


def data() -> list[float]:
    proba, y = make_overconfident(3, 500, random_state=None)
    X, labels, truth = make_high_dimensional(
        100, 200, design="uniform", link="clipped_relu"
    )
    shifted, perturbed = (
        make_uniform_shift(50, 0.1),
        make_sign_perturbed(50, strength=0.2),
    )
    X2, labels2, true_proba = make_two_gaussians(100, mean=[1.0, 2.0])
    print(proba, y, X, labels, X2, labels2, true_proba, shifted.distance, perturbed.y)
    limit = GaussianLogisticModel(0.5, 0.1, spectrum=(1, 1)).limit(
        [0.1, 1.0], loss="brier"
    )
    parts = GaussianLogisticModel.compute_weight_loss(0.5, 1.0, loss="log")
    return [truth.cos_theta(truth.coef), parts.risk, *limit.refinement.tolist()]


compile_kernels()
