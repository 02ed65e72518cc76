"""Reports on many labels per row: the joint test, the averages, the page, the command."""

import json

import numpy as np
import pytest
from error_fields import parse_error_fields, raises_invalid_input
from scipy.stats import binom

from sklearn_calib._cli import main
from sklearn_calib._kernels._importance_sampling import (
    compute_path_range_p_value,
    compute_skewed_interval_offsets,
)
from sklearn_calib.metrics import brier_loss, log_loss, validate_predictions
from sklearn_calib.report import calibration_report, multilabel_report
from sklearn_calib.report._columns import find_better_columns
from sklearn_calib.report._label_report import adjust_by_holm, compute_chernoff_p_value

pd = pytest.importorskip("pandas")
NAMES = ["rain", "wind", '"><script>alert(1)</script>', "none"]


def given(n=300):
    """Probabilities of four labels, of which the second is wrong and the last never comes."""
    rng = np.random.default_rng(0)
    truth = rng.beta(1, [1, 3, 9, 30], size=(n, 4))
    Y = (rng.random(truth.shape) < truth).astype(float)
    Y[:, 3] = 0
    P = truth.copy()
    P[:, 1] = np.sqrt(P[:, 1])
    P[:, 3] /= 20
    return Y, P


def quickly(Y, P, **options):
    how = {
        "n_resamples": 2,
        "measures": ["log_loss"],
        "labels": NAMES[: Y.shape[1]],
    } | options
    return multilabel_report(Y, P, **how)


@pytest.fixture(scope="module")
def report():
    Y, P = given()
    measures = ["log_loss", "brier_loss", "expected_calibration_error"]
    return quickly(Y, P, measures=measures, n_resamples=20, name="mine", source="t.csv")


def test_what_is_found(report):
    Y, P = given()
    (wrong,) = [row for row in report.labels if row.adjusted_p_value < 0.05]
    assert wrong.group == "wind" and wrong.ratio_high < 1
    assert (
        report.p_value
        == wrong.adjusted_p_value
        == min(r.adjusted_p_value for r in report.labels)
    )
    assert report.worst(1) == [wrong]
    by_name = {one.measure: one for one in report.averages}
    for measure, function in (("log_loss", log_loss), ("brier_loss", brier_loss)):
        one = by_name[measure]
        assert one.macro == pytest.approx(function(Y, P, multilabel="macro"), abs=1e-12)
        assert one.micro == pytest.approx(function(Y, P, multilabel="micro"), abs=1e-12)
        assert one.macro_low < one.macro < one.macro_high
        assert one.micro_low < one.micro < one.micro_high
    assert np.isnan(by_name["expected_calibration_error"].micro_low)
    said = str(report)
    assert "1 of 4 labels is miscalibrated" in said and "'wind' (too high" in said
    assert "No row is positive for 'none'" in said and "nan" not in said
    assert len(report.to_frame()) == 4 and "log_loss" in report.to_frame().columns


def test_interval_counts_rows_with_all_labels():
    """A label given twice has no smaller standard error than given once."""
    Y, P = given()
    one = quickly(Y[:, :1], P[:, :1]).averages[0]
    twice = quickly(Y[:, [0, 0]], P[:, [0, 0]]).averages[0]
    for kind in ("macro", "micro"):
        width = [
            getattr(x, f"{kind}_high") - getattr(x, f"{kind}_low") for x in (one, twice)
        ]
        assert width[0] == pytest.approx(width[1], rel=0.005)
    losses = -np.log(np.where(Y[:, 0] == 1, P[:, 0], 1 - P[:, 0]))
    width = 2 * 1.6448536 * losses.std(ddof=1) / np.sqrt(len(losses))  # normal
    assert one.macro_high - one.macro_low == pytest.approx(width, rel=0.05)
    assert one.macro_high - one.macro > one.macro - one.macro_low  # the long tail


