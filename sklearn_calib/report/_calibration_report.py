"""calibration_report: from labels and probabilities, or summaries of them, to a report."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from .._argument_checks import (
    check_level,
    check_progress_callback,
    read_bool_with_none_as_false,
)
from .._random import make_generator
from .._show import make_printable, redact_secrets
from .._typing import ArrayLike, Progress, RandomStateLike
from .._validation import (
    get_survival_hint,
    is_label_table,
    is_single_column,
    read_proba_keeping_single_column,
)
from ..classifiers import check_gives_proba
from ..exceptions import invalid_input
from ..inference import add_cluster_ids, warn_few_event_clusters
from ..metrics import LogLoss, validate_predictions
from ..summary import CalibrationSummary
from ._columns import check_column_order, check_summary_column_order
from ._models import PredictionsModel, ReportedModel
from ._report import CalibrationReport
from ._table import find_measures_by_name, measure_models

# The command replaces this line by code that reads its file.
GROUP_CODE_INPUTS = "# y_true, y_proba: as reported; by: the columns of the groups"


def calibration_report(
    y_true: ArrayLike | CalibrationSummary | dict[str, CalibrationSummary],
    y_proba: ArrayLike | dict[str, Any] | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    name: str = "model",
    source: str | None = None,
    columns: Sequence[str] | None = None,
    normalize: bool = False,
    check_columns: bool = True,
    advice: bool = False,
    by: Any = None,
    features: Any = None,
    grades: Any = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
    measures: Iterable[str] | None = None,
    level: float = 0.9,
    n_resamples: int | Literal["auto"] = "auto",
    random_state: RandomStateLike = 0,
    progress: Progress | None = None,
) -> CalibrationReport:
    """Judge the calibration of predictions: a verdict, a table of measures, and pictures.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or CalibrationSummary or dict of these
        Labels; or, alone, a summary of labels and probabilities, or a dict of name to
        summary.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict, default=None
        Probabilities; a dict of name to probabilities compares models.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The positive class of two, which owns a single column; the second by default.
        Required with a single column for labels other than 0 and 1, False and True, or
        -1 and 1, unless `labels` is given.
    name : str, default="model"
        What to call the model, if there is one.
    source : str, default=None
        Where the rows come from, such as the name of a file: shown in the report.
    columns : sequence of str, default=None
        Names of the columns in that table, the labels' first, then those of the
        probabilities: for the code to paste. By default those of pandas input.
    normalize : bool, default=False
        Divide rows of probabilities by their sums, however far these are from 1. By
        default rows that rounding explains are divided with a warning (see
        `canonical_proba`), and others rejected.
    check_columns : bool, default=True
        Reject columns in an order that cannot be meant; see Raises.
    advice : bool, default=False
        Find out at once whether recalibration would help; see
        `CalibrationReport.advise`.
    by : table, dict of columns or list of masks, default=None
        Also audit groups of the rows, and what any two of them have in common: a table
        with one row for each row of `y_true`, as `group_calibration` takes it with
        ``depth=2``. Not for summaries.
    features : table of shape (n_samples, n_features), default=None
        Also find out whether a better use of these would help, and decide whether to
        recalibrate or to retrain: a table as `decompose_loss` takes it, which has the
        cost. Not for summaries.
    grades : Grades, sequence of edges, or dict, default=None
        Also test rating grades of two classes, as `grade_calibration` does; a dict has
        "edges" and "names". Weights must then be numbers of rows. Of summaries the
        grades are exact while the summary is; else the report has the number of rows
        that lie across an edge.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the samples of one question or the visits of
        a patient: clusters, at least two. Intervals, p-values, the verdict, bins, slope
        and the advice are then those of independent clusters, not rows; the
        decomposition has no intervals, and of the measures the lower distance to
        calibration is left out. Not the subgroups to audit, which are `by`; and not for
        summaries, `by`, `features` or `grades`.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them: of several
        annotators, or of counts with these as `sample_weight`. What stands for one row
        is then one cluster, if `groups` do not name larger ones, and the text on
        `groups` applies.
    measures : list of str, default=None
        Names from `all_metrics`; by default the registered measures that are meant for
        reports.
    level : float in (0, 1), default=0.9
    n_resamples : int or "auto", default="auto"
        Bootstrap resamples, and as many draws of labels from the predictions; "auto"
        takes 200. Of measures that need single rows it takes fewer beyond 100,000 rows,
        at least 20.
    random_state : int, Generator, RandomState or None, default=0
        An int is the seed of the advice's folds, too: with 0 they are those of the
        command ``fit``.
    progress : callable, default=None
        Called as ``progress(done, total)``.

    Returns
    -------
    report : CalibrationReport

    See Also
    --------
    multilabel_report : The report on many labels per row.

    Raises
    ------
    ValueError
        Invalid scores, labels or weights (see `canonical_proba`), an unknown measure;
        `by`, `groups` or `features` of summaries or of other rows; or grades of more
        than two classes. Columns whose order cannot be meant: another order puts the
        largest probability on the true class far more often, and ranks the rows well
        where this one ranks them backwards.

    Warns
    -----
    CalibrationWarning
        Rows were divided by their sums, which rounding explains; or, of clusters, fewer
        than five are expected to have an event, or to have none.

    Notes
    -----
    The interval of a loss is the percentile bootstrap over rows. A calibration error of
    n rows is biased upwards, and that of a resample more so: the lower end allows for
    this, the upper end is that of the value, and the interval holds the value (user
    guide, Reading a report). Compare the value also with the column "if calibrated",
    which is exact: labels drawn from the predictions.

    The rows are summarised first, as `CalibrationSummary` does it: up to 65,536
    distinct scores (largest probabilities, for several classes) nothing is lost, and
    beyond that some 1e-7 of a measure. Resamples draw from 1024 to 4096 cells, which
    has the law of drawing rows. The two losses of more than two classes are means, with
    normal intervals by their exact standard errors and the exact mean and variance of
    labels drawn from the predictions. Cost: some 20 ns a row, and 2 n_resamples + 1
    evaluations on the cells, about a millisecond each.

    With `groups`, whole clusters are drawn, one fewer than there are, and the column
    "if calibrated" and the verdict's test are of residuals that turn their sign with
    their cluster. Intervals are longer by Student's quantile over the normal one.
    Measured with 10 to 200 clusters of 5 rows: ``benchmarks/cluster_coverage``.

    Every log loss of the report, in the table and in the decomposition, counts a row as
    -log(max(p, 2.2e-16)) with p the probability of its true class, as `log_loss` does;
    if this floor is reached, the report has the number of these rows, and how many of
    them are exactly 0. If scikit-learn computes another number, for float32 and
    float16, the report quotes it.

    Examples
    --------
    >>> from sklearn_calib.report import calibration_report
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> report = calibration_report(y, proba, n_resamples=20)
    >>> report.rows[0].measure
    'brier_loss'
    >>> error = next(r for r in report.rows if r.measure == "expected_calibration_error")
    >>> error.value > error.null_mean
    True
    """
    soft_labels = read_bool_with_none_as_false(soft_labels, "soft_labels")
    if y_proba is not None and not soft_labels:
        _check_one_label(y_true)
    # Measures without intervals for clusters are not in the table then.
    functions = find_measures_by_name(measures, groups is not None or soft_labels)
    check_report_options(level, name, columns, progress)
    clustered_by = None
    if groups is not None or soft_labels:
        clustered_by = "soft labels" if groups is None else "groups"
    models: dict[str, ReportedModel]
    if y_proba is None:
        _check_no_clusters(clustered_by)
        options = (sample_weight, labels, pos_label)
        models = _make_models_from_summaries(
            y_true, name, any(option is not None for option in options)
        )
        named: dict[str, Any] = {}
        if check_columns:
            check_summary_column_order(models)
    else:
        named = y_proba if isinstance(y_proba, dict) else {name: y_proba}

        def build_predictions(proba):
            """Validate the probabilities of one model."""
            # Rounded rows are divided by their sum: any sum but 0 is accepted.
            tolerance = 1 - 1e-6 if normalize else None
            return validate_predictions(
                y_true,
                proba,
                sample_weight=sample_weight,
                labels=labels,
                pos_label=pos_label,
                validate=partial(read_proba_keeping_single_column, tolerance=tolerance),
                check_order=False,
                soft_labels=soft_labels,
            )

        models = _make_row_models_by_name(
            named, build_predictions, groups, check_columns
        )
    first = next(iter(models.values()))
    fitted = ""
    if groups is not None:
        fitted += ", groups=groups"
    if soft_labels:
        fitted += ", soft_labels=True"
    source = source and redact_secrets(source)
    decompositions = {}
    for key, model in models.items():
        parts = model.decompose_log_loss()
        if parts:
            decompositions[key] = parts
    codes, group_codes = _write_code_and_group_code_by_model(
        models,
        columns,
        y_true,
        named,
        source,
        fitted,
    )
    report = CalibrationReport(
        rows=[],
        n_samples=first.n_samples,
        classes=first.classes,
        level=level,
        accuracy={key: model.compute_accuracy() for key, model in models.items()},
        decomposition=decompositions,
        floored={
            key: model.count_floored_and_zero_rows() for key, model in models.items()
        },
        sklearn_log_loss=_compute_differing_sklearn_losses(models, named),
        source=source,
        advice=dict.fromkeys(models),
        n_clusters=first.n_clusters,
        _models=models,
        _codes=codes,
        _group_codes=group_codes,
        _clustered_by=clustered_by,
    )
    if by is not None:
        report.add_groups(by)
    if grades is not None:
        report.add_grades(grades)
    if features is not None:
        report.add_features(features)
    rng = make_generator(random_state)
    report.rows = measure_models(models, functions, level, n_resamples, rng, progress)
    report._seed = (
        random_state if isinstance(random_state, int) else int(rng.integers(2**63))
    )
    if advice:
        report.advise()
    return report


def _check_no_clusters(clustered_by):
    """Raise ValueError for clusters or soft labels beside summaries, which have no rows."""
    if clustered_by is not None:
        raise invalid_input(
            expected=f"rows, for {clustered_by}",
            got="summaries",
            sentence=f"{clustered_by} needs rows, but summaries were given",
            hint="Pass y_true and y_proba; a summary does not record which rows belong together",
        )


def _make_models_from_summaries(summaries, name, has_row_arguments):
    """Return the models of summaries.

    `has_row_arguments` if other arguments about rows were passed.
    """
    named = {name: summaries}
    if isinstance(summaries, dict):
        named = summaries
    are_summaries = [isinstance(value, CalibrationSummary) for value in named.values()]
    if not named or not all(are_summaries):
        raise invalid_input(
            expected="labels and probabilities, or summaries alone",
            got="None",
            sentence="y_proba is missing, and y_true is not a summary",
            hint="Pass y_proba",
            error=TypeError,
        )
    if has_row_arguments:
        raise invalid_input(
            expected="summaries alone",
            got="other arguments",
            sentence="Summaries cannot be combined with sample_weight, labels or pos_label",
            hint="Give weights and labels to CalibrationSummary",
        )
    for key, summary in named.items():
        one_problem = summary.multiclass in ("auto", "confidence")
        if not one_problem and summary.classes is not None and len(summary.classes) > 2:
            raise invalid_input(
                expected="summaries of the confidence for more than two classes",
                got=f"multiclass={summary.multiclass!r} for {make_printable(key)}",
                hint="Summarise with multiclass='auto'",
            )
    return {key: ReportedModel(summary) for key, summary in named.items()}


def _make_row_models_by_name(named, build_predictions, groups, check_columns):
    """Read the probabilities of each model; return models of rows, which may form clusters."""
    all_predictions = {}
    for key, proba in named.items():
        check_no_model(proba)
        all_predictions[key] = build_predictions(proba)
        if check_columns:
            check_column_order(all_predictions[key], make_printable(key))
    # All models have the same rows, so their clusters are encoded once.
    clusters = add_cluster_ids(next(iter(all_predictions.values())), groups).clusters
    if clusters is not None:
        for key, predictions in all_predictions.items():
            all_predictions[key] = predictions.with_clusters(clusters)
            warn_few_event_clusters(all_predictions[key], predictions.problems()[0])
    return {
        key: PredictionsModel(predictions)
        for key, predictions in all_predictions.items()
    }


def _write_code_and_group_code_by_model(
    models, columns, y_true, named, source, fit_arguments
):
    """Return the code to paste for each model: for all rows, and for rows of groups."""
    codes = {}
    group_codes = {}
    for key, model in models.items():
        names = _find_label_and_proba_names_if_known(columns, y_true, named.get(key))
        classes = model.classes
        single = is_single_column(named.get(key))
        if single and model.positive == classes[0]:
            # A recalibrator takes a single column for the last of its classes.
            classes = classes[::-1]
        codes[key] = _write_recalibration_code(
            names,
            source,
            classes,
            model.predictions is not None,
            fit_arguments,
        )
        group_codes[key] = _write_group_repair_code(classes, single)
    return codes, group_codes


def _find_label_and_proba_names_if_known(columns, y_true, y_proba):
    """Return the names of the columns of labels and of probabilities, if they are known."""
    if columns is not None:
        return str(columns[0]), [str(name) for name in columns[1:]]
    label = getattr(y_true, "name", None)
    names = getattr(y_proba, "columns", None)
    names = [getattr(y_proba, "name", None)] if names is None else list(names)
    if isinstance(label, str) and all(isinstance(name, str) for name in names):
        return label, names
    return None


def _write_recalibration_code(
    label_and_proba_columns, source, classes, has_rows, fit_arguments=""
):
    """Write Python that fits "auto" to the rows of a report and applies it to new ones.

    Parameters
    ----------
    label_and_proba_columns : (str, list of str) or None
        Columns of the labels and of the probabilities.
    source : str or None
        The file.
    classes : sequence of label
        In the order of the columns.
    has_rows : bool
        Whether the report has rows; if not, it is of a summary.
    fit_arguments : str, default=""
        Further arguments of the fit, such as ", groups=groups".
    """
    before = "from sklearn_calib.recalibrators import get_recalibrator\n\n"
    after = ""
    proba = "y_proba"
    labels = "y_true"
    new = "new_proba"
    if label_and_proba_columns is not None:
        label, columns = label_and_proba_columns
        selected = repr(columns[0] if len(columns) == 1 else list(columns))
        reader = "parquet" if str(source).endswith((".parquet", ".pq")) else "csv"
        table = f"table = pd.read_{reader}({source or 'predictions.csv'!r})\n"
        before = f"import pandas as pd\n{before}{table}"
        after = f'new = pd.read_{reader}("new_predictions.csv")\n'
        proba = f"table[{selected}]"
        labels = f"table[{label!r}]"
        new = f"new[{selected}]"
    arguments = f"{proba}, {labels}, classes={list(classes)!r}{fit_arguments}"
    fit = f'get_recalibrator("auto").fit({arguments})'
    if label_and_proba_columns is None and not has_rows:
        before = ""
        fit = 'summary.fit("auto")'
    return (
        f"{before}recalibrator = {fit}\n{after}repaired = recalibrator.predict_proba({new})"
        "  # columns: recalibrator.classes_\n"
    )


def _write_group_repair_code(classes, single):
    """Write Python that repairs the rows of the groups GROUPS and no other rows."""
    return (
        "import numpy as np\n"
        "from sklearn_calib.groups import find_groups\n"
        "from sklearn_calib.recalibrators import get_recalibrator\n\n"
        f"{GROUP_CODE_INPUTS}\n"
        "found = find_groups(by, len(y_true), depth=2)\n"
        "rows = np.unique(np.concatenate(\n"
        "    [found.rows[found.names.index(name)] for name in GROUPS]\n"
        "))\n"
        "repaired = np.array(y_proba, dtype=float)\n"
        'recalibrator = get_recalibrator("auto").fit(\n'
        f"    repaired[rows], np.asarray(y_true)[rows], classes={list(classes)!r}\n"
        ")\n"
        "repaired[rows] = recalibrator.predict_proba(repaired[rows])"
        f"{'[:, 1]' * single}\n"
    )


def _compute_differing_sklearn_losses(models, named):
    """Return `sklearn.metrics.log_loss` of the models for which it differs from ours.

    It raises probabilities to the machine epsilon of their own type: 1.2e-7 in float32,
    9.8e-4 in float16.
    """
    losses = {}
    for key, proba in named.items():
        kind = _find_dtype_if_uniform(proba)
        if kind in (np.float16, np.float32):
            predictions = models[key].predictions
            exact = LogLoss().compute_row_losses(predictions.proba, predictions.codes)
            # scikit-learn clips probabilities at the machine epsilon of their type.
            clipped = np.minimum(exact, -np.log(float(np.finfo(kind).eps)))
            if (clipped < exact).any():
                losses[key] = predictions.mean(clipped)
    return losses


def _find_dtype_if_uniform(proba):
    """Return the type of the numbers; None if columns of a table have different ones."""
    if getattr(proba, "dtype", None) is not None:
        return proba.dtype
    kinds = set(getattr(proba, "dtypes", []))
    return kinds.pop() if len(kinds) == 1 else None


def _check_one_label(y_true):
    """Raise ValueError for a table of labels, which has a report of its own."""
    if is_label_table(y_true):
        raise invalid_input(
            "y_true",
            expected="one label per row, a 1d array",
            got="a table of labels",
            hint="For many labels per row call multilabel_report; for one-hot labels pass "
            "y.argmax(axis=1)" + get_survival_hint(np.asarray(y_true)),
        )


def check_no_model(argument: Any, function: str = "calibration_report") -> None:
    """Raise TypeError if a model is given instead of its probabilities."""
    if hasattr(argument, "predict") or callable(argument):
        expected = "probabilities"
        call = f"{function}(y, {{}})"
        check_gives_proba(argument, call, expected)
        raise invalid_input(
            expected=expected,
            got=f"the model {type(argument).__name__}",
            hint=f"Write {call.format('model.predict_proba(X)')}",
            error=TypeError,
        )


def check_report_options(level: Any, name: Any, columns: Any, progress: Any) -> None:
    """Raise ValueError for options that are not of the kind that a report takes."""
    check_level(level)
    check_progress_callback(progress)
    if not isinstance(name, str):
        raise invalid_input(
            expected="name as text",
            got=repr(name)[:60],
            hint="Pass several models as a dict of y_proba",
        )
    is_list = isinstance(columns, Sequence) and not isinstance(columns, str)
    if columns is not None and not is_list:
        raise invalid_input(
            expected="columns as a list of names",
            got=repr(columns)[:60],
            hint="The labels' comes first",
        )
