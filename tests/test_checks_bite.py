"""Wrong methods, measures and displays, each caught by the check that is named.

Wrong adapters of learners are in ``staged/test_staging_checks.py``, wrong imports in
``test_architecture.py``.
"""

import warnings

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.base import clone
from test_architecture import ROOT, files_without_line

from sklearn_calib._show import escape_legend_label, escape_mathtext
from sklearn_calib.displays import Display
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import (
    BetaFamilyLoss,
    BrierLoss,
    LogLoss,
    Measure,
    ProperLoss,
    binary_measure,
    brier_loss,
    calibration_error,
    measure,
)
from sklearn_calib.recalibrators import (
    Capabilities,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
)
from sklearn_calib.testing import contract_checks

RECALIBRATORS, MEASURES, LOSSES, DISPLAYS = [], [], [], []


def caught_by(check, planted=RECALIBRATORS):
    """Register a wrong class with the name of the check that must fail for it."""

    def register(thing):
        thing.__qualname__ = thing.__name__  # so that it pickles
        globals()[thing.__name__] = thing
        planted.append(pytest.param(thing, check, id=thing.__name__))
        return thing

    return register


def failures(checks):
    failed = []
    for name, check in checks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            try:
                check()
            except Exception:
                failed.append(name.partition("[")[0])
    return failed


# The lists of wrong classes are filled below: they are read when the tests are collected.
@pytest.mark.parametrize(("wrong", "check"), RECALIBRATORS)
def test_wrong_recalibrator(wrong, check):
    checks = [c for c in contract_checks(wrong()) if c[0].startswith(check)]
    assert checks, f"there is no {check}"
    assert check in failures(checks)


@pytest.mark.parametrize(("wrong", "check"), MEASURES)
def test_wrong_measure(wrong, check):
    checks = [c for c in contract_checks(wrong) if c[0].startswith(check)]
    assert checks, f"there is no {check}"
    assert check in failures(checks)


@pytest.mark.parametrize(("wrong", "check"), LOSSES)
def test_wrong_loss(wrong, check):
    checks = [c for c in contract_checks(wrong()) if c[0].startswith(check)]
    assert checks, f"there is no {check}"
    assert check in failures(checks)


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "check"), DISPLAYS)
def test_wrong_display(wrong, check):
    assert check in failures_of_display(wrong(), {check})


@pytest.mark.parametrize("package", ["displays", "staged", "recalibrators", "metrics"])
def test_file_without_its_line(package, tmp_path):
    source = (ROOT / package / "__init__.py").read_text(encoding="utf-8")
    (tmp_path / "__init__.py").write_text(source, encoding="utf-8")
    for path in (ROOT / package).glob("_*.py"):
        (tmp_path / path.name).touch()
    (tmp_path / "_new.py").touch()
    assert files_without_line(tmp_path) == ["_new.py"]
    (tmp_path / "__init__.py").write_text(
        source + "# from ._new import New as New\n", encoding="utf-8"
    )
    assert files_without_line(tmp_path) == ["_new.py"]
    (tmp_path / "__init__.py").write_text(
        source + "from ._new import New as New\n", encoding="utf-8"
    )
    assert files_without_line(tmp_path) == []


@pytest.mark.slow
def test_right_ones_pass():
    """So that a check that always fails is seen, too."""
    names = {param.values[1] for param in RECALIBRATORS}
    checks = [
        c for c in contract_checks(PlattScaling()) if c[0].partition("[")[0] in names
    ]
    assert not failures(checks)
    names = {param.values[1] for param in MEASURES}
    checks = [c for c in contract_checks(brier_loss) if c[0].partition("[")[0] in names]
    assert not failures(checks)
    assert not failures(contract_checks(Right()))
    assert {param.values[1] for param in LOSSES} == {
        name.partition("[")[0] for name, _ in contract_checks(Right())
    }, "each check has a wrong loss"
    assert not failures_of_display(Lines(), {param.values[1] for param in DISPLAYS})


# -- recalibrators --------------------------------------------------------------------------------


@caught_by("check_simplex")
class DoublesTheMass(PlattScaling):
    def _predict_proba(self, proba):
        return 2 * super()._predict_proba(proba)


@caught_by("check_weights_are_repetition")
class IgnoresWeights(PlattScaling):
    def _fit(self, proba, codes, weight):
        super()._fit(proba, codes, np.ones_like(weight))


