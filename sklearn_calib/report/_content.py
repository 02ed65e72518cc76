"""What a report found out: measures, verdicts, bins and advice for one or several models."""

from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial
from typing import Any

from .._show import plain
from .._typing import Progress
from .._version import __version__
from ..decomposition import LossDecomposition
from ..exceptions import check_count, refuse, refuse_unknown
from ..groups import GradeCalibration, GroupCalibration
from ._advice import Advice, advise
from ._evidence import MOST_BINS, Bin, Line, bins_of, line_of
from ._models import Model
from ._table import ReportRow
from ._verdict import Verdict, verdict_of


@dataclass
class Content:
    """What was found out, and what is computed of it on demand; `CalibrationReport` writes it.

    That says what the attributes are. Whatever writes them (sections, pictures, a page, JSON) reads
    this and knows nothing of the others.
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
    features: dict[str, LossDecomposition | None] = field(repr=False, default_factory=dict)
    grades: dict[str, GradeCalibration] = field(repr=False, default_factory=dict)
    n_clusters: int | None = None
    _models: dict[str, Model] = field(repr=False, default_factory=dict)
    _codes: dict[str, str] = field(repr=False, default_factory=dict)
    _seed: int = field(repr=False, default=0)

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each model; computed when first asked for, some 0.2 s each."""
        return {name: verdict_of(self, name) for name in self._models}

    @property
    def verdict(self) -> Verdict:
        """The verdict on the only model.

        Raises ValueError where there are several: see `verdicts`.
        """
        return self.verdicts[self._name(None, "CalibrationReport.verdict")]

    def _name(self, name, where):
        """The model that is meant; None is the only one."""
        if name is None and len(self._models) == 1:
            return next(iter(self._models))
        if name not in self._models:
            known = [*map(plain, self._models)]
            if where.endswith(".verdict"):  # a property, which takes no name
                cure = f"Write report.verdicts[{next(iter(self._models))!r}]"
                got = f"{len(known)} of them"
                refuse(where, f"a model among {', '.join(known)}", got, cure)
            refuse_unknown(where, "a model", name, known, "Name one of them")
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
            The attribute `advice`; verdicts have sentences about it from now on. Of a summary of
            more than two classes there is none: this needs rows.

        Notes
        -----
        Five folds, the same for "identity", "auto", "temperature", "platt", "beta" and "isotonic".
        Two classes are judged by all rows in at most 4096 cells, more classes by a sample of 50,000
        probabilities. Cost for each model: about 1 s for two classes, whatever the rows.

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
            step = progress and partial(_part_of, progress, number, len(missing))
            self.advice[name] = advise(self._models[name], self._seed, self._codes[name], step)
        self.__dict__.pop("verdicts", None)
        return self.advice

    def bins(self, model: str | None = None, *, n_bins: int = MOST_BINS) -> list[Bin]:
        """Bins of equal mass: counts, mean prediction, frequency, its interval, and their ratio.

        Parameters
        ----------
        model : str, default=None
            May be left out where there is one.
        n_bins : int, default=10
            At least 1.

        Returns
        -------
        bins : list of Bin
            ``pandas.DataFrame(report.bins())`` is a table. With more than two classes, the
            bins are those of the largest probability. Each interval holds by itself, with the
            report's level.
        """
        where = "CalibrationReport.bins"
        n_bins = check_count(n_bins, "n_bins", where)
        sample = self._models[self._name(model, where)].cells()
        return bins_of(sample, n_bins, self.level)

    def line(self, model: str | None = None) -> Line | None:
        """Slope and intercept of the event on the log-odds of the score, with standard errors.

        Parameters
        ----------
        model : str, default=None
            May be left out where there is one.

        Returns
        -------
        line : Line or None
            None if they are not determined: with fewer than ten events, or if a threshold separates
            the outcomes. With more than two classes, the line is that of the largest probability.
        """
        return line_of(self._models[self._name(model, "CalibrationReport.line")].cells())

    def decomposition_lines(self) -> list[str]:
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
        others = [
            f"{plain(name)}: scikit-learn's log loss is {loss:.4f}, because it raises smaller "
            "probabilities of these numbers of lower precision"
            for name, loss in self.sklearn_log_loss.items()
        ]
        return parts + floors + others


def _part_of(progress, number, total, done, steps):
    """Progress of one model as that of all."""
    progress(number * steps + done, total * steps)
