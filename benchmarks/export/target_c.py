"""C, compiled by the system's compiler."""

from other_languages import CC, in_c

if CC is None:
    raise ImportError("no C compiler")


def predict(document, rows):
    return in_c([(document, rows)])[0]
