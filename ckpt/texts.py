"""Text for people: numbers, times, untrusted text made printable, secrets masked, words quoted for a shell.

Text from a checkpoint is untrusted: ``escape_unprintable`` escapes it for a terminal, ``mask_secrets`` takes keys and
tokens out wherever text leaves ckpt, ``quote_word`` makes one word of it that no shell obeys.
"""

import json
import os
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")

_MASK = "***"

# ``scheme://user:secret@host``; a secret key of S3 may hold a slash, which people forget to encode.
_S3_KEY = re.compile(r"(?<![\w+.-])(s3[an]?:/+)[^/:@\s]{0,500}:[^@\s\"'<>]{0,500}@", re.I)
_USER = re.compile(r"(?<![\w+.-])(?!file:)([A-Za-z][\w+.-]*+:/+)[^/:@\s]{0,500}:[^/\s\"'<>]{0,500}@", re.I)
# A token alone, or a password of Oracle.
_TOKEN = re.compile(r"(\bhttps?://|\bjdbc:oracle:\w+:[^/\s@]{1,200}/)[^/:@?#\s\"'<>]{8,500}@", re.I)
# ``user:secret@host`` alone; no hash of an object, version of a table or port before a path.
_LOGIN = re.compile(
    r"(?<![\w.+:/%-])((?!file:|mailto:)[A-Za-z][\w.+-]{0,100}+:)(?!/|\d+/)[^\s\"'<>\\,;]{1,200}@"
    r"(?![\da-f]{5,8}(?![\w.:/-])|jar\b|v\d+\b|sha\d+:)(?=[a-z\d*\[])",
    re.I,
)
# ``curl -u user:secret``, ``IDENTIFIED BY 'secret'``.
_OF_USER = re.compile(r"((?<![\w-])(?:-u|--(?:proxy-)?user)[ =]*+\\*+[\"']?[^\s:\"'\\=]++:)(?!/)[^\s\"'\\]++")
_IDENTIFIED = re.compile(r"(\bidentified\s++by\s++(\\*+[\"']))(?:(?!\2).)++", re.I | re.S)

# A name and what stands between it and its value: ``name=value``, ``'name': "value"``, ``\"name\":\"value\"``,
# ``name -> value``, ``(name,value)``, ``name value``, ``<name>...</name><value>...</value>``, ``<name>value</name>``,
# ``setName("value")``, with ``--`` or ``-D`` before it.
# What follows a slash is the name of a folder, unless it is a setting of Hadoop.
_KEY = re.compile(
    r"(?<![\w.%+-])(?:(?<!/)|(?=fs\.))(?P<option>-++D?)?(?P<name>[\w.%+]++(?:-++[\w.%+]++)*+)(?P<end>(?:\\*+[\"'])?+)"
    r"(?P<sep>[ \t]*+(?:=>?|->|:(?!/)|,)[ \t]*+|</name>(?:\s|\\++n)*+<value>|>|\((?=\\*+[\"'])|(?:[ \t]|\\++t)++)"
)
# A value in quotes, up to them or to the end of a text that was cut; or a word. A backquote that ends a word is not
# part of it: it ends a command in a sentence.
_VALUE = re.compile(
    r"(?P<mark>(?P<third>\\*+[\"'])(?P=third){2})(?P<triple>(?:(?!(?P=mark)).)*+)"
    r"|\"(?P<double>(?:[^\"\\]++|\\.)*+)|'(?P<single>(?:[^'\\]++|\\.)*+)"
    r"|(?P<quote>\\++[\"'])(?P<escaped>(?:[^\\\"']++|(?!(?P=quote))\\++[\"']?)*+)"
    r"|(?P<word>(?:[^\s&,;'\"\\`]++|`(?![.:!?)]*+(?:[\s&,;'\"\\]|$)))++)",
    re.S,
)
_XML_VALUE = re.compile(r"(?P<word>[^<]++)")
_SCHEMED = re.compile(r"(?:Basic|Bearer|Digest|Negotiate|NTLM|Token|SharedKey\w*|AWS4-HMAC-SHA256)[ ]++", re.I)
# ``scheme secret`` of any other scheme; ``name="value", name=value`` after a scheme.
_CREDENTIALS = re.compile(
    r"(?P<word>\w++=\\*+\"[^\"\\]*+\\*+\"(?:,[ ]*+\w++=(?:\\*+\"[^\"\\]*+\\*+\"|[^\s,\"\\]++))*+"
    r"|[A-Za-z][\w-]*+[ ]++[^\s&,;'\"\\`]++)"
)

