"""The calibration maps of fitted recalibrators, of pipelines, and of methods made of others."""

from collections.abc import Sequence

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._simplex_array import get_absent_option_mask
from .._typing import Estimator, FloatArray
from ..exceptions import invalid_input
from ..maps import CalibrationMap, Identity, make_chain
from ._base import Recalibrator


def get_map(fitted: Estimator) -> CalibrationMap:
    """Return the map of a fitted recalibrator, or of a pipeline of them, with its floor.

    Parameters
    ----------
    fitted : recalibrator or Pipeline

    Raises
    ------
    TypeError
        Something else.
    ValueError
        A method that declares in ``capabilities.export_error`` why it cannot be
        described.
    """
    if isinstance(fitted, Pipeline):
        steps = list_active_steps(fitted)
        return make_chain(*(get_map(step) for step in steps)) if steps else Identity()
    if not isinstance(fitted, Recalibrator):
        hint = "Other estimators cannot be written as a map"
        if hasattr(fitted, "recalibrator_"):
            hint = "Pass the map on its scores alone, model.recalibrator_"
        elif hasattr(fitted, "calibrated_pairs_"):
            hint = "Pass the map of one fold, model.calibrated_pairs_[0].recalibrator, or fit "
            hint += "with ensemble=False, which makes one map, model.recalibrator_"
        raise invalid_input(
            expected="a recalibrator of this package, or a pipeline of them",
            got=type(fitted).__name__,
            hint=hint,
            error=TypeError,
        )
    check_is_fitted(fitted)
    if reason := fitted.capabilities.export_error:
        raise invalid_input(
            expected="a method that can be written as nodes",
            got=type(fitted).__name__,
            hint=reason,
        )
    return fitted._make_map_with_floor_or_raise()


def list_active_steps(pipeline: Pipeline) -> list[Estimator]:
    """Return the steps of a pipeline that do something."""
    return [step for _, step in pipeline.steps if step not in (None, "passthrough")]


def predicts_by_map(fitted: Estimator) -> bool:
    """Return whether predictions are those of a map, also of all parts inside."""
    if isinstance(fitted, Pipeline):
        return all(map(predicts_by_map, list_active_steps(fitted)))
    return isinstance(fitted, Recalibrator) and fitted._predicts_by_map()


class BaseCombinedRecalibrator(Recalibrator):
    """Base of methods that are made of other recalibrators, including those of other packages.

    Predictions are those of the map if all parts have one. Otherwise each part predicts
    by itself.
    """

    def _list_fitted_parts(self) -> Sequence[Estimator]:
        """Return the fitted parts."""
        raise NotImplementedError

    def _predict_proba_with_parts(self, proba: FloatArray) -> FloatArray:
        """Map (n, k) simplex rows to (n, k) simplex rows by the predictions of the parts."""
        raise NotImplementedError

    def _predict_proba(self, proba: FloatArray) -> FloatArray:
        if self._can_map(proba):
            return self.map_(proba)
        return self._predict_proba_with_parts(proba)

    def _can_map(self, proba):
        if not self._parts_predict_by_map():
            return False
        # A map may move mass to options that a row does not have; the parts know how to
        # leave them out.
        return get_absent_option_mask(proba) is None or self.map_.keeps_absent()

    def _parts_predict_by_map(self):
        return self._derive_once(
            "parts predict by map",
            lambda: all(map(predicts_by_map, self._list_fitted_parts())),
        )

    def _predicts_by_map(self) -> bool:
        inherits_prediction = (
            type(self)._predict_proba is BaseCombinedRecalibrator._predict_proba
        )
        return inherits_prediction and self._parts_predict_by_map()
