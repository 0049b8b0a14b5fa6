"""``ckpt migrate changelog``: changelog checkpointing of a RocksDB checkpoint on or off.

Spark loads a version from the newest snapshot at or below it and the changelogs behind that, whatever the setting is
(class ``RocksDB``, ``load``), so the same checkpoint continues in both directions; the setting decides how the next
versions are written. It is not among those that a checkpoint records. Measured on Spark 3.5, 4.0, 4.2 and 4.3, with
state store checkpoint format 2 on 4.2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from ckpt import settings
from ckpt.advice import Call, Words
from ckpt.checkpoint.reader import open_checkpoint
from ckpt.inspection.inspection import Inspection, inspect
from ckpt.migrate.book import BOOK
from ckpt.migrate.comparison import Comparison, TwoWays, Written, find_two_ways, find_written
from ckpt.migrate.provider import is_rewritable, rewrite_call
from ckpt.model import Kind, Provider, StateInventory, ToProvider
from ckpt.values import Value
from ckpt.versions import Progress


class Changelog(StrEnum):
    """The wanted state of changelog checkpointing."""

    ON = "on"
    OFF = "off"


class SwitchOutcome(StrEnum):
    """A switch of changelog checkpointing, as far as the files foretell it."""

    READY = "ready"  # it can be made
    ALREADY = "already"  # the newest version is written so everywhere
    NOTHING = "nothing"  # there is no state
    REFUSED = "refused"
    SWITCHED = "switched"  # verified
    PARTLY = "partly"  # verified: in some partitions only
    NOT_YET = "not-yet"  # verified: in no partition


@dataclass(frozen=True, slots=True)
class ChangelogSwitch(Value):
    """A switch before it is made, or looked at afterwards."""

    inspection: Inspection
    to: Changelog
    outcome: Annotated[SwitchOutcome, "the last three with `--verify` only"]
    written: Annotated[tuple[Written, ...], "one per store and partition"] = ()
    ways: tuple[TwoWays, ...] = ()  # verified, and taken everywhere: what Spark can compare
    comparison: Comparison | None = None  # what it said; None where it was not asked
    warnings: tuple[Words, ...] = ()
    refused: Words | None = None

    @property
    def confs(self) -> Mapping[str, str]:
        """The settings that the session needs at every start from the switch on."""
        return {settings.CHANGELOG_CHECKPOINTING: str(self.to is Changelog.ON).lower()}

    @property
    def rewrite(self) -> Call | None:
        """The call that moves the state to RocksDB, where that is what is missing, and ckpt can."""
        checkpoint = self.inspection.checkpoint
        if checkpoint.state is None or checkpoint.state.provider is not Provider.HDFS:
            return None
        possible = is_rewritable(checkpoint, ToProvider.ROCKSDB)
        return rewrite_call(checkpoint.uri, ToProvider.ROCKSDB) if possible else None

    @property
    def next_version(self) -> int | None:
        """The state version that the next batch writes."""
        state = self.inspection.checkpoint.state
        return None if state is None or state.needed_version is None else state.needed_version + 1

    @property
    def since(self) -> int | None:
        """The version from which on every partition is written as wanted; None where one is not."""
        versions = [part.since for part in self.written]
        known = [version for version in versions if version is not None]
        return max(known) if known and len(known) == len(versions) else None


def switch_changelog(
    uri: str, to: Changelog, storage_options: Mapping[str, str] | None = None, *, verify: bool = False
) -> ChangelogSwitch:
    """Say what the files show of a switch, as ``ckpt.migrate_changelog`` does.

    Raises NotACheckpoint, NotFound, StorageError, UsageError.
    """
    inspection = inspect(open_checkpoint(uri, storage_options=storage_options))
    state = inspection.checkpoint.state
    refused = _refuse(inspection, state, verify=verify)
    if refused is not None:
        return ChangelogSwitch(inspection, to, SwitchOutcome.REFUSED, refused=refused)
    if state is None:
        return ChangelogSwitch(inspection, to, SwitchOutcome.NOTHING)
    parts = tuple(find_written(inspection.checkpoint.listing, changelog=to is Changelog.ON))
    as_wanted = [part.since is not None for part in parts]
    if not verify:
        outcome = SwitchOutcome.ALREADY if parts and all(as_wanted) else SwitchOutcome.READY
        return ChangelogSwitch(
            inspection, to, outcome, parts, warnings=tuple(_list_warnings(inspection, state, to, outcome))
        )
    outcome = SwitchOutcome.PARTLY if any(as_wanted) else SwitchOutcome.NOT_YET
    if parts and all(as_wanted):
        outcome = SwitchOutcome.SWITCHED
    committed = inspection.checkpoint.commits.ids if outcome is SwitchOutcome.SWITCHED else ()
    ways = find_two_ways(inspection.checkpoint.listing, parts, committed, changelog=to is Changelog.ON)
    return ChangelogSwitch(inspection, to, outcome, parts, ways=tuple(ways) if committed else ())


def _refuse(inspection: Inspection, state: StateInventory | None, *, verify: bool) -> Words | None:
    """Why the switch cannot be made, or cannot be looked at."""
    if inspection.checkpoint.kind is Kind.EMPTY:
        return BOOK.text("changelog_nothing_planned")
    if state is None:
        return BOOK.text("changelog_unknown") if inspection.checkpoint.stateful is None else None
    if state.provider is Provider.HDFS:
        rewritable = is_rewritable(inspection.checkpoint, ToProvider.ROCKSDB)
        way = BOOK.text("changelog_by_rewrite" if rewritable else "changelog_by_migration")
        return BOOK.text("changelog_on_hdfs", way=way)
    if state.provider is Provider.UNKNOWN:
        return BOOK.text("changelog_no_provider")
    starts = [f for f in inspection.counted if f.progress is Progress.SYNC]
    if not verify and not any(f.outcome.runs for f in starts):
        verdict = inspection.verdict[:1].lower() + inspection.verdict[1:]
        return BOOK.text("changelog_as_it_is", verdict=verdict)
    return None


def _list_warnings(
    inspection: Inspection, state: StateInventory, to: Changelog, outcome: SwitchOutcome
) -> Iterator[Words]:
    """List the warnings before a switch."""
    checkpoint = inspection.checkpoint
    failing = sorted({f.spark for f in inspection.counted if f.progress is Progress.SYNC and not f.outcome.runs})
    if failing:
        yield BOOK.text("changelog_failing", versions=", ".join(failing), uri=checkpoint.uri)
    if inspection.written_by.at_least is None:
        yield BOOK.text("changelog_since")
    if outcome is SwitchOutcome.ALREADY:
        return
    latest = checkpoint.offsets.latest
    if latest is not None and latest not in checkpoint.commits:
        yield BOOK.text("changelog_planned", latest=latest)
    yield BOOK.text("changelog_on" if to is Changelog.ON else "changelog_off")
    if state.format_version == 2:
        yield BOOK.text("changelog_format_2")
