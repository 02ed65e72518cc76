"""Rows by summaries: many files, large ones, saved summaries, groups; memory stays small."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._files.columns import Block, values_of_text
from .._files.tables import column_names, weigh_more
from .._kernels._seen_errors import SIGNIFICANCE
from .._show import plain, quoted
from ..groups import audit_pairs, group_calibration, partition_of_values
from ..summary import count_values, find_classes, is_summary_file, summarize, summarize_groups
from ._printing import Screen, note, progress
from ._request import Request, split_columns
from ._result import Condition, finish, settings_of
from ._rows import another_order, check_two_classes, falling, in_order, named_classes, soft_classes
from ._tables import with_order, with_orders
from ._wording import refuse, sentence

if TYPE_CHECKING:
    from ..decomposition import LossDecomposition
    from ..groups import GroupCalibration
    from ..inference import PairedDifference
    from ..summary import CalibrationSummary, Draw, DrawnRows, DrawnSample
    from ._rows import LabelledRows

SAMPLED = 20_000  # rows that the features are tried on


def draw_of(options: Request, features: Sequence[str], rows: bool) -> "Draw | None":
    """What to draw beside a summary, and how to read the scores; None where both are as usual.

    Parameters
    ----------
    options : Namespace
    features : sequence of str
        The columns of ``--features``.
    rows : bool
        Whether rows are needed; else cells suffice.
    """
    from ..summary import Draw

    draw = Draw(
        SAMPLED if features else None if rows else 0,
        tuple(features),
        options.group,
        options.kind,
        options.sum_tolerance,
        options.percent,
    )
    return None if draw == Draw(0) else draw


def summary_of_rows(rows: "LabelledRows", options: Request) -> "CalibrationSummary":
    """Rows in memory as a summary with its draw, as if they had been read block by block."""
    from ..summary import Draw, summarize

    names = [str(number) for number in range(len(rows.names))]
    data: dict[str, Any] = dict(zip(names, np.asarray(rows.given).T, strict=True))
    more = {"group": rows.together, "weight": rows.weight}
    data |= {"label": rows.labels} | {key: c for key, c in more.items() if c is not None}
    group, weight = (None if column is None else key for key, column in more.items())
    draw = Draw(group=group, kind=options.kind, tolerance=options.sum_tolerance)
    given: dict[str, Any] = {"weight": weight, "classes": rows.classes, "_draw": draw}
    return summarize(data, label="label", prob=names, **given)


def sample_of(summary: "CalibrationSummary", options: Request) -> "DrawnSample":
    """The drawn rows; columns in another order than that of the classes are refused."""
    from ..summary import DrawnSample

    check_rows(summary)
    drawn = None if summary.drawn is None else summary.drawn.rows()
    classes: Any = summary.classes
    if drawn is None:
        refuse(
            "rows, or a summary of two classes",
            f"one of {len(classes)}",
            "Give the rows themselves",
        )
    sample = DrawnSample(drawn, classes, options.kind)
    given = classes[drawn.codes], sample.case.proba, classes, drawn.scores.shape[1]
    said = another_order(*given, options, sample.case.weight)
    if said is not None:
        refuse(*said)
    return sample


def check_rising(summary: "CalibrationSummary", options: Request, classes: Any = None) -> None:
    """Refuse one column that falls with its class; of a saved summary it was named before."""
    one = len(split_columns(options.prob or (), ())) == 1 or classes is not None
    known: Any = summary.classes if classes is None else classes
    if not one or len(known) != 2 or options.label is None or not summary.n_samples:
        return
    said = falling(summary.samples()[0].backwards, known, options)
    if said is not None:
        if options.any_order is not None or not options.soft_labels:
            refuse(*said)
        note(sentence(*said))  # no option says that it is meant


def check_rows(summary: "CalibrationSummary") -> None:
    """Refuse a summary that rows of no weight, or no rows, were made into."""
    if not summary.n_samples:
        refuse("rows of positive weight", "none", "Check the files")


def gains_by_features(
    summary: "CalibrationSummary", options: Request
) -> "LossDecomposition | None":
    """What a better use of the features gains, of drawn rows; None where they are too few."""
    from ..decomposition import decompose_by_features, enough_for_features

    sample = sample_of(summary, options)
    drawn, case = sample.drawn, sample.case
    note(f"--features: a sample of {drawn.n_drawn:,} rows")
    frame = drawn.extras.copy()
    decimal = options.csv.get("decimal")
    for name in frame.columns:
        frame[name] = _with_numbers(frame[name], decimal)
    features = with_orders(Block(frame, options.files[0], decimal))
    if not enough_for_features(case):
        return None
    return decompose_by_features(case, features)


def _with_numbers(column, decimal):
    """A column that was read as text, as if it had been read at once."""
    texts = column.dropna().unique()
    if len(texts) and all(isinstance(text, str) for text in texts):
        values = values_of_text(list(texts), decimal)
        if not all(isinstance(value, str) for value in values.values()):
            return column.map(values)
    return column


def groups_of(drawn: "DrawnRows", options: Request) -> Any:
    """The column of ``--cluster`` as numbers from 0, of the drawn rows; None without."""
    from ..recalibrators import group_codes

    name = options.group
    if name is None:
        return None
    column = _with_numbers(drawn.extras.iloc[:, -1], options.csv.get("decimal"))
    return group_codes(column.astype(str).to_numpy(), len(drawn.codes), "fit")


def said_of(sample: "DrawnSample") -> str:
    """How many rows there are, of which classes, and how many of them are learnt from."""
    drawn = sample.drawn
    names = ", ".join(plain(label, 40) for label in sample.classes.tolist())
    said = f"{drawn.n_seen} rows, classes {names}"
    if drawn.whole:
        return said
    return f"{said}\n{drawn_in_words(drawn.n_drawn, drawn.n_seen)}"


def drawn_in_words(n_drawn: int, n_seen: int) -> str:
    """Which rows a map is fitted to, where they are not all."""
    return (
        f"fitted to {n_drawn:,} of these {n_seen:,} rows, which their own digits draw: the same "
        "ones in any order; classes with few rows keep more of them"
    )


def soft_sample(
    drawn: "DrawnRows", classes: Any, names: list[str], options: Request
) -> "LabelledRows":
    """Drawn items of soft labels as rows in memory, no more than `rows_to_draw` of them.

    Parameters
    ----------
    drawn : DrawnRows
        Which keep their shares before the column of ``--cluster``.
    classes : ndarray of shape (n_classes,)
    names : list of str
        The columns of scores.
    options : Namespace
    """
    from ..canonical import canonical_proba
    from ..summary import rows_to_draw
    from ._rows import LabelledRows

    ends, most = np.cumsum(drawn.counts), rows_to_draw(len(classes))
    place = np.arange(ends[-1])
    if len(place) > most:  # items that are alike are counted: each is one of them
        chosen = np.random.default_rng(0).choice(len(place), most, replace=False, shuffle=False)
        place = np.sort(chosen)
    rows = np.searchsorted(ends, place, side="right")
    group = options.group
    shares = drawn.extras.iloc[rows, : drawn.extras.shape[1] - (group is not None)].to_numpy()
    together = None
    if group is not None:
        column = _with_numbers(drawn.extras.iloc[:, -1], options.csv.get("decimal"))
        together = column.astype(str).to_numpy()[rows]
    scores = given = drawn.scores[rows]
    if options.kind == "logits":
        scores = canonical_proba(given, kind="logits", _where="fit")
    labels = shares[:, 0] if shares.shape[1] == 1 else shares
    rest = drawn.unit[rows], classes, None, names, given
    return LabelledRows(labels, scores, *rest, together=together)


def cross_validated(
    method: str, sample: "DrawnSample", loss: float, groups: Any, level: float, n_folds: int
) -> "PairedDifference":
    """The log loss before and after, each row recalibrated by a fit that has not seen it.

    Parameters
    ----------
    method : str
    sample : DrawnSample
    loss : float
        That of all rows as given.
    groups : ndarray of shape (n_rows,), or None
        Numbered from 0; none is split between folds.
    level : float
    n_folds : int
    """
    from ..metrics import LogLoss

    if groups is not None and groups.max() + 1 < n_folds:
        refuse(
            f"at least {n_folds} groups, one for each fold",
            f"{groups.max() + 1}",
            "Name a column of more groups with --cluster",
        )
    with progress("judging"):
        held = sample.held_out(method, sample.folds(n_folds, groups), groups, "fit")
    of_rows = LogLoss().of_rows
    before = of_rows(sample.case.proba, sample.case.codes)[held.rows]
    moved = of_rows(held.case.proba, held.case.codes) - before
    difference = held.case.mean(moved)
    error = _error_of_mean(sample.drawn, held, moved, difference)
    found = normal_difference(loss, difference, error, level)
    if groups is not None:
        found = by_group(found, moved, held.case.weight, groups[held.rows])
    return for_two_folds(found)


def _error_of_mean(drawn, held, moved, mean):
    """The standard error of a mean of all rows that is taken of the drawn ones.

    That of all rows, which are a sample themselves; and, where rows stand for others of their
    stratum, that of drawing so many of these: the masses of the strata are known.
    """
    weight, share = held.case.weight, drawn.share[held.rows]
    _, stratum = np.unique(drawn.stratum[held.rows], return_inverse=True)
    stratum = stratum.ravel()
    own = np.bincount(stratum, weight * moved) / np.bincount(stratum, weight)
    n = np.bincount(stratum)[stratum]
    apart = (moved - own[stratum]) ** 2 * n / np.maximum(n - 1, 1)
    variance = held.squares / share @ (moved - mean) ** 2 + weight**2 * (1 - 1 / share) @ apart
    return np.sqrt(variance) / weight.sum()


def normal_difference(
    loss: float, difference: float, error: float, level: float
) -> "PairedDifference":
    """The log loss before and after, with the interval of a difference with a standard error."""
    from scipy.special import ndtri

    from ..inference import PairedDifference
    from ..metrics import log_loss

    half = ndtri((1 + level) / 2) * error
    losses = loss, loss + difference, difference
    ends = difference - half, difference + half
    return PairedDifference(log_loss.spec.name, *losses, *ends, level, "normal")


def for_two_folds(found: "PairedDifference") -> "PairedDifference":
    """The same with twice the variance: rows of two folds meet twice, fitted once, judged once."""
    half = (found.high - found.low) / np.sqrt(2)
    return replace(found, low=found.difference - half, high=found.difference + half)


def by_group(found: "PairedDifference", moved: Any, weight: Any, groups: Any) -> "PairedDifference":
    """The same difference, with the interval of means of groups: rows of a group are alike."""
    from scipy.stats import t

    from ..inference import sum_error

    _, groups = np.unique(groups, return_inverse=True)
    error = sum_error(weight * (moved - found.difference), groups.ravel()) / weight.sum()
    half = t.ppf((1 + found.level) / 2, groups.max()) * error
    return replace(found, low=found.difference - half, high=found.difference + half)


_AS_REPORTS: dict[str, Any] = {"depth": 2, "level": 1 - SIGNIFICANCE}


class GroupAudit(NamedTuple):
    """The summary of all rows, and the audit of their groups."""

    summary: "CalibrationSummary"
    groups: "GroupCalibration | None"  # None of no rows


def audit_groups(
    files: list[str],
    by: Sequence[str],
    n_jobs: int | None,
    plan: dict[str, Any],
    draw: "Draw | None" = None,
) -> GroupAudit:
    """Read the rows twice: what values the columns have, then how often they come with each score.

    Parameters
    ----------
    files : list of str
    by : sequence of str
        The columns.
    n_jobs : int or None
    plan : dict
        Further arguments of `summarize`.
    draw : Draw, optional
        What to draw beside the summary.
    """
    reading: dict[str, Any] = {"n_jobs": n_jobs, "csv": plan["csv"]}
    with progress("reading groups") as advance:
        values = count_values(files, by, progress=advance, **reading)
    partitions, coders = [], []
    for name, column in values.items():
        listed, counts = column.table()
        listed = _typed(listed, name, column.as_text, column.decimal)
        partitions.append(partition_of_values(plain(name), listed, counts, **_AS_REPORTS))
        coders.append(column.coder(partitions[-1].codes, len(partitions[-1].names)))
    with progress("reading") as advance:
        found = summarize_groups(files, coders, progress=advance, draw=draw, **plan | reading)
    partitions = [
        one._replace(codes=codes) for one, codes in zip(partitions, found.groups, strict=True)
    ]
    audited = None
    if found.summary.n_samples:
        given = found.pairs, partitions, found.n_rows, found.summary
        audited = audit_pairs(*given, **_AS_REPORTS)
    return GroupAudit(found.summary, audited)


def audit_saved(files: list[str], by: Sequence[str]) -> GroupAudit:
    """The groups that the folders of saved summaries name."""
    with progress("reading") as advance:
        found = summarize(files, by=[*by], progress=advance)
    groups = group_calibration(found, groups=[plain(name) for name in by], **_AS_REPORTS)
    return GroupAudit(sum(found.values()), groups)


def _typed(values, name, as_text, decimal):
    """Values as the column would be read at once: numbers and dates that are written as text."""
    import pandas as pd

    if values.dtype.kind != "O":
        return values
    if as_text:
        known = values_of_text([one for one in values if one is not None], decimal)
        values = pd.Series([known.get(one) for one in values], dtype=object).to_numpy()
    if not any(isinstance(one, str) for one in values):
        return values
    frame = pd.DataFrame({name: pd.Series(values, dtype=object)})
    return with_order(Block(frame, "", decimal), name).to_numpy()


_AT_ONCE = 2**23  # bytes of tables that are read as a whole


def is_large(files: "Sequence[str]", options: Request, several: bool = True) -> bool:
    """Whether to summarise; if not, the rows are read at once.

    Where `several` is true, the number of files decides too.
    """
    _is_saved.cache_clear()  # a file may have been written since
    saved = [file for file in files if _is_saved(file)]
    tables = [file for file in files if file not in saved]
    if tables:
        options.check_named(plain(tables[0]))
        _check_grades(options, len(_roles(tables[0], options).scores))
    wanted = saved or options.save or options.dask
    many = several and len(tables) > 1
    return bool(wanted) or many or weigh_more(tables, _AT_ONCE)


_WHOLE = {
    "group": "--cluster",
    "prediction": "--prediction",
    "scale": "--scale",
    "soft_labels": "--soft-labels",
    "absent": "--missing absent",
}


def read_whole(options: Request) -> bool:
    """Whether an option needs all rows at once, however large the tables are."""
    return any(getattr(options, name) is not None for name in _WHOLE)


def check_whole(files: "Sequence[str]", options: Request) -> None:
    """Refuse what cannot go together with rows that are read whole, or with clusters."""
    asked = next(option for name, option in _WHOLE.items() if getattr(options, name) is not None)
    _refuse_summaries(files, asked, options.group is not None)
    others = ["save", "dask"]
    if options.group is not None or options.soft_labels:
        others += ["by", "features", "grades", "recalibrate"]
    if options.soft_labels:
        asked = "--soft-labels"
    options.check_confidence()
    options.check_beside(asked, others)
    options.check_named(plain(files[0]))
    _check_grades(options, len(_roles(files[0], options).scores))


def _check_grades(options: Request, n_columns: int) -> None:
    """Refuse grades of several classes, before the rows are read."""
    if options.grades is not None and n_columns > 2:
        refuse(
            "the column of one class in --prob, whose probability has --grades",
            f"{n_columns} columns",
            "Name one of two classes, or leave --grades out",
        )


@cache
def _is_saved(file):
    try:
        return is_summary_file(file)
    except (OSError, ValueError):  # reading it words the error
        return False


def _roles(file, options):
    """The columns of a file by what they are for."""

    def pick(present):
        return [*options.label_columns(present), *split_columns(options.prob, present)]

    return options.roles(column_names(file, pick, **options.csv))


def audit_large(files: "Sequence[str]", options: Request, conditions: "Sequence[Condition]") -> int:
    """Report on the rows of all files, and say whether recalibration would help."""
    from ..report import calibration_report

    screen = Screen()
    found, name, _ = summaries_of(list(files), options)
    summary = found.summary if options.by else found
    if summary.drawn is not None:
        sample_of(summary, options)  # refuses columns in another order
    else:
        check_rising(summary, options)
    settings = settings_of(files, options, conditions)
    with progress("measuring") as advance:
        name = plain(options.name or name)
        settings["grades"] = options.grades
        report = calibration_report(summary, name=name, progress=advance, **settings)
    if options.by:
        report.groups[name] = found.groups
    if options.features:
        report.features[name] = gains_by_features(summary, options)
    if options.save is not None:
        _save(summary, options.save)
    return finish(screen, report, options, conditions)


def summaries_of(files: list[str], options: Request, rows: bool = False) -> tuple[Any, str, Any]:
    """The summary of all rows, or a `GroupAudit`; its name; the positive class.

    With `rows`, and of several classes, some rows are drawn beside it.
    """
    grouping = options.by
    tables = [file for file in files if not _is_saved(file)]
    if options.features and len(tables) < len(files):
        refuse("rows with features", "summaries", "Leave --features out")
    if not tables:
        name = files[0] if len(files) == 1 else f"{len(files)} summaries"
        if grouping:
            saved = audit_saved(files, options.groups_among(()))
            _check_of_summaries(saved.summary, options)
            return saved, name, None
        with progress("reading") as advance:
            summary = summarize(files, progress=advance)
        _check_of_summaries(summary, options)
        return summary, name, None
    roles = _roles(tables[0], options)
    columns, by = roles.scores, roles.groups
    draw = draw_of(options, roles.features, rows or len(columns) > 2)
    classes, positive = _classes(files, options, len(columns))
    if len(columns) == 1 and positive is not None and classes[0] == positive:
        classes = classes[::-1]  # the column is the probability of the first class
    plan = {"label": options.label, "prob": columns, "weight": options.weight}
    plan |= {"classes": classes, "pos_label": positive, "csv": options.csv}
    plan["drop_missing"] = options.drop_missing
    if by:
        found = _on_workers(options.dask, lambda n: audit_groups(files, by, n, plan, draw))
    else:
        with progress("reading") as advance:
            how = {"progress": advance, "_draw": draw, **plan}
            found = _on_workers(options.dask, lambda n: summarize(files, n_jobs=n, **how))
    check_rows(found.summary if by else found)
    return found, ", ".join(columns), classes[1] if positive is None else positive


def items_of(files: "Sequence[str]", options: Request) -> "tuple[LabelledRows, int]":
    """Items of soft labels that their own digits draw, read block by block, and how many they are.

    Where they are not many, all of them.
    """
    _refuse_summaries(files, "--soft-labels")
    roles = _roles(files[0], options)
    columns, labels = roles.scores, roles.labels
    classes = soft_classes(options, labels, len(columns))
    with progress("reading") as advance:
        how: dict[str, Any] = {"label": labels, "prob": columns, "weight": options.weight}
        how |= {"classes": classes, "csv": options.csv, "drop_missing": options.drop_missing}
        how |= {"_draw": draw_of(options, roles.features, True), "progress": advance}
        how["soft_labels"] = True
        found = _on_workers(options.dask, lambda n: summarize([*files], n_jobs=n, **how))
    check_rows(found)
    drawn = found.drawn.rows()
    return in_order(soft_sample(drawn, classes, columns, options), options), found.n_samples


def _refuse_summaries(files, asked, clusters=False):
    """Summaries where single rows are needed, or sums of clusters."""
    if any(_is_saved(file) for file in files):
        why = "which do not keep single rows"
        if clusters:
            why = "which add rows up by score: what each cluster adds there is as much as the rows"
        refuse(f"rows for {asked}", f"summaries, {why}", "Give the rows")


def _check_of_summaries(summary, options):
    """Refuse what only rows could heed, and summaries without rows."""
    if not summary.n_samples:
        refuse(
            "a summary of at least one row",
            "an empty one",
            "Give one of rows, or the rows themselves",
        )
    if options.weight is not None:
        refuse(
            "rows to weigh",
            "summaries, which keep the weights that they were made with",
            "Leave --weight out, or give the rows",
        )
    words = {"--cluster": "group", "--scale": "numbers", "--tolerance": "sums"}
    given = {option: getattr(options, name) is not None for option, name in words.items()}
    for option, there in given.items():
        if there:
            refuse(f"rows for {option}", "summaries", "Leave it out, or give the rows")
    known = summary.positive_label
    if options.positive is not None and plain(options.positive) != plain(known):
        refuse(
            f"--positive {quoted(known)}, as the summaries have it",
            quoted(options.positive),
            "Leave it out, or give the rows",
        )


def _classes(files, options, n_columns):
    import pandas as pd

    reading = {"csv": options.csv, "drop_missing": options.drop_missing}
    found = find_classes(files, label=options.label, **reading)
    classes, positive = named_classes(options, pd.Series(found), n_columns)
    classes = found.tolist() if classes is None else classes
    check_two_classes(classes, options)
    if len(classes) > 2 >= n_columns:
        refuse(
            f"labels of two classes in column {quoted(options.label)}",
            f"{len(classes)}",
            "Name one column of probabilities for each class, or with audit --prediction the "
            "predicted class, whose confidence the one column is",
        )
    return classes, positive


def _on_workers(address, work):
    """The work in this process, or by the workers of a dask cluster."""
    if address is None:
        return work(None)
    import joblib

    from ..exceptions import require

    dask = require("distributed", "dask", "audit")
    try:
        client = dask.Client(address)
    except (OSError, ValueError) as error:
        refuse(
            "the address of a dask scheduler",
            f"{quoted(address)} ({plain(str(error), 200).rstrip('.')})",
            "Give one such as tcp://host:8786",
        )
    try:
        with client, joblib.parallel_config("dask"):
            return work(-1)
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        refuse(
            f"workers of {quoted(address)} that stay",
            f"{type(error).__name__}: {plain(str(error), 200).rstrip('.')}",
            "See why they ended (often for want of memory), and run again; nothing has been "
            "written",
        )


def _save(summary, path):
    try:
        summary.to_parquet(path)
    except OSError as error:
        refuse(
            f"a place to write {quoted(path, 200)}",
            plain(error.strerror or error, 200),
            "Choose one with --save",
        )
