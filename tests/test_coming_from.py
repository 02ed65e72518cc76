"""The pages "Coming from R" and "Coming from probcal": equal where they say so, else as printed."""

import json
import re

import numpy as np
import pages
import pytest
from cases import run_every_case
from checkout import GUIDE, ROOT
from golden_sets import OF_VAL_PROB
from scipy import stats
from scipy.special import expit, logit, softmax

from sklearn_calib import (
    classifiers,
    decomposition,
    export,
    groups,
    inference,
    metrics,
    recalibrators,
    report as reports,
)
from sklearn_calib.decomposition import calibration_indices, decompose_loss
from sklearn_calib.recalibrators import PlattScaling, PriorShift, get_recalibrator

PEERS = json.loads(
    (ROOT / "tests" / "data" / "coming_from.json").read_text(encoding="utf-8")
)
STEPS = np.arange(1, 201)
P = expit(3 * np.sin(STEPS))
Y = (1000 * expit(0.6 * logit(P) - 0.3) > (STEPS * 7919) % 1000).astype(int)


@pytest.fixture(scope="module")
def ours():
    return inference.validation_summary(Y, P, ci="wald")


def test_numbers_of_r(ours):
    line = PlattScaling(smooth_targets=False).fit(P, Y).predict_proba(P)
    equal = {
        **{
            f"val.prob {name}": getattr(ours[row], at)
            for name, (row, at) in OF_VAL_PROB.items()
        },
        "ci.2 Intercept": ours["calibration in the large"].estimate,
        "ci.2 Slope": ours["slope"].estimate,
        "ci.2 Slope low": ours["slope"].low,
        "ci.2 Brier scaled": ours["scaled Brier"].estimate,
        "ci.2 R2": inference.validation_summary(Y, line)["Nagelkerke R2"].estimate,
        "direct Eavg": ours["ICI"].estimate,
    }
    theirs = [PEERS["R"][name] for name in equal]
    np.testing.assert_allclose(list(equal.values()), theirs, rtol=1e-7)


@pytest.mark.slow
def test_what_differs_from_r_is_on_the_page(ours):
    page = (GUIDE / "coming_from_r.rst").read_text(encoding="utf-8")
    rows = re.findall(
        r"(?m)^   \* - (.*)\n     - (.*)\n     - .*\n     - ?(.*)\n     -", page
    )
    assert len(rows) == 13  # the head, and twelve
    cells = {there: (said, here) for there, said, here in rows}
    r = PEERS["R"]
    spline = calibration_indices(Y, P, smoother="spline").ici
    want = {
        "``val.prob``: ``C (ROC)``": ([r["val.prob C (ROC)"]], [ours["AUC"].estimate]),
        "``val.prob.ci.2``: ``Eavg``": ([r["ci.2 Eavg"]], [ours["ICI"].estimate]),
        "``val.prob``: ``Eavg``, ``Emax``": (
            [r["val.prob Eavg"], r["val.prob Emax"]],
            [ours["ICI"].estimate, ours["Emax"].estimate],
        ),
        "``val.prob.ci.2``: ``Emax``": (
            [r["ci.2 Emax"]],
            [calibration_indices(Y, P, smoother="cox").emax],
        ),
        "pminternal: ``Eavg``": ([r["gam Eavg"]], [spline]),
        "``val.prob.ci.2``: ``ECI``": ([r["ci.2 ECI"]], []),
        "``val.prob``: ``Intercept``, ``Slope``": (
            [r["val.prob Intercept"], r["val.prob Slope"]],
            None,
        ),
    }
    for there, (said, here) in want.items():
        for numbers, cell in zip((said, here), cells[there], strict=True):
            shown = (
                "the same"
                if numbers is None
                else ", ".join(f"{x:.4f}" for x in numbers)
            )
            assert cell == shown, there


SLOW = pytest.param("venn_abers", marks=pytest.mark.slow)  # compiles


@pytest.mark.parametrize("name", ["platt", "temperature", "beta", "isotonic", SLOW])
def test_maps_of_probcal(name):
    found = get_recalibrator(name).fit(P, Y).predict_proba(P)[:, 1]
    np.testing.assert_allclose(found, PEERS["probcal"][name], atol=1e-10, rtol=0)


