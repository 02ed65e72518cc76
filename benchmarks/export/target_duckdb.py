"""SQL in DuckDB: queries on all columns."""

import duckdb  # noqa: F401 - to be skipped without it
from other_languages import LARGEST, in_sql


def predict(document, rows):
    if len(str(document["map"])) > LARGEST:
        return None
    return in_sql("duckdb", [(document, rows)])[0]
