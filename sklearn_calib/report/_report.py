"""CalibrationReport: what was found out, as text, HTML, Markdown, JSON, tables and pictures."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._typing import DataFrame
from ..exceptions import require
from ._content import Content
from ._json import WrittenReport, as_dict, write_page
from ._page import notebook, page, rows_and_classes
from ._pictures import to_draw
from ._sections import Pictures, sections_of
from ._table import affordable_resamples

if TYPE_CHECKING:
    from ..displays import ReliabilityDisplay


@dataclass
class CalibrationReport(Content, WrittenReport):
    """The result of `calibration_report`: a verdict and a table, and pictures drawn on demand.

    ``print(report)`` shows the text; `to_html`, `to_json` and `to_markdown` write it.

    Attributes
    ----------
    rows : list of ReportRow
    n_samples : int
    classes : list
    level : float
    accuracy : dict of str to float
    decomposition : dict of str to LossDecomposition
        Of the log loss, by temperature scaling. Without the models that are summaries of more than
        two classes.
    floored : dict of str to tuple of int
        How many rows give their true class a probability below 2.2e-16, which the log loss counts
        as 2.2e-16 (36.04 nats), and how many of these give it exactly 0. Of a summary of more than
        two classes only the latter are known, and are both numbers.
    sklearn_log_loss : dict of str to float
        What scikit-learn says of the models of which it says something else; see Notes of
        `calibration_report`.
    source : str or None
        Where the rows come from.
    created : str
        The date, as in 2026-01-31.
    version : str
        Of this package.
    advice : dict of str to Advice or None
        "Would recalibration help?", for each model; None before `advise` has been called, and
        where some class has fewer than five rows.
    groups : dict of str to GroupCalibration
        The audit of the groups of each model at level 0.95, where ``by=`` was given; else empty.
    features : dict of str to LossDecomposition or None
        Of the log loss, with what a better use of the features gains, where ``features=`` was
        given; None where the rows are too few to say.
    grades : dict of str to GradeCalibration
        The rating grades of each model, where ``grades=`` was given; else empty. What you put here,
        ``report.grades[model] = grade_calibration(...)`` with options of your own, is shown too.
    n_clusters : int or None
        Clusters of rows, where ``groups=`` was given: intervals, p-values, verdict and advice count
        these, not the rows.
    """

    def to_frame(self) -> DataFrame:
        """The rows as a pandas DataFrame, one row for each model and measure.

        Raises ModuleNotFoundError where pandas is not installed.
        """
        pd = require("pandas", "cli", "CalibrationReport.to_frame")
        return pd.DataFrame([vars(row) for row in self.rows])

    def to_dict(self) -> dict[str, Any]:
        """Everything that the report says, as dicts, lists, texts and numbers.

        Returns
        -------
        content : dict
            ``"format": "sklearn-calib-report"`` and ``"schema": 1`` say what it is; numbers that
            do not exist are None. The user guide (Reading a report) lists the keys.
        """
        return as_dict(self)

    def _sections(self):
        _ = self.verdicts  # what is computed is computed before anything is written
        return sections_of(self)

    def _repr_html_(self):
        return notebook(self)

    def plot(self, **options: Any) -> "ReliabilityDisplay":
        """A `ReliabilityDisplay` of the models.

        Parameters
        ----------
        **options
            As in ``ReliabilityDisplay.from_predictions``, for instance ``strategy="isotonic"``; of
            summaries those of `CalibrationSummary.reliability_curve`.
        """
        from ..displays import ReliabilityDisplay

        cases = {name: m.case for name, m in self._models.items() if m.case is not None}
        if not cases:
            drawn = {name: to_draw(model.summary) for name, model in self._models.items()}
            curves = {name: one.reliability_curve(**options) for name, one in drawn.items()}
            return ReliabilityDisplay(curves).plot()
        if len(cases) == 1:
            options.setdefault("n_resamples", affordable_resamples(self.n_samples))
        model = next(iter(self._models.values()))
        if self.n_clusters is not None:
            options["n_resamples"] = 0  # bands of rows would be too narrow
        options.setdefault("pos_label", model.positive if model.two_classes else None)
        case = next(reversed(cases.values()))
        return ReliabilityDisplay.from_predictions(
            case.classes[case.codes],
            {name: each.proba for name, each in cases.items()},
            labels=self.classes,
            sample_weight=case.weight,
            **options,
        )

    def to_html(self, path: str | Path, *, title: str = "Calibration report") -> str | Path:
        """Write one self-contained file to send around: no scripts, no network.

        The verdict, reliability diagrams, the measures, bins, and for more than two classes each
        class against the others. After `advise` also the diagrams after recalibration beside those
        before, what each method gains, and the code for the repair.

        It is written whole or not at all: on an error an existing file is as it was.

        Parameters
        ----------
        path : str or path-like
        title : str, default="Calibration report"

        Returns
        -------
        path : str
            Where the file is, absolute.

        Raises
        ------
        OSError
            The file cannot be written.

        Notes
        -----
        The pictures are drawn here, as SVG that tells its numbers where a pointer rests; matplotlib
        is not needed. The page follows the reader's light or dark colours, and is readable on a
        telephone and printed on A4. Of more than 12 classes it shows the six with the largest error
        and the six most frequent others; more than three models share a grid of small diagrams.
        Cost: 0.1 to 0.3 s, and the verdicts where nobody has asked for them yet.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn_calib.report import calibration_report
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(2, 500)
        >>> report = calibration_report(y, proba, n_resamples=20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = Path(report.to_html(Path(folder) / "report.html"))
        ...     text = page.read_text(encoding="utf-8")
        >>> text.count("<svg") > 0, "<script" in text
        (True, False)
        """
        _ = self.verdicts  # what is computed is computed before anything is written
        sections = sections_of(self, Pictures.of(self))
        return write_page(path, page(self, title, rows_and_classes(self), sections))
