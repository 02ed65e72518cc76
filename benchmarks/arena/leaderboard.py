"""Tables and pictures from the losses of all methods on all tasks."""

import numpy as np
import pandas as pd
from methods import BASE, OURS
from tasks import base

LOSSES = ("log loss", "Brier")
TIMES = 1000  # resamples of the data sets
CLIP = 2.0  # a ratio of losses counts as at most this, and at least one over it
HURT = 0.01


def wins(losses):
    """For each task and method: the share of the other methods that lose more, as in CalArena."""
    values = losses.to_numpy()
    beaten = np.column_stack(
        [(values > values[:, [j]]).sum(axis=1) for j in range(values.shape[1])]
    )
    return pd.DataFrame(beaten / (values.shape[1] - 1), losses.index, losses.columns)


def resampled(table, data_sets):
    """Means of the columns in `TIMES` resamples of whole data sets, (times, columns)."""
    names, codes = np.unique(data_sets, return_inverse=True)
    members = np.eye(len(names))[codes]
    sums, counts = members.T @ table.to_numpy(), members.sum(axis=0)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), TIMES)
    return (drawn @ sums) / (drawn @ counts)[:, None]


def leaderboard(results, methods=None):
    """One row for each method, the most wins in log loss first.

    `results` has one row for each task and method; tasks of all of them only.
    """
    wide = {of: _wide(results, of, methods) for of in LOSSES}
    data_sets = [
        base(name) for name in wide["log loss"].index.get_level_values("data set")
    ]
    board = pd.DataFrame(index=wide["log loss"].columns)
    board["tasks"] = len(data_sets)
    for of in LOSSES:
        won = wins(wide[of])
        low, high = np.percentile(resampled(won, data_sets), [2.5, 97.5], axis=0)
        board[f"wins, {of}"], board[f"low, {of}"], board[f"high, {of}"] = (
            won.mean(),
            low,
            high,
        )
        ratio = wide[of].div(wide[of][BASE], axis=0)
        log = np.log(ratio.clip(1 / CLIP, CLIP).fillna(1.0))
        board[f"{of} %"] = 100 * (np.exp(log.mean()) - 1)
        board[f"hurt, {of} %"] = 100 * (ratio > 1 + HURT).mean()
    grouped = results.groupby("method")
    board["seconds"] = grouped["seconds"].mean()
    board["left as it was %"] = 100 * grouped["problem"].agg(
        lambda said: (said != "").mean()
    )
    return board.sort_values("wins, log loss", ascending=False)


def _wide(results, of, methods=None):
    keys = ["source", "data set", "model", "n", "draw"]
    wide = results.pivot(index=keys, columns="method", values=of)
    return wide if methods is None else wide[methods]


def against_calarena(results):
    """The wins of each of our methods if it alone were added to CalArena's list."""
    names = set(results["method"])
    list_of_theirs = [*sorted(names - set(OURS)), BASE]
    found = {}
    for of in LOSSES:
        wide = _wide(results, of)
        found[f"wins in CalArena's list, {of}"] = {
            name: wins(wide[[*dict.fromkeys([*list_of_theirs, name])]])[name].mean()
            for name in sorted(names & set(OURS))
        }
    return pd.DataFrame(found)


def picture(board, title, path):
    """Win rates with their intervals, the best on top; what is not of this package is white."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, 2, figsize=(11, 0.21 * len(board) + 1.2), layout="constrained"
    )
    for axis, of in zip(axes, LOSSES, strict=True):
        part = board.sort_values(f"wins, {of}")
        place = np.arange(len(part))
        mean = part[f"wins, {of}"]
        error = [mean - part[f"low, {of}"], part[f"high, {of}"] - mean]
        ours = [name in OURS and name != BASE for name in part.index]
        axis.barh(
            place,
            mean,
            xerr=error,
            color=np.where(ours, "#9cc4e4", "white"),
            edgecolor="#2066a8",
            error_kw={"elinewidth": 1.2, "ecolor": "black"},
        )
        axis.axvline(part.loc[BASE, f"wins, {of}"], color="black", ls="-.", lw=1)
        names = ["no recalibration" if name == BASE else name for name in part.index]
        axis.set_yticks(place, names, fontsize=7)
        axis.set(xlim=(0, 1), ylim=(-0.6, len(part) - 0.4))
        axis.set_title(f"{of}", fontsize=9)
        axis.set_xlabel(
            "share of the other methods beaten, 95 % interval over data sets",
            fontsize=8,
        )
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)
