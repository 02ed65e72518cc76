"""Numbers of probcal and of R for the pages "Coming from ...", as tests/data/coming_from.json.

``python benchmarks/peers/coming_from.py`` runs where probcal 0.4 (numpy alone) and
Rscript with rms and mgcv are installed. The 200 rows follow from whole numbers, so both
languages have them alike. The names that begin with "ci.2" are the calls that the
source of CalibrationCurves makes, "gam" is the smoother of pminternal: neither package
was installed. tests/test_coming_from.py compares.
"""

import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import numpy as np
import probcal
import probcal.metrics as theirs

FILE = Path(__file__).parents[2] / "tests" / "data" / "coming_from.json"
R = r"""
suppressMessages({library(rms); library(mgcv)})
i <- 1:200
p <- plogis(3 * sin(i))
y <- as.integer((i * 7919) %% 1000 < 1000 * plogis(0.6 * qlogis(p) - 0.3))
z <- qlogis(p)
say <- function(name, value) cat(sprintf("%s=%.15g\n", name, value))
v <- suppressWarnings(val.prob(p, y, pl = FALSE))
for (name in names(v)) say(paste("val.prob", name), v[name])
f <- lrm.fit(z, y); f2 <- lrm.fit(offset = z, y = y)
say("ci.2 Intercept", f2$coef[1]); say("ci.2 Slope", f$coef[2]); say("ci.2 R2", f$stats["R2"])
say("ci.2 Slope low", f$coef[2] - qnorm(.975) * sqrt(diag(vcov(f)))[2])
smooth <- loess(y ~ p, degree = 2)$fitted
direct <- loess(y ~ p, degree = 2, control = loess.control(surface = "direct"))$fitted
say("ci.2 Eavg", mean(abs(p - smooth))); say("direct Eavg", mean(abs(p - direct)))
grid <- seq(0.0005, 0.9995, by = 0.0005)
say("ci.2 Emax", max(abs(grid - plogis(f$coef[1] + f$coef[2] * qlogis(grid)))))
say("ci.2 Brier scaled", 1 - mean((p - y)^2) / (mean(y) * (1 - mean(y))))
say("ci.2 ECI", 100 * mean((p - smooth)^2))
g <- fitted(gam(y ~ s(z, k = 10, bs = "tp"), family = binomial))
say("gam Eavg", mean(abs(p - g)))
"""


def rows():
    """Labels and probabilities."""
    i = np.arange(1, 201)
    p = probcal.expit(3 * np.sin(i))
    chance = probcal.expit(0.6 * probcal.logit(p) - 0.3)
    return ((i * 7919) % 1000 < 1000 * chance).astype(int), p


def attributions(p):
    """Three attributions of each row and a base: they add up to log-odds, and to probabilities."""
    shares = np.array([0.7, 0.5, -0.2]) + np.outer(
        np.sin(np.arange(len(p))), [0.3, -0.1, -0.2]
    )
    z = probcal.logit(p)
    return {
        "logit": (shares * (z + 1)[:, None], -1.0),
        "probability": (shares * (p - 0.3)[:, None], 0.3),
    }


def of_probcal(y, p):
    """What probcal says of these rows."""
    maps = {
        "platt": probcal.PlattCalibrator(),
        "temperature": probcal.TemperatureCalibrator(),
        "beta": probcal.BetaCalibrator(),
        "isotonic": probcal.IsotonicCalibrator(),
        "centred": probcal.CenteredIsotonicCalibrator(),
        "venn_abers": probcal.VennAbersCalibrator(),
    }
    found = {
        name: one.fit(p, y).predict_proba(p).tolist() for name, one in maps.items()
    }
    for scale, (values, base) in attributions(p).items():
        for name in ("platt", "beta"):
            moved = probcal.adjust_attributions(values, base, maps[name], scale=scale)
            some = {
                "values": moved.phi_adj[:20].tolist(),
                "base": moved.base_adj[:20].tolist(),
            }
            found[f"attributions {name} {scale}"] = some
    numbers = ("calibration_intercept", "calibration_slope", "brier_score", "brier_skill_score",
               "log_loss", "ici", "emax", "ece", "smooth_ece")  # fmt: skip
    found |= {name: float(getattr(theirs, name)(y, p)) for name in numbers}
    found["ece width"] = float(theirs.ece(y, p, strategy="width"))
    found["spiegelhalter p"] = float(theirs.spiegelhalter_z(y, p).p_value)
    found["cox p"] = float(theirs.calibration_test(y, p).p_value)
    found["hosmer_lemeshow p"] = float(theirs.hosmer_lemeshow(y, p).p_value)
    found["ecce max"] = float(theirs.ecce(y, p).stat_max)
    found["interval_inverse"] = [*maps["beta"].interval_inverse(0.3, 0.6)]
    found["offset .035"] = float(probcal.LogitOffset(target_mean=0.035).fit(p).delta_)
    corp = probcal.corp_reliability(y, p)
    found["corp"] = str(corp).splitlines()[-1]
    return found


def main() -> None:
    out = subprocess.run(
        ["Rscript", "-e", R], capture_output=True, text=True, check=True
    ).stdout
    of_r = {name: float(value) for name, value in (x.split("=") for x in out.splitlines())
            if value != "NA"}  # fmt: skip
    found = {
        "probcal": of_probcal(*rows()) | {"version": version("probcal")},
        "R": of_r,
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{FILE}: {len(of_r)} numbers of R, {len(found['probcal'])} of probcal")


if __name__ == "__main__":
    main()
