"""What the library says, in the words of the command line."""

import re

_OPTIONS = {
    "Summarise the other column, or 1 - p": "Name the other class with --positive, or the other "
    "column with --prob",
    "if they are meant, pass check_columns=False": "if they are meant, add --any-order",
    "Pass tabulate=1e-6 ": "Add --tabulate 1e-6 ",
    "pass labels= with all classes": "name all of them with --classes",
    "divide percentages by 100": "add --percent for percentages",
    "Name all classes, CalibrationMonitor(classes=[...])": "Name all classes with --classes",
    "or leave out such rows": "or leave out such rows with --drop-missing",
}


def for_the_command(message: str) -> str:
    """An error of the library with its cure as an option of the command."""
    message = re.sub(
        r"\b(summarize|find_classes|audit|compare|calibration_report|paired_difference|fit|apply|"
        r"get_recalibrator|to_dict|to_sql|to_code|to_onnx|monitor|CalibrationMonitor(?:\.\w+)?): "
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
    return message
