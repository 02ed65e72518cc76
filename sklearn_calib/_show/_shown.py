"""Results that print what they say, and show it in a notebook."""

from ._html import html_of, in_notebook
from ._sections import Section
from ._text import text_of


def sections_of(shown: "Shown") -> list[Section]:
    """What a result says."""
    return shown._sections()


class Shown:
    """Prints what `_sections` returns, and shows it in a notebook."""

    def _sections(self) -> list[Section]:
        raise NotImplementedError(f"{type(self).__name__} has no _sections; see Section")

    def __str__(self) -> str:
        return text_of(self._sections())

    def _repr_html_(self) -> str:
        return in_notebook(html_of(self._sections()))
