"""Names that somebody else chose, made safe for a terminal, a picture and a page."""

import html

_JOINER = "\u200d"  # inside emoji


def plain(value, limit=60):
    """One line of printable text: control characters as ``\\x1b``, long texts cut in the middle."""
    text = str(value)
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() or c == _JOINER else c.encode("unicode_escape").decode()
            for c in text
        )
    if limit is not None and len(text) > limit:
        end = (limit - 3) // 2
        text = f"{text[: limit - 3 - end]}...{text[-end:]}"
    return text


def quoted(value, limit=60):
    """`plain` text in single quotes, for messages."""
    return f"'{plain(value, limit)}'"


def in_page(value, limit=200):
    """For HTML, inside tags and attributes."""
    return html.escape(plain(value, limit), quote=True)


def in_picture(value, limit=40):
    """For matplotlib, where two dollars would start a formula."""
    return plain(value, limit).replace("$", r"\$")


def in_legend(value, limit=40):
    """For a legend of matplotlib, which leaves out names that start with an underscore."""
    text = in_picture(value, limit)
    return f" {text}" if text.startswith("_") else text
