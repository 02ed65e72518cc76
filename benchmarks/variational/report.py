"""How often the interval of a report's row of the variational error holds: two classes."""

import sys
import warnings
from pathlib import Path

import numpy as np

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.report import calibration_report

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

N_ROWS, DRAWS, RESAMPLES, LEVEL = 500, 60, 50, 0.9
# the power, and the true error
LAWS = {
    "calibrated": (1.0, 0.0),
    "power 1.5": (1.5, 0.1),
}


def main():
    rows = []
    for law, (power, true) in LAWS.items():
        below = above = 0
        for number in range(DRAWS):
            rng = np.random.default_rng([7, number])
            score = rng.random(N_ROWS)
            y = (rng.random(N_ROWS) < score**power).astype(int)
            given = {
                "measures": ["variational_calibration_error"],
                "n_resamples": RESAMPLES,
            }
            (row,) = calibration_report(
                y, score, level=LEVEL, random_state=number, **given
            ).rows
            below += row.high < true
            above += row.low > true
        found = {"interval below": below / DRAWS, "interval above": above / DRAWS}
        rows.append(
            {
                "law": law,
                "n": N_ROWS,
                "draws": DRAWS,
                "level": LEVEL,
                "true": true,
                **found,
            }
        )
        print(rows[-1], flush=True)
    runner.write(Path(__file__).parent / "report.csv", rows)


if __name__ == "__main__":
    warnings.simplefilter("ignore", CalibrationWarning)
    main()
