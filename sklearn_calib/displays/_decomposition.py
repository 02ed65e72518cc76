"""DecompositionDisplay: losses split into calibration and refinement, as bars or in a plane."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._argument_checks import check_choice
from .._kernels._picture_axes import LossPlane, place_lower_left_label_corners
from .._show import escape_mathtext
from .._typing import (
    CV,
    ArrayLike,
    AxesLike,
    Estimator,
    Features,
    RecalibratorLike,
    Self,
)
from ..decomposition import LossDecomposition, decompose_loss
from ..metrics import LossLike, get_loss
from ._base import (
    BAR_STYLE_OPTIONS,
    BaseCurveByModelDisplay,
    CurveKwargs,
    PlottedData,
    add_legend,
    blend_text_with_background,
    name_models,
    name_rows,
    predict_proba_by_model_and_labels,
    take_next_color,
)

_DISPLAY_KINDS = ("bars", "plane")
_BAR_STYLE_BY_TERM = {
    "refinement": {"color": "C1", "label": "refinement"},
    "irreducible": {"color": "C1", "label": "irreducible (at most)"},
    "grouping": {"color": "C2", "label": "grouping (at least)"},
    "calibration": {"color": "C0", "label": "calibration"},
}


@dataclass(eq=False, repr=False)
class DecompositionDisplay(BaseCurveByModelDisplay):
    """Bars of a mean loss in two parts: what recalibration removes (on top), and what remains.

    With ``features=`` refinement is split into what remains of it at most, and
    grouping, what a better use of the features gains at least. Whiskers are 95 %
    intervals, as `LossDecomposition.interval` gives them; if it gives none there is
    no whisker.

    With ``kind="plane"`` each model is a point: its miscalibration to the right, what
    its loss has too much for want of calibration, and its discrimination upwards, how
    far its refinement lies below the loss of the class frequencies. Models on one of
    the dotted lines have the same loss, which is written there; it falls towards the
    upper left. The curves of ``curve_kwargs`` are the models in the plane, and the
    terms of the loss if there are bars.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`.

    Parameters
    ----------
    parts : dict of str to LossDecomposition
        Names and decompositions, as `decompose_loss` returns them.
    kind : {"bars", "plane"}, default="bars"

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    References
    ----------
    Dimitriadis, Gneiting, Jordan, Vogel (2024), "Evaluating probabilistic classifiers:
    the triptych", for the plane.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import DecompositionDisplay
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> models = {"raw": proba, "dull": 0.5 * proba + 1 / 6}
    >>> display = DecompositionDisplay.from_predictions(y, models)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['raw', 'dull']
    >>> plane = DecompositionDisplay.from_predictions(y, models, kind="plane")
    >>> plane.ax_.get_ylabel()
    'discrimination [nats]'
    """

    parts: dict[str, LossDecomposition]
    kind: Literal["bars", "plane"] = "bars"

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, Any],
        *,
        features: object = None,
        loss: LossLike = "log",
        recalibrator: RecalibratorLike | None = None,
        cv: CV = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        kind: Literal["bars", "plane"] = "bars",
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the decomposed loss of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict
            Probabilities, or a dict of the names of models to their probabilities.
        features, loss, recalibrator, cv, sample_weight, labels, pos_label
            As in `decompose_loss`.
        kind : {"bars", "plane"}, default="bars"
        name : str, default="model"
            The name of a single model.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : DecompositionDisplay
        """
        check_choice("kind", kind, _DISPLAY_KINDS)
        parts = {}
        for key, proba in name_models(y_proba, name).items():
            parts[key] = decompose_loss(
                y_true,
                proba,
                features=features,
                loss=loss,
                recalibrator=recalibrator,
                cv=cv,
                sample_weight=sample_weight,
                labels=labels,
                pos_label=pos_label,
            )
        return cls(parts, kind).plot(ax=ax, curve_kwargs=curve_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator | dict[str, Estimator],
        X: Features,
        y: ArrayLike,
        *,
        features: object = None,
        loss: LossLike = "log",
        recalibrator: RecalibratorLike | None = None,
        cv: CV = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        kind: Literal["bars", "plane"] = "bars",
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the decomposed loss of a fitted classifier, or of several.

        Parameters
        ----------
        estimator : classifier or dict of str to classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        features, loss, recalibrator, cv, sample_weight, labels, pos_label, kind, ax
            As in `from_predictions`.
        curve_kwargs
            As in `from_predictions`.
        name : str, default=None
            The name of a single model; by default that of its class.

        Returns
        -------
        display : DecompositionDisplay

        Raises
        ------
        TypeError
            A model without ``predict_proba``; the message names what to write.
        """
        y_proba, labels = predict_proba_by_model_and_labels(
            cls, estimator, name, X, y, labels
        )
        return cls.from_predictions(
            y,
            y_proba,
            features=features,
            loss=loss,
            recalibrator=recalibrator,
            cv=cv,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            kind=kind,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the ends of the bars.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: refinements, and refinements plus calibrations, against the
            models' places; in the plane discriminations against miscalibrations.
        """
        if self.kind == "plane":
            return [[self._compute_calibration_and_discrimination()]]
        positions = np.arange(len(self.parts))
        refinement, calibration = self._get_refinement_and_calibration()
        return [[(refinement, positions), (refinement + calibration, positions)]]

    def _get_refinement_and_calibration(self):
        parts = self.parts.values()
        return np.array([(part.refinement, part.calibration) for part in parts]).T

    def _compute_calibration_and_discrimination(self):
        refinement, calibration = self._get_refinement_and_calibration()
        parts = self.parts.values()
        return calibration, np.array([part.uncertainty for part in parts]) - refinement

    def _get_subplot_options(self):
        bars = 7, 1.6 + 0.45 * len(self.parts)
        return {"figsize": (6.0, 4.6) if self.kind == "plane" else bars}

    _style_options = BAR_STYLE_OPTIONS

    def _get_default_styles(self):
        if self.kind == "plane":
            return {name: {"label": escape_mathtext(name, 24)} for name in self.parts}
        terms = ["refinement", "calibration"]
        if self._is_every_refinement_split():
            terms = ["irreducible", "grouping", "calibration"]
        return {name: {"alpha": 0.75} | _BAR_STYLE_BY_TERM[name] for name in terms}

    def _is_every_refinement_split(self):
        return all(part.grouping is not None for part in self.parts.values())

    def _draw(self, ax):
        """Draw bars of the terms with whiskers, or the plane."""
        check_choice("kind", self.kind, _DISPLAY_KINDS)
        if self.kind == "plane":
            self._draw_plane(ax)
            return
        positions = np.arange(len(self.parts))
        parts = list(self.parts.values())
        refinement, calibration = self._get_refinement_and_calibration()
        loss = get_loss(parts[0].loss)
        # The bars start at the best possible loss, so that their lengths can be
        # compared.
        lowest_loss = loss.range[0]
        unit = escape_mathtext(loss.label)
        bars = [("refinement", refinement - lowest_loss, lowest_loss, 0.12)]
        # With features the refinement is split: what remains, and what they gain.
        if self._is_every_refinement_split():
            irreducible = np.array([part.irreducible for part in parts])
            grouping = np.array([part.grouping for part in parts])
            bars = [
                ("irreducible", irreducible - lowest_loss, lowest_loss, 0.2),
                ("grouping", grouping, irreducible, 0.0),
            ]
        bars.append(("calibration", calibration, refinement, -0.12))
        for term, width, left, offset in bars:
            ax.barh(positions, width, 0.6, left=left, **self.styles_[term])
            # Losses have whiskers at their values. Calibration and grouping are
            # differences of two losses: their whiskers begin where the bar begins.
            is_loss = term in ("refinement", "irreducible")
            ends = [part.interval(term) for part in parts]
            _draw_whiskers(ax, ends, positions + offset, 0.0 if is_loss else left)
        ax.axvline(
            parts[0].uncertainty,
            color=blend_text_with_background(ax, 0.35),
            ls="--",
            lw=1,
            label="class frequencies alone",
        )
        has_intervals = any(part.interval("refinement") for part in parts)
        ax.set_xlabel(f"{unit}; whiskers: 95 % intervals" if has_intervals else unit)
        name_rows(ax, self.parts)
        add_legend(ax, ncols=2 if len(bars) == 3 else 3)

    def _draw_plane(self, ax):
        """Draw each model as a named point, and lines of equal loss."""
        parts = list(self.parts.values())
        x, y = self._compute_calibration_and_discrimination()
        plane = LossPlane.from_points(x, y, parts[0].uncertainty)
        ax.set(xlim=plane.x_limits, ylim=plane.y_limits)
        ax.axvline(0, color=blend_text_with_background(ax, 0.5), lw=0.8, zorder=1)
        for value, (across, up) in plane.iter_loss_lines():
            ax.plot(
                across,
                up,
                color=blend_text_with_background(ax, 0.55),
                lw=0.9,
                ls=":",
                zorder=1,
            )
            text_options = {
                "fontsize": 8,
                "color": blend_text_with_background(ax, 0.35),
                "textcoords": "offset points",
            }
            if up[1] < plane.y_limits[1]:
                text_options |= {"ha": "left", "va": "center", "xytext": (3, 0)}
            else:
                text_options |= {"ha": "center", "va": "bottom", "xytext": (0, 2)}
            ax.annotate(f"{value:.4g}", (across[1], up[1]), **text_options)
        # Labels are placed in inches, since the plane has two units.
        box = ax.get_window_extent()
        inches = box.width / ax.figure.dpi, box.height / ax.figure.dpi
        styles = [*self.styles_.values()]
        texts = [str(style["label"]) for style in styles]
        sizes = [
            (0.085 * max(len(text), 1) / inches[0], 0.17 / inches[1]) for text in texts
        ]
        points = [*zip(*plane.locate_fraction(x, y), strict=True)]
        positions = place_lower_left_label_corners(
            points, sizes, (0.06 / inches[0], 0.06 / inches[1])
        )
        for number, (style, position) in enumerate(zip(styles, positions, strict=True)):
            style = {"color": take_next_color(ax)} | style
            ax.plot(x[number], y[number], "o", ms=7, zorder=3, **style)
            ax.text(
                *position,
                texts[number],
                fontsize=9,
                transform=ax.transAxes,
                va="bottom",
                zorder=4,
            )
        loss = get_loss(parts[0].loss)
        unit = ""
        if "[" in loss.label:
            unit = escape_mathtext(loss.label[loss.label.find("[") :])
        ax.set(
            xlabel=f"miscalibration {unit}".strip(),
            ylabel=f"discrimination {unit}".strip(),
        )
        caption = f"dotted: equal {escape_mathtext(loss.title)};"
        caption += f"\n{plane.uncertainty:.4g} by the class frequencies"
        ax.set_title(caption, fontsize=9, pad=12)


def _draw_whiskers(ax, intervals, positions, left):
    """Draw a line with caps for each interval, moved right by `left`; skip None."""
    starts = np.broadcast_to(left, positions.shape)
    for ends, y, x in zip(intervals, positions, starts, strict=True):
        if ends is not None:
            ax.plot(
                x + np.array(ends),
                [y, y],
                color=blend_text_with_background(ax, 0.2),
                lw=1,
                marker="|",
                ms=7,
            )
