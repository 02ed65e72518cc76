"""What is shown: names that somebody else chose made safe, and results as sections of tables.

A result says what it is once, as a list of `Section`; text, a terminal, Markdown and HTML
follow from it.
"""

from ._html import MARK as MARK
from ._html import html_of as html_of
from ._html import in_notebook as in_notebook
from ._names import bare as bare
from ._names import in_legend as in_legend
from ._names import in_page as in_page
from ._names import in_picture as in_picture
from ._names import in_shell as in_shell
from ._names import listed as listed
from ._names import plain as plain
from ._names import quoted as quoted
from ._names import reason_of as reason_of
from ._names import rows_in_words as rows_in_words
from ._names import shown_as as shown_as
from ._sections import Cell as Cell
from ._sections import Section as Section
from ._sections import Table as Table
from ._sections import rows_with_best as rows_with_best
from ._sections import text_of_cell as text_of_cell
from ._text import Shown as Shown
from ._text import in_terminal as in_terminal
from ._text import markdown_of as markdown_of
from ._text import sections_of as sections_of
from ._text import text_of as text_of
