"""An unknown name gets the nearest one that is known, everywhere."""

import pytest
from cases import run_every_case
from error_fields import raises_invalid_input

from sklearn_calib._cli import main
from sklearn_calib._cli._result import parse_conditions
from sklearn_calib._spelling import find_nearest_name
from sklearn_calib.decomposition import integrated_calibration_index
from sklearn_calib.exceptions import InvalidInputError
from sklearn_calib.export import to_code, to_sql
from sklearn_calib.inference import calibration_test, confidence_interval
from sklearn_calib.metrics import all_metrics, calibration_error, get_scorer
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.recalibrators import (
    PlattScaling,
    all_recalibrators,
    get_recalibrator,
)
from sklearn_calib.summary import CalibrationSummary

Y, P = [0, 1, 0, 1], [0.1, 0.6, 0.5, 0.9]


@run_every_case(
    ("name", "known", "near"),
    [
        ("temp", all_recalibrators(), "temperature"),
        ("Histogram-Binning", all_recalibrators(), "histogram_binning"),
        ("bins", ["norm", "n_bins"], "n_bins"),
        ("num_bins", ["norm", "n_bins"], "n_bins"),
        ("y_prob", ["y_true", "y_proba"], "y_proba"),
        (
            "ece",
            [one.spec.scorer_name for one in all_metrics().values()],
            "neg_expected_calibration_error",
        ),
        ("javascript", ["c", "js", "sql"], "js"),
        ("lable", ["label", "prob"], "label"),
        ("zzz", all_recalibrators(), None),
        ("", ["label"], None),
        ("x" * 10_000, ["label"], None),
        (None, ["label"], None),
        (3, [1, 2, 3], "3"),
    ],
)
def test_nearest(name, known, near):
    assert find_nearest_name(name, known) == near


@run_every_case(
    ("call", "near"),
    [
        (lambda: get_recalibrator("temp"), "'temperature'"),
        (lambda: get_recalibrator("histogram_binning", num_bins=3), "'n_bins'"),
        (
            lambda: get_scorer("smooth_calibration_error"),
            "'neg_smooth_calibration_error'",
        ),
        (lambda: calibration_error(Y, P, bins=2), "'n_bins'"),
        (lambda: calibration_error(Y, P, num_bins=2), "'n_bins'"),
        (lambda: calibration_error(Y, P, sample_weigth=[1]), "'sample_weight'"),
        (lambda: calibration_error(Y, y_prob=P), "y_proba="),
        (lambda: calibration_error(Y, P, strategy="quantil"), "'quantile'"),
        (lambda: integrated_calibration_index(Y, P, smoother="lowess"), "'loess'"),
        (lambda: confidence_interval(Y, P, "brier"), "'brier_loss'"),
        (
            lambda: calibration_test(Y, P, statistic="ece"),
            "'expected_calibration_error'",
        ),
        (lambda: CalibrationMonitor("detektor"), "'detector'"),
        (
            lambda: CalibrationSummary().update(Y, P).measure("ece"),
            "'expected_calibration_error'",
        ),
        (lambda: to_sql(PlattScaling().fit(P, Y), dialect="postgresql"), "'postgres'"),
        (lambda: to_code(PlattScaling().fit(P, Y), "js"), "'javascript'"),
    ],
)
def test_errors_of_python(call, near):
    with raises_invalid_input((ValueError, TypeError), hint=f"Write {near}"):
        call()


@run_every_case(
    ("condition", "near"),
    [
        ("ece > 0.05", "Write 'expected_calibration_error'"),
        ("log_loss.hi > 1", "Write 'high'"),
        ("smooth_calibration_error > 5%", "Write 0.05 for 5%"),
        ("smooth_calibration_error > 5 %", "Write 0.05 for 5 %"),
        ("smooth_calibration_error > -.5%", "Write -0.005 for -.5%"),
        ("smooth_calibration_error > 0,05", r"Write 0\.05 for 0,05"),
        ("smooth_calibration_error > nul_mean", "Write null_mean"),
    ],
)
def test_conditions(condition, near):
    with raises_invalid_input(InvalidInputError, hint=near):
        parse_conditions([condition])


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["export", "m.json", "--to", "javascript"], "do you mean js?"),
        (["audit", "x.csv", "--lable", "y"], "do you mean --label?"),
        (["monitor", "x.csv", "--lable=y"], "do you mean --label?"),
        (["monitr", "x.csv"], "do you mean monitor?"),
        (["audit", "x.csv", "--pos-label", "y"], "do you mean --positive?"),
        (["fit", "x.csv", "--out", "m", "--pos_label=y"], "do you mean --positive?"),
        (["compare", "x.csv", "y.csv", "--on", "k"], "do you mean --id?"),
        (["compare", "x.csv", "y.csv", "--key=k"], "do you mean --id?"),
        (["summary", "x.csv"], "do you mean audit --save?"),
        (["summarize", "x.csv"], "do you mean audit --save?"),
        (["report", "x.csv"], "do you mean audit?"),
        (["calibrate", "x.csv"], "do you mean fit?"),
        (["recalibrate", "x.csv"], "do you mean fit?"),
        (["predict", "x.csv"], "do you mean apply?"),
        (["transform", "x.csv"], "do you mean apply?"),
        (["audit", "x.csv", "--level", "95%"], "got '95%'. Write 0.95 for 95%"),
        (["audit", "x.csv", "--tolerance", "1 %"], "got '1 %'. Write 0.01 for 1 %"),
        (["fit", "x.csv", "--tabulate", "0,01"], "got '0,01'. Write 0.01 for 0,01"),
        (["fit", "x.csv", "--simplify", "tiny"], "got 'tiny'. Write one with a point"),
        (["compare", "x.csv", "--level", "90%"], "Write 0.9 for 90%"),
        (["audit", "x.csv", "\x1b[31m"], "unrecognized arguments|No file matches"),
    ],
)
def test_options(arguments, near, capsys):
    try:
        assert main(arguments) == 2
    except SystemExit as stop:
        assert stop.code == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said and any(text in said for text in near.split("|"))


def test_help_of_options_with_another_name_in_python(capsys):
    for command in ("audit", "fit", "estimate-mean"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert "pos_label in Python" in shown
        if command != "estimate-mean":
            assert "not the probability of one fixed answer: for that use" in shown
