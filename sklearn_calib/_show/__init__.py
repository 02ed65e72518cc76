"""Renders results as text, Markdown and HTML, and makes foreign names safe to print.

It may not import any other part of the package.
Start reading with `Section` in `_sections.py`.
"""

from ._html import SHARED_CSS as SHARED_CSS
from ._html import render_html as render_html
from ._html import wrap_for_notebook as wrap_for_notebook
from ._names import display_paths_as as display_paths_as
from ._names import error_reason as error_reason
from ._names import escape_html as escape_html
from ._names import escape_legend_label as escape_legend_label
from ._names import escape_mathtext as escape_mathtext
from ._names import format_row_numbers as format_row_numbers
from ._names import join_truncated as join_truncated
from ._names import plain as plain
from ._names import quote_for_shell as quote_for_shell
from ._names import quoted as quoted
from ._names import redact_secrets as redact_secrets
from ._sections import Cell as Cell
from ._sections import Section as Section
from ._sections import Table as Table
from ._sections import format_best_rows as format_best_rows
from ._sections import get_cell_text as get_cell_text
from ._text import Shown as Shown
from ._text import get_sections as get_sections
from ._text import iter_terminal as iter_terminal
from ._text import render_markdown as render_markdown
from ._text import render_text as render_text
