"""Rows of which each has its own options: questions of two to five choices."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from sklearn_calib import canonical_proba
from sklearn_calib._cli import main
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.metrics import brier_loss, expected_calibration_error, log_loss
from sklearn_calib.recalibrators import (
    Identity,
    StackedCalibration,
    TemperatureScaling,
    all_recalibrators,
    get_recalibrator,
)
from sklearn_calib.report import calibration_report

K = 5


def questions(n=300, seed=0):
    """Logits with NaN for absent options, and labels of true temperature 2."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, K))
    for row in z:  # which are there differs, not only how many
        row[rng.permutation(K)[: rng.integers(0, K - 1)]] = np.nan
    q = softmax(np.where(np.isnan(z), -np.inf, z / 2), axis=1)
    y = (rng.random((n, 1)) > q.cumsum(axis=1)).sum(axis=1)
    return z, y


Z, Y = questions()
GONE = np.isnan(Z)
ROWS = np.arange(len(Y))
P = softmax(np.where(GONE, -np.inf, Z), axis=1)
HOLES = np.where(GONE, np.nan, P)
MARKED = {
    "proba": canonical_proba(HOLES, absent="nan"),
    "logits": canonical_proba(Z, kind="logits", absent="nan"),
}


@pytest.mark.parametrize("kind", list(MARKED))
def test_temperature_is_that_of_the_options_there(kind):
    def loss(beta):
        return -log_softmax(beta * np.where(GONE, -np.inf, Z), axis=1)[ROWS, Y].mean()

    best = minimize_scalar(
        loss, bounds=(0.1, 3), method="bounded", options={"xatol": 1e-9}
    )
    fitted = TemperatureScaling().fit(MARKED[kind], Y)
    assert fitted.inverse_temperature_ == pytest.approx(best.x, rel=1e-5)
    assert fitted.loss_ == pytest.approx(best.fun, rel=1e-9)
    scaled = softmax(best.x * np.where(GONE, -np.inf, Z), axis=1)
    np.testing.assert_allclose(fitted.predict_proba(MARKED[kind]), scaled, atol=1e-6)


