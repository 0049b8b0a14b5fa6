"""How much a record of a log says of a failure: the level in its head."""

import re
from enum import IntEnum

_LEVEL = "TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL"
_DAY, _TIME = r"\d{2,4}[-/]\d{2}[-/]\d{2}[ T]", r"\d{2}:\d{2}:\d{2}[^\s\]]{0,12}"
_AND_LEVEL = rf"[\])]?(?: +\[[^\]\n]{{0,80}}\])? +\[?(?:{_LEVEL})\b"
DATED_HEAD = rf"[\[(]?{_DAY}{_TIME}{_AND_LEVEL}"
HEAD = rf"[\[(]?(?:{_DAY})?{_TIME}{_AND_LEVEL}"
_HEAD = re.compile(
    rf"(?:{HEAD.replace(f'(?:{_LEVEL})', f'({_LEVEL})')}|\[?({_LEVEL})\]?:?(?: *[\w.$/-]{{1,100}})?(?::| -) )"
)


class Level(IntEnum):
    """How much a record of a log says of a failure; what no log writer wrote, such as a traceback, is ``ERROR``."""

    ERROR = 0
    WARNING = 1
    INFO = 2


_LEVELS = {"WARN": Level.WARNING, "WARNING": Level.WARNING} | dict.fromkeys(("TRACE", "DEBUG", "INFO"), Level.INFO)


def level_of(line: str) -> Level | None:
    """The level of the record that the line begins; None where it continues one."""
    head = _HEAD.match(line)
    return _LEVELS.get(head[1] or head[2], Level.ERROR) if head else None


def spell_head(level: str, logger: str | None) -> str:
    """The head of a record that came without one."""
    known = level.upper()
    return f"{known if known in _LEVELS else 'ERROR'} {(logger or 'log').rpartition('.')[2]}: "
