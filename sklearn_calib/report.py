"""calibration_report: the measures of one or several models, with intervals and pictures."""

import base64
import html
import io
import os
import warnings
from dataclasses import dataclass, field

import numpy as np

from ._extras import require
from ._files import write_whole
from ._random import generator
from ._show import in_page, plain
from ._simplex import LARGEST_LOG_LOSS, log_loss_of_rows
from .decomposition import decompose_case
from .exceptions import refuse
from .inference import bootstrap_distribution, null_distribution
from .metrics import all_metrics, canonical_case


@dataclass(frozen=True)
class ReportRow:
    """One measure of one model.

    Attributes
    ----------
    model, measure : str
    value : float
    low, high : float
        Percentile bootstrap interval.
    if_calibrated : float
        The value that calibrated predictions would exceed with probability 1 - level by chance
        alone, or fall short of where greater is better.
    """

    model: str
    measure: str
    value: float
    low: float
    high: float
    if_calibrated: float


@dataclass
class CalibrationReport:
    """The result of `calibration_report`: a table, and pictures drawn on demand.

    Attributes
    ----------
    rows : list of ReportRow
    n_samples : int
    classes : list
    level : float
    accuracy : dict of str to float
    decomposition : dict of str to LossDecomposition
        Of the log loss, by temperature scaling.
    floored : dict of str to tuple of int
        How many rows give their true class a probability below 2.2e-16, which the log loss counts
        as 2.2e-16 (36.04 nats), and how many of these give it exactly 0.
    """

    rows: list
    n_samples: int
    classes: list
    level: float
    accuracy: dict
    decomposition: dict
    floored: dict
    _data: dict = field(repr=False, default_factory=dict)

    def to_frame(self):
        """The rows as a pandas DataFrame, one row for each model and measure.

        Raises ModuleNotFoundError where pandas is not installed.
        """
        pd = require("pandas", "cli", "CalibrationReport.to_frame")
        return pd.DataFrame([vars(row) for row in self.rows])

    def __str__(self):
        lines = [f"{self.n_samples} rows, {len(self.classes)} classes"]
        lines += [
            f"accuracy of {plain(name)}: {value:.4f}" for name, value in self.accuracy.items()
        ]
        header = ("model", "measure", "value", f"{self.level:.0%} interval", "if calibrated")
        table = [header, *(_cells(row) for row in self.rows)]
        widths = [max(len(line[i]) for line in table) for i in range(len(header))]
        for line in table:
            lines.append("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip())
        return "\n".join(lines + self.decomposition_lines())

    def decomposition_lines(self):
        """The decomposition of the log loss in words, one line per model.

        One more for each model that calls a true class impossible (see `floored`).
        """
        parts = []
        for name, d in self.decomposition.items():
            ends = d.interval("calibration", self.level)
            within = f" ({self.level:.0%}: {ends[0]:.4f} to {ends[1]:.4f})" if ends else ""
            parts.append(
                f"{plain(name)}: log loss {d.risk:.4f} = calibration {d.calibration:.4f}{within} "
                f"+ refinement {d.refinement:.4f}; class frequencies alone {d.uncertainty:.4f}"
            )
        floors = [
            f"{plain(name)}: the true class has a probability below 2.2e-16 in {low} rows "
            f"(exactly 0 in {zero}); the log loss counts each as 2.2e-16, 36.04 nats"
            for name, (low, zero) in self.floored.items()
            if low
        ]
        return parts + floors

    def _repr_html_(self):
        header = ("model", "measure", "value", f"{self.level:.0%} interval", "if calibrated, below")
        head = "".join(f"<th>{in_page(cell)}</th>" for cell in header)
        body = ""
        for row in self.rows:
            flag = ' class="beyond"' if row.value > row.if_calibrated else ""
            cells = _cells(row)
            marked = "".join(f"<td>{in_page(cell)}</td>" for cell in cells[:2])
            marked += f"<td{flag}>{cells[2]}</td>"
            marked += "".join(f"<td>{in_page(cell)}</td>" for cell in cells[3:])
            body += f"<tr>{marked}</tr>\n"
        return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"

    def plot(self, **options):
        """A `ReliabilityDisplay` of the models.

        Parameters
        ----------
        **options
            As in ``ReliabilityDisplay.from_predictions``, for instance ``strategy="isotonic"``.
        """
        from .displays import ReliabilityDisplay

        data = self._data
        if len(data["proba"]) == 1:
            options.setdefault("n_resamples", _affordable(self.n_samples))
        return ReliabilityDisplay.from_predictions(
            data["y"], data["proba"], labels=self.classes, sample_weight=data["weight"], **options
        )

    def to_html(self, path, *, title="Calibration report"):
        """Write one self-contained file: tables and pictures, no scripts, no network.

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
        ModuleNotFoundError
            matplotlib is not installed.
        """
        many = len(self.classes) > 2
        sections = [("Bins of equal mass", {}), ("Isotonic (CORP)", {})]
        sections[1][1]["strategy"] = "isotonic"
        if many and len(self.classes) <= 12:
            sections.append(("Each class against the others", {"multiclass": "classwise"}))
        pictures = "".join(
            f"<figure><figcaption>{name}</figcaption>\n"
            f"{_picture(self.plot(**options), name)}</figure>\n"
            for name, options in sections
        )
        models = "".join(
            f"<li>{in_page(name)}: accuracy {value:.4f}</li>"
            for name, value in self.accuracy.items()
        )
        shown = ", ".join(in_page(c) for c in self.classes[:12])
        text = _PAGE.format(
            title=in_page(title),
            summary=f"{self.n_samples} rows; {len(self.classes)} classes: {shown}"
            + (", ..." if len(self.classes) > 12 else ""),
            models=models,
            table=self._repr_html_(),
            parts="".join(f"<li>{in_page(line, None)}</li>" for line in self.decomposition_lines()),
            level=f"{self.level:.0%}",
            measures=_descriptions({row.measure for row in self.rows}),
            pictures=pictures,
        )
        path = os.path.abspath(os.fspath(path))
        write_whole(path, text)
        return path


def calibration_report(
    y_true,
    y_proba,
    *,
    sample_weight=None,
    labels=None,
    pos_label=None,
    name="model",
    measures=None,
    level=0.9,
    n_resamples="auto",
    random_state=0,
    progress=None,
):
    """Measure the calibration of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict
        Probabilities; a dict of name to probabilities compares models.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.
    name : str, default="model"
        What to call the model, where there is one.
    measures : list of str, default=None
        Names from `all_metrics`; by default the registered measures that are meant for reports.
    level : float in (0, 1), default=0.9
    n_resamples : int or "auto", default="auto"
        Bootstrap resamples, and as many draws of labels from the predictions; "auto" takes 200,
        fewer beyond 100,000 rows, at least 20.
    random_state : int, Generator, RandomState or None, default=0
    progress : callable, default=None
        Called as ``progress(done, total)``.

    Returns
    -------
    report : CalibrationReport

    Raises
    ------
    ValueError
        Invalid scores, labels or weights (see `canonical_proba`), or an unknown measure.

    Notes
    -----
    The interval is the percentile bootstrap over rows. For a calibration error near 0 it lies too
    high, because the error of a finite sample is biased upwards; compare the value with the column
    "if calibrated" there, which is exact: labels drawn from the predictions. Cost: each measure's
    own, times 2 n_resamples + 1.

    Every log loss of the report, in the table and in the decomposition, counts a row as
    -log(max(p, 2.2e-16)) with p the probability of its true class, as `log_loss` does; where this
    floor is reached, the report says in how many rows, and how many of them are exactly 0.

    Examples
    --------
    >>> from sklearn_calib.report import calibration_report
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> report = calibration_report(y, proba, n_resamples=20)
    >>> report.rows[0].measure
    'brier_loss'
    >>> error = next(r for r in report.rows if r.measure == "expected_calibration_error")
    >>> error.value > error.if_calibrated
    True
    """
    where = "calibration_report"
    models = y_proba if isinstance(y_proba, dict) else {name: y_proba}
    functions = _measures(measures, where)
    if not 0 < level < 1:
        refuse(where, "level in (0, 1)", repr(level), "90 % is 0.9")
    cases = {
        key: canonical_case(where, y_true, p, sample_weight, labels, pos_label)
        for key, p in models.items()
    }
    first = next(iter(cases.values()))
    n = len(first.codes)
    if n_resamples == "auto":
        n_resamples = _affordable(n)

    def evaluate(case):
        return [function.of_case(case) for function in functions]

    seeds = generator(random_state).integers(0, 2**63, size=2)  # the same draws for each model
    rows, accuracy, floored = [], {}, {}
    for number, (key, case) in enumerate(cases.items()):
        accuracy[key] = case.mean(np.asarray(case.proba).argmax(axis=1) == case.codes)
        true = np.asarray(case.proba)[np.arange(n), case.codes]
        low = log_loss_of_rows(case.proba, case.codes) >= LARGEST_LOG_LOSS
        floored[key] = int(low.sum()), int((true == 0).sum())
        resampled, null = (
            distribution(
                case,
                evaluate,
                n_resamples,
                seed,
                progress=_part_of(progress, 2 * number + half, 2 * len(cases), n_resamples),
            )
            for half, (distribution, seed) in enumerate(
                zip((bootstrap_distribution, null_distribution), seeds, strict=True)
            )
        )
        rows += _rows(key, functions, evaluate(case), resampled, null, level)
    data = {"y": first.classes[first.codes], "weight": first.weight}
    data["proba"] = {key: case.proba for key, case in cases.items()}
    parts = {key: decompose_case(case) for key, case in cases.items()}
    classes = first.classes.tolist()
    return CalibrationReport(rows, n, classes, level, accuracy, parts, floored, data)


def _affordable(n):
    """Resamples for n rows: 200 up to 100,000 rows, at least 20."""
    return int(np.clip(2e7 / n, 20, 200))


def _measures(names, where):
    registered = all_metrics()
    if names is None:
        return [f for f in registered.values() if f.spec.in_report]
    for measure in names:
        if measure not in registered:
            refuse(where, f"measures among {', '.join(registered)}", repr(measure), "Check it")
    return [registered[measure] for measure in names]


def _part_of(progress, part, parts, size):
    """The progress of one part of several equal ones."""
    if progress is None:
        return None
    return lambda done, _: progress(part * size + done, parts * size)


def _rows(model, functions, values, resampled, null, level):
    rows = []
    for number, (function, value) in enumerate(zip(functions, values, strict=True)):
        low = high = limit = np.nan
        if len(resampled):
            low, high = np.quantile(resampled[:, number], [(1 - level) / 2, (1 + level) / 2])
            tail = 1 - level if function.spec.greater_is_better else level
            limit = np.quantile(null[:, number], tail)
        rows.append(
            ReportRow(model, function.spec.name, value, float(low), float(high), float(limit))
        )
    return rows


def _cells(row):
    interval = f"{row.low:.4f} to {row.high:.4f}"
    return plain(row.model), row.measure, f"{row.value:.4f}", interval, f"{row.if_calibrated:.4f}"


def _descriptions(names):
    lines = [
        f"<dt>{name}</dt><dd>{html.escape(function.__doc__.splitlines()[0].replace('`', ''))}</dd>"
        for name, function in all_metrics().items()
        if name in names
    ]
    return "\n".join(lines)


def _picture(display, name):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # emoji; the page's text shows them
        display.figure_.savefig(buffer, format="png", dpi=110)
    require("matplotlib.pyplot", "plot", "CalibrationReport.to_html").close(display.figure_)
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{in_page(name)}" src="data:image/png;base64,{encoded}">'


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; }}
table {{ border-collapse: collapse; }}
th, td {{ text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid #ddd; }}
td:nth-child(n+3) {{ font-variant-numeric: tabular-nums; }}
td.beyond {{ color: #b00020; font-weight: 600; }}
.pictures {{ display: flex; flex-wrap: wrap; gap: 1rem; }}
figure {{ margin: 0; }} figcaption {{ font-weight: 600; }}
img {{ max-width: 100%; }}
dt {{ font-weight: 600; }} dd {{ margin: 0 0 .4rem 1rem; }}
.note {{ color: #555; font-size: .9rem; }}
</style></head><body>
<h1>{title}</h1>
<p>{summary}</p>
<ul>{models}</ul>
<h2>Measures</h2>
{table}
<p class="note">The {level} interval is the percentile bootstrap over rows. &ldquo;If calibrated,
below&rdquo;: predictions that are calibrated stay below this value with probability {level};
values beyond it are in red. Near 0 the bootstrap interval of a calibration error lies too high, and
that column is the one to read.</p>
<dl class="note">{measures}</dl>
<h2>What recalibration can remove</h2>
<ul>{parts}</ul>
<p class="note">Calibration is what a temperature removes from the log loss (with its {level}
interval, where one is known), refinement what remains; a model is worth having as far as its
refinement lies below the log loss of the class frequencies. Every log loss on this page counts a
row as &minus;log(max(p, 2.2e&minus;16)), with p the probability of its true class.</p>
<h2>Reliability</h2>
<div class="pictures">
{pictures}</div>
</body></html>
"""
