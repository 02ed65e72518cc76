"""Many cases in one test, as a test costs several milliseconds before it begins."""

import functools
import inspect

import pytest


def run_every_case(names, cases, ids=None):
    """Take the place of `pytest.mark.parametrize` if a case takes some milliseconds.

    One test runs all cases, goes on after a case that fails, and reports each of these.
    A case with marks remains a test of its own. Fixtures are made once per test, so a
    case must not depend on what another one leaves behind.

    Parameters
    ----------
    names : str or sequence of str
        Arguments of the test, separated by commas if they are one string.
    cases : iterable
        Their values, or `pytest.param`, as for `pytest.mark.parametrize`.
    ids : callable or iterable of str, optional
        How a case is named in the report.
    """
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    titles = None if ids is None or callable(ids) else iter(ids)
    name_one = ids if callable(ids) else name_value
    together, alone = {}, []
    for place, case in enumerate(cases):
        marks, title = (), next(titles) if titles else None
        if isinstance(case, type(pytest.param())):
            values, marks, title = case.values, case.marks, case.id or title
        else:
            values = (case,) if len(names) == 1 else case
        if title is None:
            title = "-".join(name_one(one) or name_value(one) for one in values)
        arguments = dict(zip(names, values, strict=True))
        if marks:
            alone.append(pytest.param({title: arguments}, id=title, marks=marks))
        else:
            together[f"{title}, {place}" if title in together else title] = arguments
    if not together and not alone:
        raise ValueError(f"expected cases of {names}, got none")
    argument = f"cases_of_{names[0]}"
    tests = [pytest.param(together, id="all")] if together else []

    def decorate(test):
        @functools.wraps(test)
        def run_cases(**fixtures):
            __tracebackhide__ = True
            chosen = fixtures.pop(argument)
            check_every_case(chosen, lambda **case: test(**case, **fixtures))

        parameters = inspect.signature(test).parameters
        kept = [one for name, one in parameters.items() if name not in names]
        kept.append(inspect.Parameter(argument, inspect.Parameter.KEYWORD_ONLY))
        run_cases.__signature__ = inspect.Signature(kept)
        return pytest.mark.parametrize(argument, [*tests, *alone])(run_cases)

    return decorate


def name_value(value):
    """Return how a value is named in a report."""
    return str(getattr(value, "__name__", None) or value)


def check_every_case(cases, check):
    """Run a check of each case, and fail with all cases that fail.

    Parameters
    ----------
    cases : dict
        {title: arguments of the check by name}.
    check : callable
        Raises if a case is wrong.
    """
    __tracebackhide__ = True
    failed, skipped = {}, {}
    for title, arguments in cases.items():
        try:
            check(**arguments)
        except (Exception, pytest.fail.Exception) as error:
            failed[title] = error
        except pytest.skip.Exception as reason:
            skipped[title] = reason
    if failed:
        lines = [f"{len(failed)} of {len(cases)} cases fail:"]
        for title, error in failed.items():
            lines.append(f"[{title}] {type(error).__name__}: {error}")
        first = next(iter(failed.values()))
        raise AssertionError("\n".join(lines)) from first
    if cases and len(skipped) == len(cases):
        raise next(iter(skipped.values()))
