"""Do the intervals, tests and guarantees of `sklearn_calib.decisions` keep what they say?"""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.special import betaincinv
from sklearn.frozen import FrozenEstimator

from sklearn_calib._kernels._net_benefit import find_max_proper_regret_and_thresholds
from sklearn_calib.decisions import (
    SelectiveClassifier,
    decision_curve,
    decision_difference,
    expected_cost_test,
    expected_metrics,
    regret_curve,
    risk_coverage_curve,
)
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import confidence_interval

sys.path.insert(0, str(Path(__file__).parents[1]))
import runner

HERE = Path(__file__).parent
GRID = (np.arange(100_000) + 0.5) / 100_000
T = np.arange(1, 100) / 100
SHOWN = (0.05, 0.2, 0.5, 0.8, 0.9)
# Beta laws of the predictions
LAWS = {
    "flat": (1, 1),
    "low": (1, 3),
    "rare": (0.5, 10),
}
# they stand for it
QUANTILES = {law: betaincinv(*shape, GRID) for law, shape in LAWS.items()}
COSTS = {"equal": [[0, 1], [1, 0]], "a miss costs 5": [[0, 1], [5, 0]]}
JOBS = [
    *(("net benefit", law, n, 500) for law in LAWS for n in (500, 5000)),
    *(("less acting on all", law, n, 500) for law in LAWS for n in (500, 5000)),
    *(("difference of two", law, n, 500) for law in LAWS for n in (500, 5000)),
    *(("elementary score", law, n, 500) for law in LAWS for n in (500, 5000)),
    *(("case-control", law, n, 500) for law in LAWS for n in (500, 5000)),
    *(("expected cost", law, n, 2000) for law in LAWS for n in (100, 500, 5000)),
    *(("expected metrics", law, n, 1000) for law in LAWS for n in (200, 2000)),
    *(("selective", law, n, 1000) for law in ("flat", "low") for n in (200, 2000)),
    *(
        ("selective, 4 groups", law, n, 1000)
        for law in ("flat", "low")
        for n in (800, 8000)
    ),
    *(("share answered", law, n, 1000) for law in ("flat", "low") for n in (200, 2000)),
    *(
        ("risk at a coverage", law, n, 1000)
        for law in ("flat", "low")
        for n in (200, 2000)
    ),
    *(("regret", law, n, 500) for law in LAWS for n in (500, 5000)),
    *(("decision loss", law, n, 30) for law in LAWS for n in (500,)),
]


def truth_of(p):
    """The true probability of a prediction, in the miscalibrated case."""
    return p**1.3


def net_benefit(p, truth, prevalence=None):
    """The net benefit in the population at each threshold of T, and that of acting on all."""
    order = np.argsort(p)
    first = np.searchsorted(p[order], T)
    up, down = (
        np.append(np.cumsum(v[order][::-1])[::-1], 0) for v in (truth, 1 - truth)
    )
    rate = truth.mean()
    share = rate if prevalence is None else prevalence
    gain = up / len(p) * share / rate
    loss = down / len(p) * (1 - share) / (1 - rate)
    return (gain - np.append(T / (1 - T), 0)[:, None] * loss)[np.arange(99), first], (
        share - (1 - share) * T / (1 - T)
    )


def row(question, what, law, n, draws, below, above, aim, note=""):
    """Shares of draws in which the truth lies below or above what is said."""
    return {
        "question": question,
        "what": what,
        "law": law,
        "n": n,
        "draws": draws,
        "truth_below": f"{np.mean(below):.4f}",
        "truth_above": f"{np.mean(above):.4f}",
        "held": f"{1 - np.mean(below) - np.mean(above):.4f}",
        "aim": aim,
        "note": note,
    }


