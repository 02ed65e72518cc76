"""Errors of public calls that no other test raises, with each field of the error.

A row is a call and its message: summaries in the place of rows, options that exclude
each other, and arguments of the wrong kind.
"""

import numpy as np
import pandas as pd
from cases import run_every_case
from error_fields import parse_error_fields, raises_invalid_input
from sklearn.linear_model import LogisticRegression

from sklearn_calib.datasets import (
    make_high_dimensional,
    make_overconfident,
    make_two_gaussians,
)
from sklearn_calib.decisions import (
    CostSensitiveClassifier,
    decision_curve,
    decision_difference,
)
from sklearn_calib.displays import CalibratingFunctionDisplay
from sklearn_calib.export import from_json, to_dict
from sklearn_calib.groups import Grades, group_calibration
from sklearn_calib.inference import (
    PairedLosses,
    calibrated_mean,
    confidence_interval,
    internal_validation,
    polynomial_test,
)
from sklearn_calib.linear import estimate_angle, logistic_intervals
from sklearn_calib.metrics import reliability_curve
from sklearn_calib.metrics._measure import _get_option_parameters
from sklearn_calib.recalibrators import (
    AdaptiveCalibration,
    AngularCalibration,
    MulticlassBinning,
    PriorShift,
    TemperatureScaling,
    cross_fitted_proba,
)
from sklearn_calib.report import calibration_report, multilabel_report
from sklearn_calib.summary import CalibrationSummary, summarize
from sklearn_calib.theory import GaussianLogisticModel

P, Y = make_overconfident(2, 60)
P3, Y3 = make_overconfident(3, 60)
NUMBER = P[:, 1]
GROUP = np.arange(60) % 6
SUMMARY = CalibrationSummary().update(Y, P)
OF_THREE = CalibrationSummary(classes=range(3)).update(Y3, P3)
FRAME = pd.DataFrame({"y": Y, "p": NUMBER, "g": GROUP})
X = np.column_stack([NUMBER, np.arange(60) % 7])
LR = LogisticRegression().fit(X, Y)


def add_losses(*more):
    """Losses of two systems in blocks, each with its options."""
    losses = PairedLosses()
    for options in more:
        losses.add(NUMBER, NUMBER**2, **options)
    return losses


def of_link(t):
    return 2 * t


def curves_of_seven():
    y = np.arange(7)
    return reliability_curve(y, np.full((7, 7), 1 / 7), multiclass="classwise")


