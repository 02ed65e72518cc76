"""QuaPy: class frequencies of unlabelled rows, by EM, the confusion matrix and RLLS."""

import importlib.metadata

from bench_abstention import ours, problem
from quapy.method.aggregative import EMQ, RLLS, BBSEhard, BBSEsoft
from runner import Predictions

from sklearn_calib.recalibrators import Identity

VERSION = f"QuaPy {importlib.metadata.version('quapy')}"


def theirs(source, y, target, method, hard=False, **options):
    """Their quantifiers on the probabilities as they are."""
    given = Identity().fit(source, y)

    def run():
        quantifier = method(classifier=given, fit_classifier=False, **options)
        guess = given.predict if hard else given.predict_proba
        quantifier.aggregation_fit(guess(source), y)
        return quantifier.aggregate(guess(target))

    return run


def cases():
    found = []
    for k in (2, 3, 10):
        data = problem(k)
        _, y, target = data
        prior = [(y == c).mean() for c in range(k)]
        found.append(
            Predictions(
                f"frequencies by EM, {k} classes",
                ours(*data, "em"),
                lambda prior=prior, target=target: EMQ.EM(prior, target, epsilon=1e-14)[
                    0
                ],
                tolerance=1e-8,
                note=f"{VERSION}, epsilon 1e-14; ours with standard errors and intervals",
            )
        )
        for name, method in (("hard", BBSEhard), ("soft", BBSEsoft)):
            found.append(
                Predictions(
                    f"frequencies by BBSE, {name}, {k} classes",
                    ours(*data, "bbse", confusion=name),
                    theirs(*data, method, hard=name == "hard", solver="exact-raise"),
                    note=f"{VERSION}; ours with standard errors and intervals",
                )
            )
        found.append(
            Predictions(
                f"frequencies by RLLS, {k} classes",
                ours(*data, "rlls"),
                theirs(*data, RLLS),
                tolerance=1e-5,
                note=f"{VERSION}, with cvxpy's default solver",
            )
        )
    return found
