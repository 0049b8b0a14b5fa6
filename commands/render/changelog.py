"""A switch of changelog checkpointing: as a page for a tired person, and as the JSON document of the contract."""

from collections.abc import Iterator
from dataclasses import dataclass

from ckpt import settings
from ckpt.migrate.changelog import Changelog, ChangelogSwitch, SwitchOutcome
from ckpt.migrate.comparison import ComparisonVerdict
from ckpt.migrate.written_versions import Version, Written
from ckpt.model import Provider, Store
from ckpt.texts import quoted_path

from ..exits import Exit
from .blocks import Block, Command, Heading, Headline, Item, Line, Page, Table, Tone, bullets, more, page_of
from .comparison import comparison_entry, comparison_section, headline_of, next_of
from .document import Document, ToolKeys, checkpoint_keys
from .page import title
from .state import newest_snapshot
from .text import plural

_SHOWN = 12  # how many partitions are named


_EXITS = {
    SwitchOutcome.ALREADY: Exit.OK,
    SwitchOutcome.NOTHING: Exit.OK,
    SwitchOutcome.SWITCHED: Exit.OK,
    SwitchOutcome.READY: Exit.FOUND,
    SwitchOutcome.PARTLY: Exit.FOUND,
    SwitchOutcome.NOT_YET: Exit.FOUND,
    SwitchOutcome.REFUSED: Exit.FAILED,
}
_EXITS_COMPARED = {
    ComparisonVerdict.SAME: Exit.OK,
    ComparisonVerdict.DIFFERENT: Exit.FOUND,
    ComparisonVerdict.UNKNOWN: Exit.FOUND,
    ComparisonVerdict.NOT_COMPARED: Exit.FAILED,
}


@dataclass(frozen=True, slots=True)
class ChangelogReport:
    """What ``ckpt migrate changelog`` says."""

    found: ChangelogSwitch

    @property
    def exit(self) -> Exit:
        """Whether something is to be done; of a switch that was made, what the comparison of state found."""
        if self.found.comparison is not None and self.found.outcome is SwitchOutcome.SWITCHED:
            return _EXITS_COMPARED[self.found.comparison.verdict]
        return _EXITS[self.found.outcome]

    def document(self) -> Document:
        """All of it."""
        return _document(self.found)

    def page(self) -> Page:
        """The answer, then the evidence, then what to do."""
        parts = (_headline, _state, _how, _files, _compared, _warnings, _next)
        return page_of(title(self.found.inspection), *(part(self.found) for part in parts))


def _document(found: ChangelogSwitch) -> Document:
    state = found.inspection.checkpoint.state
    return {
        "ckpt": ToolKeys(),
        "checkpoint": checkpoint_keys(found.inspection),
        "to": found.to,
        "outcome": found.outcome,
        "provider": state.provider if state else None,
        "state_format": state.format_version if state else None,
        "confs": dict(found.confs),
        "next_version": found.next_version,
        "since_version": found.since,
        "stores": [
            {
                "operator": operator.id,
                "store": store.name,
                "partitions": len(store.partitions),
                "newest_snapshot_version": store.newest_snapshot_version,
                "replay_versions": _replayed(store),
            }
            for operator in (state.operators if state else ())
            for store in operator.stores
        ],
        "written": [_written(one) for one in found.written],
        "state_compared": comparison_entry(found.comparison),
        "warnings": list(found.warnings),
        "refused": found.refused,
    }


def _replayed(store: Store) -> int | None:
    """How many versions the partition that replays most does, as far as is known."""
    return max((p.replay_versions for p in store.partitions if p.replay_versions is not None), default=None)


def _written(one: Written) -> dict[str, object]:
    return {
        "operator": one.operator,
        "store": one.store,
        "partition": one.partition,
        "newest_version": one.newest,
        "since_version": one.since,
        "versions": [{"version": v.version, "changelog": v.changelog, "snapshot": v.snapshot} for v in one.versions],
    }


def _headline(found: ChangelogSwitch) -> Iterator[Block]:
    changelog = f"changelog checkpointing {found.to}"
    since = "" if found.since is None else f", from version {found.since} on"
    state = headline_of(found.comparison)
    took = sum(one.since is not None for one in found.written)
    said, tone = {
        SwitchOutcome.READY: (f"CAN BE SWITCHED: the same checkpoint continues with {changelog}", Tone.WARNING),
        SwitchOutcome.ALREADY: (f"ALREADY SET: every partition is written with {changelog}{since}", Tone.GOOD),
        SwitchOutcome.NOTHING: ("NOTHING TO SWITCH: the query keeps no state", Tone.GOOD),
        SwitchOutcome.SWITCHED: (f"SWITCHED: every partition is written with {changelog}{since}{state}", _tone(found)),
        SwitchOutcome.PARTLY: (f"SWITCHED IN PART: {took} of {len(found.written)} have {changelog}", Tone.WARNING),
        SwitchOutcome.NOT_YET: (
            f"NOT SWITCHED: no partition's newest version was written with {changelog}",
            Tone.WARNING,
        ),
        SwitchOutcome.REFUSED: (f"CANNOT BE SWITCHED: {found.refused}", Tone.ERROR),
    }[found.outcome]
    yield Headline(said, tone)