_SECRET = re.compile(
    r"secret|passw|passphrase|jaas|authorization|(?:^|[._-])pwd?$|\bsas\b|auth[._-]?user[._-]?info"
    r"|(?:account|storage|shared|private|api|access|encryption|signing|keystore)[._-]?(?:access[._-]?)?key",
    re.I,
)
_MAYBE = re.compile(
    r"token|signature|credential|^sig$|(?:^|[._-]|db|user)pass$", re.I
)  # also what errors and parsers speak of
_OF_SECRET = re.compile(
    r"[._-](?:class|types?|mechanism|ur[il]|endpoint|enabled|required|interval|timeout|ms|seconds|count|algorithm"
    r"|file(?:name)?|path|location|version|expir\w*|lifetime|size|length|id|name)$"
    r"|(?:provider|exception|error|manager|factory|handler)s?$",
    re.I,
)
_PLAIN = re.compile(
    r"(?:null|none|true|false|\[hidden|\*+(?:\(redacted\))?|<[\w -]*>|env:\w+|@[/.~][\w./~-]*|\{|\[\{?|)[)}\]]*$", re.I
)
_NUMBER = re.compile(r"-?[\d.]+[)}\]]*$")
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{12,}")

# What blanks alone may stand after: a key with dots, or a word for a password; and what is prose there.
_BLANKS = re.compile(r"(?:[ \t]|\\++t)++")
_KEPT_APART = re.compile(r"\w\.\w|(?:passw(?:or)?d|passphrase|pwd)$", re.I)
_PROSE = re.compile(r"\W*+(?:[A-Za-z]?[a-z]*+(?:'[a-z]++)?|[A-Z_]++|\d++)\W*+$")

# What is a secret by its own form.
_HEADER = re.compile(
    r"\b((?i:Bearer|SharedKey(?:Lite)?))[ ]+[\w.~+/:=-]{8,}"
    r"|\b((?i:Basic))[ ]+(?=[\w+/]*(?:[\d=+/]|[a-z][A-Z]))[\w+/]{8,}=*"
)
_BY_FORM = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|\bdapi[0-9a-f]{32}\b|\bgh[pousr]_\w{30,}"
    r"|(?<=sig%3[Dd])(?:[^%&\s\"'\\]|%(?!26))+|(?<=PRIVATE KEY-----)[^-]{16,}"
)
_HINTS = (
    *("pass", "pw", "secret", "token", "sig", "credential", "key", "auth", "bearer", "basic ", "jaas", "sas", "@"),
    *("akia", "asia", "eyj", "dapi", "gh", "identified", "-u"),
)
"""A text without one of these, in small letters, holds nothing to mask."""
_ESCAPED = 17  # characters before a name: a parenthesis, a quote, and what escapes it in JSON in JSON in JSON
_JSON_KEY = re.compile(r'"([\w.%+ -]*+)"\s*+:\s*+"((?:[^"\\]++|\\.)*+)', re.S)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_NUMBERED = re.compile(r"((?:.*/)?)(0|[1-9]\d{0,17})((?!\d)[^/]*|/\D*)", re.S)


def escape_unprintable(text: str) -> str:
    """Escape everything in a text that is not printable, so that a terminal shows it and does not obey it."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def size(count: int) -> str:
    """Bytes for people: ``1.5 MiB``."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def ranges(spans: Sequence[tuple[int, int]], most: int = 4) -> str:
    """``3, 5 to 9 and 12 more``: inclusive ranges of numbers, the first ``most`` of them."""
    shown = [str(a) if a == b else f"{a} to {b}" for a, b in spans[:most]]
    more = f" and {len(spans) - most} more" if len(spans) > most else ""
    return ", ".join(shown) + more


