"""A plugin of ckpt for the source ``feed``, whose offset names a feed and its next message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ckpt.checkpoint.sources.ends import CannotEndThere, LatestEnd, MovedEnd, RequestedEnd, move_along
from ckpt.checkpoint.sources.kind import Advance, SourceKind, advance_number, whole_number
from ckpt.checkpoint.sources.starts import ReaderStart, StartFacts, StartingPoint
from ckpt.errors import SourceError, UsageError
from ckpt.live.plugins import AskableSource
from ckpt.model import Json


@dataclass(frozen=True, slots=True)
class FeedOffset:
    """``{"feed": name, "next": number}``."""

    feed: str
    next: int


class FeedKind(SourceKind[FeedOffset], AskableSource[FeedOffset]):
    """Message feeds; a file with two numbers says which messages a feed has."""

    name = "feed"
    record = FeedOffset
    settable = True
    place, option, example, unit = "the file", "feedFile", "PATH", "messages"

    def decode(self, value: Json) -> FeedOffset | None:
        if not isinstance(value, dict) or value.keys() != {"feed", "next"}:
            return None
        feed, number = value["feed"], whole_number(value["next"])
        return FeedOffset(feed, number) if isinstance(feed, str) and number is not None else None

    def advance(self, old: FeedOffset, new: FeedOffset) -> Advance:
        if old.feed != new.feed:
            return Advance(None, "messages", replaced=True)
        return advance_number(old.next, new.next, "messages")

    def count_rows(self, old: FeedOffset | None, new: FeedOffset) -> int | None:
        return None if old is None or old.feed != new.feed else new.next - old.next

    def to_json(self, offset: FeedOffset) -> dict[str, Json]:
        return {"feed": offset.feed, "next": offset.next}

    def to_text(self, offset: FeedOffset) -> str:
        return f"message {offset.next} of {offset.feed}"

    def list_reader_options(self, offset: FeedOffset) -> dict[str, str]:
        return {"feedFile": "", "feed": offset.feed}

    def start_after(self, offset: FeedOffset, facts: StartFacts) -> ReaderStart:
        options = {"startingMessage": str(offset.next)}
        return ReaderStart(StartingPoint.EXACT, options, conditions=(f"the reader must name the feed {offset.feed}",))

    def shift_end(self, offset: FeedOffset, shifts: Sequence[str]) -> RequestedEnd:
        try:
            return RequestedEnd({"feed": offset.feed, "next": offset.next + sum(map(int, shifts))})
        except ValueError:
            raise UsageError("`shift` of a feed is a number of messages, such as +5") from None

    def move_end(self, latest: LatestEnd[FeedOffset], new: RequestedEnd) -> MovedEnd:
        to = self.decode(new.value)
        if to is None or to.feed != latest.offset.feed:
            raise CannotEndThere(f"the query reads the feed {latest.offset.feed}")
        return move_along(latest, new, latest.offset.next, to.next)

    def ask(self, offset: FeedOffset, options: Mapping[str, str]) -> tuple[FeedOffset, FeedOffset]:
        try:
            first, after = Path(options["feedFile"]).read_text().split()
        except OSError as error:
            raise SourceError(f"the feed cannot be read: {error.strerror}") from None
        return FeedOffset(offset.feed, int(first)), FeedOffset(offset.feed, int(after))
