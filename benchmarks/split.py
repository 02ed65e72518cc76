"""Which tables a method is chosen by, and which it is judged by.

A rule that was picked among many on some tables looks better on them than it is. So the
data sets were parted once, before any of today's rules was tried: the names in
alphabetical order, every second one for choosing. What is made of a data set (other
targets, rarer positives, other labels) goes with it. Figures that are reported are
those of `JUDGED` alone.
"""

CHOSEN_BY = (
    "adult",
    "breast_cancer",
    "cifar10_wideresnet16_4",
    "credit_default",
    "fivethirtyeight_games",
    "hpc_cv_probs",
    "imdb_cv_cleanlab",
    "news20_cv_cleanlab",
    "wine",
)
JUDGED = (
    "bank_full",
    "cifar100_densenet_bc100",
    "covertype_2v4",
    "digits",
    "fivethirtyeight_soccer",
    "htru2",
    "letter",
    "spambase",
)


def part_of(name):
    """Return "choosing" or "judging", for a table or what was made of it."""
    base = name.partition(" ")[0].partition(":")[0]
    if base in CHOSEN_BY:
        return "choosing"
    if base in JUDGED:
        return "judging"
    raise KeyError(
        f"expected a data set of the split, got {name!r}. Add it to one of the parts"
    )