def name_files(paths: Sequence[str], count: int | None = None, most: int = 6) -> str:
    """``state/0/0/7.delta to 10.delta``, ``6.delta in state/0/0 to state/0/3``: runs of numbers in names and folders.

    ``count`` is how many files there are, where ``paths`` are only the first of them; ``most`` parts are named.
    """
    total = len(paths) if count is None else count
    if total <= 2:
        return " and ".join(paths)
    in_folder: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        folder, slash, name = path.rpartition("/")
        in_folder.setdefault(folder + slash, []).append(name)
    folders: dict[tuple[str, ...], list[str]] = {}
    for folder, names in in_folder.items():
        folders.setdefault(tuple(names), []).append(folder)
    parts: list[tuple[str, int]] = []
    for shared, alike in folders.items():
        runs = _find_runs(shared)
        if len(alike) == 1 or (len(alike) == 2 and len(shared) == 1):
            parts += [(folder + text, number) for folder in alike for text, number in runs]
        else:
            places = [text for text, _ in _find_runs(sorted((f.rstrip("/") for f in alike), key=_sort_numbered))]
            more = [f"other folders, {len(alike):,} in all"] if len(places) > most else []
            where = join_texts([*places[:most], *more])
            parts += [(f"{text} in {where}", number * len(alike)) for text, number in runs]
    left = total - sum(number for _, number in parts[:most])
    shown = [*(text for text, _ in parts[:most]), *([plural(left, "more file")] if left else [])]
    return "; ".join(shown) if any(" in " in text for text in shown) else join_texts(shown)


