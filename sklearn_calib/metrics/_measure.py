"""The contract of a measure: a function of validated predictions, made callable on any input."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import update_wrapper, wraps
from inspect import Parameter, Signature, cleandoc, signature
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypedDict,
    cast,
)

import numpy as np

from .._argument_checks import is_scalar_equal, read_bool_with_none_as_false
from .._blas_threads import limit_blas_threads
from .._spelling import find_nearest_name, suggest_name
from .._typing import ArrayLike, FloatArray, Function, Multiclass
from .._validation import (
    get_present_ordered_categories,
    get_survival_hint,
    is_label_table,
    read_proba_keeping_single_column,
)
from ..exceptions import invalid_combination, invalid_input
from ._predictions import (
    MULTICLASS_REDUCTIONS,
    validate_multilabel,
    validate_predictions,
)

if TYPE_CHECKING:
    from . import BinaryProblem, Predictions, ProperLoss
    from ._scorers import ProbabilityScorer

P = ParamSpec("P")


class SharedOptions(TypedDict, total=False):
    """The options of all measures: their functions declare them for type checkers."""

    sample_weight: ArrayLike | None
    labels: ArrayLike | None
    pos_label: Any
    multilabel: Literal["macro", "micro"] | None
    soft_labels: bool


class BinaryOptions(SharedOptions, total=False):
    """The options that `binary_measure` adds to a function."""

    multiclass: Multiclass


class BinaryOrCanonicalOptions(SharedOptions, total=False):
    """The options that `binary_measure` adds if there is a function of whole vectors."""

    multiclass: Multiclass | Literal["canonical"]


@dataclass(frozen=True)
class MetricSpec:
    """The declared properties of a measure, which scorers, tables and tests use.

    Parameters
    ----------
    name : str
    greater_is_better : bool, default=False
    range : tuple of float, default=(0.0, inf)
        Smallest and largest value.
    perfect : float, default=0.0
        The value for predictions that are certain and right.
    proper : bool, default=False
        Minimised in expectation by the true probabilities, and by them alone.
    multiclass : tuple of str, default=()
        The ways it offers to treat more than two classes; empty if it needs none.
    in_report : bool, default=True
        Whether a report shows it by default; False for a function whose named forms are
        shown.
    poolable : bool, default=False
        With its default options it depends on the rows of a two-class problem only
        through the weight of each label at each score. Rows of equal score may then be
        pooled, and reports resample cells instead of rows.
    loss : ProperLoss or None, default=None
        What it is the mean of; ``loss=`` then takes this loss by its name.
    """

    name: str
    greater_is_better: bool = False
    range: tuple[float, float] = (0.0, np.inf)
    perfect: float = 0.0
    proper: bool = False
    multiclass: tuple[str, ...] = ()
    in_report: bool = True
    poolable: bool = False
    loss: Any = None

    @property
    def scorer_name(self) -> str:
        return self.name if self.greater_is_better else f"neg_{self.name}"


_DESCRIPTION_BY_ARRAY = {"y_true": "the labels", "y_proba": "the probabilities"}


def _require_arrays(call: Function) -> Function:
    """Return the call of a measure with an error if labels or scores are missing."""

    @wraps(call)
    def call_with_required_arrays(self, *arrays, **options):
        """Call the measure if both arrays were passed, by position or by name."""
        names = list(_DESCRIPTION_BY_ARRAY)
        for name in names[len(arrays) :]:
            if name not in options:
                # A misspelt name, such as y_prob, is more likely than a missing array.
                got = "none"
                for option in options:
                    if got == "none" and find_nearest_name(option, [name]):
                        got = f"{option}="
                raise invalid_input(
                    expected=f"{name}, {_DESCRIPTION_BY_ARRAY[name]}",
                    got=got,
                    hint=f"Write {name}=",
                    error=TypeError,
                )
        return call(self, *arrays, **options)

    return cast("Function", call_with_required_arrays)


class Measure(Generic[P]):
    """A function of labels and predictions that returns one number.

    Made by `measure` or `binary_measure`. It is called like a function of scikit-learn,
    and owns what all measures share: the validation of its arguments, the error of
    unknown options, and the entries of its docstring that describe these.

    Attributes
    ----------
    spec : MetricSpec
        What the measure declares of itself, such as its name and its range.
    option_names : tuple of str
        The names of the keyword arguments that are its own.
    has_pos_label : bool
        Whether `pos_label` decides what it measures, as in measures of two-class
        problems; for the others it only names the owner of a single column.

    Examples
    --------
    >>> from sklearn_calib.metrics import brier_loss, validate_predictions
    >>> brier_loss([0, 1], [0.2, 0.9])
    0.025
    >>> predictions = validate_predictions([0, 1], [0.2, 0.9])
    >>> brier_loss.evaluate(predictions)  # validates nothing again
    0.025
    """

    def __init__(
        self,
        function: Callable[..., float],
        spec: MetricSpec,
        validate: Callable[..., FloatArray] = read_proba_keeping_single_column,
    ) -> None:
        options = _get_option_parameters(function)
        self.spec = spec
        self._function = function
        self._validate = validate
        self.option_names: tuple[str, ...] = tuple(option.name for option in options)
        # Whether the measure reads two-class problems, for which a class is positive.
        self.has_pos_label = any(
            reduction in MULTICLASS_REDUCTIONS for reduction in spec.multiclass
        )
        update_wrapper(self, function)
        # The signature is assembled so that `help`, type checkers and scikit-learn's
        # inspection show all options of the measure.
        parameters = [
            Parameter(name, Parameter.POSITIONAL_OR_KEYWORD)
            for name in _DESCRIPTION_BY_ARRAY
        ]
        for name in SharedOptions.__annotations__:
            default = False if name == "soft_labels" else None
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default))
        self.__signature__ = Signature([*parameters, *options], return_annotation=float)
        self.__doc__ = _describe_options(cleandoc(function.__doc__ or ""), self)

    @_require_arrays
    def __call__(
        self, y_true: ArrayLike, y_proba: ArrayLike, *rest: P.args, **options: P.kwargs
    ) -> float:
        """Return the measure of anything that can be validated; see `validate_predictions`."""
        self._check_positional(y_true, rest)
        remaining: dict[str, Any] = dict(options)
        sample_weight = remaining.pop("sample_weight", None)
        labels = remaining.pop("labels", None)
        soft_labels = read_bool_with_none_as_false(
            remaining.pop("soft_labels", None), "soft_labels"
        )
        multilabel = remaining.pop("multilabel", None)
        if multilabel is not None:
            if soft_labels:
                raise invalid_combination(
                    "soft_labels",
                    "multilabel",
                    hint="Call it for the column of each label, with soft_labels=True",
                )
            return self._evaluate_labels(
                y_true,
                y_proba,
                multilabel,
                sample_weight,
                labels,
                remaining,
            )
        if not soft_labels and is_label_table(y_true):
            raise invalid_input(
                expected="one label per row, a 1d array",
                got=f"labels of {np.shape(y_true)[1]} columns",
                hint="For one-hot labels pass y.argmax(axis=1), for shares of the classes "
                "soft_labels=True; for many labels per row say how to average over them, "
                "multilabel='macro' or 'micro'" + get_survival_hint(np.asarray(y_true)),
            )
        pos_label = remaining.pop("pos_label", None)
        # The order of a pandas Categorical is lost once labels are encoded, so it is
        # read before.
        if "order" in self.option_names and remaining.get("order") is None:
            remaining["order"] = get_present_ordered_categories(y_true, labels)
        self.check_options(remaining)
        predictions = validate_predictions(
            y_true,
            y_proba,
            sample_weight,
            labels,
            pos_label,
            validate=self._validate,
            soft_labels=soft_labels,
        )
        return self.evaluate(predictions, **remaining)

    def _check_positional(self, y_true, rest):
        """Reject (estimator, X, y), as scikit-learn calls scorers, and options without names."""
        if hasattr(y_true, "fit") and not hasattr(y_true, "__array__"):
            raise invalid_input(
                expected="labels y_true",
                got=f"a {type(y_true).__name__}",
                hint=(
                    f"With scikit-learn pass scoring=get_scorer({self.spec.scorer_name!r}), "
                    "imported from sklearn_calib.metrics, or call "
                    f"{self.spec.name}(y, model.predict_proba(X))"
                ),
                error=TypeError,
            )
        if rest:
            raise invalid_input(
                expected="two of them, y_true and y_proba",
                got=f"{2 + len(rest)} positional arguments",
                hint="Pass everything else by name, such as sample_weight=",
                error=TypeError,
            )

    def _evaluate_labels(
        self, y_true, y_proba, multilabel, sample_weight, labels, options
    ):
        """Return the mean over the labels, or the measure of all pairs of a row and a label."""
        self.check_options(options)
        label_predictions = validate_multilabel(
            y_true,
            y_proba,
            multilabel,
            sample_weight=sample_weight,
            labels=labels,
            validate=self._validate,
        )
        values = [
            self.evaluate(predictions, **options)
            for _, predictions in label_predictions
        ]
        return float(np.mean(values))

    def evaluate(self, predictions: "Predictions", **options: Any) -> float:
        """Return the measure of `Predictions`; only the options are validated.

        Parameters
        ----------
        predictions : Predictions
        **options
            Among `option_names`.

        Returns
        -------
        value : float
        """
        self.check_options(options)
        # Small arrays are slower with several threads than with one.
        n_rows = len(getattr(predictions, "codes", ()))
        with limit_blas_threads(n_rows, len(predictions.classes)):
            return float(self._function(predictions, **options))

    def scorer(self, **options: Any) -> "ProbabilityScorer":
        """Return a scorer for ``scoring=`` in scikit-learn, as `get_scorer` gives by name.

        Parameters
        ----------
        **options
            Passed to the measure at each call; a misspelt one is rejected here.

        Returns
        -------
        scorer : ProbabilityScorer
        """
        from ._scorers import ProbabilityScorer

        shared = {"labels", "pos_label", "multilabel", "soft_labels"}
        self.check_options(set(options) - shared)
        sign = 1 if self.spec.greater_is_better else -1
        return ProbabilityScorer(self, sign, options)

    def check_options(self, options: Iterable[str]) -> None:
        """Raise ValueError for a name that is not an option of this measure."""
        for name in options:
            if name in self.option_names:
                continue
            parameters = signature(self).parameters
            hint = suggest_name(name, parameters)
            # The name is a parameter such as `sample_weight`, which the function that
            # evaluates the measure takes itself.
            if name in parameters:
                hint = f"Leave it out: {self.spec.name} takes it where it is called by itself"
            names = ", ".join(sorted(self.option_names)) or "none"
            raise invalid_input(
                expected=f"options of {self.spec.name} among {names}",
                got=repr(name),
                hint=hint,
            )

    def __repr__(self) -> str:
        return f"<measure {self.spec.name}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Measures are pickled by name, as functions are.
        return self._function.__qualname__

    def __get__(self, instance: object, owner: type | None = None) -> "Measure[P]":
        # Documentation tools take an object with `__get__` for a function.
        return self


def measure(
    *,
    loss: "ProperLoss | None" = None,
    validate: Callable[..., FloatArray] = read_proba_keeping_single_column,
    **properties: Any,
) -> Callable[[Callable[Concatenate["Predictions", P], float]], Measure[P]]:
    """Turn a function of `Predictions` into a `Measure`, as a decorator.

    The function's other arguments are keyword-only options, and its docstring describes
    these alone: the line ``{shared_parameters}`` in it stands for what all measures
    take. Its last argument ``**shared: Unpack[SharedOptions]``, which is never passed,
    declares the same to type checkers and can be left out. An import line in
    ``sklearn_calib/metrics/__init__.py`` then gives the measure a scorer, a page of
    documentation and its turn in the common tests.

    Parameters
    ----------
    loss : ProperLoss, default=None
        What the measure is the mean of: decides its range and whether it is proper, and
        is registered with it.
    validate : callable, optional
        What checks the scores; see `validate_predictions`.
    **properties
        Other fields of `MetricSpec` than the name, such as ``range=(0.0, 1.0)``.

    Returns
    -------
    decorate : callable
        Takes the function, returns the `Measure`.

    Examples
    --------
    >>> from sklearn_calib.metrics import measure
    >>> @measure(range=(0.0, 1.0), greater_is_better=True, perfect=1.0)
    ... def mean_confidence(predictions):
    ...     '''Mean of the largest probability.'''
    ...     return predictions.mean(predictions.proba.max(axis=1))
    >>> round(mean_confidence([0, 1], [0.5, 0.9]), 3)
    0.7
    >>> mean_confidence.spec.scorer_name
    'mean_confidence'
    """
    if loss is not None:
        properties |= {
            "range": loss.range,
            "perfect": loss.range[0],
            "proper": loss.strict,
        }

    def make_measure(function):
        spec = MetricSpec(function.__name__, loss=loss, **properties)
        return Measure(function, spec, validate)

    return make_measure


def binary_measure(
    *, joint: Callable[..., float] | None = None, **properties: Any
) -> Callable[[Callable[Concatenate["BinaryProblem", P], float]], Measure[P]]:
    """Turn a function of one `BinaryProblem` into a `Measure`, as a decorator.

    The measure gets the option ``multiclass``, "confidence", "top_label" or
    "classwise", and is averaged over the problems with their shares. The rest is as in
    `measure`; ``**shared: Unpack[BinaryOptions]`` declares the options.

    Parameters
    ----------
    joint : callable, default=None
        For ``multiclass="canonical"``, which is about whole vectors of probabilities: a
        function of `Predictions` with the same options.
    **properties
        Other fields of `MetricSpec` than the name and ``multiclass``.

    Returns
    -------
    decorate : callable
        Takes the function, returns the `Measure`.

    Examples
    --------
    >>> from sklearn_calib.metrics import binary_measure
    >>> @binary_measure(range=(-1, 1))
    ... def bias(problem):
    ...     '''Mean prediction less frequency.'''
    ...     weight = problem.weight / problem.weight.sum()
    ...     return weight @ (problem.score - problem.hit)
    >>> round(bias([0, 1], [0.5, 0.9]), 3)
    0.2
    >>> bias.spec.scorer_name
    'neg_bias'
    """
    reductions: tuple[str, ...] = MULTICLASS_REDUCTIONS
    if joint is not None:
        reductions = (*MULTICLASS_REDUCTIONS, "canonical")

    def make_average_measure(function):
        """Return the measure that averages a function over the two-class problems."""

        @wraps(function)
        def average_problems(predictions, *, multiclass="auto", **options):
            if joint is not None and is_scalar_equal(multiclass, "canonical"):
                return joint(predictions, **options)
            value = 0.0
            for problem in predictions.problems(multiclass):
                value += problem.share * function(problem, **options)
            return value

        argument = Parameter("predictions", Parameter.POSITIONAL_OR_KEYWORD)
        # The signature has `multiclass` and the options of the wrapped function.
        option = Parameter("multiclass", Parameter.KEYWORD_ONLY, default="auto")
        average_problems.__signature__ = Signature(
            [argument, option, *_get_option_parameters(function)]
        )
        return measure(multiclass=reductions, **properties)(average_problems)

    return make_average_measure


def _get_option_parameters(function):
    """Return the parameters of a measure's function without the first and the shared ones."""
    _, *options = signature(function).parameters.values()
    # `**shared` declares the shared ones for type checkers.
    keyword_only: list[Parameter] = []
    for option in options:
        if option.kind is Parameter.VAR_KEYWORD:
            continue
        if option.kind is not Parameter.KEYWORD_ONLY:
            raise invalid_input(
                expected="a function of validated predictions and keyword-only options",
                got=f"another argument {option.name!r}",
                hint="Write * before the first option",
            )
        keyword_only.append(option)
    return keyword_only