@caught_by("check_weight_scale")
class CountsTheWeights(TemperatureScaling):
    def _fit(self, proba, codes, weight):
        super()._fit(proba, codes, weight)
        self.inverse_temperature_ *= 1 + 1 / (1 + weight.sum())


@caught_by("check_weight_scale")
class CountsWholeWeights(TemperatureScaling):
    def _fit(self, proba, codes, weight):
        super()._fit(proba, codes, weight)
        if (weight > 1).all() and (weight == weight.round()).all():
            self.inverse_temperature_ *= 1.1


@caught_by("check_pickle")
class KeepsTheRows(PlattScaling):
    def _fit(self, proba, codes, weight):
        super()._fit(proba, codes, weight)
        self.rows_ = np.asarray(proba)


@caught_by("check_order_invariance")
class FirstHalfOnly(PlattScaling):
    def _fit(self, proba, codes, weight):
        half = len(codes) // 2 + 1
        super()._fit(proba[:half], codes[:half], weight[:half])


@caught_by("check_class_permutation")
class FavoursTheLastClass(TemperatureScaling):
    def _predict_proba(self, proba):
        out = super()._predict_proba(proba)
        out[:, -1] += 0.01
        return out / out.sum(axis=1, keepdims=True)


@caught_by("check_row_alone")
class LooksAtTheBatch(PlattScaling):
    def _predict_proba(self, proba):
        out = super()._predict_proba(proba)
        return 0.99 * out + 0.01 * out.mean(axis=0)


@caught_by("check_monotone")
class FallsInTheMiddle(PlattScaling):
    def _predict_proba(self, proba):
        second = np.asarray(proba)[:, 1]
        second = np.where((second > 0.4) & (second < 0.6), 1 - second, second)
        return np.column_stack([1 - second, second])


@caught_by("check_inputs_untouched")
class WritesIntoItsParameters(PlattScaling):
    def _fit(self, proba, codes, weight):
        super()._fit(proba, codes, weight)
        self.smooth_targets = not self.smooth_targets


@caught_by("check_constructor")
class ChangesAnArgument(PlattScaling):
    def __init__(self, scale="LOGIT", smooth_targets=True):
        self.scale = scale.lower()
        self.smooth_targets = smooth_targets


@caught_by("check_constructor")
class SetsAnAttribute(PlattScaling):
    def __init__(self, scale="logit", smooth_targets=True):
        super().__init__(scale, smooth_targets=smooth_targets)
        self.n_calls = 0


@caught_by("check_constructor")
class ParameterWithoutConstraint(PlattScaling):
    """Platt scaling.

    Parameters
    ----------
    scale, smooth_targets, extra : object
    """

    def __init__(self, scale="logit", smooth_targets=True, extra=1):
        super().__init__(scale, smooth_targets=smooth_targets)
        self.extra = extra


@caught_by("check_refit")
class RemembersTheFirstFit(TemperatureScaling):
    def _fit(self, proba, codes, weight):
        first = getattr(self, "_first", None)
        super()._fit(proba, codes, weight)
        if first is not None:
            self.inverse_temperature_ = (self.inverse_temperature_ + first) / 2
        self._first = self.inverse_temperature_


@caught_by("check_direction")
class WrongDirection(TemperatureScaling):
    def _fit(self, proba, codes, weight):
        super()._fit(proba, codes, weight)
        self.inverse_temperature_ = 1.6


@caught_by("check_learns")
class LearnsNothing(TemperatureScaling):
    def _fit(self, proba, codes, weight):
        super()._fit(proba, codes, weight)
        self.inverse_temperature_ = 0.5


@caught_by("check_prediction_leaves_the_state")
class CountsItsPredictions(PlattScaling):
    def _predict_proba(self, proba):
        self.n_predictions_ = getattr(self, "n_predictions_", 0) + 1
        return super()._predict_proba(proba)


@caught_by("check_no_side_effects")
class DrawsFromTheGlobalGenerator(PlattScaling):
    def _fit(self, proba, codes, weight):
        np.random.rand()  # noqa: NPY002
        super()._fit(proba, codes, weight)


@caught_by("check_capabilities")
class ClaimsToBeNonparametric(PlattScaling):
    capabilities = Capabilities(
        monotone=True, continuous=True, needs_positive_proba=True, nonparametric=True
    )