def join_texts(texts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(text for text in (", ".join(texts[:-1]), *texts[-1:]) if text)


def _split_numbered(name: str) -> tuple[str, str, str]:
    match = _NUMBERED.fullmatch(name)
    return (match[1], match[2], match[3]) if match else (name, "", "")


def _sort_numbered(name: str) -> tuple[str, str, int]:
    before, number, after = _split_numbered(name)
    return before, after, int(number or -1)


def _find_runs(names: Sequence[str]) -> list[tuple[str, int]]:
    """Texts of names, one for three or more that count up by one; and how many names each stands for."""
    runs: list[list[tuple[str, str, str]]] = []
    for name in names:
        before, number, after = _split_numbered(name)
        if runs and number and runs[-1][-1] == (before, str(int(number) - 1), after):
            runs[-1].append((before, number, after))
        else:
            runs.append([(before, number, after)])
    spans = [[run] if len(run) > 2 else [[part] for part in run] for run in runs]
    return [(" to ".join(dict.fromkeys(("".join(of[0]), "".join(of[-1])))), len(of)) for span in spans for of in span]


def span(noun: str, first: int, last: int) -> str:
    """``batch 3``, ``batches 3 to 5``."""
    return f"{noun} {first}" if first == last else f"{plural_of(2, noun)} {first} to {last}"


def batch_ranges(spans: Sequence[tuple[int, int]]) -> str:
    """``batch 3``, ``batches 3, 5 to 9``."""
    return f"{'batch' if len(spans) == 1 and spans[0][0] == spans[0][1] else 'batches'} {ranges(spans)}"


def plural(count: int, noun: str) -> str:
    """``1 file``, ``3 files``, ``2 batches``."""
    return f"{count:,} {plural_of(count, noun)}"


def plural_of(count: int, noun: str) -> str:
    """``file``, ``files``, ``batches``, whichever goes with the number."""
    return noun if count == 1 else noun + ("es" if noun.endswith(("ch", "s")) else "s")


def instant(ms: int | None) -> str:
    """A time in ms since 1970 as ISO 8601 in UTC, to the second; in ms where no calendar has it."""
    if ms is None:
        return "unknown"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def quote_word(word: str) -> str:
    r"""Make a text one word of a shell command, which no shell obeys; without the secrets in it.

    What cannot be shown, and the backquote that marks commands in sentences, become escapes of ``$'...'`` (bash,
    zsh, ksh).

    >>> print(quote_word("my ckpt;touch x"), quote_word("a\nb"))
    'my ckpt;touch x' $'a\012b'
    """
    word = mask_secrets(word)
    if word.isprintable() and "`" not in word:
        return shlex.quote(word)
    return "$'" + "".join(map(_escape_char, word)) + "'"


def quote_path(path: str) -> str:
    """Quote a path for the shell, so that no program takes it for an option: ``./-rf``."""
    return quote_word(f"./{path}" if path.startswith("-") else path)


def _escape_char(char: str) -> str:
    if char.isprintable() and char not in "\\'`":
        return char
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


@lru_cache(maxsize=16)  # thousands of findings of one kind share a meaning and a remedy
def mask_secrets(text: str) -> str:
    """Put ``***`` for every secret in a text.

    >>> mask_secrets("s3://KEY:SECRET@bucket/x?region=r&secret%5Fkey=S")
    's3://***@bucket/x?region=r&secret%5Fkey=***'
    """
    if not _may_hold_secrets(text):
        return text
    for pattern in (_S3_KEY, _USER, _TOKEN, _LOGIN):
        text = pattern.sub(rf"\1{_MASK}@", text)
    for pattern in (_OF_USER, _IDENTIFIED):
        text = pattern.sub(rf"\1{_MASK}", text)
    text = _mask_named(text)
    return _BY_FORM.sub(_MASK, _HEADER.sub(lambda match: f"{match[1] or match[2]} {_MASK}", text))


def mask_json(document: str) -> str:
    """Mask the secrets in all strings of a JSON document, and strings whose key calls them secrets; it stays JSON."""
    if not _may_hold_secrets(document):
        return document
    return _STRING.sub(lambda match: _mask_literal(match[0]), _JSON_KEY.sub(_mask_member, document))


@lru_cache(maxsize=256)  # keys, codes and texts of findings of one kind come again and again
def _mask_literal(literal: str) -> str:
    if not _may_hold_secrets(literal):
        return literal
    text = json.loads(literal)
    safe = mask_secrets(text)
    return literal if safe == text else json.dumps(safe)


def _may_hold_secrets(text: str) -> bool:
    lowered = text.lower()
    return any(hint in lowered for hint in _HINTS)


def _mask_member(member: re.Match[str]) -> str:
    name, value = member[1], member[2]
    is_secret = _names_secret(name) and not _PLAIN.match(value)
    return member[0][: member.start(2) - member.start()] + _MASK if is_secret else member[0]


def _mask_named(text: str) -> str:
    parts: list[str] = []
    end = 0  # of what is in parts
    for key in _KEY.finditer(text):
        name = key["name"]
        if key.start() < end or not _names_secret(name) or not _is_pair(text, key):
            continue
        is_xml, value = key["sep"].endswith(">") and key["sep"].startswith(("<", ">")), None
        start = key.end()
        if name.lower().endswith("authorization") and key["sep"].strip():
            scheme = _SCHEMED.match(text, start)
            start = scheme.end() if scheme else start
            value = _CREDENTIALS.match(text, start) if scheme is None or "=" in text[start : start + 40] else None
        value = value or (_XML_VALUE if is_xml else _VALUE).match(text, start)
        if value is None or value.lastgroup is None:
            continue
        is_apart = _BLANKS.fullmatch(key["sep"]) and not key["option"]
        if _is_apart(key, value) if is_apart else _is_secret(key, value[value.lastgroup]):
            parts += (text[end : value.start(value.lastgroup)], _MASK)
            end = value.end(value.lastgroup)
    return "".join((*parts, text[end:]))


def _is_pair(text: str, key: re.Match[str]) -> bool:
    """Tell whether a name has a value: a comma and an end of a tag say so only after what they belong to."""
    before = text[max(key.start() - _ESCAPED, 0) : key.start()].rstrip("\\\"'")
    match key["sep"].strip():
        case ",":
            return before.endswith("(")
        case ">":
            return before.endswith("<")
        case "(":
            return _KEPT_APART.search(key["name"]) is not None and "get" not in key["name"].lower()
        case _:
            return True


def _is_apart(key: re.Match[str], value: re.Match[str]) -> bool:
    """Tell whether a value that only blanks keep apart from its name is a secret: in quotes, on a line, or no prose."""
    name, text = key["name"], value.string
    if not _KEPT_APART.search(name) or _PLAIN.match(value[value.lastgroup or 0]):
        return False
    if value.lastgroup != "word" or key["sep"].strip(" ") or not _PROSE.match(value["word"]):
        return True
    before = text[max(key.start() - 80, 0) : key.start()].rpartition("\n")[2]
    return "." in name and not before.strip() and text[value.end() : value.end() + 80].partition("\n")[0].strip() == ""


def _is_secret(key: re.Match[str], value: str) -> bool:
    """Tell whether a value is one, by its name, what is between both, and its own form."""
    name, is_prose = key["name"], key["sep"].strip() == ":" and not key["end"]
    if _PLAIN.match(value):
        return False
    if key["sep"].strip() == "," and not key["end"] and ")" not in value:
        return False  # of more than two
    if _SECRET.search(unquote(name)):
        return True
    return _RANDOM.match(value) is not None if is_prose else not _NUMBER.match(value)


@lru_cache(maxsize=1024)  # of the names of a page, few are new
def _names_secret(name: str) -> bool:
    name = unquote(name)
    return bool(_SECRET.search(name) or _MAYBE.search(name)) and not _OF_SECRET.search(name)
