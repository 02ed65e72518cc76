"""CalibrationReport: what was found out, as text, HTML, Markdown, JSON, tables and pictures."""

from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from .._argument_checks import import_optional, unknown_name_error, validate_count
from .._kernels._detectable_error import SIGNIFICANCE_LEVEL
from .._show import escape_html, join_truncated, make_printable
from .._typing import DataFrame, Progress
from .._version import __version__
from ..decomposition import (
    LossDecomposition,
    decompose_by_features,
    has_enough_rows_for_features,
)
from ..exceptions import invalid_input
from ..groups import GradeCalibration, GroupCalibration, audit_predictions, to_grades
from ._advice import Advice, make_advice
from ._evidence import MAX_BINS, Bin, Line, fit_event_line, make_bins
from ._models import ReportedModel
from ._pictures import coarsen_two_class_cells_for_diagram, make_diagram_series_by_model
from ._sections import (
    make_measures_section,
    make_reliability_section,
    make_sections,
    make_verdicts_section,
)
from ._table import ReportRow, choose_resample_count
from ._verdict import Verdict, make_verdict
from ._written_report import WrittenReport, convert_to_json_values

if TYPE_CHECKING:
    from ..displays import ReliabilityDisplay


_REPORT_FORMAT = "sklearn-calib-report"
_SCHEMA_VERSION = 1


