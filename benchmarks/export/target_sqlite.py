"""SQL in SQLite: queries on all columns."""

from other_languages import LARGEST, in_sql, sqlite_has_functions

if not sqlite_has_functions():
    raise ImportError("SQLite without mathematical functions")


def predict(document, rows):
    if len(str(document["map"])) > LARGEST:
        return None
    return in_sql("sqlite", [(document, rows)])[0]