@caught_by("check_capabilities")
class HidesThatItIsNonparametric(IsotonicCalibration):
    capabilities = Capabilities(
        monotone=True, continuous=True, nonparametric_shape=True
    )


@caught_by("check_capabilities")
class ClaimsToBeNative(PlattScaling):
    capabilities = Capabilities(monotone=True, continuous=True, cost="O(n)")

    def _fit_one_vs_rest(self, proba, codes, weight):
        second = np.column_stack(
            [1 - np.asarray(proba)[:, -1], np.asarray(proba)[:, -1]]
        )
        self._fit(second, (codes == proba.shape[1] - 1).astype(np.intp), weight)

    def _predict_from_canonical_proba(self, proba):
        return np.array(proba)


@caught_by("check_capabilities")
class StatesNoCost(PlattScaling):
    capabilities = Capabilities(
        monotone=True, continuous=True, needs_positive_proba=True, cost="cheap"
    )


@caught_by("check_shape")
class ClaimsToBeFlexible(PlattScaling):
    capabilities = Capabilities(
        monotone=True,
        continuous=True,
        needs_positive_proba=True,
        nonparametric_shape=True,
    )


@caught_by("check_shape")
class ClaimsToBeContinuous(IsotonicCalibration):
    capabilities = Capabilities(
        monotone=True, continuous=True, nonparametric_shape=True, nonparametric=True
    )

    def __init__(self, prediction="step", centred=False):
        super().__init__(prediction, centred=centred)


@caught_by("check_double_precision")
class SinglePrecisionResult(PlattScaling):
    def _predict_proba(self, proba):
        second = super()._predict_proba(proba)[:, 1].astype(np.float32).astype(float)
        return np.column_stack([1 - second, second])


@caught_by("check_double_precision")
class SinglePrecisionScores(PlattScaling):
    def _predict_proba(self, proba):
        second = np.asarray(proba)[:, 1].astype(np.float32).astype(float)
        return super()._predict_proba(np.column_stack([1 - second, second]))


@caught_by("check_documented")
class UndocumentedAttribute(PlattScaling):
    def _fit(self, proba, codes, weight):
        super()._fit(proba, codes, weight)
        self.secret_ = 1.0


@caught_by("check_documented")
class UndocumentedParameter(PlattScaling):
    """Platt scaling.

    Attributes
    ----------
    slope_, intercept_, floor_ : float
    """


# -- measures -------------------------------------------------------------------------------------


def planted_measure(check, decorator=measure, **declared):
    """Make a measure of a function and register it as wrong."""

    def register(function):
        planted = decorator(**declared)(function)
        assert isinstance(planted, Measure)
        MEASURES.append(pytest.param(planted, check, id=function.__name__))
        return planted

    return register


BINARY = ("confidence", "top_label", "classwise")


@planted_measure("check_weights_repeat", range=(0, 2))
def ignores_weights(predictions):
    return brier_loss.evaluate(predictions.with_weight(np.ones(len(predictions.codes))))


@planted_measure("check_range", range=(0, 0.5))
def leaves_its_range(predictions):
    return brier_loss.evaluate(predictions)


@planted_measure("check_range", range=(0, 2), greater_is_better=True)
def has_the_wrong_sign(predictions):
    return brier_loss.evaluate(predictions)


@planted_measure("check_multiclass_options", range=(0, 1), multiclass=BINARY)
def has_no_top_label(predictions, *, multiclass="auto"):
    if multiclass == "top_label":
        raise ValueError(
            "has_no_top_label: expected another option, got 'top_label'. Choose one."
        )
    return calibration_error.evaluate(predictions, multiclass=multiclass)


@planted_measure("check_multiclass_options", range=(0, 1), multiclass=BINARY)
def treats_all_options_alike(predictions, *, multiclass="auto"):
    calibration_error.evaluate(predictions, multiclass=multiclass)
    return calibration_error.evaluate(predictions)


@planted_measure("check_proper", range=(0, 2), proper=True)
def is_not_proper(predictions):
    true = np.asarray(predictions.proba)[
        np.arange(len(predictions.codes)), predictions.codes
    ]
    return predictions.mean(1 - true)


@planted_measure("check_argument_in_errors", range=(0, 1))
def ignores_a_wrong_option(predictions, *, power=1):
    return brier_loss.evaluate(predictions)


