"""
Calibrated probabilities inside a database
==========================================

The scores of a model often lie in a table: a nightly job writes them, and analysts read them with
SQL. The last step, the map from scores to calibrated probabilities, can then be SQL as well. Here
gradient boosting scores the Adult data (who earns more than 50,000 dollars), and DuckDB
calibrates. The data come from OpenML, or from the folder named by ``SKLEARN_CALIB_DATA``.
"""

import os
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pandas as pd
from sklearn.datasets import fetch_openml, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from sklearn_calib.export import to_onnx, to_sql
from sklearn_calib.recalibrators import IsotonicCalibration


def adult():
    stored = Path(os.environ.get("SKLEARN_CALIB_DATA", ".")) / "adult" / "adult.csv.gz"
    if stored.exists():
        table = pd.read_csv(stored, skipinitialspace=True)
        return table.drop(columns=["target", "split"], errors="ignore"), table["target"]
    return fetch_openml("adult", version=2, as_frame=True, return_X_y=True)


try:
    X, y = adult()
except OSError:
    print("OpenML cannot be reached; generated rows stand in for Adult.")
    X, y = make_classification(45_000, weights=[0.76], flip_y=0.2, random_state=0)
    X, y = pd.DataFrame(X), pd.Series(y)
words = X.select_dtypes(exclude="number").columns
X = X.astype(dict.fromkeys(words, "category"))
X, X_rest, y, y_rest = train_test_split(X, y, train_size=5000, random_state=0)
X_cal, X_new, y_cal, y_new = train_test_split(
    X_rest, y_rest, train_size=2000, random_state=0
)
model = HistGradientBoostingClassifier(
    max_iter=300,
    early_stopping=False,
    categorical_features="from_dtype",
    random_state=0,
).fit(X, y)

# %%
# In Python, once: fit a map on rows that the model has not seen, and write it as an expression
# of the column with the scores.

isotonic = IsotonicCalibration().fit(model.predict_proba(X_cal), y_cal)
calibrated = to_sql(isotonic, "score", dialect="duckdb", into="calibrated")
print(f"{len(calibrated)} characters, of them the last: ...{calibrated[-300:]}")

# %%
# In the database, from now on: scores are rows of a table, and the expression is a column of a
# view.

scores = pd.DataFrame(
    {
        "id": np.arange(len(X_new)),
        "score": model.predict_proba(X_new)[:, 1],
        "earns_more": np.asarray(y_new == model.classes_[1]),
    }
)
database = duckdb.connect()
database.execute("CREATE TABLE scores AS SELECT * FROM scores")
database.execute(f"CREATE VIEW calibrated_scores AS SELECT *, {calibrated} FROM scores")
print(database.sql("SELECT * FROM calibrated_scores ORDER BY id LIMIT 5"))

# %%
# The numbers are those of Python.

from_database = database.sql(
    "SELECT calibrated FROM calibrated_scores ORDER BY id"
).fetchnumpy()
in_python = isotonic.predict_proba(scores["score"].to_numpy())[:, 1]
print(
    f"largest difference: {np.abs(from_database['calibrated'] - in_python).max():.1e}"
)

# %%
# So are those of the same map as an ONNX model, which programs in other languages run.

session = onnxruntime.InferenceSession(to_onnx(isotonic).SerializeToString())
columns = np.column_stack([1 - scores["score"], scores["score"]])  # one for each class
[from_onnx] = session.run(None, {"scores": columns})
print(f"largest difference: {np.abs(from_onnx[:, 1] - in_python).max():.1e}")

# %%
# And they can be used like any other column: here groups of rows with similar scores, before and
# after.

groups = """
    SELECT AVG(score) AS score, AVG(calibrated) AS calibrated, AVG(earns_more::INT) AS share
    FROM (SELECT *, NTILE(15) OVER (ORDER BY score) AS tile FROM calibrated_scores)
    GROUP BY tile ORDER BY tile
"""
table = database.sql(groups).df()
fig, ax = plt.subplots(figsize=(5, 5))
ax.plot([0, 1], [0, 1], color="grey", linewidth=1)
ax.plot(table["score"], table["share"], "o-", label="score of the model")
ax.plot(table["calibrated"], table["share"], "s-", label="calibrated in SQL")
ax.set(
    xlabel="mean probability of a group", ylabel="share that earns more", aspect="equal"
)
ax.legend()
plt.show()

# %%
# Maps with thousands of steps are faster as a table of intervals, to which the scores are
# joined: ``to_sql(..., into="table")``. For several classes, pass the names of all columns; the
# result is then a query.