@dataclass
class CalibrationReport(WrittenReport):
    """The result of `calibration_report`: a verdict and a table, and pictures drawn on demand.

    ``print(report)`` shows the text; `to_html`, `to_json` and `to_markdown` write it.
    The page has the verdict, reliability diagrams, the measures, bins, and for more
    than two classes each class against the others. After `advise` also the diagrams
    after recalibration beside those before, what each method gains, and the code for
    the repair. Of more than 12 classes it shows the six with the largest error and the
    six most frequent others; more than three models share a grid of small diagrams.
    Cost: 0.1 to 0.3 s, and the verdicts if they have not been computed yet.

    Attributes
    ----------
    rows : list of ReportRow
    n_samples : int
    classes : list
    level : float
    accuracy : dict of str to float
    decomposition : dict of str to LossDecomposition
        Of the log loss, by temperature scaling. Without the models that are summaries
        of more than two classes.
    floored : dict of str to tuple of int
        How many rows give their true class a probability below 2.2e-16, which the log
        loss counts as 2.2e-16 (36.04 nats), and how many of these give it exactly 0. Of
        a summary of more than two classes only the latter are known, and are both
        numbers.
    sklearn_log_loss : dict of str to float
        The log loss of scikit-learn for the models if it differs; see Notes
        of `calibration_report`.
    source : str or None
        Where the rows come from.
    created : str
        The date, as in 2026-01-31.
    version : str
        Of this package.
    advice : dict of str to Advice or None
        "Would recalibration help?", for each model; None before `advise` has been
        called, or if some class has fewer than five rows.
    groups : dict of str to GroupCalibration
        The audit of the groups of each model at level 0.95, after `add_groups`; else
        empty.
    features : dict of str to LossDecomposition or None
        Of the log loss, with what a better use of the features gains, after
        `add_features`; None if the rows are too few to decide.
    grades : dict of str to GradeCalibration
        The rating grades of each model, after `add_grades`; else empty. What you put
        here, ``report.grades[model] = grade_calibration(...)`` with options of your
        own, is shown too.
    n_clusters : int or None
        Clusters of rows, if ``groups=`` was given: intervals, p-values, verdict and
        advice count these, not the rows.
    """

    rows: list[ReportRow]
    n_samples: int
    classes: list[Any]
    level: float
    accuracy: dict[str, float]
    decomposition: dict[str, LossDecomposition]
    floored: dict[str, tuple[int, int]]
    sklearn_log_loss: dict[str, float] = field(default_factory=dict)
    source: str | None = None
    created: str = field(default_factory=lambda: date.today().isoformat())
    version: str = __version__
    advice: dict[str, Advice | None] = field(default_factory=dict)
    groups: dict[str, GroupCalibration] = field(repr=False, default_factory=dict)
    features: dict[str, LossDecomposition | None] = field(
        repr=False, default_factory=dict
    )
    grades: dict[str, GradeCalibration] = field(repr=False, default_factory=dict)
    n_clusters: int | None = None
    _models: dict[str, ReportedModel] = field(repr=False, default_factory=dict)
    _codes: dict[str, str] = field(repr=False, default_factory=dict)
    _group_codes: dict[str, str] = field(repr=False, default_factory=dict)
    _seed: int = field(repr=False, default=0)
    _clustered_by: str | None = field(repr=False, default=None)

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """Return the verdict on each model; computed at first use, some 0.2 s each."""
        return {name: make_verdict(self, name) for name in self._models}

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the only model.

        Raises ValueError if there are several: see `verdicts`.
        """
        if len(self._models) > 1:
            raise invalid_input(
                expected=f"a model among {', '.join(map(make_printable, self._models))}",
                got=f"{len(self._models)} models",
                hint=f"Write report.verdicts[{next(iter(self._models))!r}]",
            )
        return self.verdicts[self._resolve_model_name(None)]

    def _resolve_model_name(self, name):
        """Return the name of the model that is meant; None is the only one."""
        if name is None and len(self._models) == 1:
            return next(iter(self._models))
        if name not in self._models:
            raise unknown_name_error(
                "a model", name, map(make_printable, self._models), "Name one of them"
            )
        return name

    def advise(self, progress: Progress | None = None) -> dict[str, Advice | None]:
        """Find out whether recalibration would help, by cross-validation.

        Parameters
        ----------
        progress : callable, default=None
            Called as ``progress(done, total)``.

        Returns
        -------
        advice : dict of str to Advice or None
            The attribute `advice`; verdicts have sentences about it from now on. Of a
            summary of more than two classes there is none: this needs rows.

        Notes
        -----
        Five folds, the same for "identity", "auto", "temperature", "platt", "beta" and
        "isotonic". Two classes are judged by all rows in at most 4096 cells, more
        classes by a sample of 50,000 probabilities. Cost for each model: about 1 s for
        two classes, for any number of rows.

        Examples
        --------
        >>> from sklearn_calib.report import calibration_report
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(2, 500)
        >>> report = calibration_report(y, proba, n_resamples=20)
        >>> advice = report.advise()["model"]
        >>> gain = advice.row("auto")
        >>> gain.gain > 2 * gain.standard_error
        True
        """
        missing = [name for name in self._models if self.advice.get(name) is None]
        for number, name in enumerate(missing):
            step = progress and partial(
                _report_progress_over_models, progress, number, len(missing)
            )
            # All models use the same seed, hence the same folds.
            self.advice[name] = make_advice(
                self._models[name], self._seed, self._codes[name], step
            )
        self._discard_verdicts()
        return self.advice

    def add_groups(self, by: Any) -> dict[str, GroupCalibration]:
        """Audit groups of the rows, and what any two of them have in common.

        Parameters
        ----------
        by : table, dict of columns or list of masks
            A row for each row of `y_true`, as `group_calibration` takes it with
            ``depth=2``.

        Returns
        -------
        groups : dict of str to GroupCalibration
            The attribute `groups`, which replaces groups that were added before. The
            verdict and all that is written have them from now on, as with
            ``calibration_report(by=)``.

        Raises
        ------
        ValueError
            A report on summaries or on clusters of rows, or groups of other rows.

        Examples
        --------
        >>> from sklearn_calib.report import calibration_report
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(2, 500)
        >>> report = calibration_report(y, proba, n_resamples=20)
        >>> groups = report.add_groups({"site": ["north", "south"] * 250})
        >>> [row.group for row in groups["model"].rows]
        ['all rows', 'site = north', 'site = south']
        """
        rows = self._get_independent_predictions_by_name(
            "by", "Pass y_proba, or summarise with by="
        )
        groups = {}
        for name, predictions in rows.items():
            groups[name] = audit_predictions(
                predictions, by, depth=2, level=1 - SIGNIFICANCE_LEVEL
            )
        self.groups = groups
        self._discard_verdicts()
        return self.groups

    def add_features(self, features: Any) -> dict[str, LossDecomposition | None]:
        """Find out whether a better use of the features would help.

        Parameters
        ----------
        features : table of shape (n_samples, n_features)
            A row for each row of `y_true`, as `decompose_loss` takes it, which has the
            cost.

        Returns
        -------
        features : dict of str to LossDecomposition or None
            The attribute `features`, which replaces features that were added before.
            From then on the verdict includes whether to recalibrate or to retrain, as
            with ``calibration_report(features=)``.

        Raises
        ------
        ValueError
            A report on summaries or on clusters of rows, or features of other rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_calib.report import calibration_report
        >>> y, proba = np.tile([0, 0, 1, 1], 50), np.tile([0.4, 0.6], 100)
        >>> report = calibration_report(y, proba, n_resamples=20)
        >>> report.add_features(y[:, None])["model"].action
        'retrain'
        """
        rows = self._get_independent_predictions_by_name(
            "features", "Pass y_proba, or leave features out"
        )
        decompositions = dict.fromkeys(rows)
        for name, predictions in rows.items():
            if has_enough_rows_for_features(predictions):
                decompositions[name] = decompose_by_features(predictions, features)
        self.features = decompositions
        self._discard_verdicts()
        return self.features

    def add_grades(self, grades: Any) -> dict[str, GradeCalibration]:
        """Test rating grades of two classes, as `grade_calibration` does.

        Parameters
        ----------
        grades : Grades, sequence of edges, or dict
            A dict has "edges" and "names".

        Returns
        -------
        grades : dict of str to GradeCalibration
            The attribute `grades`, which replaces grades that were added before. All
            that is written has them from now on, as with
            ``calibration_report(grades=)``.

        Raises
        ------
        ValueError
            A report on clusters of rows or on more than two classes, weights that are
            not numbers of rows, or edges that do not increase.

        Examples
        --------
        >>> from sklearn_calib.report import calibration_report
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(2, 500)
        >>> report = calibration_report(y, proba, n_resamples=20)
        >>> len(report.add_grades([0.2, 0.5, 0.8])["model"].rows)
        4
        """
        self._check_independent("grades")
        bands = to_grades(grades)
        for model in self._models.values():
            if not model.two_classes:
                raise invalid_input(
                    expected="two classes, whose probability has grades",
                    got=f"{len(model.classes)}",
                    hint="Leave grades out, or pass the probability of one class and y == label",
                )
        self.grades = {
            name: model.test_model_grades(bands) for name, model in self._models.items()
        }
        return self.grades

    def _check_independent(self, argument):
        """Raise ValueError if rows are in clusters, which `argument` does not allow for."""
        if self._clustered_by is not None:
            raise invalid_input(
                expected=f"{self._clustered_by} without by, features, grades",
                got=argument,
                sentence=f"{self._clustered_by} and {argument} cannot be combined",
                hint="Its intervals would take the rows for independent: leave one of the two out",
            )

    def _get_independent_predictions_by_name(self, argument, hint):
        """Return the predictions of each model; raise ValueError for clusters and summaries."""
        self._check_independent(argument)
        rows = {name: model.predictions for name, model in self._models.items()}
        if any(predictions is None for predictions in rows.values()):
            raise invalid_input(
                expected=f"labels and probabilities of each row, for {argument}",
                got="summaries",
                sentence=(
                    f"{argument} needs labels and probabilities of each row, but the "
                    "report is of summaries"
                ),
                hint=hint,
            )
        return rows

    def _discard_verdicts(self):
        """Remove the verdicts, which are computed again at their next use."""
        # The cache of `cached_property`.
        self.__dict__.pop("verdicts", None)

    def bins(self, model: str | None = None, *, n_bins: int = MAX_BINS) -> list[Bin]:
        """Return bins of equal mass: counts, mean prediction, frequency, its interval, their ratio.

        Parameters
        ----------
        model : str, default=None
            May be left out if there is one.
        n_bins : int, default=10
            At least 1.

        Returns
        -------
        bins : list of Bin
            ``pandas.DataFrame(report.bins())`` is a table. With more than two classes,
            the bins are those of the largest probability. Each interval holds by
            itself, with the report's level.
        """
        n_bins = validate_count(n_bins, "n_bins")
        sample = self._models[
            self._resolve_model_name(model)
        ].get_cell_or_cluster_sample()
        return make_bins(sample, n_bins, self.level)

    def line(self, model: str | None = None) -> Line | None:
        """Return slope and intercept of the event on the log-odds, with standard errors.

        Parameters
        ----------
        model : str, default=None
            May be left out if there is one.

        Returns
        -------
        line : Line or None
            None if they are not determined: with fewer than ten events, or if a
            threshold separates the outcomes. With more than two classes, the line is
            that of the largest probability.
        """
        return fit_event_line(
            self._models[self._resolve_model_name(model)].get_cell_or_cluster_sample()
        )

    def decomposition_lines(self) -> list[str]:
        """Return the decomposition of the log loss in words, one line per model.

        One more for each model that calls a true class impossible (see `floored`).
        """
        parts = []
        for name, decomposition in self.decomposition.items():
            ends = decomposition.interval("calibration", self.level)
            within = ""
            if ends:
                within = f" ({100 * self.level:.0f} %: {ends[0]:.4f} to {ends[1]:.4f})"
            parts.append(
                f"{make_printable(name)}: log loss {decomposition.risk:.4f} = calibration "
                f"{decomposition.calibration:.4f}{within} "
                f"+ refinement {decomposition.refinement:.4f}; "
                f"class frequencies alone {decomposition.uncertainty:.4f}"
            )
        floors = []
        for name, (low, zero) in self.floored.items():
            if low:
                floors.append(
                    f"{make_printable(name)}: the true class has a probability "
                    f"below 2.2e-16 in {low} "
                    f"rows (exactly 0 in {zero}); the log loss counts each as 2.2e-16, 36.04 nats"
                )
        others = [
            f"{make_printable(name)}: scikit-learn's log loss is {loss:.4f}, "
            f"because it raises smaller "
            "probabilities of these numbers of lower precision"
            for name, loss in self.sklearn_log_loss.items()
        ]
        return parts + floors + others

    def to_frame(self) -> DataFrame:
        """Return the rows as a pandas DataFrame, one row for each model and measure.

        Raises ModuleNotFoundError if pandas is not installed.
        """
        pd = import_optional("pandas", "cli")
        return pd.DataFrame([vars(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Return all contents of the report as dicts, lists, texts and numbers.

        Returns
        -------
        content : dict
            ``"format": "sklearn-calib-report"`` and ``"schema": 1`` identify it;
            numbers that do not exist are None. The user guide (Reading a report) lists
            the keys.
        """
        content = {
            "format": _REPORT_FORMAT,
            "schema": _SCHEMA_VERSION,
            "version": self.version,
            "created": self.created,
            "source": self.source,
            "n_rows": self.n_samples,
            "n_clusters": self.n_clusters,
            "classes": self.classes,
            "level": self.level,
            "models": [_describe_model_as_dict(self, name) for name in self.accuracy],
        }
        return convert_to_json_values(content)

    def _make_sections(self, drawn=False):
        # Everything is computed before anything is written, so an error leaves no part.
        _ = self.verdicts
        return make_sections(
            self, make_diagram_series_by_model(self) if drawn else None
        )

    def _make_notebook_display_sections(self):
        return [
            make_verdicts_section(self),
            make_reliability_section(self, make_diagram_series_by_model(self)),
            make_measures_section(self),
        ]

    def _make_subject_html(self):
        names = [f"<bdi>{escape_html(label, 24)}</bdi>" for label in self.classes]
        return f"{self.n_samples:,} rows; {len(self.classes)} classes: {join_truncated(names, 12)}"

    def plot(self, **options: Any) -> "ReliabilityDisplay":
        """Plot a `ReliabilityDisplay` of the models.

        Parameters
        ----------
        **options
            As in ``ReliabilityDisplay.from_predictions``, for instance
            ``strategy="isotonic"``; of summaries those of
            `CalibrationSummary.reliability_curve`.
        """
        from ..displays import ReliabilityDisplay

        all_predictions = {}
        for name, model in self._models.items():
            if model.predictions is not None:
                all_predictions[name] = model.predictions
        if not all_predictions:
            curves = {}
            for name, model in self._models.items():
                cells = coarsen_two_class_cells_for_diagram(model.summary)
                curves[name] = cells.reliability_curve(**options)
            return ReliabilityDisplay(curves).plot()
        if len(all_predictions) == 1:
            # Bands of several models would overlap, so they are only drawn for one.
            options.setdefault("n_resamples", choose_resample_count(self.n_samples))
        model = next(iter(self._models.values()))
        if self.n_clusters is not None:
            # Bands that take rows as independent would be too narrow.
            options["n_resamples"] = 0
        options.setdefault("pos_label", model.positive if model.two_classes else None)
        # Labels and weights are the same for all models.
        predictions = next(reversed(all_predictions.values()))
        return ReliabilityDisplay.from_predictions(
            predictions.classes[predictions.codes],
            {name: rows.proba for name, rows in all_predictions.items()},
            labels=self.classes,
            sample_weight=predictions.weight,
            **options,
        )