def of_curves(question, law, n, draws):
    """Coverage of intervals and bands of net benefit."""
    population = QUANTILES[law]
    prevalence = 0.05 if question == "case-control" else None
    truth, everyone = net_benefit(population, truth_of(population), prevalence)
    if question == "less acting on all":
        truth = truth - everyone
    if question == "difference of two":  # the second model is the truth
        truth = net_benefit(truth_of(population), truth_of(population))[0] - truth
    if question == "elementary score":  # over 1 - t, as `MurphyDisplay` draws it
        truth = truth_of(population).mean() - truth
    places = np.searchsorted(T, SHOWN)
    below, above, plain, band = [], [], [], []
    for number in range(draws):
        rng = np.random.default_rng([n, number])
        p = rng.beta(*LAWS[law], n)
        y = (rng.random(n) < truth_of(p)).astype(int)
        if not 0 < y.sum() < n:
            continue
        if question == "difference of two":
            found = decision_difference(y, p, truth_of(p), random_state=number)
            value = found.difference
        elif question == "elementary score":
            found = decision_difference(y, p, y.astype(float), random_state=number)
            value = found.difference
        else:
            found = decision_curve(y, p, prevalence=prevalence, random_state=number)
            value = found.net_benefit
            if question == "less acting on all":
                found, value = found.over_all, found.over_all.difference
        slack = 1e-9
        below.append((truth < found.low - slack)[places])
        above.append((truth > found.high + slack)[places])
        half = 1.959964 * found.standard_error + slack
        plain.append((np.abs(truth - value) <= half)[places])
        inside = (found.band_low - slack <= truth) & (truth <= found.band_high + slack)
        band.append(inside.all())
    acted = [float((population >= t).mean() * n) for t in SHOWN]
    rows = [
        row(question, f"95 % interval at {t}", law, n, len(below), low, high, "0.95",
            f"{count:.0f} rows reach it; estimate +- 1.96 errors holds it in {share:.3f}")
        for t, count, low, high, share in zip(
            SHOWN, acted, np.array(below).T, np.array(above).T, np.mean(plain, axis=0), strict=True
        )
    ]  # fmt: skip
    missed = ~np.array(band)
    rows.append(
        row(question, "95 % band, 99 thresholds", law, n, len(band), missed, 0, "0.95")
    )
    return rows


def of_costs(question, law, n, draws):
    """Level of the test on calibrated rows, and coverage of the interval on others."""
    rows = []
    population = QUANTILES[law]
    for name, costs in COSTS.items():
        table = np.array(costs, dtype=float)
        acts = population >= table[0, 1] / (table[0, 1] + table[1, 0])
        truth = truth_of(population)
        believed = np.where(acts, 1 - population, table[1, 0] * population)
        paid = np.where(acts, 1 - truth, table[1, 0] * truth)
        gap = np.mean(believed - paid)
        level, interval = [], []
        for number in range(draws):
            rng = np.random.default_rng([n, number])
            p, u = rng.beta(*LAWS[law], n), rng.random(n)
            for true, found in ((p, level), (truth_of(p), interval)):
                y = (u < true).astype(int)
                found.append(expected_cost_test(y, p, costs, labels=[0, 1]))
        z = np.array([one.statistic for one in level])
        with np.errstate(divide="ignore", invalid="ignore"):
            other = np.array([one.difference / one.standard_error for one in level])
        above, below = np.mean(other > 1.96), np.mean(other < -1.96)
        said = f"with the rows' own error {above:.4f} and {below:.4f}"
        what = f"test of calibrated rows, {name}"
        rows.append(
            row(question, what, law, n, draws, z > 1.96, z < -1.96, "0.95", said)
        )
        low, high = np.array([(one.low, one.high) for one in interval]).T
        what = f"95 % interval of the difference, {name}"
        rows.append(row(question, what, law, n, draws, gap < low, gap > high, "0.95"))
    return rows


