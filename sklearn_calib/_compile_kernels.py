"""Compilation before the first use."""

import warnings
from collections.abc import Callable


def compile_kernels() -> None:
    """Compile all kernels now, once per installation, so that no later call has to wait for it.

    For images and machines on which the first call must be as fast as the second. The
    compiled code is kept where numba keeps it: beside the package, in the folder that
    the environment variable ``NUMBA_CACHE_DIR`` names, or in the user's cache. That
    folder must be writable now and later; otherwise a CalibrationWarning names it.

    Notes
    -----
    Fits every recalibrator and evaluates every measure on some hundred rows. Some ten
    seconds the first time, some two later.

    Examples
    --------
    >>> from sklearn_calib import compile_kernels
    >>> compile_kernels()
    """
    import numpy as np

    from .datasets import make_overconfident
    from .decomposition import integrated_calibration_index
    from .exceptions import CalibrationWarning
    from .groups import MulticalibratedScores, group_calibration
    from .metrics import all_metrics, calibration_witness, lp_calibration_test
    from .recalibrators import TemperatureScaling, VectorScaling, all_recalibrators
    from .summary import CalibrationSummary

    measures: list[Callable[..., object]] = [
        *all_metrics().values(),
        calibration_witness,
        integrated_calibration_index,
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        # The warning that compiled code is not kept must still be shown.
        warnings.filterwarnings("default", "compiled code", CalibrationWarning)
        for dtype in ("float64", "float32"):
            for n_classes in (2, 4):
                proba, y = make_overconfident(n_classes, 300)
                proba = proba.astype(dtype)
                for recalibrator in all_recalibrators().values():
                    recalibrator().fit(proba, y).predict_proba(proba)
                for measure in measures:
                    measure(y, proba)
                lp_calibration_test(y, proba, n_resamples=9)
                CalibrationSummary().update(y, proba).update(
                    y, np.asfortranarray(proba)
                )
                VectorScaling().fit_blocks([(proba, y)], kind="proba")
                VectorScaling().fit_blocks([(proba, y)])
            # Each of these sizes uses a pass of its own over the rows.
            for n_classes, n_rows in ((2, 50_000), (4, 25_000), (40, 2500)):
                proba, y = make_overconfident(n_classes, n_rows)
                TemperatureScaling().fit(proba.astype(dtype), y)
        proba, y = make_overconfident(2, 300)
        group_calibration(y, proba, [proba[:, 1] > 0.5], n_resamples=9)
        MulticalibratedScores(n_rounds=1).fit(proba, y, groups=proba[:, 1] > 0.5)
        summary = CalibrationSummary().update(y, proba[:, 1])
        (summary + summary).update(y, proba, sample_weight=proba[:, 0]).measure(
            "brier_loss"
        )
