"""Names from the data of users, made safe for a terminal, a picture and a page."""

import html
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import unquote

# The zero-width joiner, which stands between the parts of an emoji.
_EMOJI_JOINER = "\u200d"
_SECRET_PATTERN = re.compile(
    r"(?i)((?:password|passwd|pwd|account_?key|access_?key|api_?key|access_?signature|secret\w*"
    r"|(?<![a-z])(?:sig|sas_?token))\s*=\s*)(?!\.\.\.)(?:\{[^}\n]*\}?|[^;\n]+)"
)
_URL_SCHEME_PATTERN = r"([A-Za-z][A-Za-z0-9+.-]+://)"
_URL_CREDENTIALS_PATTERN = re.compile(
    rf"{_URL_SCHEME_PATTERN}(?:[^\s'\"/?#]*@|[^\s'\"@/]*:[^\n]*@)"
)
_URL_QUERY_PATTERN = re.compile(rf"{_URL_SCHEME_PATTERN}([^\s'\"?#]*)[?#][^\s'\"]*")


def redact_secrets(text: str) -> str:
    """Remove from addresses what may be a secret: user, password, query, signature.

    Of texts such as ``Server=h;Password=x`` the secret values become ``...``.
    """
    if "://" in text:
        text = _URL_CREDENTIALS_PATTERN.sub(r"\1", text)
        if re.match(_URL_SCHEME_PATTERN, text):  # an address alone, perhaps with spaces
            text = re.split(r"[?#]", text, maxsplit=1)[0]
        text = _URL_QUERY_PATTERN.sub(r"\1\2", text)
    return _SECRET_PATTERN.sub(r"\1...", text) if "=" in text else text


def format_error_or_type_if_secret(error: BaseException, address: str) -> str:
    """Return the message of an error, or its class if the message repeats a secret."""
    reason = str(getattr(error, "reason", None) or error)
    hidden, shown_words = (
        {*re.findall(r"\w+", f"{text} {unquote(text)}")} for text in (address, reason)
    )
    if shown_words & (hidden - {*re.findall(r"\w+", redact_secrets(address))}):
        return type(error).__name__
    return reason


@contextmanager
def display_paths_as(names: Mapping[str, str]) -> Iterator[None]:
    """Show paths that begin with the given ones with their names inside the block."""
    before = dict(_SHOWN_PATH_BY_PREFIX)
    _SHOWN_PATH_BY_PREFIX.update(names)
    try:
        yield
    finally:
        _SHOWN_PATH_BY_PREFIX.clear()
        _SHOWN_PATH_BY_PREFIX.update(before)


# What messages show instead of the beginning of a path.
_SHOWN_PATH_BY_PREFIX: dict[str, str] = {}


def make_printable(value: object, limit: int | None = 60) -> str:
    r"""Return one line of printable text: control characters as ``\x1b``, long texts cut.

    Addresses come without their secrets, as `redact_secrets` leaves them. Copies have
    the names that `display_paths_as` gives.
    """
    text = str(value)
    for begins in _SHOWN_PATH_BY_PREFIX:
        if text.startswith(begins):
            text = _SHOWN_PATH_BY_PREFIX[begins] + text[len(begins) :]
    text = redact_secrets(text)
    if not text.isprintable():
        text = "".join(
            character
            if character.isprintable() or character == _EMOJI_JOINER
            else character.encode("unicode_escape").decode()
            for character in text
        )
    if limit is not None and len(text) > limit:
        end = (limit - 3) // 2
        text = f"{text[: limit - 3 - end]}...{text[-end:]}"
    return text


def quote_text(value: object, limit: int | None = 60) -> str:
    """Return text in single quotes, for messages."""
    return f"'{make_printable(value, limit)}'"


def quote_for_shell(text: str) -> str:
    r"""Quote one word of a shell command; control characters become $'\x1b'.

    An address comes without its secrets, which have to be written in again.
    """
    text = redact_secrets(text)
    if text.isprintable():
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return (
        "$'"
        + "".join(
            character if character.isprintable() else _escape_bytes(character)
            for character in escaped
        )
        + "'"
    )


def _escape_bytes(character):
    """Return the bytes of a character in a shell; undecodable ones keep their own."""
    of_name = "\udc80" <= character <= "\udcff"
    encoded = character.encode(
        "utf-8", "surrogateescape" if of_name else "surrogatepass"
    )
    return "".join(f"\\x{byte:02x}" for byte in encoded)


def format_row_numbers(rows: Sequence[int], n_rows: int | None = None) -> str:
    """Return the first of several rows, and how many there are: ``rows 3, 7 and 12``.

    Of `n_rows` rows the first five are enough.
    """
    first = [str(int(row)) for row in rows[:5]]
    more = (len(rows) if n_rows is None else n_rows) - len(first)
    if more:
        return f"rows {', '.join(first)} and {more} more"
    if len(rows) == 1:
        return f"row {first[0]}"
    return f"rows {', '.join(first[:-1])} and {first[-1]}"


def join_truncated(texts: Sequence[str], max_texts: int, mark: str = ", ") -> str:
    """Join the first of several texts, and count the rest: ``'a', 'b' and 3 more``."""
    more = len(texts) - max_texts
    shown = mark.join(texts[:max_texts])
    return f"{shown}{mark.strip(', ')} and {more} more" if more > 0 else shown


def escape_html(value: object, limit: int | None = 200) -> str:
    """Escape text for HTML, inside tags and attributes."""
    return html.escape(make_printable(value, limit), quote=True)


def escape_mathtext(value: object, limit: int = 40) -> str:
    """Escape text for matplotlib, in which two dollars would start a formula."""
    return make_printable(value, limit).replace("$", r"\$")


def escape_legend_label(value: object, limit: int = 40) -> str:
    """Escape text for a legend of matplotlib, which omits names with a leading underscore."""
    text = escape_mathtext(value, limit)
    return f" {text}" if text.startswith("_") else text