def of_metrics(question, law, n, draws):
    """Standard deviations of metrics of calibrated rows."""
    z = {}
    for number in range(draws):
        rng = np.random.default_rng([n, number])
        p = rng.beta(*LAWS[law], n)
        y = (rng.random(n) < p).astype(int)
        if not 0 < y.sum() < n:
            continue
        found = expected_metrics(
            p, threshold=0.3, costs=COSTS["a miss costs 5"], y_true=y
        )
        for name in found.standard_deviations:
            z.setdefault(name, []).append(found.z_score(name))
    rows = []
    for name, values in z.items():
        values = np.array(values)
        values = values[np.isfinite(values)]
        note = f"mean {values.mean():.3f}, deviation {values.std():.3f}"
        given = len(values), values > 1.96, values < -1.96, "0.95", note
        rows.append(row(question, f"z of {name} within 1.96", law, n, *given))
    return rows


class Given:
    """A fitted classifier whose feature is the probability."""

    classes_ = np.arange(2)

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def of_selection(question, law, n, draws):
    """How often the true error rate of the answers is above the guaranteed one."""
    population = QUANTILES[law]
    confidence = np.maximum(population, 1 - population)
    order = np.argsort(-confidence)
    predicted = population > 0.5
    wrong = np.where(predicted, 1 - truth_of(population), truth_of(population))[order]
    risks = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    rows = []
    for max_risk in (0.1, 0.2):
        for delta in (0.1, 0.5):
            broken, coverage = [], []
            for number in range(draws):
                rng = np.random.default_rng([n, number])
                p = rng.beta(*LAWS[law], n)
                y = (rng.random(n) < truth_of(p)).astype(int)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CalibrationWarning)
                    model = SelectiveClassifier(
                        FrozenEstimator(Given()), max_risk, delta
                    )
                    model.fit(p[:, None], y)
                answered = int((confidence >= model.threshold_).sum())
                coverage.append(answered / len(population))
                broken.append(answered > 0 and risks[answered - 1] > max_risk)
            what = f"error rate above {max_risk}, delta {delta}"
            note = f"answers {np.mean(coverage):.3f} of the rows"
            aim = f"at least {1 - delta}"
            rows.append(row(question, what, law, n, draws, 0, broken, aim, note))
    return rows


POWERS = (1.0, 1.15, 1.3, 1.6)  # of the truth of each group: p^power


def selected(law, power):
    """Of a share of a group that is answered: the confidence it begins at, and its error rate."""
    population = QUANTILES[law]
    confidence = np.maximum(population, 1 - population)
    order = np.argsort(-confidence)
    truth = population**power
    wrong = np.where(population > 0.5, 1 - truth, truth)[order]
    return confidence[order], np.cumsum(wrong) / np.arange(1, len(wrong) + 1)


def of_groups(question, law, n, draws):
    """How often some group has an error rate above the guaranteed one, or above its own bound."""
    populations = [selected(law, power) for power in POWERS]
    group = np.repeat(np.arange(len(POWERS)), n // len(POWERS))
    rows = []
    options = [{"max_risk": risk} for risk in (0.1, 0.2)] + [
        {"coverage": c} for c in (0.3, 0.8)
    ]
    for option in options:
        for delta in (0.1, 0.5):
            broken, beyond, shares, outside = [], [], [], []
            for number in range(draws):
                rng = np.random.default_rng([n, number])
                p = rng.beta(*LAWS[law], len(group))
                y = (rng.random(len(group)) < p ** np.array(POWERS)[group]).astype(int)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CalibrationWarning)
                    model = SelectiveClassifier(
                        FrozenEstimator(Given()), delta=delta, **option
                    )
                    model.fit(p[:, None], y, groups=group)
                risks, kept = [], []
                for name, (confidence, risk) in enumerate(populations):
                    answered = int(
                        np.searchsorted(-confidence, -model.thresholds_[name], "right")
                    )
                    risks.append(risk[answered - 1] if answered else 0.0)
                    kept.append(answered / len(risk))
                ends = np.array(
                    [model.coverage_intervals_[name] for name in range(len(risks))]
                ).T
                bounds = [model.risk_bounds_[name] for name in range(len(risks))]
                broken.append(max(risks) > option.get("max_risk", 1))
                beyond.append((np.array(risks) > bounds).any())
                outside.append([(kept < ends[0]).any(), (kept > ends[1]).any()])
                shares.append(np.mean(kept))
            what, value = next(iter(option.items()))
            of = f"{what} {value}, delta {delta}"
            note = f"answers {np.mean(shares):.3f} of the rows"
            given = law, n, draws, 0
            aim = f"at least {1 - delta}"
            if what == "max_risk":
                said = f"error rate of a group above the largest one allowed, {of}"
                rows.append(row(question, said, *given, broken, aim, note))
            said = f"error rate of a group beyond its own bound, {of}"
            rows.append(row(question, said, *given, beyond, f"{1 - delta}", note))
            if what == "coverage":
                below, above = np.array(outside).T
                said = f"share of a group outside its interval, {of}"
                rows.append(
                    row(question, said, *given[:3], below, above, f"{1 - delta}", note)
                )
    return rows


