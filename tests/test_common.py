"""Every registered class and measure, through the common checks. No second list of them here."""

import functools
import re
import warnings
from contextlib import suppress
from unittest import SkipTest

import numpy as np
import pytest
import sklearn
import words
from cases import check_every_case, run_every_case
from checkout import GUIDE, ROOT
from error_fields import raises_invalid_input
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib.classifiers import AngularCalibratedClassifier
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import CostSensitiveClassifier
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import (
    GroupRecalibration,
    MulticalibratedModel,
    MulticalibratedScores,
)
from sklearn_calib.metrics import all_metrics, get_scorer
from sklearn_calib.recalibrators import (
    AdaptiveCalibration,
    AngularCalibration,
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    OneVsRest,
    OnlineCalibration,
    OrdinalCalibration,
    PlattScaling,
    PriorShift,
    RestrictedPolynomialRegression,
    StackedCalibration,
    TemperatureScaling,
    TopLabel,
    TrendFiltering,
    TrendFilteringEnsemble,
    all_recalibrators,
    get_recalibrator,
)
from sklearn_calib.testing import check_contract, contract_checks

REPRESENTATIVE = "platt"  # through all of scikit-learn's checks
# of scikit-learn's checks each other method goes through one in six, all together all
TURNS = 6
#: scikit-learn's checks that recalibrators pass. The others fit on features, with
#: numbers beyond [0, 1], and a recalibrator rejects what are not rows of probabilities.
APPLICABLE_CHECKS = (
    "check_decision_proba_consistency",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimator_tags_renamed",
    "check_estimators_nan_inf",
    "check_estimators_partial_fit_n_features",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_get_params_invariance",
    "check_classifiers_one_label",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_non_transformer_estimators_n_iter",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_supervised_y_no_nan",
    "check_transformer_n_iter",
    "check_transformers_unfitted",
    "check_valid_tag_types",
)
#: Of these, checks that fit on features if a class has certain methods or parameters.
FEATURE_CHECKS = {
    "MulticlassBinning": (
        "check_non_transformer_estimators_n_iter",
        "check_transformer_n_iter",
    ),
    "OnlineCalibration": ("check_estimators_partial_fit_n_features",),
    "GroupRecalibration": ("check_estimators_nan_inf", "check_classifiers_one_label"),
    "MulticalibratedScores": (
        "check_estimators_nan_inf",
        "check_classifiers_one_label",
    ),
}
#: Of scikit-learn 1.9, without those of arrays on devices, which are skipped.
N_GENERIC_CHECKS = 67
DEFAULTS = [cls() for cls in all_recalibrators().values()]
VARIANTS = [
    TemperatureScaling(laplace=True),
    PlattScaling(scale="proba"),
    PlattScaling(smooth_targets=False),
    BetaCalibration("am"),
    BetaCalibration("ab"),
    HistogramBinning(strategy="uniform"),
    IsotonicCalibration(centred=True),
    OneVsRest(make_pipeline(PlattScaling(), HistogramBinning(5))),
    TopLabel("isotonic", per_class=True),
    PriorShift("uniform"),
]
# exemptions, each with its reason
EXEMPT = {
    (
        "HistogramBinning(strategy='uniform')",
        "check_class_permutation",
    ): "bins close on the right",
    (
        "BBQ()",
        "check_class_permutation",
    ): "bins are filled from below, its prior counts positives",
    (
        "TemperatureScaling(laplace=True)",
        "check_weight_scale",
    ): "one row is added to the weights",
    ("OrdinalCalibration()", "check_class_permutation"): "its classes have an order",
    ("Identity()", "check_learns"): "it is there to learn nothing",
    ("PriorShift()", "check_learns"): "the identity until adapt has seen target rows",
    **{
        ("PriorShift(prior='uniform')", check): reason
        for reason, checks in {
            "frequencies of 0 cannot be moved, and are refused": (
                "check_missing_class",
                "check_one_class",
                "check_tiny",
            ),
        }.items()
        for check in checks
    },
}
STEP = IsotonicCalibration(prediction="step")
QUICKER = [
    cls(**words.QUICKER[cls.__name__])
    for cls in all_recalibrators().values()
    if cls.__name__ in words.QUICKER
]
# capabilities are those of the default parameters
DECLARED = (
    "check_capabilities",
    "check_shape",
)
STEP_EXEMPT = "check_class_permutation"  # a step keeps the value of the lower score
# one class against the rest is fitted by their common base class: of the checks on four
# classes a sample runs, and all for these two, which no method fits faster
LIFTED = (PlattScaling, IsotonicCalibration)
SAMPLE = ("check_simplex", "check_class_permutation")
# 15 ms or more for a fit of a hundred rows of two classes: one check is quick
SLOW_TO_FIT = (
    AngularCalibration,
    RestrictedPolynomialRegression,
    TrendFiltering,
    TrendFilteringEnsemble,
)
# rows are read by the common base class: the first two (one class against the rest, all
# classes at once) stand for the others, and the rest have a way of their own, or
# classes with a meaning
OWN_READING = (
    PlattScaling,
    TemperatureScaling,
    AdaptiveCalibration,
    OneVsRest,
    OnlineCalibration,
    OrdinalCalibration,
    PriorShift,
    StackedCalibration,
    TopLabel,
)
OF_READING = ("check_bad_input", "check_containers", "check_dtypes", "check_labels")