@planted_measure("check_cells", binary_measure, range=(0, 1), poolable=True)
def reads_the_rows(problem):
    return float(np.mean(np.abs(problem.hit - problem.score)))


@planted_measure("check_perfect_value", range=(0, 2), perfect=1.0)
def is_not_perfect(predictions):
    return brier_loss.evaluate(predictions)


@planted_measure("check_order", range=(0, 2))
def depends_on_the_order(predictions):
    return brier_loss.evaluate(predictions.take(slice(None, None, 2)))


# -- losses ---------------------------------------------------------------------------------------


class Right(ProperLoss):
    """A right one with the least that a loss needs, of two classes."""

    name, title, range, n_classes = "right", "right loss", (0.0, 1.0), 2

    def compute_label_losses(self, proba):
        q = 1 - np.asarray(proba)
        return 4 * q**3 - 3 * q**4


@caught_by("check_loss_names", LOSSES)
class HasNoTitle(Right):
    title = ""


@caught_by("check_label_losses", LOSSES)
class IsInfinite(Right):
    def compute_label_losses(self, proba):
        with np.errstate(divide="ignore"):
            return -np.log(np.asarray(proba))


@caught_by("check_label_losses", LOSSES)
class GivesTheFirstLabelAlone(Right):
    def compute_label_losses(self, proba):
        return super().compute_label_losses(proba)[:, 0]


@caught_by("check_label_losses", LOSSES)
class ChangesItsInput(Right):
    def compute_label_losses(self, proba):
        proba += 0
        proba[:] = proba.mean(axis=0)
        return super().compute_label_losses(proba)


@caught_by("check_row_losses", LOSSES)
class CountsRowsTwice(BrierLoss):
    def compute_row_losses(self, proba, codes):
        return 2 * super().compute_row_losses(proba, codes)


@caught_by("check_row_losses", LOSSES)
class ForgetsTheWeights(Right):
    def mean(self, case):
        return float(self.compute_row_losses(case.proba, case.codes).mean())


@caught_by("check_row_losses", LOSSES)
class TurnsTheLogitsRound(Right):
    def compute_logit_losses(self, logits, codes):
        return super().compute_logit_losses(-logits, codes)


@caught_by("check_loss_range", LOSSES)
class ClaimsASmallerRange(BrierLoss):
    range = (0.0, 1.0)


@caught_by("check_loss_range", LOSSES)
class IsNotPerfect(Right):
    range = (-1.0, 1.0)


@caught_by("check_properness", LOSSES)
class RewardsOverconfidence(Right):
    def compute_label_losses(self, proba):
        return 1 - np.asarray(proba)


@caught_by("check_properness", LOSSES)
class IsNotStrict(Right):
    def compute_label_losses(self, proba):
        proba = np.asarray(proba)
        wrong = (proba < 0.5).astype(float)
        return np.where(proba == 0.5, 0.5, wrong)


@caught_by("check_divergence", LOSSES)
class IsTheExpectedLoss(Right):
    def divergence(self, proba, truth):
        return self.expected(proba, truth)


@caught_by("check_divergence", LOSSES)
class IsTheDivergenceFromTheOtherSide(LogLoss):
    def divergence(self, proba, truth):
        return super().divergence(truth, proba)


@caught_by("check_slope", LOSSES)
class SlopesTheOtherWay(LogLoss):
    def slope(self, proba, rate):
        return rate


@caught_by("check_slope", LOSSES)
class TakesTheRateForAMove(BrierLoss):
    def slope(self, proba, rate):
        return super().slope(proba, rate / proba)


@caught_by("check_undecided", LOSSES)
class TakesItsClassesForAlike(BetaFamilyLoss):
    def __init__(self):
        super().__init__(1, 4)

    def get_undecided_prediction(self, n_classes):
        return np.full(n_classes, 1 / n_classes)


@caught_by("check_likelihood", LOSSES)
class ClaimsToBeMinimised(BrierLoss):
    is_likelihood = True


@caught_by("check_without_floor", LOSSES)
class IsAnotherWithoutFloor(LogLoss):
    def without_floor(self):
        return BrierLoss()


@caught_by("check_class_count", LOSSES)
class TakesAnyNumber(Right):
    def check_classes(self, n_classes, where):
        pass


@caught_by("check_copies", LOSSES)
class CannotBeSent(Right):
    def __init__(self):
        self.power = lambda q: q**3


