"""--soft-labels: the shares of a column of labels, on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from sklearn_calib._cli import main, parser
from sklearn_calib._cli._repair import commands_of_repair
from sklearn_calib.export import from_dict
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.report import calibration_report

AUDIT = ["--label", "yes", "--prob", "p", "--no-page", "--resamples", "20", "--no-advice"]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(150)
    n = rng.integers(1, 8, 150)
    frame = pd.DataFrame({"p": p, "yes": rng.binomial(n, p**2) / n, "n": n})
    frame.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path, frame


def test_audit_reads_shares(table, capsys):
    folder, frame = table
    given = [str(folder / "votes.csv"), *AUDIT, "--weight", "n", "--json", str(folder / "r.json")]
    assert main(["audit", *given, "--soft-labels"]) == 0
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    report = calibration_report(
        frame.yes, frame.p, sample_weight=frame.n, soft_labels=True, n_resamples=20
    )
    rows = {row["measure"]: row["value"] for row in found["models"][0]["measures"]}
    assert rows["log_loss"] == pytest.approx(
        next(row.value for row in report.rows if row.measure == "log_loss"), rel=1e-9
    )
    assert (found["n_rows"], found["n_clusters"]) == (150, 150)
    options = parser().parse_args(["audit", *given, "--soft-labels"])
    assert " --soft-labels" in commands_of_repair(options).splitlines()[0]
    assert main(["audit", *given]) == 2
    assert "add --soft-labels" in " ".join(capsys.readouterr().err.split())
    assert main(["audit", *given, "--soft-labels", "--by", "n"]) == 2
    assert "--soft-labels without --by" in capsys.readouterr().err


def test_fit_learns_shares(table, capsys):
    folder, frame = table
    out = folder / "map.json"
    given = [str(folder / "votes.csv"), "--label", "yes", "--prob", "p", "--weight", "n"]
    given += ["--recalibrator", "platt", "--soft-labels", "--out", str(out)]
    assert main(["fit", *given]) == 0
    assert "150 rows, classes 0, 1" in capsys.readouterr().out
    expected = PlattScaling().fit(frame.p, frame.yes, frame.n, soft_labels=True)
    read = from_dict(json.loads(out.read_text(encoding="utf-8")))
    points = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(
        read.predict_proba(points), expected.predict_proba(points), atol=1e-9
    )
    assert main(["fit", *given, "--classes", "0,1"]) == 2
    assert "--soft-labels without --classes" in capsys.readouterr().err
    given[given.index("platt")] = "online"
    assert main(["fit", *given]) == 2
    assert "Choose another --recalibrator" in capsys.readouterr().err


def test_what_is_no_share_is_refused(table, capsys):
    folder, frame = table
    frame.assign(yes=2 * frame.yes).to_csv(folder / "twice.csv", index=False)
    assert main(["audit", str(folder / "twice.csv"), *AUDIT, "--soft-labels"]) == 2
    assert "soft labels in [0, 1]" in " ".join(capsys.readouterr().err.split())
