"""A fitted map applied to tensors on their device, by the array API: no numpy, no compiled code."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._sklearn_compat import to_numpy
from .._typing import AnyArray
from .._validation import DeviceScores, read_device_scores, read_proba
from ..exceptions import invalid_input
from ..maps import CalibrationMap, TensorRows


class DevicePredictor:
    """A map that is arithmetic, for rows that stay on their device.

    Parameters
    ----------
    found : CalibrationMap
    scores : DeviceScores
    n_classes : int

    Notes
    -----
    It computes in the type of the rows, block by block: beside the result there is
    never more than a few blocks. In float32 a probability has a relative error of some
    1e-7 times what the scaled logits differ by.
    """

    def __init__(
        self, calibration_map: CalibrationMap, scores: DeviceScores, n_classes: int
    ) -> None:
        self._map = calibration_map
        self._scores = scores
        self._k = n_classes
        self._xp = scores.xp
        # The arrays of the map, copied to the device.
        self._constants: dict[Any, Any] = {}

    def compute_proba(self) -> Any:
        """Compute calibrated probabilities of shape (n_samples, n_classes)."""
        scores = self._scores
        out = self._xp.empty(
            (len(scores), self._k), dtype=scores.dtype, device=scores.device
        )
        for row_slice, rows in self._iter_block_proba():
            out[row_slice, :] = rows
        return out

    def compute_labels(self, classes: AnyArray) -> Any:
        """Return the most probable class of each row: a tensor, or text in a numpy array."""
        xp = self._xp
        class_numbers = xp.concat(
            [xp.argmax(rows, axis=1) for _, rows in self._iter_block_proba()]
        )
        # Tensors hold numbers only, so text labels are looked up on the host.
        if classes.dtype.kind not in "biuf":
            return classes[to_numpy(class_numbers, xp)]
        return xp.take(
            xp.asarray(np.array(classes), device=self._scores.device),
            class_numbers,
            axis=0,
        )

    def _iter_block_proba(self) -> Iterator[tuple[slice, Any]]:
        """Iterate over (slice, probabilities) of blocks of rows."""
        xp = self._xp
        for row_slice, rows in self._scores.iter_blocks():
            if self._scores.kind == "proba":
                rows = (
                    xp.concat([1.0 - rows, rows], axis=1)
                    if rows.shape[1] == 1
                    else rows
                )
                tensor_rows = TensorRows(xp, rows, constants=self._constants)
            else:
                if rows.shape[1] == 1:
                    rows = xp.concat([xp.zeros_like(rows), rows], axis=1)
                tensor_rows = TensorRows(xp, log=rows, constants=self._constants)
            yield row_slice, self._map.apply(tensor_rows).proba


def make_device_predictor(model: Any, X: Any) -> DevicePredictor | None:
    """Return the map of scores that stay on their device; None if numpy takes them."""
    if (scores := read_device_scores(X, "proba", read_proba)) is None:
        return None
    check_is_fitted(model)
    if not model._can_map_tensors():
        return None
    n_classes = len(model.classes_)
    if max(2, scores.shape[1]) != n_classes:
        raise invalid_input(
            expected=f"{n_classes} columns of scores, one per class",
            got=f"{scores.shape[1]}",
            hint="Pass the columns in the order of classes_",
        )
    return DevicePredictor(model._make_map_with_floor_or_raise(), scores, n_classes)