@caught_by("check_decomposition", LOSSES)
class HasNoEndOfItsRange(LogLoss):
    def slope(self, proba, rate):
        return np.full(proba.shape, np.nan)


# -- displays -------------------------------------------------------------------------------------


def failures_of_display(display, names):
    plt = pytest.importorskip("matplotlib.pyplot")
    opened = plt.get_fignums()
    with plt.rc_context():
        checks = [
            c for c in contract_checks(display) if c[0].partition("[")[0] in names
        ]
        assert checks, f"there is no {names}"
        found = failures(checks)
    for number in set(plt.get_fignums()) - set(opened):
        plt.close(number)
    return found


def pyplot():
    from matplotlib import pyplot

    return pyplot


class Lines(Display):
    """A right one: two panels, a name in a title and one in a legend."""

    def __init__(self):
        self.name, self.model = "panel", "model"
        self.x, self.y = np.array([0.0, 1.0, 2.0]), np.array([5.0, 3.0, 4.0])

    def get_plotted_data(self):
        return [[(self.x, self.y)], [(self.x, 2 * self.y)]]

    def _make_axes(self, plt):
        return plt.subplots(2, layout="constrained")[1]

    def _draw(self, above, below):
        above.plot(self.x, self.y, label=escape_legend_label(self.model))
        above.legend()
        below.plot(self.x, 2 * self.y)
        below.set_title(escape_mathtext(self.name))


@caught_by("check_shows_plotted_data", DISPLAYS)
class SwapsItsAxes(Lines):
    def _draw(self, above, below):
        super()._draw(above, below)
        above.clear()
        above.plot(self.y, self.x)


@caught_by("check_shows_plotted_data", DISPLAYS)
class SwapsItsPanels(Lines):
    def _draw(self, above, below):
        super()._draw(below, above)


@caught_by("check_given_axes_only", DISPLAYS)
class IgnoresAx(Lines):
    def plot(self, *, ax=None):
        return super().plot()


@caught_by("check_attributes", DISPLAYS)
class ForgetsTheAxes(Lines):
    def plot(self, *, ax=None):
        axes = self._make_axes(pyplot()) if ax is None else ax
        self._draw(*axes)
        return self


@caught_by("check_returns_itself", DISPLAYS)
class ReturnsNothing(Lines):
    def plot(self, *, ax=None):
        super().plot(ax=ax)


@caught_by("check_given_axes_only", DISPLAYS)
class DrawsOnTheCurrentAxes(Lines):
    def _draw(self, above, below):
        super()._draw(above, below)
        pyplot().plot(self.x, self.y)


@caught_by("check_given_axes_only", DISPLAYS)
class NamesTheWholeFigure(Lines):
    def _draw(self, above, below):
        super()._draw(above, below)
        for ax in above.figure.axes:
            ax.set_xlabel("x")


@caught_by("check_own_figure", DISPLAYS)
class ClosesOtherFigures(Lines):
    def _make_axes(self, plt):
        plt.close("all")
        return super()._make_axes(plt)


@caught_by("check_draws_again", DISPLAYS)
class RemembersTheFirstAxes(Lines):
    def _draw(self, above, below):
        self.first_ = getattr(self, "first_", above)
        super()._draw(self.first_, below)


@caught_by("check_axes_count", DISPLAYS)
class TakesAnyNumberOfAxes(Lines):
    def plot(self, *, ax=None):
        return super().plot(ax=None if ax is None else ax[:2])


@caught_by("check_inputs_untouched", DISPLAYS)
class SortsItsInput(Lines):
    def _draw(self, above, below):
        super()._draw(above, below)
        self.y.sort()


@pytest.mark.parametrize("sorted_before", [False, True])
def test_a_display_that_writes_into_its_input_is_told_so(sorted_before):
    """In the words of the check, whether values change or it was tried alone."""
    pytest.importorskip("matplotlib")
    display = SortsItsInput()
    if sorted_before:
        display.y.sort()
    checks = dict(contract_checks(display))
    with pytest.raises(
        AssertionError, match="plot changes what the constructor was given"
    ):
        checks["check_inputs_untouched"]()


@caught_by("check_settings_untouched", DISPLAYS)
class OpensAWindow(Lines):
    def _draw(self, above, below):
        super()._draw(above, below)
        pyplot().show()


