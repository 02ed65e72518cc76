"""The fewest rows, groups or models for a result: so many do, of one less a message is given."""

import warnings

import numpy as np
from cases import run_every_case
from sklearn.linear_model import LogisticRegression

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import variational_calibration_interval
from sklearn_calib.displays import MurphyDisplay
from sklearn_calib.inference import (
    PairedLosses,
    calibrated_mean,
    calibration_test,
    internal_validation,
    polynomial_test,
    validation_sample_size,
    validation_summary,
)
from sklearn_calib.metrics import kernel_calibration_error
from sklearn_calib.monitoring import safe_calibration_test
from sklearn_calib.recalibrators import MulticlassBinning, StackedCalibration
from sklearn_calib.summary import CalibrationSummary

PROBA, Y = make_overconfident(2, 120, random_state=3)
P = PROBA[:, 1]
X = np.column_stack([np.log(P / (1 - P)), np.arange(120) % 7])
Y = np.where(np.arange(120) < 6, [0, 1] * 60, Y)  # both labels from the start
OF_THREE, Y_OF_THREE = make_overconfident(3, 120, random_state=3)


def add_losses(n):
    losses = PairedLosses()
    return losses.add(Y, P, P**2, groups=np.arange(120) % n).difference("log_loss")


#: What is called with a number, the fewest that do, and the error or warning of one less.
CASES = {
    "safe_calibration_test": (
        lambda n: safe_calibration_test(Y[:n], P[:n]),
        4,
        "at least 4 rows, got 3",
    ),
    "variational_calibration_interval": (
        lambda n: variational_calibration_interval(Y[:n], P[:n]),
        3,
        "at least three rows, got 2",
    ),
    "kernel_calibration_error": (
        lambda n: kernel_calibration_error(
            Y[:n], P[:n], labels=[0, 1], multiclass="canonical", estimator="unbiased"
        ),
        2,
        "at least two rows, got 1",
    ),
    "validation_summary of groups": (
        lambda n: validation_summary(Y, P, groups=np.arange(120) % n, n_resamples=9),
        3,
        "at least three groups, got 2",
    ),
    "calibration_test of groups": (
        lambda n: calibration_test(Y, P, groups=np.arange(120) % n, n_resamples=9),
        2,
        "at least two groups, which are drawn, got one",
    ),
    "events of groups": (
        lambda n: calibration_test(Y, P, groups=np.arange(120) % n, n_resamples=9),
        5,
        "five clusters with an event and five without, by the predictions, got 4",
    ),
    "differences of groups": (add_losses, 2, "at least two groups"),
    "validation_sample_size": (
        lambda n: validation_sample_size(y_proba=P[:n]),
        50,
        "at least 50 rows of y_proba, got 49",
    ),
    "calibrated_mean": (
        lambda n: calibrated_mean(Y[:n], P[:n], P[n:]),
        10,
        "at least ten labelled rows or clusters for a map of scores, got 9",
    ),
    "calibrated_mean of groups": (
        lambda n: calibrated_mean(
            Y[:60],
            P[:60],
            P[60:],
            groups=np.arange(60) % n,
            groups_unlabelled=np.arange(60) + 100,
        ),
        10,
        "at least ten labelled rows or clusters for a map of scores, got 9",
    ),
    "polynomial_test of all rows": (
        lambda n: polynomial_test(
            Y, np.linspace(0.2, 0.8, n)[np.arange(120) % n], held_out=False
        ),
        3,
        "at least 3 different predictions for held_out=False, got 2",
    ),
    "internal_validation by folds": (
        lambda n: internal_validation(
            LogisticRegression(),
            X,
            (np.arange(120) < n).astype(int),
            method="cross_validation",
            n_resamples=2,
            measures=["Brier"],
        ),
        2,
        "two rows of each class for folds, got 1",
    ),
    "MulticlassBinning": (
        lambda n: MulticlassBinning(split=True).fit(PROBA[:n], Y[:n]),
        4,
        "at least 4 rows to split, got 3",
    ),
    "StackedCalibration of groups": (
        lambda n: StackedCalibration(["platt", "beta"]).fit(
            PROBA, Y, groups=np.arange(120) % n
        ),
        2,
        "at least two groups, to compare candidates, got one",
    ),
    "MurphyDisplay": (
        lambda n: MurphyDisplay.from_predictions(
            Y, {str(i): P ** (i + 1) for i in range(n)}, difference=True
        ),
        2,
        "at least two models for difference=True, got 1",
    ),
    "CalibrationSummary": (
        lambda n: CalibrationSummary(classes=range(n)),
        2,
        "at least two classes, got",
    ),
}


def messages_of(call, n):
    """The error and the warnings of a call, as one text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(n)
            error = ""
        except ValueError as raised:
            error = str(raised)
    return "; ".join([error, *(str(one.message) for one in caught)])


@run_every_case("name", [*CASES])
def test_so_many_do_and_one_less_is_told(name):
    call, fewest, message = CASES[name]
    assert message.partition(", got")[0] not in messages_of(call, fewest)
    assert message in messages_of(call, fewest - 1)
