"""Coverage of the intervals of `decompose_loss`: simulated labels, known population values."""

import sys
from pathlib import Path

import numpy as np
from scipy.special import log_softmax, softmax

from sklearn_calib._validation import canonical_proba
from sklearn_calib.decomposition import decompose_loss

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
TERMS = ("risk", "calibration", "refinement", "sharpness", "uncertainty")
LOSSES = ("log", "brier")
SETTINGS = {  # logits are normal with standard deviation 1.5, shifted by these
    "2 equal classes": (0, 0),
    "4 equal classes": (0, 0, 0, 0),
    "3 unequal classes": (1.5, 0, 0),
}
FACTORS = {"calibrated": 1.0, "slightly overconfident": 1.2, "overconfident": 2.5}
DRAWS = {200: 1500, 2000: 1000, 20_000: 300}
# draws that are decomposed with folds too: intervals are those in sample
FOLDS_EVERY = 3


def draw(shift, factor, n, rng):
    """Predictions, labels and the true probabilities."""
    z = 1.5 * rng.normal(size=(n, len(shift))) + shift
    truth = softmax(z, axis=1)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return factor * z, y, truth


def population(shift, factor, n=1_000_000):
    """The terms' values; the true temperature is `factor`, so refinement is that of the truth."""
    z, _, truth = draw(shift, factor, n, np.random.default_rng(2**32))
    p, share = softmax(z, axis=1), truth.mean(axis=0)
    if not any(shift):
        share = np.full(len(shift), 1 / len(shift))
    half = 0.5 if len(shift) == 2 else 1.0
    values = {
        "log": (
            -(truth * log_softmax(z, axis=1)).sum(axis=1).mean(),
            -(truth * np.log(truth)).sum(axis=1).mean(),
            -(share * np.log(share)).sum(),
        ),
        "brier": (
            half * ((p**2).sum(axis=1) - 2 * (truth * p).sum(axis=1) + 1).mean(),
            half * (1 - (truth**2).sum(axis=1)).mean(),
            half * (1 - (share**2).sum()),
        ),
    }
    return {
        loss: {
            "risk": risk,
            "calibration": risk - refinement,
            "refinement": refinement,
            "sharpness": uncertainty - refinement,
            "uncertainty": uncertainty,
        }
        for loss, (risk, refinement, uncertainty) in values.items()
    }


def coverage(setting, case, n, draws):
    """One row for each loss, term and cv."""
    shift, factor = SETTINGS[setting], FACTORS[case]
    truth, counts = population(shift, factor), {}
    for number in range(draws):
        z, y, _ = draw(shift, factor, n, np.random.default_rng([n, len(shift), number]))
        p = canonical_proba(z, kind="logits")
        for loss in LOSSES:
            for cv in (None, 5) if number % FOLDS_EVERY == 0 else (None,):
                parts = decompose_loss(y, p, loss=loss, cv=cv, labels=range(len(shift)))
                for term in TERMS:
                    value, error = truth[loss][term], parts.standard_errors[term]
                    low, high = parts.interval(term)
                    found = [low <= value <= high, value < low, value > high]
                    if error is not None:
                        found.append(abs(getattr(parts, term) - value) <= 1.96 * error)
                    counts.setdefault((loss, cv, term), []).append(found)
    for (loss, cv, term), found in counts.items():
        share = np.mean(found, axis=0)
        yield {
            "setting": setting,
            "case": case,
            "n": n,
            "loss": loss,
            "cv": cv or "",
            "term": term,
            "draws": len(found),
            "interval": f"{share[0]:.3f}",
            "truth_below": f"{share[1]:.3f}",
            "truth_above": f"{share[2]:.3f}",
            "value_and_1.96_errors": f"{share[3]:.3f}" if len(share) > 3 else "",
        }


def one(setting, case, n, draws):
    return list(coverage(setting, case, n, draws))


def main():
    jobs = [
        (setting, case, n, draws)
        for n, draws in DRAWS.items()
        for setting in SETTINGS
        for case in FACTORS
        if n < 20_000 or (case != "slightly overconfident" and "unequal" not in setting)
    ]
    rows = runner.rounds(HERE / "rounds.partial.jsonl", jobs, one)
    runner.write(HERE / "results.csv", rows)
    found = np.array([float(row["interval"]) for row in rows])
    errors = np.array(
        [float(r["value_and_1.96_errors"]) for r in rows if r["value_and_1.96_errors"]]
    )
    print(f"{len(found)} intervals: {found.min():.3f} to {found.max():.3f}")
    print(f"{len(errors)} by standard error: {errors.min():.3f} to {errors.max():.3f}")


if __name__ == "__main__":
    main()
