"""The pages "Coming from R" and "Coming from probcal": equal where they say so, else as printed."""

import json
import re

import numpy as np
import pages
import pytest
from checkout import GUIDE, ROOT
from golden_sets import OF_VAL_PROB
from scipy import stats
from scipy.special import expit, logit

from sklearn_calib import (
    classifiers,
    decomposition,
    export,
    groups,
    inference,
    metrics,
    recalibrators,
)
from sklearn_calib import report as reports
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


def test_names_on_our_side():
    text = (GUIDE / "coming_from_probcal.rst").read_text(encoding="utf-8")
    cells = re.findall(r"(?m)^   \* - .*\n     - (.*)\n     -", text)
    names = {name for cell in cells for name in re.findall(r"\b([A-Za-z_]+)\(", cell)}
    assert len(names) > 20
    missing = {
        x for x in names - METHODS if not any(hasattr(home, x) for home in HOMES)
    }
    assert not missing