def _tone(found: ChangelogSwitch) -> Tone:
    verdict = ComparisonVerdict.SAME if found.comparison is None else found.comparison.verdict
    if verdict is ComparisonVerdict.DIFFERENT:
        return Tone.ERROR
    return Tone.GOOD if verdict is ComparisonVerdict.SAME else Tone.WARNING


def _state(found: ChangelogSwitch) -> Iterator[Block]:
    state = found.inspection.checkpoint.state
    if state is None or found.outcome not in (SwitchOutcome.READY, SwitchOutcome.ALREADY):
        return
    loads = "" if state.needed_version is None else f"   the next start loads version {state.needed_version}"
    yield Heading("State", f"{state.provider}, checkpoint format {state.format_version}{loads}")
    seen = f", but of {plural(state.unverified, 'file')} the ends do not say" if state.unverified else ""
    for operator in state.operators:
        for store in operator.stores:
            replay = _replayed(store)
            facts = [
                f"{plural(len(store.partitions), 'partition')}, all of them loadable{seen}",
                newest_snapshot(store),
                *([f"a load replays {plural(replay, 'version')}"] if replay is not None else []),
            ]
            yield Item(", ".join(facts), 6, f"  operator {operator.id} {store.name}: ")
    yield Item(
        "Afterwards a load replays every version since the newest snapshot; batches write only their changes."
        if found.to is Changelog.ON
        else "Afterwards a load replays nothing; every batch writes a snapshot."
    )


def _how(found: ChangelogSwitch) -> Iterator[Block]:
    if found.outcome not in (SwitchOutcome.READY, SwitchOutcome.ALREADY, SwitchOutcome.PARTLY, SwitchOutcome.NOT_YET):
        return
    yield Heading("Setting", "in the session, before the query starts, now and at every later start")
    yield from (Line(f"  {key}={value}") for key, value in found.confs.items())
    yield Item("A checkpoint does not record it: without it, Spark's default (off) applies.")
    if found.outcome is SwitchOutcome.READY:
        back = Changelog.OFF if found.to is Changelog.ON else Changelog.ON
        kind = "changelogs" if found.to is Changelog.OFF else "snapshots"
        yield Item(
            f"Existing files stay: {kind} of older versions are read until maintenance deletes those that "
            f"{settings.MIN_BATCHES_TO_RETAIN} does not keep."
        )
        yield Item(f"To go back set the other value ({back}) at any later start; nothing needs to be undone.")
        if found.next_version is not None:
            ending = "changelog" if found.to is Changelog.ON else "zip"
            yield Item(f"The first batch afterwards writes {found.next_version}.{ending} in every partition.")


def _files(found: ChangelogSwitch) -> Iterator[Block]:
    if found.outcome not in (SwitchOutcome.SWITCHED, SwitchOutcome.PARTLY, SwitchOutcome.NOT_YET):
        return
    yield Heading("Files", "the newest versions of each partition")
    rows = []
    for one in found.written[:_SHOWN]:
        took = "no" if one.since is None else f"from {one.since} on"
        rows.append((f"state/{one.operator}/{one.partition}", one.store, took, " ".join(map(_ends, one.versions))))
    yield Table(tuple(rows), ("below", "store", found.to, "versions"))
    yield from more(len(found.written) - _SHOWN)


def _compared(found: ChangelogSwitch) -> Iterator[Block]:
    if found.comparison is not None:
        yield from comparison_section(found.comparison)


def _ends(version: Version) -> str:
    kinds = [kind for kind, path in (("zip", version.snapshot), ("changelog", version.changelog)) if path]
    return f"{version.version}.{'+'.join(kinds)}"


def _warnings(found: ChangelogSwitch) -> Iterator[Block]:
    if found.warnings:
        yield Heading("Mind")
        yield from bullets(found.warnings)


def _cure(found: ChangelogSwitch, path: str) -> tuple[str, str]:
    state = found.inspection.checkpoint.state
    if found.rewrite is not None:
        return "stop the query, write its state for RocksDB, and ask again for that", found.rewrite
    if state is not None and state.provider is Provider.HDFS:
        return "see how to get RocksDB", f"ckpt migrate provider {path} --to rocksdb"
    return "see what is there", f"ckpt inspect {path}"


def _next(found: ChangelogSwitch) -> Iterator[Block]:
    path = quoted_path(found.inspection.checkpoint.uri)
    verify = f"ckpt migrate changelog {path} --to {found.to} --verify"
    said, command = {
        SwitchOutcome.READY: ("stop the query, start it with the setting, and after some batches", verify),
        SwitchOutcome.ALREADY: ("nothing to do", ""),
        SwitchOutcome.NOTHING: ("nothing to do", ""),
        SwitchOutcome.SWITCHED: next_of(found.comparison, verify),
        SwitchOutcome.PARTLY: ("let one more batch run, then", verify),
        SwitchOutcome.NOT_YET: ("make sure that the session has the setting, let a batch run, then", verify),
        SwitchOutcome.REFUSED: _cure(found, path),
    }[found.outcome]
    yield Item(said, 10, "Next")
    if command:
        yield Command(command)