def _marks(instance, name):
    """None of a quick test."""
    slow = pytest.mark.slow
    if instance not in QUICKER and type(instance).__name__ in words.QUICKER:
        return pytest.mark.cross if name.endswith("[4]") else slow
    if instance in VARIANTS:
        return slow
    if name.endswith("[4]") and not name.startswith(SAMPLE):
        if instance.capabilities.multiclass == "one-vs-rest" and not isinstance(
            instance, LIFTED
        ):
            return pytest.mark.cross
        return slow
    if name.startswith(OF_READING) and not isinstance(instance, OWN_READING):
        return slow
    if isinstance(instance, SLOW_TO_FIT) and name != "check_simplex[2]":
        return slow
    return ()


def _cases():
    """Yield parameters: the checks of an instance that have the same mark, by name."""
    for instance in [*DEFAULTS, *VARIANTS, STEP, *QUICKER]:
        title = repr(instance)
        by_mark = {}
        for name, check in contract_checks(instance):
            reason = EXEMPT.get((title, name.partition("[")[0]))
            if reason or (instance is STEP and name.startswith(STEP_EXEMPT)):
                continue
            if instance not in DEFAULTS and name.startswith(DECLARED):
                continue
            marks = _marks(instance, name)
            kind = marks.name if marks else "quick"
            by_mark.setdefault(kind, (marks, {}))[1][name] = check
        for kind, (marks, checks) in by_mark.items():
            yield pytest.param(checks, id=f"{title}-{kind}", marks=marks)


def _run_checks(checks):
    """Run all checks; the message of the first that fails begins with its name."""
    for name, check in checks.items():
        try:
            check()
        except Exception as error:
            raise AssertionError(f"{name}: {error!r}") from error


@pytest.mark.whole
@pytest.mark.parametrize("checks", list(_cases()))
def test_recalibrator_contract(checks):
    _run_checks(checks)


