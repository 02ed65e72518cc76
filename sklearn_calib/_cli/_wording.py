"""What the library says, in the words of the command line."""

import re

#: What to say of labels that are text where some are missing.
AS_MISSING = (
    "In csv files empty cells and the texts NA, N/A, None, null and NaN count as missing: where "
    "one of them is a label, write it in other words."
)
_OPTIONS = {
    "Summarise the other column, or 1 - p": "Name the other class with --positive, or the other "
    "column with --prob",
    "pass 1 - p, or exchange the columns or the two names in classes=": "name it with "
    "--positive, or exchange the columns of --prob or the two names in --classes",
    "Check the order of the columns, classes= and": "Check the order of --prob, --classes and",
    "if they are meant, pass check_columns=False": "if they are meant, add --any-order",
    "Pass the other column, or 1 - p; where they are meant, check_columns=False": "Name the other "
    "column with --prob; where they are meant, add --any-order",
    "Pass tabulate=1e-6 ": "Add --tabulate 1e-6 ",
    "pass labels= with all classes": "name all of them with --classes",
    "divide percentages by 100": "add --percent for percentages, or audit --scale 0,10 for marks",
    "Name all classes, CalibrationMonitor(classes=[...])": "Name all classes with --classes",
    "Pass all classes, or drop those rows": "Name all of them with --classes, or drop those rows",
    "at least one sample_weight above 0": "at least one weight above 0 in the column of --weight",
    "Pass sample_weight=None for equal weights": "Leave --weight out for equal weights",
    "expected sample_weight >= 0 and finite": "expected weights >= 0 and finite in the column of "
    "--weight",
    "expected sample_weight of 0 or from": "expected weights of 0 or from",
    "If the rows miss a class, pass fit(..., classes=) with all of them": "If the rows miss a "
    "class, name all of them with --classes in the order of the columns",
    "columns of scores, got": "columns of --prob, got",
    "columns of scores, one per class, got": "columns in --prob, one per class, got",
    "Pass the columns in the order of classes_": "Name one column per class with --prob",
    "columns of y_proba, got": "columns of --prob, got",
    "If y_true misses a class": "If the column of --label misses a class",
    "Pass one column per class, or the second class of two alone": "Name one column per class with "
    "--prob, or that of the second class of two alone",
    "Pass one column per class": "Name one column per class with --prob, or all classes with "
    "--classes in the order of the columns",
    "rows of y_proba, got": "rows of --prob, got",
    "Pass more, or say their law by linear_predictor=(mean, deviation)": "Plan with a "
    "table of more",
    "where y_proba is the confidence in one predicted class, pass y_true == y_pred as y_true": "of "
    "a confidence in one predicted class name that class's column with audit --prediction",
    "Pass groups=, such as the number of the patient or of the election; instead of repeated rows "
    "sample_weight": "Name the column of what belongs together, such as a patient, with fit "
    "--group; instead of repeated rows use --weight",
    "pass soft_labels=True to fit, to the measure or to the report": "add --soft-labels",
    "For many labels per row see the page Many labels; votes of": "Many labels per row go with "
    "audit --labels; votes of",
    "Pass the rows themselves with soft_labels=True; measure and fit read cells": "Give the rows "
    "themselves with --soft-labels",
    "Pass fewer folds as cv, or groups that are finer": "Name a column of more groups with --group",
    "expected whole numbers >= 0 as sample_weight, for grades count rows": "for --grades, which "
    "counts rows, expected whole numbers >= 0 in the column of --weight",
    "Leave grades out, or the weights": "Leave one of the two options out",
    "lower min_rows, or pass coarser groups": "name a column of larger groups with --by",
    "Pass scale=(lowest, highest), such as (1, 10), or scale=None for any numbers": "Add --scale "
    "with the lowest and the highest score possible, such as --scale 1,10, or --scale any",
    "Pass pos_label, the class whose share it is": "Name the class whose share it is with "
    "--positive",
    "Pass bounds=(least, greatest), between which labels can be, or label more rows": "Name with "
    "--bounds the least and the greatest label possible, such as --bounds 1,5, or label more rows",
    "Leave recalibrator out: each": "Leave --recalibrator out: each",
    "scores that are numbers with recalibrator=None": "scores that are numbers with --recalibrator "
    "none",
    "expected pos_label among": "expected --positive among",
    "For the share of one of them pass labels that are equal to it or not, y == label": "Add a "
    "column that says whether the label is the one whose share it is",
    "simplify: expected a tolerance": "expected a --simplify",
    "expected a tolerance in [0, 1)": "expected a --tolerance in [0, 1)",
}
_LEFT_OUT = re.compile(
    r"(?:\S+: )?expected a value in every cell, got none in (.*)\. These rows .*"
)
_NUMPY = re.compile(r"\bnp\.\w+\((-?[\w.]+|'[^']*')\)")  # a label as numpy shows it


def for_the_command(message: str) -> str:
    """An error of the library with its cure as an option of the command."""
    message = re.sub(
        r"\b(?:[A-Z]\w+\.)?(summarize|validation_sample_size|find_classes|folds|cv|audit|"
        r"compare|calibration_report|paired_difference|fit|apply|"
        r"get_recalibrator|to_dict|to_sql|to_code|to_onnx|monitor|CalibrationMonitor(?:\.\w+)?|"
        r"calibrated_mean|CalibratedMean\.\w+|"
        r"grade_calibration|group_calibration|CalibrationSummary\.\w+|ExportedMap\.\w+): "
        r"(?=\S*expected|.*: expected)",
        "",
        message,
    )
    message = re.sub(
        r"call canonical_proba\(scores, tolerance=([^)]+)\) first", r"add --tolerance \1", message
    )
    message = re.sub(
        r"canonical_proba\(scores, tolerance=([^)]+)\) is silent",
        r"with --tolerance \1 this is not said",
        message,
    )
    message = re.sub(
        r"For logits call canonical_proba\(scores, kind='logits'\) first",
        "Turn logits into probabilities first",
        message,
    )
    for call, option in _OPTIONS.items():
        message = message.replace(call, option)
    message = re.sub(
        r"or leave out such rows(?! with --)", "or leave out such rows with --drop-missing", message
    )
    if "expected a label in every row, got nan" in message and AS_MISSING not in message:
        message = f"{message.removesuffix('.')}. {AS_MISSING}"
    message = _LEFT_OUT.sub(r"left out, with missing values: \1", message)
    return _NUMPY.sub(r"\1", message)
