"""Golden values of rating grades: what probcal says of them, as tests/data/probcal_grades.json.

Run where probcal 0.4 is installed, which needs numpy alone. The test
tests/groups/test_grades.py compares with them, to 1e-12. Of ten thousand rows of a
grade probcal's binomial tail is off by some 3e-12 (against sums in 60 digits; ours by
2e-15), so these are compared to 1e-11.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from probcal import Masterscale
from probcal.metrics.grade import binomial_grade_test, jeffreys_grade_test, pluto_tasche

FILE = Path(__file__).parents[2] / "tests" / "data" / "probcal_grades.json"
EDGES = [0.005, 0.01, 0.02, 0.05, 0.2]
NAMES = ["AAA", "AA", "A", "B", "C", "D"]


def case(seed: int, scale: float, n: int) -> dict[str, object]:
    """Rows at some probabilities, edges among them; events by these times a factor."""
    rng = np.random.default_rng(seed)
    p = np.unique(
        np.append(np.round(np.exp(rng.uniform(-6.5, -0.7, 25)), 6), EDGES[1:4])
    )
    rows = rng.integers(1, n, len(p))
    events = rng.binomial(rows, np.minimum(1, scale * p))
    y = np.concatenate(
        [np.repeat([1, 0], [k, m - k]) for k, m in zip(events, rows, strict=True)]
    )
    expanded = np.repeat(p, rows)
    ends = [0.0, *EDGES, 1.0]
    scheme = Masterscale({name: (ends[i], ends[i + 1]) for i, name in enumerate(NAMES)})
    binomial = binomial_grade_test(y, expanded, scheme)
    jeffreys = jeffreys_grade_test(y, expanded, scheme)
    prudent = pluto_tasche(binomial.n, binomial.k, confidence=0.75)
    return {
        "p": p.tolist(),
        "rows": rows.tolist(),
        "events": events.tolist(),
        "grades": list(binomial.grades),
        "n": np.asarray(binomial.n).tolist(),
        "k": np.asarray(binomial.k).tolist(),
        "predicted": binomial.pd.tolist(),
        "binomial": binomial.p_exact.tolist(),
        "jeffreys": jeffreys.p_value.tolist(),
        "light": list(jeffreys.light),
        "low": binomial.ci_low.tolist(),
        "high": binomial.ci_high.tolist(),
        "prudent": np.asarray(prudent.pd_upper).tolist(),
    }


def main() -> None:
    cases = [
        case(*given)
        for given in ((0, 1.0, 400), (1, 1.6, 400), (2, 0.4, 60), (3, 1.0, 4000))
    ]
    content = {
        "probcal": version("probcal"),
        "edges": EDGES,
        "names": NAMES,
        "cases": cases,
    }
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{FILE}: {len(cases)} cases")


if __name__ == "__main__":
    main()