@run_every_case("instance", DEFAULTS, ids=repr)
def test_scores_down_to_the_smallest_number(instance):
    """Naive Bayes gives such scores."""
    rng = np.random.default_rng(0)
    small = 10.0 ** -rng.uniform(0, 323, 400)
    p = np.concatenate(
        [small, 1 - small[:100], rng.random(50), [0.0, 1.0, 5e-324, 1e-323]]
    )
    y = (rng.random(len(p)) < np.clip(p, 0.2, 0.8)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted = clone(instance).fit(p, y)
    proba = fitted.predict_proba(np.concatenate([p, p / 2, np.sqrt(p)]))
    assert np.isfinite(proba).all()
    assert np.abs(proba.sum(axis=1) - 1).max() <= 1e-12


@pytest.mark.parametrize("name", all_metrics())
def test_metric_contract(name):
    _run_checks(dict(contract_checks(all_metrics()[name])))


@run_every_case("instance", DEFAULTS, ids=repr)
def test_constructors(instance):
    assert repr(clone(instance)) == repr(instance)
    assert get_recalibrator(
        type(instance).__module__.rpartition("._")[2]
    ).__class__ is type(instance)
    assert instance.capabilities.multiclass in ("native", "one-vs-rest")
    assert "<" in instance._repr_html_()
    assert type(instance).__doc__ and "Examples" in type(instance).__doc__
    for attribute in vars(instance):
        assert not attribute.endswith("_")


QUICK = [one for one in DEFAULTS if type(one).__name__ not in words.QUICKER] + QUICKER


@run_every_case("instance", QUICK, ids=repr)
def test_weights_are_what_they_say(instance):
    """Whole numbers are counts: 50 times as many rows matter to those that say so, and only them.

    Of other weights a common factor matters to those that say that weights are counts.
    """
    proba, y = make_overconfident(2, 200)
    found = []
    for weight in (np.ones(200), np.full(200, 50.0), np.full(200, 50.5)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            fitted = clone(instance).fit(proba, y, sample_weight=weight)
        found.append(fitted.predict_proba(proba))
    plain, many, fractions = found
    declared = instance.capabilities.weights
    assert (np.abs(many - plain).max() > 1e-6) == (declared != "ratios")
    assert (np.abs(fractions - plain).max() > 1e-6) == (declared == "counts")


def test_as_many_classes_as_a_method_takes():
    """The greatest number is taken, one more is not."""
    limited = [one for one in DEFAULTS if one.capabilities.max_classes is not None]
    assert limited
    for instance in limited:
        most = instance.capabilities.max_classes
        instance._check_class_number(np.ones((1, most)), np.arange(most))
        with raises_invalid_input(
            ValueError, expected=f"at most {most} classes", value=f"{most + 1}"
        ):
            instance._check_class_number(np.ones((1, most + 1)), np.arange(most + 1))


def test_registry_names():
    assert "temperature" in all_recalibrators()
    names = {one.spec.scorer_name for one in all_metrics().values()}
    assert len(names) == len(all_metrics())
    for name in names:
        assert repr(get_scorer(name)) == f"get_scorer({name!r})"
    with raises_invalid_input(
        ValueError, expected="one of .*temperature", value="'temprature'"
    ):
        get_recalibrator("temprature")
    with raises_invalid_input(
        ValueError, expected="a scorer among ", value="'ece'", hint=".*neg_expected"
    ):
        get_scorer("ece")
    with raises_invalid_input(
        ValueError,
        expected="options of expected_calibration_error among .*n_bins",
        value="'bins'",
    ):
        get_scorer("neg_expected_calibration_error", bins=3)


def test_the_checks_can_fail():
    """Each check by itself is in `test_checks_bite`."""

    class Broken(PlattScaling):
        def _predict_proba(self, proba):
            return 2 * super()._predict_proba(proba)

    with pytest.raises(AssertionError, match="simplex"):
        check_contract(Broken())


def test_the_metric_checks_can_fail():
    from sklearn_calib.metrics import brier_loss, measure

    @measure(range=(0, 1))
    def unweighted(predictions):
        return brier_loss.evaluate(
            predictions.with_weight(np.ones(len(predictions.codes)))
        )

    with pytest.raises(AssertionError, match="check_"):
        check_contract(unweighted)


def _run(check, estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        warnings.simplefilter("ignore", UserWarning)  # StratifiedKFold on tiny classes
        warnings.simplefilter("ignore", FutureWarning)
        check(estimator)


CHECKED = [
    CalibratedModel(LogisticRegression(), REPRESENTATIVE),
    AngularCalibratedClassifier(LogisticRegression()),
    CostSensitiveClassifier(LogisticRegression()),
    MulticalibratedModel(LogisticRegression(), n_rounds=1, n_trees=10),
    RefineThenCalibrateCV(
        HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=1)
    ),
]


@functools.cache
def list_checks(place):
    """Return {name: (estimator, check)} of a model."""
    checks = {}
    for estimator, check in estimator_checks_generator(CHECKED[place]):
        checks[f"{check.func.__name__} {check.keywords}"] = (estimator, check)
    return checks


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(CHECKED)))
def test_scikit_learn_contract(place):
    """Of the first model all checks, of the others one and what the first does not have."""
    checks = list_checks(place)
    if place:
        first = next(iter(checks))
        known = {*list_checks(0)} - {first}
        checks = {name: pair for name, pair in checks.items() if name not in known}
    check_every_case(
        {name: {"pair": pair} for name, pair in checks.items()},
        lambda pair: run_all([pair]),
    )