@pytest.mark.slow
def test_each_option():
    Y, P = given(200)
    plain = quickly(Y, P)
    weight = np.where(np.arange(200) < 100, 3.0, 1.0)
    heavy = quickly(Y, P, sample_weight=weight)
    repeated = np.repeat(np.arange(200), weight.astype(int))
    assert heavy.averages[0].macro == pytest.approx(
        quickly(Y[repeated], P[repeated]).averages[0].macro, abs=1e-12
    )
    assert heavy.averages[0].micro == pytest.approx(
        log_loss(Y, P, multilabel="micro", sample_weight=weight), abs=1e-12
    )
    assert heavy.averages[0].macro != plain.averages[0].macro
    kept = np.arange(200) % 4 > 0
    some = quickly(Y, P, sample_weight=kept.astype(float))
    assert str(some) == str(quickly(Y[kept], P[kept]))
    narrow = quickly(Y, P, level=0.5).averages[0]
    wide = plain.averages[0].macro_high - plain.averages[0].macro_low
    assert narrow.macro_high - narrow.macro_low < 0.5 * wide
    assert quickly(Y, P, level=0.5).labels[0].slope_low > plain.labels[0].slope_low
    assert quickly(Y, P, random_state=1).rows != plain.rows == quickly(Y, P).rows
    assert quickly(Y, P, n_resamples=3).rows != plain.rows
    assert [r.group for r in quickly(Y, P, labels=list("abcd")).labels] == list("abcd")
    frame = pd.DataFrame(Y, columns=list("efgh"))
    assert [r.group for r in quickly(frame, P, labels=None).labels] == list("efgh")
    done = []
    quickly(Y, P, progress=lambda *step: done.append(step))
    assert done and done[-1][0] == done[-1][1]
    pairs = [np.column_stack([1 - p, p]) for p in P.T]
    assert quickly(Y, pairs).averages == plain.averages
    Y[::2, 0] = np.nan
    assert quickly(Y, P).labels[0].n_rows == 100
    # Of each row one label is known, and it counts in the intervals of the means.
    halves = Y[:, :2].copy()
    halves[100:, 1] = np.nan
    halves[:100, 0] = np.nan
    mean = quickly(halves, P[:, :2]).averages[0]
    assert mean.macro_low < mean.macro - 0.02 and mean.macro + 0.02 < mean.macro_high


def test_few_and_hostile():
    """Two positives, numbers as names, certain and wrong: texts, never NaN."""
    Y, P = given(100)
    Y[:, 2] = 0
    Y[:2, 2] = 1
    Y[:, 3], P[:, 3] = 1, 0
    found = quickly(Y, P)
    said = str(found)
    assert (
        "nan" not in said
        and "fewer than 10 positive rows" in said
        and "no negative row" in said
    )
    assert found.labels[3].adjusted_p_value < 0.05
    assert "NaN" not in found.to_json() and "Infinity" not in found.to_json()


def test_written(report, tmp_path):
    path = tmp_path / "r.html"
    report.to_html(path, title="<b>")
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page and "&lt;script&gt;" in page and "&lt;b&gt;" in page
    assert page.count('<svg class="diagram large"') == 3 and "t.csv" in page
    content = json.loads(report.to_json(tmp_path / "r.json"))
    assert (
        content["format"] == "sklearn-calib-label-report" and content["name"] == "mine"
    )
    assert [one["label"] for one in content["labels"]] == NAMES
    assert content["labels"][3]["slope"] is None and content["n_rows"] == 300
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == content
    assert "\\<script\\>" in report.to_markdown() and "<svg" in report._repr_html_()


