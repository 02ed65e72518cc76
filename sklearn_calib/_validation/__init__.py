"""Checks what users pass: scores, labels and weights become clean numeric arrays.

It may import `_show` and the small modules of the package.
Start reading with `read_proba` in `_scores.py`.
"""

from .._simplex_array import SimplexArray as SimplexArray
from .._simplex_array import log_proba as log_proba
from ._arrays import check_names_differ as check_names_differ
from ._arrays import collect_lazy_frame as collect_lazy_frame
from ._arrays import is_missing as is_missing
from ._arrays import iter_named_columns as iter_named_columns
from ._arrays import read_array as read_array
from ._arrays import read_numbers as read_numbers
from ._arrays import to_numpy_dates as to_numpy_dates
from ._arrays import to_object_array as to_object_array
from ._column_order import COLUMN_ORDER_HINT as COLUMN_ORDER_HINT
from ._column_order import MIN_PERMUTED_LEAD as MIN_PERMUTED_LEAD
from ._column_order import Ranks as Ranks
from ._column_order import align_columns as align_columns
from ._column_order import are_ranked_well as are_ranked_well
from ._column_order import check_column_owner as check_column_owner
from ._column_order import check_indexes as check_indexes
from ._column_order import column_names as column_names
from ._column_order import count_ranked_pairs as count_ranked_pairs
from ._column_order import describe_choice as describe_choice
from ._column_order import describe_doubtful_order as describe_doubtful_order
from ._column_order import find_columns as find_columns
from ._column_order import find_likely_order as find_likely_order
from ._column_order import find_positive as find_positive
from ._column_order import is_single_column as is_single_column
from ._column_order import match_columns as match_columns
from ._column_order import orient_single_column as orient_single_column
from ._column_order import place_columns as place_columns
from ._column_order import warn_column_order as warn_column_order
from ._device import DeviceScores as DeviceScores
from ._device import read_device_scores as read_device_scores
from ._label_tables import BINARY_CLASSES as BINARY_CLASSES
from ._label_tables import LabelScores as LabelScores
from ._label_tables import canonical_label_scores as canonical_label_scores
from ._label_tables import canonical_label_table as canonical_label_table
from ._label_tables import find_known_rows as find_known_rows
from ._label_tables import get_label_names as get_label_names
from ._label_tables import named_label_tables as named_label_tables
from ._labels import ALL_CLASSES_HINT as ALL_CLASSES_HINT
from ._labels import canonical_labels as canonical_labels
from ._labels import check_column_labels as check_column_labels
from ._labels import check_two_or_more_classes as check_two_or_more_classes
from ._labels import get_category_order as get_category_order
from ._labels import has_unsorted_classes as has_unsorted_classes
from ._labels import hint_at_survival as hint_at_survival
from ._labels import is_label_table as is_label_table
from ._labels import order_scale_columns as order_scale_columns
from ._labels import read_labels as read_labels
from ._rounded import FLOAT32_SUM_TOLERANCE as FLOAT32_SUM_TOLERANCE
from ._rounded import get_sum_tolerance as get_sum_tolerance
from ._scores import MAX_ABS_LOGIT as MAX_ABS_LOGIT
from ._scores import add_first_class_column as add_first_class_column
from ._scores import canonical_logits as canonical_logits
from ._scores import canonical_proba
from ._scores import check_same_length as check_same_length
from ._scores import read_proba as read_proba
from ._scores import valid_proba as valid_proba
from ._soft_labels import SoftRows as SoftRows
from ._soft_labels import Votes as Votes
from ._soft_labels import check_votes as check_votes
from ._soft_labels import count_votes as count_votes
from ._soft_labels import soft_rows as soft_rows
from ._weights import canonical_weight as canonical_weight
from ._weights import check_weights as check_weights
from ._weights import get_rows_per_weight as get_rows_per_weight
from ._weights import read_raw_weight as read_raw_weight
from ._weights import read_weight_and_unit as read_weight_and_unit

__all__ = [
    "canonical_proba",
]


def __dir__() -> list[str]:
    return __all__
