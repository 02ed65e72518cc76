"""What first tries end in: one sentence in the words of its reader."""

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._cli import main
from sklearn_calib._cli._messages import translate_message
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import to_json
from sklearn_calib.groups import Grades
from sklearn_calib.recalibrators import OrdinalCalibration, get_recalibrator
from sklearn_calib.report import multilabel_report

SCALE = ["low", "mid", "high"]


def test_columns_in_the_order_of_the_scale():
    """Columns low, mid, high under sorted classes high, low, mid: worse, and no word."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.6] * 3, 300)
    codes = (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    y = np.array(SCALE)[codes]
    message = (
        r"expected columns in the order of the classes \['high', 'low', 'mid'\], got .*"
    )
    hint = r"Name the columns too: fit\(..., classes=\['low', 'mid', 'high'\]\)"
    with pytest.warns(CalibrationWarning, match=message + hint) as caught:
        OrdinalCalibration(order=SCALE).fit(proba, y)
    assert [one.filename for one in caught] == [__file__]
    OrdinalCalibration(order=SCALE).fit(proba, y, classes=SCALE)  # warnings are errors
    OrdinalCalibration(order=SCALE).fit(proba[:, [2, 0, 1]], y)


@pytest.mark.parametrize("text", ["0,1", "0,05", " 0,001"])
def test_decimal_comma_of_a_threshold(text, tmp_path, capsys):
    """--at 0,1 was read as 0 and 1, --at 0,001 as well."""
    fitted = get_recalibrator("platt").fit([0.1, 0.4, 0.3, 0.8], [0, 0, 1, 1])
    path = str(tmp_path / "map.json")
    to_json(fitted, path)
    assert main(["threshold", path, "--at", text]) == 2
    assert f"Write {text.strip().replace(',', '.')} for" in capsys.readouterr().err
    assert main(["threshold", path, "--at", "0", "--at", "1"]) == 0
    assert main(["threshold", path, "--at", "0.02,0.05"]) == 0


def test_grades_of_swapped_arguments():
    p = np.linspace(0.01, 0.9, 200)
    y = np.arange(200) % 3 > 1
    for labels in (y, y.astype(int), y.astype(float), np.where(y, "bad", "good")):
        with raises_invalid_input(
            ValueError, hint=r".*labels first: Grades\.fit\(y_true, y_proba\)"
        ):
            Grades.fit(p, labels)


@pytest.mark.parametrize(
    ("given", "missing"),
    [(["--prob", "p"], "--label"), (["--label", "y"], "--prob")],
)
def test_which_option_is_missing(given, missing, tmp_path, capsys):
    file = str(tmp_path / "t.csv")
    pd.DataFrame({"y": [0, 1], "p": [0.2, 0.7]}).to_csv(file, index=False)
    for command in ("audit", "monitor", "compare"):
        assert main([command, file, *given]) == 2
        assert f"required; missing: {missing}. Name it" in capsys.readouterr().err


def test_backwards_labels_in_words_of_the_command():
    rng = np.random.default_rng(0)
    p = rng.random((400, 2))
    with raises_invalid_input(
        ValueError, hint=r".*1 - p; where they are meant, check_columns=False"
    ) as said:
        multilabel_report(rng.random((400, 2)) < 1 - p, p)
    assert translate_message(said.value).endswith(
        "Name the other class with --positive, or the other column with --prob; where they are "
        "meant, --allow order."
    )
