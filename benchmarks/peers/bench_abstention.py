"""abstention: class frequencies of unlabelled rows, by EM, the confusion matrix and RLLS."""

import importlib.metadata
import warnings

import numpy as np
from abstention.label_shift import (
    BBSEImbalanceAdapter,
    EMImbalanceAdapter,
    RLLSImbalanceAdapter,
)
from runner import Predictions
from scipy.special import softmax

from sklearn_calib.recalibrators import PriorShift

VERSION = f"abstention {importlib.metadata.version('abstention')}"


def problem(k, n=20_000, m=10_000):
    """Labelled rows with equal frequencies, target rows with frequencies 1 : 2 : ... : k."""
    rng = np.random.default_rng(k)

    def rows(prior, size):
        y = rng.choice(k, size, p=prior / prior.sum())
        logits = 2 * (np.eye(k)[y] + rng.normal(size=(size, k)) / np.sqrt(2))
        return softmax(2 * logits, axis=1), y

    source, y = rows(np.ones(k), n)
    return source, y, rows(np.arange(1.0, k + 1), m)[0]


def ours(source, y, target, prior, **options):
    """The estimate of this package, with what `PriorShift` states beside it."""

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PriorShift(prior, **options).fit(source, y).adapt(target).prior_

    return run


def theirs(source, y, target, adapter):
    """Their multipliers b / a, as frequencies."""
    labels = np.eye(source.shape[1])[y]

    def run():
        found = adapter(
            valid_labels=labels,
            tofit_initial_posterior_probs=target,
            valid_posterior_probs=source,
        )
        b = found.multipliers * labels.mean(axis=0)
        return b / b.sum()

    return run


def cases():
    found = []
    em = EMImbalanceAdapter(
        estimate_priors_from_valid_labels=True, tolerance=1e-13, max_iterations=100_000
    )
    for k in (2, 3, 10):
        data = problem(k)
        found.append(
            Predictions(
                f"frequencies by EM, {k} classes",
                ours(*data, "em"),
                theirs(*data, em),
                tolerance=1e-8,
                note=f"{VERSION}, tolerance 1e-13; ours with standard errors and intervals",
            )
        )
        for name, soft in (("hard", False), ("soft", True)):
            found.append(
                Predictions(
                    f"frequencies by BBSE, {name}, {k} classes",
                    ours(*data, "bbse", confusion=name),
                    theirs(*data, BBSEImbalanceAdapter(soft=soft)),
                    note=f"{VERSION}; ours with standard errors and intervals",
                )
            )
        for alpha in (0.01, 1.0):
            found.append(
                Predictions(
                    f"frequencies by RLLS, alpha = {alpha:g}, {k} classes",
                    ours(*data, "rlls", penalty=alpha),
                    theirs(*data, RLLSImbalanceAdapter(soft=True, alpha=alpha)),
                    tolerance=1e-5,
                    note=f"{VERSION}, with cvxpy's default solver",
                )
            )
    return found
