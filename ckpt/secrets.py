"""Keys and tokens in URIs, options and quoted messages: one function masks them wherever text leaves ckpt."""

import json
import re
from urllib.parse import unquote

_MASK = "***"

# ``scheme://user:secret@host``; a secret key of S3 may hold a slash, which people forget to encode.
_S3_KEY = re.compile(r"(?<![\w+.-])(s3[an]?:/+)[^/:@\s]{0,500}:[^@\s\"'<>]{0,500}@", re.I)
_USER = re.compile(r"(?<![\w+.-])(?!file:)([A-Za-z][\w+.-]*+:/+)[^/:@\s]{0,500}:[^/\s\"'<>]{0,500}@", re.I)
# ``secret_key=...`` of a query, an option or a connection string; what follows a slash is the name of a folder,
# unless it is a setting of Hadoop.
# A backquote that ends a word is not part of the value: it ends a command in a sentence.
_NAMED = re.compile(
    r"(?:(?<![\w.%+/-])|(?<=/)(?=fs\.))([\w.%+-]++)"
    r"( ?= ?)(\"[^\"]*\"|'[^']*'|(?:[^\s&,;'\"\\`]++|`(?![.:!?)]*+(?:[\s&,;'\"\\]|$)))++)"
)
_SECRET = re.compile(
    r"secret|passw|token|signature|^sig$|^pwd$|credential|(account|shared|private|api)[._-]?(access[._-]?)?key", re.I
)
# The same in JSON, as services answer.
_IN_JSON = re.compile(
    r'("(?:\w*token|client_?secret|secret_?(?:access_?)?key|(?:private|account)_?key|password)"\s*+:\s*+)'
    r'"(?:[^"\\]++|\\.)*+',
    re.I | re.S,
)
_HEADER = re.compile(r"\b(Bearer|SharedKey)[ ]+[\w.~+/:=-]{8,}")
_HINT = re.compile(r'[=@]|\\"|Bearer |SharedKey ')  # a text without one of these holds nothing to mask
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')


def masked(text: str) -> str:
    """``text`` with ``***`` for every secret in it.

    >>> masked("s3://KEY:SECRET@bucket/x?region=r&secret%5Fkey=S")
    's3://***@bucket/x?region=r&secret%5Fkey=***'
    """
    text = _USER.sub(rf"\1{_MASK}@", _S3_KEY.sub(rf"\1{_MASK}@", text))
    text = _NAMED.sub(lambda found: found[1] + found[2] + _MASK if _is_secret(found[1]) else found[0], text)
    return _HEADER.sub(rf"\1 {_MASK}", _IN_JSON.sub(rf'\1"{_MASK}', text))


def masked_json(document: str) -> str:
    """A JSON document with every string in it masked, and every string whose key calls it a secret; it stays one."""
    document = _IN_JSON.sub(rf'\1"{_MASK}', document)
    return _STRING.sub(_masked_string, document) if _HINT.search(document) else document


def _masked_string(found: re.Match[str]) -> str:
    if _HINT.search(found[0]) is None:
        return found[0]
    text = json.loads(found[0])
    safe = masked(text)
    return found[0] if safe == text else json.dumps(safe)


def _is_secret(name: str) -> bool:
    return _SECRET.search(unquote(name)) is not None