@caught_by("check_settings_untouched", DISPLAYS)
class ChangesTheSettings(Lines):
    def _make_axes(self, plt):
        plt.rcParams["lines.linewidth"] += 1
        return super()._make_axes(plt)


@caught_by("check_names", DISPLAYS)
class ReadsANameAsAFormula(Lines):
    def _draw(self, above, below):
        super()._draw(above, below)
        below.set_title(self.name)


@caught_by("check_names", DISPLAYS)
class LeavesANameOutOfTheLegend(Lines):
    def _draw(self, above, below):
        super()._draw(above, below)
        above.lines[0].set_label(escape_mathtext(self.model))
        above.legend()


@caught_by("check_plotted_data", DISPLAYS)
class SaysNothing(Lines):
    def get_plotted_data(self):
        return [[(self.x, self.x)], [(self.x, self.x)]]


class Impostor:
    """Quacks like the Brier loss, with another call: what no decorated function could do."""

    def __init__(self, call):
        self._call = call

    def __getattr__(self, name):
        return getattr(brier_loss, name)

    def __call__(self, *given, **options):
        return self._call(*given, **options)


def _shrugs(*given, **options):
    try:
        return brier_loss(*given, **options)
    except (TypeError, ValueError):
        return 0.5


IMPOSTORS = {
    "check_value": lambda y, p, **more: np.full(1, brier_loss(y, p, **more)),
    "check_range": lambda y, p, **more: -brier_loss(y, p, **more) - 1e-6,
    "check_weight_scaling": lambda y, p, sample_weight=None, **more: (
        brier_loss(y, p, sample_weight=sample_weight, **more)
        + (0 if sample_weight is None else 1e-6 * np.sum(sample_weight))
    ),
    "check_weights_repeat": lambda y, p, **more: (
        brier_loss(y, p, **more) + 1e-6 * len(y)
    ),
    "check_order": lambda y, p, **more: brier_loss(y, p, **more) + 1e-3 * p[0, 0],
    "check_label_types": lambda y, p, **more: (
        brier_loss(y, p, **more) + 1e-6 * (np.asarray(y).dtype.kind in "US")
    ),
    "check_metric_bad_input": _shrugs,
    "check_perfect_value": lambda y, p, **more: brier_loss(y, p, **more) + 1e-6,
    "check_proper": lambda y, p, **more: 0.5,
    "check_scorer": lambda y, p, **more: brier_loss(y, p, **more) + 1e-6,
    "check_argument_in_errors": _shrugs,
}


@run_every_case("check", IMPOSTORS)
def test_wrong_calls_of_a_measure(check):
    """Each check by itself, of two and of four classes; and the right measure passes it."""
    for one, fails in ((Impostor(IMPOSTORS[check]), True), (brier_loss, False)):
        checks = [
            each for each in contract_checks(one) if each[0].startswith(check + "[")
        ]
        assert len(checks) == 2
        assert len(failures(checks)) == 2 * fails


def test_every_check_is_bitten():
    """Each check has a wrong class, or stands in this list with its reason."""
    tried = {param.values[1] for param in [*RECALIBRATORS, *MEASURES, *DISPLAYS]}
    # what only a class that overrides the public methods could break
    by_the_base_class = {
        "check_bad_input",
        "check_containers",
        "check_dtypes",
        "check_labels",
        "check_constant_scores",
        "check_one_class",
        "check_label_types",
        "check_metric_bad_input",
        "check_scorer",
        "check_value",
        "check_weight_scaling",
        "check_extreme_logits",
        "check_missing_class",
        "check_separable",
        "check_tiny",
        "check_zeros_and_ones",
    }
    every = {
        name.partition("[")[0]
        for name, _ in [
            *contract_checks(PlattScaling()),
            *contract_checks(brier_loss),
            *contract_checks(Lines()),
        ]
    }
    assert every - tried <= by_the_base_class
    assert clone(PlattScaling()).get_params() == PlattScaling().get_params()


def test_what_has_no_contract_is_refused():
    with raises_invalid_input(
        TypeError, expected="a recalibrator, measure, loss, display or class"
    ):
        contract_checks(3)


@pytest.mark.parametrize("thing", [PlattScaling(), brier_loss, Right()])
def test_numbers_of_classes_of_the_checks(thing):
    names = {
        name.partition("[")[2] for name, _ in contract_checks(thing, n_classes=(3,))
    }
    assert names == {"3]"}
