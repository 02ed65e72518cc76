"""The contract of a measure: a function of validated predictions, made callable on any input."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper, wraps
from inspect import Parameter, Signature, cleandoc, signature
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._argument_checks import check_flag, equals
from .._blas_threads import limit_blas_threads
from .._spelling import find_nearest_name, suggest_name
from .._typing import ArrayLike, FloatArray, Function
from .._validation import get_category_order, hint_at_survival, is_label_table
from ..exceptions import invalid_combination, invalid_input
from ._predictions import BINARY, validate_multilabel, validate_predictions

if TYPE_CHECKING:
    from . import BinaryProblem, Predictions
    from ._scorers import ProbabilityScorer


@dataclass(frozen=True)
class MetricSpec:
    """The properties that a measure declares of itself, which scorers, tables and tests use.

    Parameters
    ----------
    name : str
    greater_is_better : bool
    range : tuple of float
        Smallest and largest value.
    perfect : float
        The value for predictions that are certain and right.
    proper : bool
        Minimised in expectation by the true probabilities, and by them alone.
    multiclass : tuple of str
        The ways it offers to treat more than two classes; empty where it needs none.
    in_report : bool
        Whether a report shows it by default; False for a function whose named forms are shown.
    cells : bool
        With its default options it depends on the rows of a two-class problem only through the
        weight of each label at each score. Rows of equal score may then be pooled, and reports
        resample cells instead of rows.
    loss : ProperLoss or None
        What it is the mean of; ``loss=`` then takes this loss by its name.
    """

    name: str
    greater_is_better: bool
    range: tuple[float, float]
    perfect: float
    proper: bool
    multiclass: tuple[str, ...]
    in_report: bool = True
    cells: bool = False
    loss: Any = None

    @property
    def scorer_name(self) -> str:
        return self.name if self.greater_is_better else f"neg_{self.name}"


_BOTH = {"y_true": "the labels", "y_proba": "the probabilities"}


def _with_both(call: Function) -> Function:
    """The call of a measure, which says under which name labels or scores were expected."""

    @wraps(call)
    def _checked(self, *rows, **options):
        for name in (*_BOTH,)[len(rows) :]:
            if name not in options:
                others = [other for other in options if find_nearest_name(other, [name])]
                got = f"{others[0]}=" if others else "none"
                cure = f"Write {name}="
                raise invalid_input(
                    expected=f"{name}, {_BOTH[name]}", got=got, hint=cure, error=TypeError
                )
        return call(self, *rows, **options)

    return cast("Function", _checked)


class Measure:
    """A function of predictions and labels that returns one number; made by `metric`.

    It is called like a function of scikit-learn, and owns what all measures share: the validation
    of its arguments, the name in error messages, the refusal of unknown options, and the entries
    of its docstring that describe these.

    Attributes
    ----------
    spec : MetricSpec
        What the measure declares of itself, such as its name and its range.
    option_names : tuple of str
        The names of the keyword arguments that are its own.
    has_pos_label : bool
        Whether `pos_label` decides what it measures, as in measures of two-class problems; for
        the others it only names the owner of a single column.
    is_binary : bool
        Whether its function is one of a `BinaryProblem`, and `evaluate_problem` can be called.
    of_events : callable or None
        With its default options the measure of many draws at once; see `metric`.

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
        validate: Callable[..., FloatArray] | None = None,
        moved: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        canonical: Callable[..., float] | None = None,
        plugin: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
        of_events: Callable[..., FloatArray] | None = None,
    ) -> None:
        first, *own = signature(function).parameters.values()
        if first.name not in ("predictions", "problem"):
            raise invalid_input(
                expected="a function whose first argument is called predictions or problem",
                got=repr(first.name),
                hint="Write it as a function of Predictions or of one BinaryProblem",
            )
        self.spec = spec
        self._function = function
        self.is_binary = first.name == "problem"
        self._validate = validate
        self._moved = dict(moved)
        self._canonical = canonical
        self._plugin = dict(plugin)
        self.of_events = of_events
        if self.is_binary:
            own.append(Parameter("multiclass", Parameter.KEYWORD_ONLY, default="auto"))
        self.option_names = tuple(p.name for p in own)
        self.has_pos_label = any(option in BINARY for option in spec.multiclass)
        shared = ["sample_weight", "labels", "pos_label", "multilabel", "soft_labels"]
        update_wrapper(self, function)
        self.__signature__ = Signature(
            [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("y_true", "y_proba")]
            + own
            + [
                Parameter(name, Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name))
                for name in shared
            ],
            return_annotation=float,
        )
        described = [name for name in self.option_names if name in _SHARED] + shared
        self.__doc__ = _documented(function, described, canonical is not None)

    @_with_both
    def __call__(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *rest: object,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        **options: Any,
    ) -> float:
        """The measure, on anything that `validate_predictions` or `validate_multilabel` takes."""
        self._check_call(y_true, rest)
        multilabel, soft = (options.pop(n, None) for n in ("multilabel", "soft_labels"))
        soft = check_flag(soft, "soft_labels")
        if multilabel is not None:
            if soft:
                cure = "Call it for the column of each label, with soft_labels=True"
                raise invalid_combination("soft_labels", "multilabel", hint=cure)
            return self._of_labels(y_true, y_proba, multilabel, sample_weight, labels, options)
        if not soft and is_label_table(y_true):
            raise invalid_input(
                expected="one label per row, a 1d array",
                got=f"labels of {np.shape(y_true)[1]} columns",
                hint="For one-hot labels pass y.argmax(axis=1), for shares of the classes "
                "soft_labels=True; for many labels per row say how to average over them, "
                "multilabel='macro' or 'micro'" + hint_at_survival(np.asarray(y_true)),
            )
        pos_label = options.pop("pos_label", None)
        if "order" in self.option_names and options.get("order") is None:
            options["order"] = get_category_order(y_true, labels)
        self.check_options(options)
        rows = y_true, y_proba, sample_weight, labels, pos_label
        predictions = validate_predictions(*rows, validate=self._validate, soft_labels=soft)
        return self.evaluate(predictions, **options)

    def _check_call(self, first, rest):
        """Refuse (estimator, X, y), as scikit-learn calls scorers, and options without names."""
        name = self.spec.name
        if hasattr(first, "fit") and not hasattr(first, "__array__"):
            cure = (
                f"With scikit-learn pass scoring=get_scorer({self.spec.scorer_name!r}), imported "
            )
            cure += f"from sklearn_calib.metrics, or call {name}(y, model.predict_proba(X))"
            raise invalid_input(
                expected="labels y_true",
                got=f"a {type(first).__name__}",
                hint=cure,
                error=TypeError,
            )
        if rest:
            cure = "Pass everything else by name, such as sample_weight="
            got = f"{2 + len(rest)} positional arguments"
            raise invalid_input(
                expected="two of them, y_true and y_proba", got=got, hint=cure, error=TypeError
            )

    def _of_labels(self, y_true, y_proba, multilabel, sample_weight, labels, options):
        """The mean over the labels, or the measure of all pairs of a row and a label."""
        self.check_options(options)
        rows = {"sample_weight": sample_weight, "labels": labels, "validate": self._validate}
        all_predictions = validate_multilabel(y_true, y_proba, multilabel, **rows)
        return float(
            np.mean([self.evaluate(predictions, **options) for _, predictions in all_predictions])
        )

    def evaluate(self, predictions: "Predictions", **options: Any) -> float:
        """The measure of `Predictions`: nothing is validated but the options.

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
        with limit_blas_threads(len(getattr(predictions, "codes", ())), len(predictions.classes)):
            if not self.is_binary:
                return float(self._function(predictions, **options))
            multiclass = options.pop("multiclass", "auto")
            if self._canonical is not None and equals(multiclass, "canonical"):
                return float(self._canonical(predictions, **options))
            value = 0.0
            for problem in predictions.problems(multiclass):
                value += problem.share * self._function(problem, **options)
            return float(value)

    def evaluate_all_labels(self, predictions: "Predictions", **options: Any) -> float:
        """The value of these predictions with all labels that they may have, each with its weight.

        In its plug-in form: of a law nothing has to be subtracted for chance.

        Parameters
        ----------
        predictions : Predictions
            Each row with every label, weighted by the probability of it.
        **options
            As in `evaluate`.

        Returns
        -------
        value : float
        """
        return self.evaluate(predictions, **{**options, **self._plugin})

    def evaluate_problem(self, problem: "BinaryProblem", **options: Any) -> float:
        """The measure of one `BinaryProblem`, for a measure that is a function of one."""
        return self._function(problem, **options)

    def scorer(self, **options: Any) -> "ProbabilityScorer":
        """A scorer for ``scoring=`` in scikit-learn, as `get_scorer` gives by name.

        Parameters
        ----------
        **options
            Passed to the measure at each call; a misspelt one is refused here.

        Returns
        -------
        scorer : ProbabilityScorer
        """
        from ._scorers import ProbabilityScorer

        shared = {"labels", "pos_label", "multilabel", "soft_labels"}
        self.check_options(set(options) - shared)
        return ProbabilityScorer(self, 1 if self.spec.greater_is_better else -1, options)

    def check_options(self, options: Iterable[str]) -> None:
        """Raise ValueError for a name that is no option of this measure."""
        for name in options:
            if name in self.option_names:
                continue
            taken = signature(self).parameters
            cure = suggest_name(name, taken)
            if name in taken:  # of the measure itself, where another function evaluates it
                cure = f"Leave it out: {self.spec.name} takes it where it is called by itself"
            if name in self._moved:
                cure = f"Call {self._moved[name]} instead"
            known = ", ".join(sorted(self.option_names)) or "none"
            raise invalid_input(
                expected=f"options of {self.spec.name} among {known}", got=repr(name), hint=cure
            )

    def __repr__(self) -> str:
        return f"<measure {self.spec.name}>"

    def __reduce__(self) -> str:
        return self._function.__qualname__  # by name, as functions are pickled

    def __get__(self, instance: object, owner: type | None = None) -> "Measure":
        return self  # documentation tools take what has __get__ for a function


def metric(
    *,
    greater_is_better: bool = False,
    range: tuple[float, float] = (0.0, np.inf),
    perfect: float = 0.0,
    proper: bool = False,
    multiclass: Sequence[str] = (),
    in_report: bool = True,
    cells: bool = False,
    validate: Callable[..., FloatArray] | None = None,
    moved: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    canonical: Callable[..., float] | None = None,
    plugin: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
    of_events: Callable[..., FloatArray] | None = None,
    loss: Any = None,
) -> Callable[[Callable[..., float]], Measure]:
    """Decorator: turn a function of `Predictions`, or of a `BinaryProblem`, into a `Measure`.

    The function's first argument is called ``predictions`` or ``problem`` and says which it is;
    its other arguments are keyword-only options, and its docstring describes these alone. A measure
    of a ``problem`` gets the option ``multiclass``, and is averaged over the problems with their
    shares.
    An import line in ``sklearn_calib/metrics/__init__.py`` then gives it a scorer, a page of
    documentation and its turn in the common tests.

    Parameters
    ----------
    greater_is_better : bool, default=False
    range : tuple of float, default=(0.0, inf)
        Smallest and largest value.
    perfect : float, default=0.0
        The value for predictions that are certain and right.
    proper : bool, default=False
        Minimised in expectation by the true probabilities, and by them alone.
    multiclass : tuple of str, default=()
        The ways it offers to treat more than two classes.
    in_report : bool, default=True
        Whether reports show it by default.
    cells : bool, default=False
        Whether rows of equal score may be pooled; see `MetricSpec`.
    validate : callable, default=None
        What checks the scores; see `validate_predictions`.
    moved : dict, default=()
        Options that are functions of their own now: name to function.
    canonical : callable, default=None
        For a measure of a ``problem`` that knows ``multiclass="canonical"`` as well, which is about
        whole vectors of probabilities: a function of `Predictions` with the same options.
    plugin : dict, default=()
        Values of options with which nothing is subtracted for chance and no row is paired with
        another: `confidence_interval` takes it for the value of all labels that rows may have.
    of_events : callable, default=None
        The measure with its default options of many draws of the labels of one two-class problem: a
        function of the scores and masses of its cells and of events, of shape (n_draws, n_cells).
        What simulates labels calls it in place of the measure.
    loss : ProperLoss, default=None
        What the measure is the mean of: says its range and that it is proper, and is registered
        with it.

    Returns
    -------
    decorate : callable
        Takes the function, returns the `Measure`.

    Examples
    --------
    >>> from sklearn_calib.metrics import metric
    >>> @metric(range=(-1, 1), multiclass=("confidence", "top_label", "classwise"))
    ... def bias(problem):
    ...     '''Mean prediction less frequency.'''
    ...     weight = problem.weight / problem.weight.sum()
    ...     return weight @ (problem.score - problem.hit)
    >>> round(bias([0, 1], [0.5, 0.9]), 3)
    0.2
    >>> bias.spec.scorer_name
    'neg_bias'
    """

    def decorate(function):
        spec = MetricSpec(
            function.__name__,
            greater_is_better,
            (range[0], range[1]) if loss is None else loss.range,
            perfect if loss is None else loss.range[0],
            proper if loss is None else loss.strict,
            tuple(multiclass),
            in_report,
            cells,
            loss,
        )
        return Measure(function, spec, validate, moved, canonical, plugin, of_events)

    return decorate


_DEFAULTS = {"soft_labels": False}
_SHARED = {
    "y_true": """y_true : array-like of shape (n_samples,)
    Labels.""",
    "y_proba": """y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    Probabilities, columns in the order of the sorted labels. A single column is the probability of
    `pos_label`; without it of the last of `labels`, and of 1 (or True) where labels are 0 or -1
    and 1.""",
    "multiclass": """multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
    How more than two classes are treated. "auto": the positive class if there are two classes,
    else "confidence" (the largest probability against whether that class is true). "top_label":
    the same for each predicted class by itself, averaged with its share of the rows.
    "classwise": each class against the others, averaged equally.""",
    "sample_weight": """sample_weight : array-like of shape (n_samples,), default=None
    Weights >= 0. Counts of equal rows may be given as weights.""",
    "labels": """labels : array-like of shape (n_classes,), default=None
    All classes in the order of the columns; needed if `y_true` lacks a class.""",
    "pos_label": """pos_label : label, default=None
    The positive class of two, which owns a single column of `y_proba`; the second by default.
    Required with a single column if the labels are others than 0 and 1, False and True, or -1
    and 1, unless `labels` says in which order they are.""",
    "multilabel": """multilabel : {"macro", "micro"}, default=None
    For many labels per row: `y_true` has a column of 0, 1 or NaN (unknown) for each label,
    `y_proba` one of probabilities, or is a list of arrays of two columns. "macro": the mean over
    the labels. "micro": all pairs of a row and a label as rows of one two-class problem.""",
    "soft_labels": """soft_labels : bool, default=False
    Whether `y_true` holds shares of classes instead: of shape (n_samples,) the share of the second
    class, in [0, 1], or of shape (n_samples, n_classes). The same as each row given once per class,
    with the share times its weight as weight. Of k votes of n pass k / n and n as `sample_weight`.
    The classes are 0, 1, ..., unless `labels` names them.""",
}
_RAISES = """ValueError, TypeError
    An unknown option, or invalid scores, labels or weights; see `canonical_proba`."""


def _documented(function, shared, canonical):
    """The function's docstring, completed by what measures share."""
    known = dict(_SHARED)
    if canonical:
        text = known["multiclass"].replace('"classwise"}', '"classwise", "canonical"}')
        known["multiclass"] = f'{text} "canonical":\n    the whole vector of probabilities.'
    text = cleandoc(function.__doc__ or "")
    before = [_SHARED[name] for name in ("y_true", "y_proba")]
    after = [known[name] for name in shared]
    own = _section(text, "Parameters")
    lines = "\n".join([*before, *([own] if own else []), *after])
    text = _with_section(text, "Parameters", lines, "Returns|Raises|Notes|References|Examples")
    own = _section(text, "Raises")
    lines = "\n".join([*([own] if own else []), _RAISES])
    return _with_section(text, "Raises", lines, "Warns|Notes|References|Examples")


def _section(text, name):
    found = re.search(rf"(?ms)^{name}\n-+\n(.*?)(?=\n\n\S[^\n]*\n---|\Z)", text)
    return found.group(1).rstrip() if found else ""


def _with_section(text, name, lines, followers):
    """The text with a section replaced, or put in front of the first of its followers."""
    section = f"{name}\n{'-' * len(name)}\n{lines}"
    old = re.search(rf"(?ms)^{name}\n-+\n.*?(?=\n\n\S[^\n]*\n---|\Z)", text)
    if old:
        return text[: old.start()] + section + text[old.end() :]
    follower = re.search(rf"(?m)^(?:{followers})\n---", text)
    if follower:
        return f"{text[: follower.start()]}{section}\n\n{text[follower.start() :]}"
    return f"{text}\n\n{section}"
