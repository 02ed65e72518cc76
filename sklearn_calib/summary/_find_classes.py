"""find_classes: the labels that rows show, before the rows are summarised."""

from typing import Any

from .._files.columns import array_of, coded, values_of_text
from .._typing import AnyArray
from .._validation import read_labels
from ..exceptions import add_error_context, invalid_input
from ._parts import SummaryPart, check_form, parts_of

_MOST = 10_000


def find_classes(
    data: object,
    *,
    label: str,
    csv: dict[str, Any] | None = None,
    drop_missing: bool = False,
    _enough: int | None = None,
) -> AnyArray:
    """Find the different labels, sorted, of rows that need not fit into memory.

    A summary has to know its classes before the first batch. Where they are not 0 and 1 and nobody
    knows them, this reads the column of labels, and no other.

    Parameters
    ----------
    data : object
        Files or tables, as in `summarize`; no stream that can be read only once, and no dask
        collection. Saved summaries count with their classes.
    label : str
        The column of true labels.
    csv : dict, default=None
        As in `summarize`.
    drop_missing : bool, default=False
        Pass over missing labels, which are refused otherwise.

    Returns
    -------
    classes : ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        What `summarize` refuses, no labels at all, or more than 10,000 different ones.

    Examples
    --------
    >>> from sklearn_calib.summary import find_classes, summarize
    >>> table = {"y": ["no", "yes", "no"], "p": [0.1, 0.7, 0.2]}
    >>> classes = find_classes(table, label="y")
    >>> classes.tolist()
    ['no', 'yes']
    >>> summarize(table, label="y", prob="p", classes=classes).n_samples
    3
    """
    if type(data).__name__ == "RecordBatchReader" or type(data).__module__.startswith("dask"):
        cure = "Pass classes= to summarize yourself"
        raise invalid_input(
            expected="data that can be read twice",
            got=f"a {type(data).__name__}",
            hint=cure,
            error=TypeError,
        )
    if not isinstance(label, str):
        raise invalid_input(
            expected="label as the name of a column", got=repr(label)[:60], hint="Pass a text"
        )
    csv = check_form(csv)
    from ._summary import CalibrationSummary

    found: dict[Any, None] = {}
    texts: dict[str, None] = {}
    decimal = None
    with add_error_context():
        for part in parts_of(data, (label,), csv):
            if isinstance(part, SummaryPart):
                known = CalibrationSummary.from_parquet(part.path).classes
                found |= dict.fromkeys([] if known is None else known.tolist())
                continue
            for block in part.blocks([label]):
                if drop_missing:
                    block = block.only(block.filled([label]))
                values = coded(block, label, "label").values
                if block.of_csv:
                    texts |= dict.fromkeys(values.tolist())
                    decimal = block.decimal
                else:
                    found |= dict.fromkeys(values.tolist())
                if len(found) + len(texts) > _MOST:
                    cure = "Name the column of the labels"
                    raise invalid_input(
                        expected=f"at most {_MOST} different labels", got="more", hint=cure
                    )
                if _enough and len(found) + len(texts) >= _enough:
                    return _sorted(found, texts, decimal)
    return _sorted(found, texts, decimal)


def _sorted(found, texts, decimal):
    found |= dict.fromkeys(values_of_text(texts, decimal).values())
    if not found:
        raise invalid_input(expected="rows with labels", got="none", hint="Check the data")
    return read_labels(array_of([*found]))[0]