def test_numbers_of_probcal(ours):
    peer, page = (
        PEERS["probcal"],
        (GUIDE / "coming_from_probcal.rst").read_text(encoding="utf-8"),
    )
    page = " ".join(page.split())
    log = decompose_loss(Y, P, recalibrator="isotonic")
    assert peer["corp"] == (
        f"Log loss: {log.risk:.6f} = MCB {log.calibration:.6f} - DSC {log.sharpness:.6f} "
        f"+ UNC {log.uncertainty:.6f}"
    )
    uniform = {"n_bins": 15, "strategy": "uniform"}
    equal = {
        "calibration_intercept": ours["calibration in the large"].estimate,
        "calibration_slope": ours["slope"].estimate,
        "brier_score": ours["Brier"].estimate,
        "brier_skill_score": ours["scaled Brier"].estimate,
        "log_loss": ours["log loss"].estimate,
        "ece width": metrics.expected_calibration_error(Y, P, **uniform),
        "ecce max": metrics.cumulative_differences(Y, P).mad,
        "cox p": inference.cox_test(Y, P).pvalue,
        "spiegelhalter p": inference.spiegelhalter_test(Y, P).pvalue,
        # of few expected events our p-value has another law
        "hosmer_lemeshow p": stats.chi2.sf(
            inference.hosmer_lemeshow_test(Y, P).statistic, 10
        ),
    }
    np.testing.assert_allclose(
        list(equal.values()), [peer[name] for name in equal], rtol=1e-8
    )
    differ = {
        "ece": metrics.expected_calibration_error(Y, P, n_bins=15),
        "smooth_ece": metrics.convolved_calibration_error(Y, P),
        "ici": ours["ICI"].estimate,
    }
    for name, value in differ.items():
        assert f"{peer[name]:.4f} and {value:.4f}:" in page, name
    centred = (
        get_recalibrator("isotonic").set_params(centred=True).fit(P, Y).predict_proba(P)
    )
    apart = np.abs(centred[:, 1] - peer["centred"]).max()
    assert f"up to {apart:.3f} apart" in page


def test_thresholds_and_offset_of_probcal():
    peer = PEERS["probcal"]
    found = get_recalibrator("beta").fit(P, Y).threshold([0.3, 0.6])
    np.testing.assert_allclose(
        [one.score for one in found], peer["interval_inverse"], rtol=1e-10
    )
    moved = PriorShift(mean=0.035).fit(P, Y).predict_proba(P)[:, 1]
    np.testing.assert_allclose(logit(moved) - logit(P), peer["offset .035"], rtol=1e-9)