def _describe_model_as_dict(report, name):
    """Return the part of `to_dict` about one model."""
    parts = report.decomposition.get(name)
    line = report.line(name)
    advice = report.advice[name]
    below, zeros = report.floored[name]
    features = report.features.get(name)
    keys = "risk", "calibration", "refinement", "uncertainty"
    decomposition = None
    if parts is not None:
        decomposition = {key: getattr(parts, key) for key in keys}
    columns = "measure", "value", "low", "high", "null_mean"
    measures = []
    for row in report.rows:
        if row.model == name:
            measures.append({column: getattr(row, column) for column in columns})
    return {
        "name": name,
        "accuracy": report.accuracy[name],
        "verdict": report.verdicts[name].to_dict(),
        "measures": measures,
        "decomposition": decomposition,
        "log_loss": {
            "rows_below_floor": below,
            "rows_of_zero": zeros,
            "scikit_learn": report.sklearn_log_loss.get(name),
        },
        "line": None if line is None else line._asdict(),
        "bins": [reliability_bin._asdict() for reliability_bin in report.bins(name)],
        "advice": None if advice is None else advice.to_dict(),
        "groups": report.groups[name].to_dict() if name in report.groups else None,
        "grades": report.grades[name].to_dict() if name in report.grades else None,
        "features": None if features is None else features.to_dict(report.level),
    }


def _report_progress_over_models(progress, model_index, n_models, done, steps):
    """Report progress of one model as that of all."""
    progress(model_index * steps + done, n_models * steps)
