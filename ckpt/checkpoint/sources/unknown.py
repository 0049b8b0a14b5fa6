"""Offsets of no kind that ckpt knows; they are shown as they are."""

import json
from dataclasses import dataclass

from ckpt.checkpoint.sources.kind import SourceKind, SourceType
from ckpt.checkpoint.sources.starts import Begin, ReaderStart, StartFacts, shorten_json
from ckpt.model import Json
from ckpt.texts import mask_json

_LONGEST = 500  # characters of a page


@dataclass(frozen=True, slots=True)
class UnknownOffset:
    """An offset in which ckpt recognises no source."""

    value: Json


class UnknownKind(SourceKind[UnknownOffset]):
    """Every source that no other kind recognises."""

    name = SourceType.UNKNOWN
    record = UnknownOffset

    def decode(self, value: Json) -> UnknownOffset:
        return UnknownOffset(value)

    def advance(self, old: UnknownOffset, new: UnknownOffset) -> None:
        return None

    def to_json(self, offset: UnknownOffset) -> dict[str, Json]:
        return {}

    def to_text(self, offset: UnknownOffset) -> str:
        text = mask_json(json.dumps(offset.value))  # before it is cut
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

    def start_after(self, offset: UnknownOffset, facts: StartFacts) -> ReaderStart:
        like = shorten_json(offset.value)
        refused = (
            f"ckpt does not know a source whose offsets look like {like}; see its documentation for how it can start"
        )
        return ReaderStart(Begin.REFUSED, refused=refused)
