"""Renders results as text, Markdown and HTML, and makes foreign names safe to print.

It may not import any other part of the package.
Start reading with `Section` in `_sections.py`.
"""

from ._html import (
    SHARED_CSS as SHARED_CSS,
    render_html as render_html,
    wrap_for_notebook as wrap_for_notebook,
)
from ._names import (
    display_paths_as as display_paths_as,
    error_reason as error_reason,
    escape_html as escape_html,
    escape_legend_label as escape_legend_label,
    escape_mathtext as escape_mathtext,
    format_row_numbers as format_row_numbers,
    join_truncated as join_truncated,
    plain as plain,
    quote_for_shell as quote_for_shell,
    quoted as quoted,
    redact_secrets as redact_secrets,
)
from ._sections import (
    Cell as Cell,
    Section as Section,
    Table as Table,
    format_best_rows as format_best_rows,
    get_cell_text as get_cell_text,
)
from ._text import (
    Shown as Shown,
    get_sections as get_sections,
    iter_terminal as iter_terminal,
    render_markdown as render_markdown,
    render_text as render_text,
)
