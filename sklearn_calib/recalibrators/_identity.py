"""No recalibration: the baseline of every comparison."""

from .. import maps
from ._base import Capabilities, Recalibrator


class Identity(Recalibrator):
    """Return the probabilities as they are.

    The baseline in comparisons and searches, and a way to send logits through a
    softmax.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn_calib.recalibrators import Identity
    >>> Identity().fit([0.2, 0.9], [0, 1]).predict_proba([0.25])
    array([[0.75, 0.25]])
    """

    capabilities = Capabilities(
        multiclass="native",
        monotone=True,
        continuous=True,
        allows_absent_classes=True,
        array_api=True,
        cost="O(1)",
    )

    def _fit(self, proba, codes, weight):
        pass

    def _make_map(self):
        return maps.Identity()