@pytest.mark.parametrize("name", ["platt", "beta"])
@pytest.mark.parametrize("scale", ["logit", "probability"])
def test_attributions_of_probcal(name, scale):
    """What they add up to and what they become are on one scale there."""
    shares = np.array([0.7, 0.5, -0.2]) + np.outer(np.sin(STEPS - 1), [0.3, -0.1, -0.2])
    score, base = (logit(P), -1.0) if scale == "logit" else (P, 0.3)
    values = shares * (score - base)[:, None]
    recalibrator = get_recalibrator(name).fit(P, Y)
    given = "logits" if scale == "logit" else "proba"
    programs = [block.text for block in pages.blocks("calibrating_a_model.rst")]
    (program,) = (text for text in programs if "def calibrate_attributions" in text)
    exec(program, names := {})
    moved, start = names["calibrate_attributions"](
        values, base, recalibrator, scale, given
    )
    peer = PEERS["probcal"][f"attributions {name} {scale}"]
    np.testing.assert_allclose(moved[:20], peer["values"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(start[:20], peer["base"], rtol=0, atol=1e-10)


HOMES = (
    decomposition,
    export,
    groups,
    inference,
    classifiers,
    metrics,
    recalibrators,
    reports,
)
METHODS = {"fit", "threshold", "make_pipeline"}


YOUNG = json.loads(
    (ROOT / "tests" / "data" / "coming_from_young.json").read_text(encoding="utf-8")
)
UNIFORM = {"n_bins": 10, "strategy": "uniform"}
QUANTILE = {"n_bins": 10, "strategy": "quantile"}
ERROR = metrics.expected_calibration_error
LARGEST = metrics.maximum_calibration_error
UNSMOOTHED = PlattScaling(smooth_targets=False)
#: (package, its number): our measure, and its options.
YOUNG_MEASURES = {
    ("calikit", "ece mass"): (ERROR, QUANTILE),
    ("calikit", "ece width"): (ERROR, UNIFORM),
    ("calikit", "mce width"): (LARGEST, UNIFORM),
    ("calikit", "brier"): (metrics.brier_loss, {}),
    ("calikit", "log_loss"): (metrics.log_loss, {}),
    ("pydantic-cal", "ece"): (ERROR, UNIFORM),
    ("pydantic-cal", "mce"): (LARGEST, UNIFORM),
    ("pydantic-cal", "ace"): (ERROR, QUANTILE),
    ("pydantic-cal", "brier"): (metrics.brier_loss, {}),
    ("imbcal", "ece"): (ERROR, QUANTILE),
    ("streamcal", "error"): (ERROR, UNIFORM | {"n_bins": 20}),
    ("streamcal", "brier"): (metrics.brier_loss, {}),
}
#: (package, its map): our method, and how far they may differ.
YOUNG_MAPS = {
    ("calikit", "temperature"): ("temperature", 1e-8),
    ("calikit", "platt"): ("platt", 1e-8),
    ("calikit", "isotonic"): ("isotonic", 1e-8),
    ("pydantic-cal", "temperature"): ("temperature", 1e-8),
    ("pydantic-cal", "platt"): (UNSMOOTHED, 1e-4),
    ("imbcal", "platt"): (UNSMOOTHED, 1e-4),
    ("imbcal", "isotonic"): ("isotonic", 1.1e-6),
    ("streamcal", "isotonic"): ("isotonic", 1e-8),
    ("streamcal", "sigmoid"): (PlattScaling(scale="proba"), 1e-7),
    ("streamcal", "temperature"): ("temperature", 1e-8),
}


@run_every_case(("package", "name"), YOUNG_MEASURES)
def test_measures_of_young_packages(package, name):
    measure, options = YOUNG_MEASURES[package, name]
    assert measure(Y, P, **options) == pytest.approx(YOUNG[package][name], abs=1e-12)


@run_every_case(("package", "name"), YOUNG_MAPS)
def test_maps_of_young_packages(package, name):
    method, tolerance = YOUNG_MAPS[package, name]
    fitted = get_recalibrator(method).fit(P, Y)
    found = fitted.predict_proba(P)[:, 1]
    np.testing.assert_allclose(found, YOUNG[package][name], rtol=0, atol=tolerance)


def test_other_numbers_of_young_packages():
    test = inference.spiegelhalter_test(Y, P)
    expected = YOUNG["calikit"]["spiegelhalter"]
    assert [test.statistic, test.pvalue] == pytest.approx(expected, abs=1e-12)
    slope = inference.validation_summary(Y, P, ci="wald")["slope"].estimate
    assert slope == pytest.approx(YOUNG["imbcal"]["slope"], abs=2e-4)
    text = (GUIDE / "coming_from.rst").read_text(encoding="utf-8")
    smooth = metrics.convolved_calibration_error(Y, P)
    theirs = YOUNG["pydantic-cal"]["smece"]
    assert f"{smooth:.3f} on the rows on which it is {theirs:.3f}" in text


def test_stream_of_streamcal():
    online = recalibrators.OnlineCalibration()
    before = [*P[:20]]
    for first in range(0, 200, 20):
        rows = slice(first, first + 20)
        if first:
            before += [*online.predict_proba(P[rows])[:, 1]]
        online.partial_fit(P[rows], Y[rows], classes=[0, 1])
    losses = (
        metrics.log_loss(Y, np.array(before)),
        YOUNG["streamcal"]["stream log loss"],
        metrics.log_loss(Y, P),
    )
    stated = "its log loss is {:.3f},\n       that of streamcal {:.3f}, "
    stated += "and without recalibration {:.3f}"
    text = (GUIDE / "coming_from.rst").read_text(encoding="utf-8")
    assert stated.format(*losses) in text


def test_means_of_rank_preserving_calibration():
    theirs = YOUNG["rank-preserving-calibration"]
    proba = softmax(2 * np.sin(np.outer(STEPS, [1, 2, 3])), axis=1)
    y = STEPS * 7919 % 3
    shifted = PriorShift(mean=theirs["target"]).fit(proba, y).predict_proba(proba)
    projected = np.array(theirs["projected"])
    np.testing.assert_allclose(shifted.mean(axis=0), projected.mean(axis=0), atol=1e-6)
    losses = {"nll": metrics.log_loss(y, proba), "brier": metrics.brier_loss(y, proba)}
    losses["top_label_ece"] = ERROR(y, proba, multiclass="confidence", **UNIFORM)
    for name, loss in losses.items():
        assert loss == pytest.approx(theirs[name], abs=1e-12)
    for column, given in zip(projected.T, proba.T, strict=True):
        assert np.diff(column[given.argsort()]).min() > -1e-6


def test_names_on_our_side():
    text = (GUIDE / "coming_from_probcal.rst").read_text(encoding="utf-8")
    cells = re.findall(r"(?m)^   \* - .*\n     - (.*)\n     -", text)
    names = {name for cell in cells for name in re.findall(r"\b([A-Za-z_]+)\(", cell)}
    assert len(names) > 20
    missing = {
        x for x in names - METHODS if not any(hasattr(home, x) for home in HOMES)
    }
    assert not missing
