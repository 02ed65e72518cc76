"""Suggestions for names that are not known."""

import re
from collections.abc import Iterable
from difflib import get_close_matches


def find_nearest_name(name: object, choices: Iterable[object]) -> str | None:
    """Return the known name that a misspelt or shortened one means, or None.

    Case, spaces, hyphens and underscores do not count. In this order: the same name,
    the one that begins with it ("temp") or ends with it ("bins"), the one with these
    initials ("ece"), the most similar one, and one that is left when letters are taken
    out ("js" of "javascript"), or added.

    Examples
    --------
    >>> from sklearn_calib._spelling import find_nearest_name
    >>> find_nearest_name("temp", ["isotonic", "temperature"])
    'temperature'
    >>> find_nearest_name("neg_ece", ["neg_expected_calibration_error"])
    'neg_expected_calibration_error'
    """
    names = [str(other) for other in choices]
    wanted = _fold_case_and_drop_separators(str(name)[:_MAX_COMPARED_NAME_LETTERS])
    if not wanted:
        return None
    by_letters = {
        _fold_case_and_drop_separators(other): other for other in reversed(names)
    }
    if wanted in by_letters:
        return by_letters[wanted]
    if len(wanted) > 1:
        for is_part in (str.startswith, str.endswith):
            matches = [letters for letters in by_letters if is_part(letters, wanted)]
            if matches:
                return by_letters[min(matches, key=len)]
        for other in names:
            words = re.split(r"[\W_]+", other)
            initials = "".join(word[:1] for word in words).casefold()
            # Scorers begin with "neg_", which the initials of a measure do not have.
            short = wanted.removeprefix("neg")
            if initials.endswith(short) and len(short) >= len(initials) - 1:
                return other
    close = get_close_matches(wanted, by_letters, 1)
    if close:
        return by_letters[close[0]]
    inside = []
    for letters in by_letters:
        is_short = min(len(letters), len(wanted)) < 2
        if is_short or letters[0] != wanted[0]:
            continue
        if _is_subsequence(letters, wanted) or _is_subsequence(wanted, letters):
            inside.append(letters)
    return by_letters[max(inside, key=len)] if inside else None


_MAX_COMPARED_NAME_LETTERS = 200


def _fold_case_and_drop_separators(name):
    return re.sub(r"[\s_-]", "", name.casefold())


def _is_subsequence(short, text):
    """Return whether `text` has the letters of `short` in this order, with others between."""
    # `in` moves the iterator on, so that each letter is searched after the last one.
    remaining = iter(text)
    return all(letter in remaining for letter in short)


def suggest_name(
    name: object,
    choices: Iterable[object],
    fallback_hint: str = "Check the spelling",
    prefix: str = "",
) -> str:
    """Return the hint for a name that is not known: the nearest one, if one is near."""
    near = find_nearest_name(name, choices)
    return (
        fallback_hint if near is None else f"Write {prefix}{near!r}, the nearest name"
    )
