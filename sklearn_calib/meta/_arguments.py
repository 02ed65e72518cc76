"""Arguments by their names in other packages: errors that say what to write here."""

from functools import wraps
from inspect import signature
from typing import cast

from .._typing import Function
from ..exceptions import refuse
from ..recalibrators import recalibrator_names, suggestion

_HERE = {
    "base_estimator": "estimator=",
    "model": "estimator=",
    "classifier": "estimator=",
    "calibrator": "recalibrator=",
    "calibration_method": "recalibrator=",
    "param_distributions": "param_grid= with n_iter=",
    "bins": "recalibrator=HistogramBinning(n_bins)",
    "n_bins": "recalibrator=HistogramBinning(n_bins)",
    "prefit": "estimator=FrozenEstimator(model)",
    "random_state": "cv=StratifiedKFold(shuffle=True, random_state=...)",
    "scoring": "loss=",
}


def says_what_to_write(init: Function) -> Function:
    """A constructor whose error for an unknown argument names the one that is meant."""
    known = [name for name in signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self, *args, **kwargs):
        for name, value in kwargs.items():
            if name not in known:
                refuse(
                    type(self).__name__,
                    f"arguments among {', '.join(known)}",
                    f"{name}={value!r}",
                    _cure(name, value, known),
                    error=TypeError,
                )
        init(self, *args, **kwargs)

    return cast("Function", checked)


def _cure(name, value, known):
    if name == "method":
        if value in recalibrator_names():
            return f"Write recalibrator={value!r}"
        return suggestion(value, recalibrator_names(), "recalibrator=") or "Write recalibrator="
    if name in _HERE:
        return f"Write {_HERE[name]}"
    return suggestion(name, known, "") or "Leave it out"


def refuse_prefit(cv: object, where: str) -> None:
    """scikit-learn's former cv="prefit"."""
    if isinstance(cv, str) and cv == "prefit":
        refuse(
            where,
            "a fitted model in a FrozenEstimator",
            "cv='prefit'",
            "Write CalibratedModel(FrozenEstimator(model)) and fit it on rows that the model has "
            "not seen; from sklearn.frozen import FrozenEstimator",
        )
