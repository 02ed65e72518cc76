"""Checks what users pass: scores, labels and weights become clean numeric arrays.

It may import `_show` and the small modules of the package.
Start reading with `read_proba` in `_scores.py`.
"""

from .._simplex_array import SimplexArray as SimplexArray, log_proba as log_proba
from ._arrays import (
    check_names_differ as check_names_differ,
    collect_lazy_frame as collect_lazy_frame,
    is_missing as is_missing,
    iter_named_columns as iter_named_columns,
    read_array as read_array,
    read_numbers as read_numbers,
    to_numpy_dates as to_numpy_dates,
    to_object_array as to_object_array,
)
from ._column_order import (
    COLUMN_ORDER_HINT as COLUMN_ORDER_HINT,
    MIN_PERMUTED_LEAD as MIN_PERMUTED_LEAD,
    Ranks as Ranks,
    align_columns as align_columns,
    are_ranked_well as are_ranked_well,
    check_column_owner as check_column_owner,
    check_indexes as check_indexes,
    column_names as column_names,
    count_ranked_pairs as count_ranked_pairs,
    describe_choice as describe_choice,
    describe_doubtful_order as describe_doubtful_order,
    find_columns as find_columns,
    find_likely_order as find_likely_order,
    find_positive as find_positive,
    is_single_column as is_single_column,
    match_columns as match_columns,
    orient_single_column as orient_single_column,
    place_columns as place_columns,
    warn_column_order as warn_column_order,
)
from ._device import (
    DeviceScores as DeviceScores,
    read_device_scores as read_device_scores,
)
from ._label_tables import (
    BINARY_CLASSES as BINARY_CLASSES,
    LabelScores as LabelScores,
    canonical_label_scores as canonical_label_scores,
    canonical_label_table as canonical_label_table,
    find_known_rows as find_known_rows,
    get_label_names as get_label_names,
    named_label_tables as named_label_tables,
)
from ._labels import (
    ALL_CLASSES_HINT as ALL_CLASSES_HINT,
    canonical_labels as canonical_labels,
    check_column_labels as check_column_labels,
    check_two_or_more_classes as check_two_or_more_classes,
    get_category_order as get_category_order,
    has_unsorted_classes as has_unsorted_classes,
    hint_at_survival as hint_at_survival,
    is_label_table as is_label_table,
    order_scale_columns as order_scale_columns,
    read_labels as read_labels,
)
from ._rounded import (
    FLOAT32_SUM_TOLERANCE as FLOAT32_SUM_TOLERANCE,
    get_sum_tolerance as get_sum_tolerance,
)
from ._scores import (
    MAX_ABS_LOGIT as MAX_ABS_LOGIT,
    add_first_class_column as add_first_class_column,
    canonical_logits as canonical_logits,
    canonical_proba,
    check_same_length as check_same_length,
    read_proba as read_proba,
    valid_proba as valid_proba,
)
from ._soft_labels import (
    SoftRows as SoftRows,
    Votes as Votes,
    check_votes as check_votes,
    count_votes as count_votes,
    soft_rows as soft_rows,
)
from ._weights import (
    canonical_weight as canonical_weight,
    check_weights as check_weights,
    get_rows_per_weight as get_rows_per_weight,
    read_raw_weight as read_raw_weight,
    read_weight_and_unit as read_weight_and_unit,
)

__all__ = [
    "canonical_proba",
]


def __dir__() -> list[str]:
    return __all__