@pytest.mark.parametrize("kind", list(MARKED))
@pytest.mark.parametrize(
    "method", [Identity(), TemperatureScaling(laplace=True), StackedCalibration()]
)
def test_absent_options_stay_at_zero(method, kind):
    rows = MARKED[kind]
    found = method.fit(rows, Y).predict_proba(rows)
    assert (found[GONE] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
    exported = from_dict(to_dict(method, input=kind)).predict_proba(rows)
    np.testing.assert_allclose(exported, found, atol=1e-12)
    assert (exported[GONE] == 0).all()


def test_laplace_is_even_on_the_options_there():
    fitted = TemperatureScaling(laplace=True).fit(MARKED["proba"], Y)
    plain = TemperatureScaling().fit(MARKED["proba"], Y).predict_proba(MARKED["proba"])
    share = 1 / (len(Y) + 1)
    even = ~GONE / (~GONE).sum(axis=1, keepdims=True)
    wanted = (1 - share) * plain + share * even
    np.testing.assert_allclose(
        fitted.predict_proba(MARKED["proba"]), wanted, atol=1e-12
    )


@pytest.mark.parametrize("kind", list(MARKED))
def test_measures_on_the_options_there(kind):
    proba, hit = MARKED[kind], np.zeros((len(Y), K))
    hit[ROWS, Y] = 1
    log = brier = 0.0
    for i in ROWS:  # by definition, row by row
        there = ~GONE[i]
        log -= np.log(P[i, Y[i]]) / len(Y)
        brier += ((P[i, there] - hit[i, there]) ** 2).sum() / len(Y)
    assert log_loss(Y, proba) == pytest.approx(log)
    assert brier_loss(Y, proba) == pytest.approx(brier)
    top, right = P.max(axis=1), P.argmax(axis=1) == Y
    bins = np.minimum((top * 15).astype(int), 14)
    wanted = sum(abs((top - right)[bins == b].sum()) for b in range(15)) / len(Y)
    found = expected_calibration_error(Y, proba, n_bins=15, strategy="uniform")
    assert found == pytest.approx(wanted)


def test_an_exact_zero_that_is_there_gets_a_floor():
    rows = HOLES.copy()
    place = next(i for i in ROWS if (~GONE[i]).sum() == K)
    rows[place] = [0.0, 0.2, 0.2, 0.3, 0.3]
    marked = canonical_proba(rows, absent="nan")
    found = TemperatureScaling().fit(marked, Y).predict_proba(marked)
    assert (found[~GONE] > 0).all() and (found[GONE] == 0).all()


def test_without_holes_nothing_changes():
    full = P[(~GONE).all(axis=1)]
    assert (canonical_proba(full, absent="nan") == canonical_proba(full)).all()
    assert type(canonical_proba(full, absent="nan")) is np.ndarray


@pytest.mark.parametrize("kind", list(MARKED))
def test_rows_copies_and_pickles_keep_the_mark(kind):
    fitted = TemperatureScaling(laplace=True).fit(MARKED[kind], Y)
    wanted = fitted.predict_proba(MARKED[kind])[:20]
    for rows in (MARKED[kind][:20], MARKED[kind].copy()[:20]):
        again = pickle.loads(pickle.dumps(rows))
        np.testing.assert_array_equal(fitted.predict_proba(again), wanted)


@run_every_case("name", all_recalibrators())
def test_every_other_method_refuses(name):
    method = get_recalibrator(name)
    if not method.capabilities.allows_absent_classes:
        with raises_invalid_input(
            ValueError, hint="Take 'temperature', 'identity' or 'auto'"
        ):
            method.fit(MARKED["proba"][:50], Y[:50])


@run_every_case(
    ("rows", "more", "said"),
    [
        (HOLES, {}, r"canonical_proba\(scores, absent='nan'\) returns"),
        (
            [[np.nan, np.nan], [0.5, 0.5]],
            {"absent": "nan"},
            "an option in every row, got none",
        ),
        ([0.5, np.nan], {"absent": "nan"}, "several columns"),
        (HOLES, {"absent": "zero"}, "absent 'nan' or None"),
        (
            [[0.5, np.nan], [np.inf, 1]],
            {"absent": "nan", "kind": "logits"},
            "got inf in row 1",
        ),
        ([[0.5, np.nan], [0.5, 0.5]], {"absent": "nan"}, "a sum of 0.5 in row 0"),
    ],
)
def test_what_is_refused(rows, more, said):
    with pytest.raises(ValueError, match=said):
        canonical_proba(rows, **more)


def test_a_label_that_its_row_does_not_have():
    wrong = Y.copy()
    wrong[7] = GONE[7].argmax() if GONE[7].any() else wrong[7]
    row = next(i for i in ROWS if GONE[i].any())
    wrong[row] = GONE[row].argmax()
    for call in (log_loss, lambda y, p: TemperatureScaling().fit(p, y)):
        with raises_invalid_input(
            ValueError, expected="labels among the options of their rows"
        ):
            call(wrong, MARKED["proba"])


def test_report_and_advice():
    report = calibration_report(Y, MARKED["proba"], n_resamples=5, advice=True)
    values = {row.measure: row.value for row in report.rows}
    assert values["brier_loss"] == pytest.approx(brier_loss(Y, MARKED["proba"]))
    (advice,) = report.advice.values()
    assert {row.method for row in advice.rows} == {"identity", "auto", "temperature"}
    assert advice.best != "identity" and not report.decomposition


def table(tmp_path, kind):
    """Questions as a table; in JSON lines lists that end where the options do."""
    order = np.argsort(GONE, axis=1, kind="stable")  # the first options are there
    p = np.take_along_axis(HOLES, order, axis=1)
    y = (order == Y[:, None]).argmax(axis=1)
    path = tmp_path / f"questions.{kind}"
    if kind == "jsonl":
        lists = [[v for v in row if v == v] for row in p.tolist()]
        lines = [{"truth": int(t), "p": row} for t, row in zip(y, lists, strict=True)]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        path.write_text(text, encoding="utf-8")
        return str(path), "p", p, y
    frame = pd.DataFrame(p, columns=[*"abcde"]).assign(truth=y)
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return str(path), "a,b,c,d,e", p, y


def read(path, names):
    if not path.endswith(".jsonl"):
        kind = pd.read_csv if path.endswith(".csv") else pd.read_parquet
        return kind(path)[
            [f"{name}_calibrated" for name in names.split(",")]
        ].to_numpy()
    rows = [
        json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()
    ]
    found = [[row[f"p.{place}_calibrated"] for place in range(K)] for row in rows]
    return np.array(found, dtype=float)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_fit_and_apply(tmp_path, kind, capsys):
    path, names, p, y = table(tmp_path, kind)
    out, new = str(tmp_path / "map.json"), str(tmp_path / f"new.{kind}")
    more = ["--prob", names, "--missing", "absent"]
    fit = ["fit", path, "--label", "truth", *more, "--recalibrator", "temperature"]
    assert main([*fit, "--out", out]) == 0
    assert main(["apply", out, path, *more, "--out", new]) == 0
    marked = canonical_proba(p, absent="nan")
    wanted = TemperatureScaling().fit(marked, y).predict_proba(marked)
    found = read(new, names)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(p))
    np.testing.assert_allclose(found[~np.isnan(p)], wanted[~np.isnan(p)], atol=1e-12)
    assert main(["apply", out, path, "--prob", names, "--out", new]) == 2
    assert "--missing", "absent" in capsys.readouterr().err


def test_audit(tmp_path, capsys):
    path, names, p, y = table(tmp_path, "csv")
    out = tmp_path / "numbers.json"
    words = [
        "audit",
        path,
        "--label",
        "truth",
        "--prob",
        names,
        "--out",
        "none",
        "--resamples",
        "5",
    ]
    assert main([*words, "--missing", "absent", "--json", str(out)]) == 0
    (model,) = json.loads(out.read_text(encoding="utf-8"))["models"]
    values = {row["measure"]: row["value"] for row in model["measures"]}
    assert values["brier_loss"] == pytest.approx(
        brier_loss(y, canonical_proba(p, absent="nan"))
    )
    assert re.search(r"fit .*--missing absent", capsys.readouterr().out)
    assert main(words) == 2
    assert "--missing", "absent" in capsys.readouterr().err
    assert main([*words, "--missing", "absent", "--missing", "drop"]) == 2
