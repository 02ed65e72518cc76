"""Renders results as text, Markdown and HTML, and makes foreign names safe to print.

It may not import any other part of the package.
Start reading with `Section` in `_sections.py`.
"""

from ._html import SHARED_CSS, render_html, wrap_for_notebook
from ._names import (
    display_paths_as,
    escape_html,
    escape_legend_label,
    escape_mathtext,
    format_error_or_type_if_secret,
    format_row_numbers,
    join_truncated,
    make_printable,
    quote_for_shell,
    quote_text,
    redact_secrets,
)
from ._sections import MarkedCell, Section, Table, format_best_rows, get_cell_text
from ._text import (
    RenderableMixin,
    get_sections,
    iter_terminal_renderables,
    render_markdown,
    render_text,
)
