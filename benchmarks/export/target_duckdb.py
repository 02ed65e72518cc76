"""SQL in DuckDB: queries on all columns."""

import duckdb  # noqa: F401 - to be skipped without it
from other_languages import in_sql


def predict(document, rows):
    return in_sql("duckdb", [(document, rows)])[0]