KINDS = (ValueError, TypeError, KeyError, AttributeError)
REFUSED = {
    "a progress that is no function": (
        lambda: confidence_interval(Y, NUMBER, progress=5),
        r"progress that can be called, got 5. Pass a function progress",
    ),
    "a covariance of another shape": (
        lambda: make_high_dimensional(50, 20, covariance=np.eye(3)),
        r"'ar', 'identity' or a covariance of shape \(20, 20\), got shape \(3, 3\)",
    ),
    "a covariance without a factor": (
        lambda: make_high_dimensional(50, 20, covariance=-np.eye(20)),
        "a positive definite covariance, got one that has no Cholesky factor. Check its",
    ),
    "no recalibrators": (
        lambda: CalibratingFunctionDisplay.from_recalibrators({}),
        "at least one recalibrator, got none. Pass a name or an instance",
    ),
    "an empty document": (
        lambda: from_json(""),
        "JSON or the path of a file, got an empty text",
    ),
    "grades of exchanged arguments": (
        lambda: Grades([0.3, 0.6]).fit(NUMBER, Y),
        "labels as y_true, then probabilities, got the probabilities first. Pass the labels",
    ),
    "groups of no summaries": (
        lambda: group_calibration({}),
        "summaries of at least one row, got none. Check what",
    ),
    "groups of summaries of other classes": (
        lambda: group_calibration({"a": SUMMARY, "b": OF_THREE}),
        "summaries of the same classes, got summaries of different classes. Use one",
    ),
    "groups of another kind of problem": (
        lambda: group_calibration({"a": OF_THREE}, multiclass="classwise"),
        "the positive class, or the confidence, of summaries, got multiclass='classwise'",
    ),
    "names of more columns": (
        lambda: group_calibration({"a": SUMMARY, "b": SUMMARY}, groups=["g", "h"]),
        r"1 names of columns as groups, got \['g', 'h'\]. Pass what summarize had",
    ),
    "a harm that is missing": (
        lambda: decision_difference(Y, NUMBER, NUMBER**2, harms=[0.1, np.nan]),
        r"harms as two numbers, got \[0.1, nan\]. Pass those of the first",
    ),
    "costs of one action": (
        lambda: CostSensitiveClassifier(LR, [[0.0], [1.0]]).fit(X, Y),
        r"costs of shape \(2, 2\) or \(60, 2, 2\) with at least two actions, got shape \(2, 1\)",
    ),
    "thresholds that fall twice": (
        lambda: decision_curve(Y, NUMBER, thresholds=[0.2, 0.4, 0.3, 0.1]),
        "increasing thresholds, got 0.4 before 0.3. Pass them through numpy.unique",
    ),
    "probabilities of a belt outside twice": (
        lambda: polynomial_test(Y, NUMBER).belt([0.5, 1.5, -1.0]),
        r"probabilities in \[0, 1\], got 1.5. Pass those of the event",
    ),
    "scores of two columns": (
        lambda: calibrated_mean(Y, P, P),
        r"score of one column, got shape \(60, 2\). Pass one number",
    ),
    "labels of two columns": (
        lambda: calibrated_mean(P, NUMBER, NUMBER),
        r"labels of one column, got shape \(60, 2\). Pass one label",
    ),
    "a verdict that is missing": (
        lambda: calibrated_mean([0, 1, 1], ["a", None, "b"], ["a", "b"]),
        "a verdict in every row of score, got none. Drop such rows",
    ),
    "features that are a number": (
        lambda: internal_validation(LR, 5, Y),
        "X as a table of 60 rows, one for each label, got a int. Pass an array",
    ),
    "features of other rows": (
        lambda: internal_validation(LR, X[:50], Y),
        "X as a table of 60 rows, one for each label, got 50 rows. Pass the rows of y",
    ),
    "measures that are a number": (
        lambda: internal_validation(LR, X, Y, measures=5),
        "measures as a list of names, got 5. Leave measures out",
    ),
    "an interval without scores": (
        lambda: confidence_interval(Y),
        "labels and probabilities of rows, got labels alone. Pass",
    ),
    "a summary beside weights": (
        lambda: confidence_interval(SUMMARY, sample_weight=np.ones(60)),
        "a summary alone, got other arguments. Give weights",
    ),
    "the interval of a rank": (
        lambda: confidence_interval(Y, NUMBER, "roc_auc"),
        "a measure of calibration, or a loss, got 'roc_auc'",
    ),
    "groups in some blocks": (
        lambda: add_losses({"groups": GROUP}, {}),
        "groups in all blocks or in none, got groups in some blocks only. Pass them",
    ),
    "a difference of no rows": (
        lambda: add_losses().difference("log_loss"),
        "rows of positive weight, got none. Call add first",
    ),
    "a difference of one group": (
        lambda: add_losses({"groups": np.zeros(60)}).difference("log_loss"),
        "at least two groups, got 1. Pass one value",
    ),
    "coefficients of three classes": (
        lambda: logistic_intervals(LogisticRegression().fit(P3, Y3), P3, P3),
        "two classes, got 3. Take one class",
    ),
    "a link that is not a probability": (
        lambda: AngularCalibration(cos_theta=0.4, link=of_link).fit(P, Y),
        r"a link from any array to probabilities of its shape, got shape \(601,\) and "
        "values from -60 to 60. Pass the mean function",
    ),
    "a positional option of a measure": (
        lambda: _get_option_parameters(lambda predictions, n_bins: 0.0),
        "a function of validated predictions and keyword-only options, got another "
        r"argument 'n_bins'. Write \* before the first option",
    ),
    "intervals of three classes": (
        lambda: AdaptiveCalibration().fit(P3, Y3).predict_proba(P3, P3[:, :2]),
        'intervals for two classes and neighborhood="interval" only, got intervals for 3',
    ),
    "blocks of other columns": (
        lambda: TemperatureScaling().fit_blocks([(P, Y), (P3, Y)], classes=[0, 1]),
        "2 columns of scores, one per class, got 3. Pass the columns in the order of",
    ),
    "pairs beside a column": (
        lambda: multilabel_report(np.column_stack([Y, Y]), [P, NUMBER]),
        r"an array of shape \(n_samples, 2\), got shape \(60,\). A model that saw",
    ),
    "folds of more groups": (
        lambda: cross_fitted_proba("platt", P, Y, cv=8, groups=GROUP),
        "at least 8 groups, one for each fold, got 6. Pass fewer folds",
    ),
    "more folds than rows of a class": (
        lambda: cross_fitted_proba("platt", P, Y, cv=60),
        "2 to .. folds as cv, for the .. rows of the largest class, got 60. Pass for",
    ),
    "noise without pools": (
        lambda: MulticlassBinning(noise="laplace").fit(P, Y),
        "pools='paper' with noise, got pools=None. The noise belongs",
    ),
    "few rows to split": (
        lambda: MulticlassBinning(split=True).fit(P[:3], [0, 1, 1]),
        "at least 4 rows to split, got 3. Fit without split",
    ),
    "groups beside summaries": (
        lambda: calibration_report(SUMMARY, groups=GROUP),
        "rows, for groups, got summaries. Pass y_true",
    ),
    "a report without scores": (
        lambda: calibration_report(Y),
        "labels and probabilities, or summaries alone, got None. Pass y_proba",
    ),
    "a report of a summary beside weights": (
        lambda: calibration_report(SUMMARY, sample_weight=np.ones(60)),
        "summaries alone, got other arguments. Give weights",
    ),
    "a report whose name is a number": (
        lambda: calibration_report(Y, NUMBER, name=5),
        "name as text, got 5. Pass several models as a dict",
    ),
    "columns that are one text": (
        lambda: calibration_report(Y, NUMBER, columns="yp"),
        "columns as a list of names, got 'yp'. The labels' comes first",
    ),
    "grades of three classes": (
        lambda: calibration_report(Y3, P3, grades=[0.3], n_resamples=9),
        "two classes, whose probability has grades, got 3. Leave grades out",
    ),
    "grades beside groups": (
        lambda: calibration_report(Y, NUMBER, grades=[0.3], groups=GROUP),
        "groups without by, features, grades, got grades",
    ),
    "features of a summary": (
        lambda: calibration_report(SUMMARY, features={"a": GROUP}),
        "labels and probabilities of each row, for features, got summaries",
    ),
    "a positive class of three": (
        lambda: CalibrationSummary(classes=range(3), pos_label=1),
        "pos_label with two classes, got 3 classes. Leave pos_label out",
    ),
    "weights of other rows": (
        lambda: CalibrationSummary().update(Y, P, counts=np.ones((60, 2))),
        r"one of counts per row, shape \(60,\), got shape \(60, 2\). Check the rows",
    ),
    "merged summaries of other problems": (
        lambda: OF_THREE.copy().merge(CalibrationSummary(multiclass="classwise")),
        "summaries of one multiclass option, got 'auto' and 'classwise'",
    ),
    "finer cells": (
        lambda: SUMMARY.coarsen(2**20),
        "max_cells of at most 65536, the summary's own, got 1048576. Finer cells need",
    ),
    "a map of rows in order from a summary": (
        lambda: SUMMARY.fit("online"),
        "a method that needs no order of the rows, got OnlineCalibration. Fit it",
    ),
    "one fold": (
        lambda: SUMMARY.cross_validate(cv=1),
        "cv as a number of folds, at least 2, got 1. Leave the default",
    ),
    "columns of a table without the labels": (
        lambda: summarize(FRAME, prob="p"),
        "label= and prob=, got one of them. Name the columns",
    ),
    "weights of no classifier": (
        lambda: GaussianLogisticModel().compute_weight_loss(0.5, -1.0),
        r"within 1e\+50 a finite inner and a norm above 0, got 0.5, -1.0. Check the weights",
    ),
    "a prior of another fit": (
        lambda: PriorShift().fit(P, Y).set_params(prior="bbse").adapt(P),
        "a fit with prior='bbse', got a fit with another prior. Call fit again after",
    ),
    "labels of several kinds": (
        lambda: to_dict(TemperatureScaling().fit(P, Y.astype("M8[D]"))),
        "labels that are all text, integers, floats, booleans or bytes, got ",
    ),
    "a covariance with an eigenvalue of 0": (
        lambda: make_two_gaussians(20, [1.0, 0.5], [1.0, 0.0]),
        "a positive definite covariance, got an eigenvalue of 0. Add a small multiple",
    ),
    "the points of seven curves": (
        lambda: curves_of_seven().predicted,
        r"one curve, got 7 \('class 0', .*'class 4'\). Take one of them, such as curves",
    ),
    "bounds without an end": (
        lambda: calibrated_mean(Y, NUMBER, NUMBER, bounds=(0, np.inf)),
        r"bounds as \(lowest, highest\).*, got \(0, inf\). Pass for instance",
    ),
    "a scale of one number": (
        lambda: calibrated_mean(Y, NUMBER, NUMBER, scale=(1,)),
        r"scale as \(lowest, highest\), got \(1,\). Pass for instance",
    ),
    "a singular covariance of an angle": (
        lambda: estimate_angle(LR, X, Y, np.zeros((2, 2))),
        "a positive definite covariance, got a singular one. Remove constant and",
    ),
    "arrays of other lengths": (
        lambda: summarize({"y": Y, "p": NUMBER[:50]}, label="y", prob="p"),
        r"columns of one length, got \{'y': 60, 'p': 50\}. Check where",
    ),
}


@run_every_case("case", REFUSED)
def test_what_is_refused(case):
    call, message = REFUSED[case]
    with raises_invalid_input(KINDS, **parse_error_fields(message)):
        call()