@pytest.mark.cross
@pytest.mark.parametrize("model", CHECKED, ids=repr)
def test_scikit_learn_contract_in_full(model):
    run_all(estimator_checks_generator(model))


@pytest.mark.cross
@pytest.mark.parametrize(
    "model",
    [
        CalibratedModel(LogisticRegression(), cv="alo"),
        CalibratedModel(LogisticRegression(), ensemble=False),
        CalibratedModel(LogisticRegression(), response_method="predict_proba"),
        CalibratedModel(LogisticRegression(), OnlineCalibration(share=0)),
        MulticalibratedModel(
            LogisticRegression(), 0, monotone=True, n_rounds=1, n_trees=10
        ),
        CalibratedModel(
            LogisticRegression(),
            make_pipeline(TemperatureScaling(), HistogramBinning()),
        ),
        RefineThenCalibrateCV(
            LogisticRegression(), {"C": [0.1, 1.0]}, error_score="raise"
        ),
        RefineThenCalibrateCV(LogisticRegression(), ensemble=True),
    ],
    ids=repr,
)
def test_scikit_learn_contract_of_the_others(model):
    run_all(estimator_checks_generator(model))


OTHER_METHODS = [
    name
    for name, cls in all_recalibrators().items()
    # a thousand fits each; the contract above has fitted these two on such rows
    if name != REPRESENTATIVE
    and cls not in (TrendFiltering, TrendFilteringEnsemble)
    and not cls.capabilities.order_dependent  # the contract shuffles rows that weights stand for
]


@pytest.mark.cross
@pytest.mark.parametrize("name", OTHER_METHODS)
def test_scikit_learn_contract_of_the_other_methods(name):
    """What the checks see is the model around them: each method takes its turn of the checks."""
    checks = [*estimator_checks_generator(CalibratedModel(LogisticRegression(), name))]
    assert len(checks) > 5 * TURNS and len(OTHER_METHODS) > 4 * TURNS
    run_all(checks[OTHER_METHODS.index(name) % TURNS :: TURNS])


def run_all(checks):
    for estimator, check in checks:
        with suppress(SkipTest):  # of one check, for want of another package
            _run(check, estimator)


@pytest.mark.slow
@run_every_case(
    "instance", [*DEFAULTS, GroupRecalibration(), MulticalibratedScores()], ids=repr
)
def test_scikit_learn_contract_of_the_classes_themselves(instance):
    checks = {
        check.func.__name__: (estimator, check)
        for estimator, check in estimator_checks_generator(instance)
    }
    exempt = FEATURE_CHECKS.get(type(instance).__name__, ())
    names = [name for name in APPLICABLE_CHECKS if name not in exempt]
    found = [checks[name] for name in names if name in checks]
    assert len(found) > 15  # their number and names change with the version
    run_all(found)


def test_number_of_applicable_checks_that_the_pages_state():
    for page in (ROOT / "README.md", GUIDE / "recalibrators.rst"):
        stated = re.search(
            r"(\d+) of\s+scikit-learn's (\d+) generic checks",
            page.read_text(encoding="utf-8"),
        )
        numbers = [int(number) for number in stated.groups()]
        assert numbers == [len(APPLICABLE_CHECKS), N_GENERIC_CHECKS]
    if sklearn.__version__.split(".")[:2] == ["1", "9"]:
        checks = [
            check
            for _, check in estimator_checks_generator(PlattScaling())
            if "array_api" not in check.func.__name__
        ]
        assert len(checks) == N_GENERIC_CHECKS
        assert {*APPLICABLE_CHECKS} <= {check.func.__name__ for check in checks}
