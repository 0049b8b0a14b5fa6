"""Kinds of source that other distributions register as entry points of the group ``ckpt.sources``."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar

from ckpt.advice import Words, plain
from ckpt.checkpoint.sources.connectors import BY_SHAPE
from ckpt.checkpoint.sources.ends import CannotEndThere, LatestEnd, MovedEnd, RequestedEnd
from ckpt.checkpoint.sources.kind import Advance, SourceKind, SourceType
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts
from ckpt.checkpoint.sources.unknown import UnknownKind, UnknownOffset
from ckpt.errors import CkptError
from ckpt.model import Json
from ckpt.plugins import ask_plugins, blame_plugin

PLUGINS = "ckpt.sources"  # entry points that name a subclass of ``SourceKind``

Answer = TypeVar("Answer")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")  # it is written into generated code


@dataclass(frozen=True, slots=True)
class PluginOffset:
    """An offset that a plugin recognised."""

    kind: "PluginKind"
    record: Any  # of the plugin's own type
    value: Json


class PluginKind(SourceKind[PluginOffset]):
    """The kind of source of a plugin; after the first error of the plugin its offsets are of unknown kind."""

    record = PluginOffset

    def __init__(self, kind: SourceKind[Any]) -> None:
        self.name, self.settable, self.at_path = kind.name, kind.settable, kind.at_path
        self.plugin = kind
        self._faulty = False

    def ask_plugin(
        self, ask: Callable[[], Answer], expected: type | UnionType, otherwise: Callable[[], Answer]
    ) -> Answer:
        """Ask the plugin; after an error, or an answer of another type than expected, answer without it."""
        if not self._faulty:
            try:
                answer = ask()
                if isinstance(answer, expected):
                    return answer
                raise TypeError(
                    f"it must return {getattr(expected, '__name__', expected)}, not {type(answer).__name__}"
                )
            except (CkptError, CannotEndThere):
                raise
            except Exception as error:
                self._faulty = True
                blame_plugin(PLUGINS, self.name, error)
        return otherwise()

    def wrap(self, record: Any) -> PluginOffset:
        """Return an offset that the plugin has made itself."""
        return PluginOffset(self, record, self.plugin.to_json(record))

    def decode(self, value: Json) -> PluginOffset | None:
        record = self.ask_plugin(lambda: self.plugin.decode(value), object, lambda: None)
        return None if record is None else PluginOffset(self, record, value)

    def advance(self, old: PluginOffset, new: PluginOffset) -> Advance | None:
        return self.ask_plugin(lambda: self.plugin.advance(old.record, new.record), Advance | NoneType, lambda: None)

    def count_rows(self, old: PluginOffset | None, new: PluginOffset) -> int | None:
        before = None if old is None else old.record
        return self.ask_plugin(lambda: self.plugin.count_rows(before, new.record), int | NoneType, lambda: None)

    def to_json(self, offset: PluginOffset) -> dict[str, Json]:
        def ask() -> dict[str, Json]:
            decoded = self.plugin.to_json(offset.record)
            json.dumps(decoded)
            return decoded

        return self.ask_plugin(ask, dict, dict)

    def to_text(self, offset: PluginOffset) -> str:
        return self.ask_plugin(
            lambda: self.plugin.to_text(offset.record), str, lambda: UnknownKind().to_text(UnknownOffset(offset.value))
        )

    def find_topics(self, offset: PluginOffset) -> frozenset[str]:
        return self.ask_plugin(lambda: self.plugin.find_topics(offset.record), frozenset, frozenset)

    def list_reader_options(self, offset: PluginOffset) -> dict[str, str]:
        return self.ask_plugin(lambda: self.plugin.list_reader_options(offset.record), dict, dict)

    def start_after(self, offset: PluginOffset, facts: StartFacts) -> ReaderStart:
        return self.ask_plugin(
            lambda: self.plugin.start_after(offset.record, facts),
            ReaderStart,
            lambda: UnknownKind().start_after(UnknownOffset(offset.value), facts),
        )

    def parse_end(self, value: Json, what: str | Words) -> RequestedEnd:
        begin = str(plain(what))
        return self.ask_plugin(lambda: self.plugin.parse_end(value, begin), RequestedEnd, self._refuse)

    def shift_end(self, offset: PluginOffset, shifts: Sequence[str]) -> RequestedEnd:
        return self.ask_plugin(lambda: self.plugin.shift_end(offset.record, shifts), RequestedEnd, self._refuse)

    def move_end(self, latest: LatestEnd[PluginOffset], new: RequestedEnd) -> MovedEnd:
        start = None if latest.start is None else latest.start.record
        own: LatestEnd[Any] = replace(latest, offset=latest.offset.record, start=start)
        moved: MovedEnd = self.ask_plugin(lambda: self.plugin.move_end(own, new), MovedEnd, self._refuse)
        return replace(moved, warnings=tuple(plain(str(text)) for text in moved.warnings))

    def _refuse(self) -> NoReturn:
        raise CannotEndThere(f"the plugin for {self.name} sources failed")


@cache
def load_kinds() -> tuple[PluginKind, ...]:
    """Load the kinds of all plugins; one that cannot be loaded is left out with a warning of one line."""

    def load(plugin: Any) -> PluginKind:
        kind = plugin()
        if not isinstance(kind, SourceKind):
            raise TypeError("it must be a subclass of ckpt.checkpoint.sources.kind.SourceKind")
        if not isinstance(kind.name, str) or not _NAME.fullmatch(kind.name) or kind.name in set(SourceType) - BY_SHAPE:
            raise ValueError(f"its sources cannot be called {kind.name!r}")
        return PluginKind(kind)

    return tuple(ask_plugins(PLUGINS, load))
