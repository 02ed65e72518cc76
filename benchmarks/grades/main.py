"""Do the tests of `grade_calibration` reject as often as they say, and do its intervals hold?"""

import sys
from pathlib import Path

import numpy as np

from sklearn_calib.groups import Grades, grade_calibration

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
SETS = 2000
RESAMPLES = 199
LEVELS = (0.05, 0.1)
OF_A_GRADE = ("jeffreys", "binomial")
RATES = np.array([0.001, 0.0035, 0.007, 0.015, 0.03, 0.09, 0.3])
#: The rate of each grade, rows of each, and by how much log-odds vary within a grade.
LAWS = {
    "rates that rise": (RATES, 2000, 0.0),
    "rates that rise, few rows": (RATES, 100, 0.0),
    "rates that vary within grades": (RATES, 2000, 0.25),
    "equal rates": (np.full(7, 0.03), 1000, 0.0),
    "equal rates, few events": (np.full(7, 0.01), 150, 0.0),
    "rates near 3 %, 50 rows": (np.linspace(0.01, 0.06, 7), 50, 0.0),
    "seven times 3 %, 50 rows": (np.linspace(0.0299, 0.0301, 7), 50, 0.0),
}


def one_set(law, number):
    """What `grade_calibration` says of labels drawn from the probabilities, and what is true."""
    rates, n, spread = LAWS[law]
    rng = np.random.default_rng([list(LAWS).index(law), number])
    p = np.repeat(rates, 5) * np.exp(
        spread * np.tile(np.linspace(-1, 1, 5), len(rates))
    )
    rows = np.full(len(p), n // 5)
    events = rng.binomial(rows, p)
    # of equal rates the grades are named by probabilities that nobody looks at
    shown = p if rates[0] < rates[-1] else np.repeat(RATES, 5)
    means = shown.reshape(7, -1).mean(axis=1)
    found = grade_calibration(
        np.repeat([1, 0], len(p)),
        np.tile(shown, 2),
        Grades(np.sqrt(means[1:] * means[:-1])),
        counts=np.concatenate([events, rows - events]),
        n_resamples=RESAMPLES,
        random_state=number,
    )
    truth = p.reshape(-1, 5).mean(axis=1)
    held = [
        r.observed_low <= t <= r.observed_high
        for r, t in zip(found.rows, truth, strict=True)
    ]
    prudent = [t <= r.prudent for r, t in zip(found.rows, truth, strict=True)]
    lit = any(row.light != "green" for row in found.rows)
    below = [t < r.observed_low for r, t in zip(found.rows, truth, strict=True)]
    own = [[getattr(row, f"{name}_p") for row in found.rows] for name in OF_A_GRADE]
    return [
        found.p_value,
        found.order_p_value,
        lit,
        *held,
        *prudent,
        *below,
        *np.ravel(own),
    ]


def rows_of(law, single):
    """The rows of results.csv; those of single grades are added to `single`."""
    found = np.array([one_set(law, number) for number in range(SETS)], dtype=float)
    rates, n, _ = LAWS[law]
    row = {"law": law, "rows_of_a_grade": n, "sets": SETS}
    held, prudent, below = (
        found[:, start : start + 7].mean(axis=0) for start in (3, 10, 17)
    )
    tests = {"order of the rates": found[:, 1]}
    if rates[0] < rates[-1]:
        tests = {"all grades together": found[:, 0]} | tests
        yield row | {
            "what": "some light is not green",
            "at_0.05": f"{found[:, 2].mean():.3f}",
        }
        for place, name in enumerate(OF_A_GRADE):
            single.extend(
                of_a_grade(found[:, 24 + 7 * place : 31 + 7 * place], name, law)
            )
    for name, p in tests.items():
        shares = {
            f"at_{level}": f"{np.mean(p <= level + 1e-12):.3f}" for level in LEVELS
        }
        yield row | {"what": f"rejects what is true: {name}"} | shares
    for name, share in (("interval of the rate", held), ("most prudent rate", prudent)):
        ends = {
            "covered_least": f"{share.min():.3f}",
            "covered_mean": f"{share.mean():.3f}",
        }
        if name == "interval of the rate":
            sides = below, 1 - held - below
            sides = dict(zip(("truth_below", "truth_above"), sides, strict=True))
            ends |= {side: f"{misses.max():.3f}" for side, misses in sides.items()}
        yield row | {"what": f"{name} holds"} | ends


def of_a_grade(p, name, law):
    """How often the p-values of right grades are small, and how often they are large."""
    row = {"what": name, "law": law, "rows_of_a_grade": LAWS[law][1], "sets": SETS}
    for side, one in (
        ("p at most the level", p),
        ("p at least 1 less the level", 1 - p),
    ):
        row["side"] = side
        for level in LEVELS:
            share = (one <= level + 1e-12).mean(axis=0)
            row |= {
                f"mean_{level}": f"{share.mean():.3f}",
                f"most_{level}": f"{share.max():.3f}",
            }
        yield dict(row)


def main():
    single = []
    rows = [row for law in LAWS for row in rows_of(law, single)]
    runner.write(HERE / "single.csv", single, list(single[0]))
    levels = [f"at_{level}" for level in LEVELS]
    columns = [
        "what",
        "law",
        "rows_of_a_grade",
        "sets",
        *levels,
        "covered_least",
        "covered_mean",
    ]
    columns += ["truth_below", "truth_above"]  # the most of any grade
    runner.write(HERE / "results.csv", rows, columns)
    for row in [*rows, *single]:
        print(row)


if __name__ == "__main__":
    main()
