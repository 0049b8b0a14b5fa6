"""Knows the options of readers, and of functions that read texts, that decide rows and values.

A description keeps these alone, by names in small letters: credentials, rates, and where to start are none of them.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files

from ckpt.formats.types import fields_of
from ckpt.model import Json

ZONE, PARSER, FORMAT, CORRUPT = "timezone", "timeparserpolicy", "format", "columnnameofcorruptrecord"
ANSI, CASES = "spark.sql.ansi.enabled", "spark.sql.caseSensitive"
_FILE = tomllib.loads(files("ckpt.query").joinpath("reader_options.toml").read_text(encoding="utf-8"))
_DECIDING: Mapping[str, tuple[str, tuple[str, ...]]] = {
    name: (default, tuple(types)) for name, (default, *types) in _FILE["values"].items()
}
"""Options by which values of some types are read: the default, and the types."""
_OF_ALL: Mapping[str, str] = _FILE["all"]
"""Options that decide rows and all values, with their defaults."""
_OF_ROWS: Mapping[str, str] = _FILE["rows"]
"""Options that decide which rows come, and no value."""
_DEFAULTS = {**_OF_ROWS, **_OF_ALL, **{name: default for name, (default, _) in _DECIDING.items()}}
_ALIASES = {"delimiter": "sep", "charset": "encoding"}
_LEGIBLE = frozenset({"mode", ZONE, PARSER, FORMAT, "locale", "encoding", CORRUPT, "kafka.isolation.level"})
"""Options whose values are kept as they are: no text of a user is one."""
_STRICT = {"mode": "failfast", **{name: default for name, default in _OF_ROWS.items() if default == "false"}}
"""Values with which a query fails on what another value leaves out or fills: rows that are read are the same ones."""
_UTC = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "uct", "etc/uct", "zulu", "+00:00", "gmt0", "utc+0"})
_PARSING = frozenset({"json", "csv", "xml"})
"""Formats that read times from texts."""


def digest(value: object) -> str:
    """Return a short digest, which shows that a text changed, and not the text."""
    return hashlib.sha256(str(value).encode(errors="surrogatepass")).hexdigest()[:8]


def normalize_zone(zone: str) -> str:
    """Return one name for each of the names of UTC."""
    return "UTC" if zone.lower() in _UTC else zone


def keep_options(options: Mapping[str, str], schema: Json, *, default_mode: str = "permissive") -> dict[str, str]:
    """Keep the options that decide rows and values, as far as they are no defaults; of user texts only a digest."""
    kept = {}
    for option, value in options.items():
        name = _ALIASES.get(option.lower(), option.lower())
        default = _DEFAULTS.get(name)
        if name == CORRUPT:
            if value in {str(each["name"]) for each in fields_of(schema) or () if isinstance(each, dict)}:
                kept[name] = value
        elif default is not None and value.lower() != (default_mode if name == "mode" else default).lower():
            legible = name in _LEGIBLE or value.lower() in ("true", "false")
            kept[name] = (value if name == ZONE else value.lower()) if legible else digest(value)
    return kept


def keep_reader(
    kind: str, options: Mapping[str, str], schema: Json, *, zone: str, parser: str, corrupt: str
) -> dict[str, str]:
    """Keep the options of a reader of files, with the settings of the session that it falls back on."""
    own = {name.lower(): value for name, value in options.items()}
    if kind in _PARSING:
        own = {
            CORRUPT: corrupt,
            **own,
            ZONE: normalize_zone(own.get(ZONE, zone)),
            **({PARSER: parser} if parser else {}),
        }
    kept = keep_options({**own, FORMAT: kind}, schema)
    types = set(list_leaf_types(schema))
    return {name: value for name, value in kept.items() if name not in _DECIDING or types & {*_DECIDING[name][1]}}


def list_affecting(options: Mapping[str, str], data_type: Json, column: str | None) -> dict[str, str]:
    """List the options that decide the values of a column; ``column`` None: of a struct that may have any name."""
    types = set(list_leaf_types(data_type))
    return {
        name: value
        for name, value in options.items()
        if (
            name in _OF_ALL
            or (name in _DECIDING and types & {*_DECIDING[name][1]})
            or (name == CORRUPT and column in (None, value))
        )
    }


def list_changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """List the options that differ, but for those with which the old query failed where values would differ."""
    changed = []
    for name in sorted(old.keys() | new.keys()):
        default = _DEFAULTS.get(name, "")
        before = old.get(name, default)
        if before != new.get(name, default) and before.lower() != _STRICT.get(name, object()):
            changed.append(name)
    return changed


def name_option(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Write an option with both its values; of a text of the user there are only digests, which say nothing."""
    both = [each.get(name) or _DEFAULTS.get(name) or "none" for each in (new, old)]
    legible = name in _LEGIBLE or {"true", "false"}.issuperset(both)
    return f"{name} ({both[0]}, before {both[1]})" if legible else name


def decides_rows(name: str) -> bool:
    """Tell whether an option decides which rows come."""
    return name in _OF_ALL or name in _OF_ROWS


def has_pattern(path: str) -> bool:
    """Tell whether a path is a pattern of Hadoop's, such as ``/logs/*``."""
    return any(sign in path for sign in "*?[{")


def reads_around(path: str | None, other: str | None) -> bool:
    """Tell whether readers of two paths may read folders that the other does not, beside some that both read."""
    own, others = ("" if each is None else re.sub(r"^file:/+", "/", each).rstrip("/") for each in (path, other))
    if own == others or not (own and others):
        return False
    return has_pattern(own) or has_pattern(others) or own.startswith(f"{others}/") or others.startswith(f"{own}/")


def list_leaf_types(data_type: Json) -> Iterator[str]:
    """List the types of a schema that have no parts, decimals without their digits."""
    fields = fields_of(data_type)
    if fields is not None:
        for each in fields:
            yield from list_leaf_types(each["type"]) if isinstance(each, dict) else ()
    elif isinstance(data_type, dict):
        for part in ("elementType", "keyType", "valueType"):
            if part in data_type:
                yield from list_leaf_types(data_type[part])
    elif data_type is not None:
        yield str(data_type).partition("(")[0]
