"""Reports on rows that belong together."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input
from scipy.special import expit

from sklearn_calib._cli import main
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import ClusterSample
from sklearn_calib.metrics import validate_predictions
from sklearn_calib.report import _verdict, calibration_report
from sklearn_calib.report._evidence import (
    find_minimum_detectable_error_and_blindness,
    run_kernel_test,
)
from sklearn_calib.summary import CalibrationSummary

QUICK = {"n_resamples": 40}


def rows(n=150, times=5, slope=1.0, k=2, seed=0):
    """Five equal rows of each cluster: labels, probabilities, clusters."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n), times)
    if k == 2:
        z = rng.normal(size=n)
        return (
            (rng.random(n) < expit(slope * z)).astype(int)[groups],
            expit(z)[groups],
            groups,
        )
    p = rng.dirichlet(np.ones(k), n)
    y = (rng.random(n)[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return y[groups], p[groups], groups


@pytest.mark.parametrize("k", [2, 4])
def test_groups_reach_everything(k):
    y, p, groups = rows(k=k)
    with_, without = (
        calibration_report(y, p, groups=g, **QUICK) for g in (groups, None)
    )
    assert with_.n_clusters == 150 and without.n_clusters is None
    assert {row.measure for row in without.rows} - {
        row.measure for row in with_.rows
    } == {"lower_distance_to_calibration"}
    others = {row.measure: row for row in without.rows}
    for one in with_.rows:
        other = others[one.measure]
        assert one.value == pytest.approx(other.value)
        if one.measure in ("brier_loss", "log_loss"):
            assert one.high - one.low > 1.6 * (other.high - other.low), one.measure
        assert abs(one.null_mean - one.value) != abs(other.null_mean - other.value)
    assert with_.verdict.p_value > without.verdict.p_value
    of, rest = with_.verdict.evidence, without.verdict.evidence
    assert of.observed_high - of.observed_low > 1.6 * (
        rest.observed_high - rest.observed_low
    )
    assert of.minimum_detectable > 1.4 * rest.minimum_detectable
    assert with_.line().slope_error > 1.7 * without.line().slope_error
    assert with_.line().n_clusters == 150
    low, high = with_.line().slope_interval(0.9)
    assert high - low > 2 * 1.6449 * with_.line().slope_error  # by Student's law
    bins = zip(with_.bins(n_bins=4), without.bins(n_bins=4), strict=True)
    for one, other in bins:
        width = one.observed_high - one.observed_low
        assert width > 1.4 * (other.observed_high - other.observed_low)
    parts = with_.decomposition["model"]
    assert parts.risk == pytest.approx(without.decomposition["model"].risk)
    assert parts.interval("risk") is None and str(parts)
    content = json.loads(with_.to_json())
    assert content["n_clusters"] == 150 and "750 rows in 150 clusters" in str(with_)


@pytest.mark.slow
def test_advice_by_whole_clusters(tmp_path):
    y, p, groups = rows(60, slope=0.3)
    with_ = calibration_report(y, p, groups=groups, advice=True, **QUICK).advice[
        "model"
    ]
    with pytest.warns(
        CalibrationWarning, match="scores that repeat with the same labels"
    ):
        without = calibration_report(y, p, advice=True, **QUICK).advice["model"]
    names = "identity", "temperature", "isotonic"
    # which has seen the copies
    assert with_.row("isotonic").loss > without.row("isotonic").loss
    for name in names[1:]:
        assert with_.row(name).standard_error > 1.5 * without.row(name).standard_error
    assert "groups=groups" in with_.code and "groups=groups" not in without.code
    report = calibration_report(y, p, groups=groups, **QUICK)
    page = (tmp_path / "page.html", report.to_html(tmp_path / "page.html"))[
        0
    ].read_text(encoding="utf-8")
    assert "in 60 clusters" in page


@pytest.mark.slow
def test_equal_rows_of_a_cluster_are_one_row():
    """What can be seen is what the rows see that are there once; the gain's error is of sums."""
    y, p, groups = rows(150)
    how = {
        "n_resamples": 20,
        "measures": ["expected_calibration_error"],
        "advice": True,
    }
    found = calibration_report(y, p, groups=groups, **how)
    once = calibration_report(y[::5], p[::5], **how)
    sizes = [each.verdict.evidence.minimum_detectable for each in (found, once)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.15)
    advice = found.advice["model"]
    after, given = advice.recalibrated, advice.given
    own = np.arange(len(after.codes)), after.codes
    gains = np.log(after.proba[own] / given.proba[own])
    sums = np.bincount(groups, gains - gains.mean())
    error = np.sqrt(2 * 150 / 149 * (sums**2).sum()) / len(y)
    assert advice.row("auto").standard_error == pytest.approx(error)


def test_five_equal_rows_inflate_the_variance_by_five():
    """Signs of clusters of equal rows draw five times the variance of independent rows."""
    y, p, groups = rows(300)
    case = validate_predictions(y, p)
    cells = ClusterSample(case.problems()[0], groups)
    test = run_kernel_test(cells, 0)
    found = _verdict._compute_cluster_inflation(
        SimpleNamespace(n_clusters=400), cells, test
    )
    assert found == pytest.approx(
        5 * np.mean((y - p) ** 2) / np.mean(p * (1 - p)), rel=0.15
    )
    assert (
        _verdict._compute_cluster_inflation(
            SimpleNamespace(n_clusters=None), cells, test
        )
        == 1
    )
    given = cells.proba, cells.weight
    twice = SimpleNamespace(proba=given[0], weight=given[1], squares=2 * cells.squares)
    critical = float(np.quantile(test.null_distribution, 0.95))
    assert find_minimum_detectable_error_and_blindness(
        cells, 0.2, critical, 2.0
    ) == find_minimum_detectable_error_and_blindness(twice, 0.2, critical)
    assert find_minimum_detectable_error_and_blindness(
        cells, 0.2, critical, 2.0
    ) != find_minimum_detectable_error_and_blindness(cells, 0.2, critical, 9.0)


def test_few_clusters_of_a_class_have_no_advice():
    y, p, groups = rows(40)
    y = np.where(groups < 3, 1, 0)
    assert (
        calibration_report(y, p, groups=groups, advice=True, **QUICK).advice["model"]
        is None
    )


@pytest.mark.slow
def test_two_models_have_no_bands_of_rows(tmp_path):
    y, p, groups = rows(40)
    both = {"one": p, "two": np.sqrt(p)}
    for given in (groups, None):
        calibration_report(y, both, groups=given, n_resamples=0).to_html(
            tmp_path / "page.html"
        )
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert ("Murphy" in page) == (given is None)


def test_what_groups_do_not_go_with():
    y, p, groups = rows(10)
    for more in (
        {"by": {"g": groups}},
        {"features": groups[:, None]},
        {"grades": [0.5]},
    ):
        with raises_invalid_input(
            ValueError, expected="groups without by, features, grades"
        ):
            calibration_report(y, p, groups=groups, **more)
    with raises_invalid_input(ValueError, expected="measures among"):
        calibration_report(
            y, p, groups=groups, measures=["lower_distance_to_calibration"]
        )
    summary = calibration_report(y, p, **QUICK)._models["model"].summary
    with raises_invalid_input(
        ValueError, expected=".*rows, for groups", value="summaries"
    ):
        calibration_report(summary, groups=groups)


# -- the command line -----------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    y, p, groups = rows(60)
    rng = np.random.default_rng(0)
    q = np.clip(p + 0.3 * rng.normal(size=60)[groups], 0.01, 0.99)
    frame = pd.DataFrame({"q_id": [f"q{g}" for g in groups], "y": y, "p": p, "q": q})
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def numbers(table, command, *more):
    out = table.parent / "numbers.json"
    options = (
        ["--out", "none", "--resamples", "40", "--no-advice"]
        if command == "audit"
        else []
    )
    words = [command, str(table), "--label", "y", "--prob", "p", "--json", str(out)]
    assert main([*words, *options, *more]) == 0
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.mark.parametrize("option", ["--cluster", "--cluster"])
def test_audit_by_cluster(table, option, capsys):
    found = numbers(table, "audit", option, "q_id")
    y, p, groups = rows(60)
    assert found["n_clusters"] == 60
    wanted = calibration_report(y, p, groups=groups, n_resamples=40)
    (model,) = found["models"]
    assert model["line"]["slope_error"] == pytest.approx(wanted.line().slope_error)
    assert "300 rows in 60 clusters" in capsys.readouterr().out


@pytest.mark.slow
def test_compare_by_cluster(table, capsys):
    two = numbers(table, "compare", "--prob", "q", "--resamples", "39")
    found = numbers(
        table, "compare", "--prob", "q", "--resamples", "39", "--cluster", "q_id"
    )
    for one, other in zip(found["differences"], two["differences"], strict=True):
        assert one["difference"] == pytest.approx(other["difference"], abs=1e-6)
        width = other["high"] - other["low"]
        assert one["high"] - one["low"] > 1.5 * width or width == 0, one["measure"]
    assert sum(each["high"] > each["low"] for each in two["differences"]) >= 4
    assert "clusters by q_id" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more", [["--by", "q"], ["--save", "x.parquet"], ["--recalibrate"]]
)
def test_options_that_know_no_clusters(table, more, capsys):
    words = [
        "audit",
        str(table),
        "--label",
        "y",
        "--prob",
        "p",
        "--cluster",
        "q_id",
        *more,
    ]
    assert main(words) == 2
    assert f"--cluster and {more[0]} cannot be combined" in capsys.readouterr().err


def test_summaries_know_no_clusters(table, capsys):
    saved = str(table.with_suffix(".parquet"))
    CalibrationSummary().update([0, 1], [0.2, 0.7]).to_parquet(saved)
    words = ["--label", "y", "--prob", "p"]
    assert main(["audit", saved, *words, "--cluster", "q_id"]) == 2
    assert (
        "what each cluster adds there is as much as the rows" in capsys.readouterr().err
    )