def of_share(question, law, n, draws):
    """How often the share of new rows that is answered lies in its interval; and their errors."""
    confidence, risk = selected(law, 1.3)
    rows = []
    for coverage in (0.3, 0.8, 0.95):
        for delta in (0.1, 0.5):
            ends, kept, risks, bounds = [], [], [], []
            for number in range(draws):
                rng = np.random.default_rng([n, number])
                p = rng.beta(*LAWS[law], n)
                y = (rng.random(n) < truth_of(p)).astype(int)
                model = SelectiveClassifier(
                    FrozenEstimator(Given()), delta=delta, coverage=coverage
                ).fit(p[:, None], y)
                answered = int(np.searchsorted(-confidence, -model.threshold_, "right"))
                kept.append(answered / len(risk))
                risks.append(risk[max(answered, 1) - 1])
                ends.append(model.coverage_interval_)
                bounds.append(model.risk_bound_)
            (low, high), kept = np.array(ends).T, np.array(kept)
            of = f"coverage {coverage}, delta {delta}"
            note = f"mean share {kept.mean():.4f}"
            given = law, n, draws
            said = f"share answered, {of}"
            rows.append(
                row(
                    question,
                    said,
                    *given,
                    kept < low,
                    kept > high,
                    f"{1 - delta}",
                    note,
                )
            )
            broken = np.array(risks) > bounds
            said = f"error rate beyond its bound, {of}"
            rows.append(row(question, said, *given, 0, broken, f"{1 - delta}", note))
    return rows


def of_risk(question, law, n, draws):
    """Coverage of the interval of the error rate at a threshold chosen beforehand."""
    population = QUANTILES[law]
    rows = []
    for threshold in (0.6, 0.9):
        kept = np.maximum(population, 1 - population) >= threshold
        wrong = np.where(
            population > 0.5, 1 - truth_of(population), truth_of(population)
        )
        risk = wrong[kept].mean()
        below, above = [], []
        for number in range(draws):
            rng = np.random.default_rng([n, number])
            p = rng.beta(*LAWS[law], n)
            y = (rng.random(n) < truth_of(p)).astype(int)
            curve = risk_coverage_curve(y, p, labels=[0, 1])
            place = int((curve.threshold >= threshold).sum()) - 1
            if place >= 0:
                below.append(risk < curve.low[place])
                above.append(risk > curve.high[place])
        given = law, n, len(below), below, above, "at least 0.95"
        rows.append(row(question, f"95 % interval at confidence {threshold}", *given))
    return rows


def largest_regrets(p, better, truth):
    """The largest regret in the population of acting on p instead of on `better`, and the loss."""
    t = np.arange(1, 2000) / 2000
    order, other = np.argsort(p), np.argsort(better)
    sums = [
        np.append(0.0, np.cumsum(values)) for values in (truth[order], truth[other])
    ]
    first = np.searchsorted(p[order], t, side="right")
    second = np.searchsorted(better[other], t, side="right")
    # acted on by `better` alone
    more = (sums[0][first] - sums[1][second]) - t * (first - second)
    regret = more / len(p)
    return max(regret.max(), 0.0), find_max_proper_regret_and_thresholds(t, regret)[0]


