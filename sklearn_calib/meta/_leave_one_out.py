"""Leave-one-out scores of the rows of a fit, for a recalibrator."""

from typing import TYPE_CHECKING

from sklearn.pipeline import Pipeline

from .._typing import Estimator, FloatArray, IntArray
from ..canonical import canonical_proba
from ..linear import leave_one_out_scores, read_linear, settled

if TYPE_CHECKING:
    from ._pairs import Job


def linear_leave_one_out(job: "Job", estimator: Estimator, columns: IntArray) -> FloatArray:
    """Canonical leave-one-out scores of a job's rows; the fit is carried on to its minimum."""
    own, model = job.own_model(estimator)
    labels = job.labels_of(model, columns)
    fits = read_linear(model, job.X, labels, _training_weight(job, model), job.where)
    scores = leave_one_out_scores(settled(fits, model, job.where, own), job.where)
    n_classes = len(model.classes_)
    return canonical_proba(scores, kind="logits", n_classes=n_classes, _where=job.where)


def _training_weight(job, model):
    name = (
        f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
    )
    return job.estimator_params.get(name)
