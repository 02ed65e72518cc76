"""Checks of what users pass: scores become rows that sum to 1, labels codes, weights numbers.

All other sub-packages receive clean float64 arrays only. The caller declares which of the two
kinds the scores are; it is never guessed from the values. Start reading with `read_proba`.
"""

from .._simplex_array import SimplexArray as SimplexArray
from .._simplex_array import log_proba as log_proba
from ._arrays import check_names_differ as check_names_differ
from ._arrays import collected as collected
from ._arrays import entries as entries
from ._arrays import is_missing as is_missing
from ._arrays import named_columns as named_columns
from ._arrays import plain_dates as plain_dates
from ._arrays import read_array as read_array
from ._arrays import read_numbers as read_numbers
from ._column_order import EITHER_ORDER as EITHER_ORDER
from ._column_order import FARTHER as FARTHER
from ._column_order import Ranks as Ranks
from ._column_order import align_columns as align_columns
from ._column_order import better_order as better_order
from ._column_order import check_column_owner as check_column_owner
from ._column_order import check_indexes as check_indexes
from ._column_order import column_names as column_names
from ._column_order import describe_choice as describe_choice
from ._column_order import find_columns as find_columns
from ._column_order import find_positive as find_positive
from ._column_order import give_to_owner as give_to_owner
from ._column_order import is_single_column as is_single_column
from ._column_order import match_columns as match_columns
from ._column_order import order_in_doubt as order_in_doubt
from ._column_order import place_columns as place_columns
from ._column_order import rank_well as rank_well
from ._column_order import ranks_of as ranks_of
from ._column_order import warn_of_order as warn_of_order
from ._device import DeviceScores as DeviceScores
from ._device import device_scores as device_scores
from ._label_tables import BOTH as BOTH
from ._label_tables import LabelScores as LabelScores
from ._label_tables import canonical_label_scores as canonical_label_scores
from ._label_tables import canonical_label_table as canonical_label_table
from ._label_tables import known_rows as known_rows
from ._label_tables import label_names as label_names
from ._label_tables import named_label_tables as named_label_tables
from ._labels import PASS_ALL_CLASSES as PASS_ALL_CLASSES
from ._labels import canonical_labels as canonical_labels
from ._labels import check_columns_of as check_columns_of
from ._labels import check_several as check_several
from ._labels import get_category_order as get_category_order
from ._labels import has_own_order as has_own_order
from ._labels import hint_at_survival as hint_at_survival
from ._labels import is_label_table as is_label_table
from ._labels import order_scale_columns as order_scale_columns
from ._labels import read_labels as read_labels
from ._rounded import SLACK as SLACK
from ._rounded import slack_of as slack_of
from ._scores import LARGEST_LOGIT as LARGEST_LOGIT
from ._scores import canonical_logits as canonical_logits
from ._scores import canonical_proba
from ._scores import check_same_length as check_same_length
from ._scores import read_proba as read_proba
from ._scores import two_columns as two_columns
from ._scores import valid_proba as valid_proba
from ._soft_labels import SoftRows as SoftRows
from ._soft_labels import Votes as Votes
from ._soft_labels import check_votes as check_votes
from ._soft_labels import soft_rows as soft_rows
from ._soft_labels import votes_of as votes_of
from ._weights import canonical_weight as canonical_weight
from ._weights import check_weights as check_weights
from ._weights import raw_weight as raw_weight
from ._weights import rows_per_weight as rows_per_weight
from ._weights import weight_and_unit as weight_and_unit

__all__ = [
    "canonical_proba",
]


def __dir__() -> list[str]:
    return __all__
