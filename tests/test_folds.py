"""Folds of whole groups, of many as of few."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedGroupKFold

from sklearn_calib._group_folds import FastStratifiedGroupKFold


def rows(n_groups, rng):
    """Two rows a group, 2 % of the class 1; five groups have a class of their own."""
    groups = rng.permutation(np.repeat(np.arange(n_groups), 2))
    codes = (rng.random(len(groups)) < 0.02).astype(int)
    codes[np.isin(groups, [3, 5, 8, 13, 21])] = 2
    return codes, groups


def test_many_groups_are_dealt_by_their_rarest_class():
    codes, groups = rows(6000, np.random.default_rng(0))
    folds = [
        *FastStratifiedGroupKFold(5, shuffle=True, random_state=1).split(
            codes, codes, groups
        )
    ]
    assert (
        np.sort(np.concatenate([test for _, test in folds])) == np.arange(len(codes))
    ).all()
    for train, test in folds:
        assert len(train) + len(test) == len(codes)
        assert not set(groups[train]) & set(groups[test])
        assert (codes[test] == 2).sum() == 2  # one group of the five
        assert abs((codes[test] == 1).sum() - (codes == 1).sum() / 5) <= 4
    again = [
        *FastStratifiedGroupKFold(5, shuffle=True, random_state=1).split(
            codes, codes, groups
        )
    ]
    other = [
        *FastStratifiedGroupKFold(5, shuffle=True, random_state=2).split(
            codes, codes, groups
        )
    ]
    assert (again[0][1] == folds[0][1]).all()
    assert set(other[0][1]) != set(folds[0][1])


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_few_groups_are_those_of_scikit_learn(named):
    codes, groups = rows(600, np.random.default_rng(0))
    groups = groups.astype(str) if named else groups
    ours, theirs = (
        [*kind(5, shuffle=True, random_state=1).split(codes, codes, groups)]
        for kind in (FastStratifiedGroupKFold, StratifiedGroupKFold)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert (one[1] == other[1]).all()