@pytest.mark.slow
def test_many_labels_stay_one_page(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn_calib.report._label_report._N_TEST_DRAWS", 19)
    monkeypatch.setattr("sklearn_calib.report._label_report._MAX_REDRAWN_PVALUE", 0)
    rng = np.random.default_rng(0)
    P = rng.beta(1, 3, size=(30, 130))
    Y = rng.random(P.shape) < P
    found = multilabel_report(Y.astype(int), P, n_resamples=0, measures=["log_loss"])
    found.to_html(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert len(page) < 120_000 and "... and 30 more, less far off" in page
    assert "... and 110 more" in str(found) and len(found.to_dict()["labels"]) == 130


def test_many_rows(monkeypatch):
    """More rows than are tested one by one, also if 99 draws cannot decide."""
    how = "sklearn_calib.report._label_report."
    monkeypatch.setattr(how + "_N_TEST_DRAWS", 99)
    monkeypatch.setattr(how + "_MAX_UNPOOLED_TEST_ROWS", 500)
    monkeypatch.setattr(how + "_N_TILTED_CELLS", 64)
    monkeypatch.setattr(how + "compute_chernoff_p_value", lambda case: 1.0)
    rng = np.random.default_rng(1)
    P = rng.beta(1, 3, size=(600, 2))
    Y = (rng.random(P.shape) < P * [1, 0.8]).astype(int)
    few = [row.p_value for row in quickly(Y, P, n_resamples=0).labels]
    assert few[0] > 0.05 and few[1] == pytest.approx(0.01 / 0.95)
    monkeypatch.setattr(how + "_DRAW_RESOLUTION_LEVEL_DIVISOR", 8)
    monkeypatch.setattr(how + "_MAX_REDRAWN_PVALUE", 0.015)
    cells = [row.p_value for row in quickly(Y, P, n_resamples=0).labels]
    monkeypatch.setattr(how + "_MAX_UNPOOLED_TEST_ROWS", 5000)
    rows = [row.p_value for row in quickly(Y, P, n_resamples=0).labels]
    assert cells[0] == pytest.approx(rows[0], abs=0.25) and cells[0] > 0.05
    assert 1e-6 < cells[1] < 0.003 and 0.2 < cells[1] / rows[1] < 5


def test_tail_of_range():
    """The exact probability of a far count; of rows, cells and weights alike; never too small."""
    n, p, hits, rng = 100, 0.3, 55, np.random.default_rng(0)
    exact = binom.sf(hits - 1, n, p) + binom.cdf(2 * n * p - hits, n, p)
    y = np.arange(n) < hits
    one = np.array([p]), np.array([n]), np.array([hits]), np.ones(1)
    rows = np.full(n, p), np.ones(n, int), y.astype(int), np.full(n, 0.5)
    for given in (one, rows):
        assert compute_path_range_p_value(*given, 2000, rng) == pytest.approx(
            exact, rel=0.3
        )
    assert (
        compute_path_range_p_value(
            np.array([p]), np.array([n]), np.array([32]), np.ones(1), 999, rng
        )
        > 0.5
    )


@pytest.mark.slow
def test_level_of_tilted_draws():
    """Of calibrated rows p-values of few draws are as small as they say, and no smaller."""
    found, rng = [], np.random.default_rng(0)
    for _ in range(400):
        p = np.sort(rng.random(20))
        y = (rng.random(20) < p).astype(int)
        found.append(
            compute_path_range_p_value(
                p, np.ones(20, int), y, rng.choice([1.0, 3], 20), 30, rng
            )
        )
    for level in (0.02, 0.1, 0.3):
        rejected, error = (
            np.mean(np.array(found) <= level),
            np.sqrt(level * (1 - level) / 400),
        )
        assert level / 2 - 3 * error < rejected < level + 3 * error


def shares_of_counts(ends):
    """Exact shares of binomial counts for which p is below, and above, an interval of the sum."""
    missed, n, k = [], 200, np.arange(201)
    found = np.array([ends((np.arange(n) < count) - count / n) for count in k])
    for p in (0.01, 0.02, 0.05, 0.1, 0.3, 0.5):
        low, high = (k[:, None] + found).T
        mass = binom.pmf(k, n, p)
        missed.append([mass[n * p < low].sum(), mass[n * p > high].sum()])
    return np.array(missed).T


def test_skewed_ends():
    """Of the sum of few events: 90 % are neither too few nor too many, on either side."""
    below, above = shares_of_counts(
        lambda terms: compute_skewed_interval_offsets(terms, 0.99, 0.9)
    )
    assert (below < 0.06).all() and (above < 0.06).all()
    held = 1 - below - above
    assert (held < 0.99).all() and (held[3:] >= 0.9).all() and (held[3:] < 0.94).all()

    def normal(terms):
        half = 1.645 * np.sqrt(terms @ terms)
        return -half, half

    assert shares_of_counts(normal)[1].max() > 0.13
    even = np.r_[np.ones(500), -np.ones(500)]
    assert compute_skewed_interval_offsets(even, 0.0, 0.95) == pytest.approx(
        (-1.96 * 1000**0.5, 1.96 * 1000**0.5), 1e-3
    )
    high = compute_skewed_interval_offsets(np.array([3.0, -1, -1, -1]), 0, 0.8)
    assert compute_skewed_interval_offsets(
        np.array([-3.0, 1, 1, 1]), 0, 0.8
    ) == pytest.approx((-high[1], -high[0]))
    assert compute_skewed_interval_offsets(np.zeros(3), 0.0, 0.9) == (0, 0)


def ordered(n=800):
    """Three labels that are ranked well, of which two come together, and one that is not."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 4)) * [2, 2, 2, 0]
    z[:, 1] = 0.2 * z[:, 0] + 0.98 * z[:, 1]
    P = 1 / (1 + np.exp(-z))
    P[:, 3] = 0.2 + 0.01 * rng.random(n)
    return (rng.random(P.shape) < P).astype(float), P


def test_columns_in_an_order_that_cannot_be_meant():
    Y, P = ordered()
    Y[::7, 2] = np.nan
    assert find_better_columns(P, Y) is None
    assert find_better_columns(P[:, [1, 2, 0, 3]], Y).tolist() == [2, 0, 1, 3]
    # too few rows to say so
    assert find_better_columns(P[:30, [2, 1, 0, 3]], Y[:30]) is None
    swapped, names = P[:, [2, 1, 0, 3]], ["a", "b", "c", "d"]
    with raises_invalid_input(
        ValueError, value=r".*rank far better: 'a' by the column of 'c', 'c' by the"
    ):
        quickly(Y, swapped, labels=names)
    backwards = np.column_stack([P[:, 0], 1 - P[:, 1], P[:, 2:]])
    with raises_invalid_input(
        ValueError, value="'b' ranked backwards, far beyond chance"
    ):
        quickly(Y, backwards, labels=names)
    assert quickly(Y, swapped, labels=names, check_columns=False).p_value < 0.05


def test_measures_of_very_many_labels(monkeypatch):
    """The measure that costs as much as all others is left out, unless it is named."""
    monkeypatch.setattr(
        "sklearn_calib.report._label_report._MAX_LABELS_ALL_MEASURES", 1
    )
    Y, P = given(60)
    costly = "lower_distance_to_calibration"
    found = {row.measure for row in quickly(Y, P, measures=None, n_resamples=0).rows}
    assert "expected_calibration_error" in found and costly not in found
    assert quickly(Y, P, measures=[costly], n_resamples=0).rows[0].measure == costly
    one = quickly(Y[:, :1], P[:, :1], measures=None, n_resamples=0)
    assert {row.measure for row in one.rows} == found | {costly}


def test_holm():
    assert adjust_by_holm([0.01, 0.5, 0.02]).tolist() == pytest.approx(
        [0.03, 0.5, 0.04]
    )
    assert adjust_by_holm([0.4, 0.4]).tolist() == [0.8, 0.8]


def test_bound():
    """At least the exact probability, and near it on a logarithmic scale."""
    for hits in (60, 80):
        y = (np.arange(100) < hits).astype(int)
        exact = binom.sf(hits - 1, 100, 0.5)
        bound = compute_chernoff_p_value(validate_predictions(y, np.full(100, 0.5)))
        assert exact < bound < 40 * exact
    assert compute_chernoff_p_value(validate_predictions([0, 1], [0.0, 1.0])) == 1
    assert (
        compute_chernoff_p_value(validate_predictions([0, 1, 1], [0.0, 1.0, 0.0]))
        < 1e-20
    )


@pytest.mark.parametrize("hits", [80, 15])
def test_p_values_below_any_draw_are_those_of_the_bound(hits):
    """4 exp(-n KL), for one label at 1/2, over its twentieth of the level; Holm's for two."""
    y = (np.arange(100) < hits).astype(float)
    fair = (np.arange(100) % 2).astype(float)
    found = quickly(np.column_stack([y, fair]), np.full((100, 2), 0.5)).labels[0]
    q = hits / 100
    divergence = q * np.log(2 * q) + (1 - q) * np.log(2 * (1 - q))
    expected = 4 * np.exp(-100 * divergence) / 0.05
    assert found.p_value == pytest.approx(expected, rel=1e-4) and expected < 1e-4
    assert found.adjusted_p_value == pytest.approx(2 * expected, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labels": ["a", "a"]}, "different names of labels, got 'a' twice"),
        ({"labels": ["a"]}, "2 names as labels"),
        ({"level": 2}, "a level between 0 and 1"),
    ],
)
def test_bad_input(options, said):
    with raises_invalid_input(ValueError, **parse_error_fields(said)):
        multilabel_report([[0, 1], [1, 0]], [[0.2, 0.5], [0.4, 0.5]], **options)


def test_several_models_and_none_are_not_a_report_on_labels():
    with raises_invalid_input(
        ValueError, expected="the probabilities of one model", value="a dict"
    ):
        multilabel_report([[0, 1]], {"a": [[0.2, 0.5]]})
    with raises_invalid_input(
        ValueError, expected="the probabilities of one model", value="None"
    ):
        multilabel_report([[0, 1]], None)
    with raises_invalid_input(
        TypeError, expected="probabilities", hint=".*multilabel_report"
    ):
        multilabel_report([[0, 1]], lambda X: X)


def test_a_report_on_one_label_points_to_the_report_on_many():
    with raises_invalid_input(
        ValueError, expected="one label per row", hint=".*call multilabel_report"
    ):
        calibration_report([[0, 1], [1, 0]], [[0.2, 0.5], [0.4, 0.5]])


# -- the command ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    Y, P = given(300)
    folder = tmp_path_factory.mktemp("labels")
    table = pd.DataFrame(P[:, :3], columns=["pa", "pb", "p c"])
    table["a"], table["b"] = Y[:, 0].astype(int), np.where(Y[:, 1], "yes", "no")
    table["c"] = Y[:, 2]
    table.loc[:9, "c"] = np.nan
    table["w"] = 1.0
    table.loc[:99, "w"] = 3.0
    table.to_csv(folder / "t.csv", index=False)
    table.to_csv(folder / "u.csv", index=False, sep=";", decimal=",")
    table.to_json(folder / "t.jsonl", orient="records", lines=True, double_precision=15)
    table.to_parquet(folder / "t.parquet")
    return folder


def audit(folder, file, *more, prob="pa,pb,p c", labels="a,b,c"):
    options = ["--label", labels, "--prob", prob, "--resamples", "2", *more]
    return main(["audit-multilabel", str(folder / file), *options])


def test_command(folder, tmp_path, capsys):
    files = [str(tmp_path / name) for name in ("r.html", "r.json", "r.md")]
    written = [
        "--out",
        files[0],
        "--json",
        files[1],
        "--markdown",
        files[2],
        "--name",
        "films",
    ]
    limit = ["--fail-if", "log_loss > 0.1", "--fail-if", "accuracy < 0.1"]
    assert audit(folder, "t.csv", *written, *limit) == 3
    out = capsys.readouterr()
    assert (
        "1 of 3 labels is miscalibrated" in out.out and "passed: of the mean" in out.out
    )
    assert "failed: of the mean over labels, log_loss" in out.err
    content = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [one["n_rows"] for one in content["labels"]] == [300, 300, 290]
    assert "Calibration of films" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert (
        (tmp_path / "r.md")
        .read_text(encoding="utf-8")
        .startswith("# Calibration report")
    )


@pytest.mark.slow
@pytest.mark.parametrize("file", ["u.csv", "t.jsonl", "t.parquet"])
def test_forms(folder, tmp_path, file, capsys):
    found = []
    for name in ("t.csv", file):
        out = str(tmp_path / "r.json")
        assert audit(folder, name, "--out", "none", "--json", out, "--weight", "w") == 0
        found.append(json.loads((tmp_path / "r.json").read_text(encoding="utf-8")))
    one, other = (
        [line["measures"]["log_loss"]["value"] for line in f["labels"]] for f in found
    )
    assert one == pytest.approx(other, abs=1e-12)
    assert found[0]["p_value"] == pytest.approx(found[1]["p_value"], rel=1e-9)
    weights = [one["weight"] for one in found[0]["labels"]]
    assert weights == pytest.approx([500, 500, 470])


@pytest.mark.parametrize(
    ("more", "how", "said"),
    [
        ([], {"prob": "pa,pb"}, "one column of --prob for each of the 3 columns"),
        ([], {"prob": "pa,pb,a"}, "different columns for --label and --prob, got 'a'"),
        ([], {"labels": "a,b,b"}, "each column once in --label"),
        ([], {"labels": "pb", "prob": "pa"}, "labels 0, 1 or NaN"),
    ],
)
def test_bad_commands(folder, more, how, said, capsys):
    assert audit(folder, "t.csv", "--out", "none", *more, **how) == 2
    assert said in capsys.readouterr().err


def test_any_order(folder, capsys):
    """Columns in another order of the labels, where they are meant; and tables beyond 1 GB."""
    Y, P = ordered()
    table = pd.DataFrame(np.column_stack([Y, P]), columns=list("abcdpqrs"))
    table.to_csv(folder / "swapped.csv", index=False)
    given = {"labels": "a,b,c", "prob": "r,q,p"}
    assert audit(folder, "swapped.csv", "--out", "none", **given) == 2
    assert "rank far better: 'a' by the column of 'c'" in capsys.readouterr().err
    assert (
        audit(folder, "swapped.csv", "--out", "none", "--allow", "order", **given) == 0
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn_calib._cli._audit_multilabel._MAX_TABLE_BYTES", 100)
        assert audit(folder, "t.csv", "--out", "none") == 2
    assert "audit one label at a time, which reads any" in capsys.readouterr().err


@pytest.mark.cross
def test_level():
    """The joint p-value under no, strong and total dependence: never above 5 %, not far below.

    The command ``python benchmarks/run.py multilabel_report`` has more replications.
    """
    from scipy.special import ndtr

    rejected = {}
    for rho in (0.0, 0.9, 1.0):
        count = 0
        for seed in range(200):
            rng = np.random.default_rng([int(10 * rho), seed])
            P = np.repeat(rng.beta(1, 4, size=(150, 1)), 5, axis=1)
            z = np.sqrt(rho) * rng.normal(size=(150, 1)) + np.sqrt(
                1 - rho
            ) * rng.normal(size=P.shape)
            Y = (ndtr(z) < P).astype(int)
            found = multilabel_report(
                Y, P, n_resamples=0, measures=["log_loss"], random_state=seed
            )
            count += found.p_value <= 0.05
        rejected[rho] = count / 200
    assert max(rejected.values()) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert rejected[0.0] >= 0.01 and rejected[1.0] <= rejected[0.0]


def test_printed_code_explains_its_names(report):
    code = report.to_markdown().split("## To repair it")[1].split("```")[1]
    (comment,) = [line for line in code.splitlines() if line.startswith("#")]
    assert all(name in comment for name in ("y_true", "y_proba", "new_proba"))