_SHARED_PARAMETERS_DOC = """\
y_true : array-like of shape (n_samples,)
    Labels. Invalid labels, probabilities and weights are a ValueError or TypeError, as in
    `canonical_proba`, which names the first row that is wrong.
y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    Probabilities, columns in the order of the sorted labels. A single column is the probability of
    `pos_label`; without it of the last of `labels`, and of 1 (or True) where labels are 0 or -1
    and 1.
sample_weight : array-like of shape (n_samples,), default=None
    Weights >= 0. Counts of equal rows may be given as weights.
labels : array-like of shape (n_classes,), default=None
    All classes in the order of the columns; needed if `y_true` lacks a class.
pos_label : label, default=None
    The positive class of two, which owns a single column of `y_proba`; the second by default.
    Required with a single column if the labels are others than 0 and 1, False and True, or -1
    and 1, unless `labels` says in which order they are.
multilabel : {"macro", "micro"}, default=None
    For many labels per row: `y_true` has a column of 0, 1 or NaN (unknown) for each label,
    `y_proba` one of probabilities, or is a list of arrays of two columns. "macro": the mean over
    the labels. "micro": all pairs of a row and a label as rows of one two-class problem.
soft_labels : bool, default=False
    Whether `y_true` holds shares of classes instead: of shape (n_samples,) the share of the second
    class, in [0, 1], or of shape (n_samples, n_classes). The same as each row given once per class,
    with the share times its weight as weight. Of k votes of n pass k / n and n as `sample_weight`.
    The classes are 0, 1, ..., unless `labels` names them."""
_MULTICLASS_DOC = """
multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
    How more than two classes are treated. "auto": the positive class if there are two classes,
    else "confidence" (the largest probability against whether that class is true). "top_label":
    the same for each predicted class by itself, averaged with its share of the rows.
    "classwise": each class against the others, averaged equally."""
_CANONICAL_DOC = """ "canonical":
    the whole vector of probabilities."""


def _describe_options(docstring, measure):
    """Return a docstring with the shared options in place of the marker."""
    text = _SHARED_PARAMETERS_DOC
    if "multiclass" in measure.option_names:
        text += _MULTICLASS_DOC
        if "canonical" in measure.spec.multiclass:
            text = text.replace('"classwise"}', '"classwise", "canonical"}')
            text += _CANONICAL_DOC
    return docstring.replace("{shared_parameters}", text)