def of_regret(question, law, n, draws):
    """Coverage of the intervals of the largest regret and of the decision loss of a given map."""
    population, rows = QUANTILES[law], []
    for name, truth, better in (
        ("the map is right", truth_of, truth_of),
        ("calibrated, the map is wrong", np.copy, truth_of),
        ("calibrated, the map hardly moves", np.copy, lambda p: p**1.01),
    ):
        true = largest_regrets(population, better(population), truth(population))
        ends, said = [], []
        for number in range(draws):
            rng = np.random.default_rng([n, number])
            p = rng.beta(*LAWS[law], n)
            y = (rng.random(n) < truth(p)).astype(int)
            curve = regret_curve(y, p, better(p), labels=[0, 1], random_state=number)
            ends.append((curve.maximum_interval, curve.decision_loss_interval))
            said.append((curve.maximum, curve.decision_loss))
        for place, what in enumerate(("largest regret", "decision loss")):
            low, high = np.array(ends)[:, place].T
            below, above = true[place] < low - 1e-9, true[place] > high + 1e-9
            note = f"truth {true[place]:.5f}, mean estimate {np.mean(said, axis=0)[place]:.5f}"
            given = law, n, draws, below, above, "at least 0.95", note
            rows.append(row(question, f"95 % interval of the {what}, {name}", *given))
    return rows


def of_decision_loss(question, law, n, draws):
    """Coverage of the interval of the measure, by inversion."""
    population, rows = QUANTILES[law], []
    for name, truth in (("miscalibrated", truth_of), ("calibrated", np.copy)):
        true = largest_regrets(population, truth(population), truth(population))[1]
        low, high, said = [], [], []
        for number in range(draws):
            rng = np.random.default_rng([n, number])
            p = rng.beta(*LAWS[law], n)
            y = (rng.random(n) < truth(p)).astype(int)
            given = {"n_resamples": 99, "random_state": number, "labels": [0, 1]}
            found = confidence_interval(y, p, "calibration_decision_loss", **given)
            low.append(found.low)
            high.append(found.high)
            said.append(found.sample_value)
        note = f"truth {true:.5f}, mean estimate {np.mean(said):.5f}"
        below, above = true < np.array(low) - 1e-9, true > np.array(high) + 1e-9
        what = f"95 % interval of the measure, {name}"
        rows.append(row(question, what, law, n, draws, below, above, "0.95", note))
    return rows


QUESTIONS = {
    "regret": of_regret,
    "decision loss": of_decision_loss,
    "expected cost": of_costs,
    "expected metrics": of_metrics,
    "selective": of_selection,
    "selective, 4 groups": of_groups,
    "share answered": of_share,
    "risk at a coverage": of_risk,
}


def measured(question, law, n, draws):
    """The rows of one job."""
    return QUESTIONS.get(question, of_curves)(question, law, n, draws)


def summary(rows):
    """The smallest and the largest share of each question over the laws and what was varied."""
    groups = {}
    for found in rows:
        what = (
            found["what"].partition(" at ")[0].partition(", ")[0].partition(" above")[0]
        )
        groups.setdefault(
            (found["question"], what, found["aim"], found["n"]), []
        ).append(found)
    for (question, what, aim, n), members in groups.items():
        held = [float(member["held"]) for member in members]
        row = {"question": question, "what": what, "n": n, "aim": aim}
        row |= {"least held": f"{min(held):.3f}", "most held": f"{max(held):.3f}"}
        for side in ("truth_below", "truth_above"):
            row[f"most {side}"] = (
                f"{max(float(member[side]) for member in members):.3f}"
            )
        yield row


def main():
    rows = runner.rounds(HERE / "rounds.partial.jsonl", JOBS, measured)
    runner.write(HERE / "results.csv", rows)
    found = list(summary(rows))
    runner.write(HERE / "summary.csv", found)
    for row in found:
        print(row)


if __name__ == "__main__":
    main()
