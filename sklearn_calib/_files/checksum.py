"""The checksum of a document: a change of its content is noticed, a change of its form is ignored.

The canonical form is that of RFC 8785: keys in the order of their UTF-16 units, no
spaces, UTF-8, numbers as JavaScript writes them. Programs in other languages have it
ready made, and a file that passed through one of them keeps its checksum. Only whole
numbers above 2^53, which are labels, differ: they are written in full.
"""

import hashlib
import json
from typing import Any

#: The key of a document under which its checksum is stored.
CHECKSUM_KEY = "sha256"


def compute_checksum(document: dict[str, Any], content: bytes = b"") -> str:
    """Return the SHA-256 of a document but for its entry "sha256", and of what belongs to it.

    Parameters
    ----------
    document : dict
        Of JSON's types; tuples count as lists.
    content : bytes, default=b""
        What stands beside it, such as a table.

    Returns
    -------
    digest : str
        64 hexadecimal digits.

    Examples
    --------
    >>> from sklearn_calib._files.checksum import compute_checksum
    >>> document = {"b": [2.0], "a": 1, "sha256": "..."}
    >>> compute_checksum({"a": 1.0, "b": [2]}) == compute_checksum(document)
    True
    """
    entries = {name: value for name, value in document.items() if name != CHECKSUM_KEY}
    text = "".join(_iter_json_pieces(entries)).encode(errors="surrogatepass")
    return hashlib.sha256(text + content).hexdigest()


def _iter_json_pieces(value):
    if isinstance(value, dict):
        yield "{"
        for number, name in enumerate(sorted(value, key=_encode_utf16)):
            yield f"{',' * bool(number)}{_format_json_value(name)}:"
            yield from _iter_json_pieces(value[name])
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        if all(type(item) is float for item in value):  # tables, which may be long
            yield ",".join(map(_format_ecmascript_float, value))
        else:
            for number, item in enumerate(value):
                yield "," * bool(number)
                yield from _iter_json_pieces(item)
        yield "]"
    elif isinstance(value, float):
        yield _format_ecmascript_float(value)
    else:
        yield _format_json_value(value)


def _format_json_value(value):
    return json.dumps(value, ensure_ascii=False)


def _encode_utf16(name):
    return name.encode("utf-16-be", errors="surrogatepass")


def _format_ecmascript_float(value):
    """Return a float as ECMAScript writes it: exponents below 1e-6 and from 1e21 on."""
    text = repr(value)
    if "e" not in text:
        return text.removesuffix(".0") if value else "0"
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if -7 < power < 21:
        sign = "-" * mantissa.startswith("-")
        digits = mantissa.lstrip("-").replace(".", "")
        if power < 0:
            return f"{sign}0.{'0' * (-power - 1)}{digits}"
        return sign + digits.ljust(power + 1, "0")
    return f"{mantissa}e+{power}" if power > 0 else f"{mantissa}e{power}"
