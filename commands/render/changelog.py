"""A switch of changelog checkpointing, and a comparison of state across it: as a page, and as a JSON document."""

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

from ckpt import settings
from ckpt.advice import run, words
from ckpt.migrate.comparison import Carried, Comparison, ComparisonVerdict, TwoWays, Version, VersionComparison, Written
from ckpt.migrate.switches import Changelog, ChangelogSwitch, SwitchOutcome
from ckpt.model import Operator, Provider, Store
from ckpt.texts import plural

from .blocks import Block, Heading, Headline, Item, Line, Next, Page, Table, Tone, more, page_of, show_warnings
from .book import BOOK
from .document import DocumentKeys
from .inspection import CheckpointKeys
from .keys import ForPeople, Keys, Sentences, of
from .page import show_title
from .reports import Exit, Report
from .state import newest_snapshot

_SHOWN = 12  # how many partitions or units are named


_TWO_WAYS = """operator unit batch version older_snapshot partitions rows rows_replayed only_direct only_replayed
different"""
_CARRIED = "operator unit last_version later_version partitions rows rows_later unchanged"


class _TwoWays(Keys, record=VersionComparison, keys=_TWO_WAYS):
    batch: Annotated[int, lambda pair: pair.version - 1]
    older_snapshot: Annotated[int, of("older")]


class _Carried(Keys, record=Carried, keys=_CARRIED):
    last_version: Annotated[int, of("last")]
    later_version: Annotated[int, of("later")]


class _OneWay(Keys, record=TwoWays, keys="operator store partition why"):
    why: ForPeople


class ComparisonKeys(Keys, record=Comparison, keys="verdict spark failed two_ways carried one_way"):
    """State that Spark compared across a switch."""

    two_ways: Annotated[tuple[_TwoWays, ...], of("compared")]
    carried: tuple[_Carried, ...]
    one_way: Annotated[tuple[_OneWay, ...], of("alone")]


def show_comparison(comparison: Comparison) -> Iterator[Block]:
    """Section with each comparison, its version and rows, and with state that was not compared."""
    yield Heading("State", f"compared by Spark {comparison.spark}, every key and value" if comparison.spark else "")
    yield from (Item(_compare_two_ways(pair), 4, "  ") for pair in comparison.compared[:_SHOWN])
    yield from (Item(_compare_across(carried), 4, "  ") for carried in comparison.carried[:_SHOWN])
    if any(carried.unchanged < carried.rows for carried in comparison.carried):
        yield Item("batches between the two versions rewrote or removed the other rows", 4, "  ")
    left = max(len(comparison.compared), len(comparison.carried)) - _SHOWN
    if left > 0:
        yield Item(words("and {left} more of each: see {fields}", left=left))
    yield from _show_one_way(comparison.alone)
    if comparison.failed is not None:
        yield Item(words("not compared: {why}", why=comparison.failed), 4, "  ")


def _name_unit(pair: VersionComparison | Carried) -> str:
    return f"{pair.unit} ({plural(len(pair.partitions), 'partition')})"


def _compare_two_ways(pair: VersionComparison) -> str:
    logs = f"{pair.older}.zip and changelogs {pair.older + 1} to {pair.version}"
    ways = f"{_name_unit(pair)}, batch {pair.version - 1}, from {pair.version}.zip and from {logs}"
    if not pair.different:
        return f"{ways}: {plural(pair.rows, 'row')}, no difference"
    places = ", ".join(map(str, pair.different))
    return (
        f"{ways}: DIFFERENT in partition {places}: {pair.only_direct:,} of {plural(pair.rows, 'row')} are only in the "
        f"former, {pair.only_replayed:,} of {pair.rows_replayed:,} only in the latter"
    )


def _compare_across(carried: Carried) -> str:
    return (
        f"{_name_unit(carried)}: {carried.unchanged:,} of {plural(carried.rows, 'row')} of version {carried.last}, the "
        f"last before the switch, are unchanged in {carried.later}.zip ({plural(carried.rows_later, 'row')})"
    )


def _show_one_way(ways: tuple[TwoWays, ...]) -> Iterator[Block]:
    """State that could not be compared, grouped by reason."""
    by_reason = sorted(ways, key=lambda way: (way.why or "", way.operator, way.store, way.partition))
    for why, group in groupby(by_reason, key=lambda way: way.why):
        places = [f"state/{way.operator}/{way.partition} {way.store}" for way in group]
        named = ", ".join(places[:_SHOWN])
        left = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        yield Item(f"unknown: {named}{left}: {why}", 4, "  ")


_SWITCHED = (SwitchOutcome.ALREADY, SwitchOutcome.NOTHING, SwitchOutcome.SWITCHED)


def _find_verdict(switch: ChangelogSwitch) -> ComparisonVerdict:
    return ComparisonVerdict.SAME if switch.comparison is None else switch.comparison.verdict


def _count_replayed(store: Store) -> int | None:
    """Versions that the partition with the longest replay replays, as far as is known."""
    return max((p.replay_versions for p in store.partitions if p.replay_versions is not None), default=None)


class _Store(Keys):
    operator: Annotated[int, lambda pair: pair[0].id]
    store: Annotated[str, lambda pair: pair[1].name]
    partitions: Annotated[int, lambda pair: len(pair[1].partitions)]
    newest_snapshot_version: Annotated[int | None, lambda pair: pair[1].newest_snapshot_version]
    replay_versions: Annotated[int | None, lambda pair: _count_replayed(pair[1])]


class _Written(Keys, record=Written, keys="operator store partition newest_version since_version versions"):
    newest_version: Annotated[int | None, of("newest")]
    since_version: Annotated[int | None, of("since")]


def _list_stores(switch: ChangelogSwitch) -> list[tuple[Operator, Store]]:
    state = switch.inspection.checkpoint.state
    return [(operator, store) for operator in (state.operators if state else ()) for store in operator.stores]


_KEYS = """checkpoint to outcome provider state_format confs next_version since_version stores written state_compared
warnings refused"""


class ChangelogDocument(DocumentKeys, record=ChangelogSwitch, keys=_KEYS):
    """The document of ``ckpt migrate changelog``."""

    checkpoint: Annotated[CheckpointKeys, of("inspection")]
    provider: Annotated[Provider | None, lambda switch: getattr(switch.inspection.checkpoint.state, "provider", None)]
    state_format: Annotated[
        int | None, lambda switch: getattr(switch.inspection.checkpoint.state, "format_version", None)
    ]
    since_version: Annotated[int | None, of("since")]
    stores: Annotated[tuple[_Store, ...], _list_stores]
    written: tuple[_Written, ...]
    state_compared: Annotated[ComparisonKeys | None, of("comparison")]
    warnings: Sentences


class ChangelogReport(Report[ChangelogSwitch]):
    """Report of ``ckpt migrate changelog``."""

    keys = ChangelogDocument

    @property
    def exit(self) -> Exit:
        outcome, verdict = self.record.outcome, _find_verdict(self.record)
        if outcome is SwitchOutcome.REFUSED or verdict is ComparisonVerdict.NOT_COMPARED:
            return Exit.FAILED
        return Exit.OK if outcome in _SWITCHED and verdict is ComparisonVerdict.SAME else Exit.FOUND

    def page(self) -> Page:
        switch = self.record
        parts = (_show_headline, _show_state, _show_how, _show_files)
        compared = show_comparison(switch.comparison) if switch.comparison is not None else ()
        end = (compared, show_warnings(switch.warnings), _show_next(switch))
        return page_of(show_title(switch.inspection), *(part(switch) for part in parts), *end)


def _show_headline(switch: ChangelogSwitch) -> Iterator[Block]:
    text = BOOK.text(
        f"headline_{switch.outcome}",
        changelog=f"changelog checkpointing {switch.to}",
        since="" if switch.since is None else f", from version {switch.since} on",
        state="" if switch.comparison is None else BOOK.text(f"and_state_{switch.comparison.verdict}"),
        took=sum(written.since is not None for written in switch.written),
        all=len(switch.written),
        why=switch.refused,
    )
    verdict = _find_verdict(switch)
    tone = Tone.GOOD if switch.outcome in _SWITCHED and verdict is ComparisonVerdict.SAME else Tone.WARNING
    if switch.outcome is SwitchOutcome.REFUSED or verdict is ComparisonVerdict.DIFFERENT:
        tone = Tone.ERROR
    yield Headline(str(text), tone)


def _show_state(switch: ChangelogSwitch) -> Iterator[Block]:
    state = switch.inspection.checkpoint.state
    if state is None or switch.outcome not in (SwitchOutcome.READY, SwitchOutcome.ALREADY):
        return
    loads = "" if state.needed_version is None else f"   the next start loads version {state.needed_version}"
    yield Heading("State", f"{state.provider}, checkpoint format {state.format_version}{loads}")
    judged = f" ({plural(state.not_read.files, 'file')} judged by name and size only)"
    doubt = judged if state.not_read else ""
    for operator in state.operators:
        for store in operator.stores:
            replay = _count_replayed(store)
            facts = [
                f"{plural(len(store.partitions), 'partition')}, all loadable{doubt}",
                newest_snapshot(store),
                *([f"a load replays {plural(replay, 'version')}"] if replay is not None else []),
            ]
            yield Item(", ".join(facts), 6, f"  operator {operator.id} {store.name}: ")
    yield Item(
        "Afterwards, a load replays every version since the newest snapshot, and each batch writes only its changes."
        if switch.to is Changelog.ON
        else "Afterwards, a load replays no versions, and every batch writes a snapshot."
    )


def _show_how(switch: ChangelogSwitch) -> Iterator[Block]:
    if switch.outcome not in (SwitchOutcome.READY, SwitchOutcome.ALREADY, SwitchOutcome.PARTLY, SwitchOutcome.NOT_YET):
        return
    yield Heading("Setting", "set in the session before the query starts, now and at every later start")
    yield from (Line(f"  {key}={value}") for key, value in switch.confs.items())
    yield Item("The checkpoint does not record this setting: without it, Spark's default (off) applies.")
    if switch.outcome is SwitchOutcome.READY:
        back = Changelog.OFF if switch.to is Changelog.ON else Changelog.ON
        kind = "changelogs" if switch.to is Changelog.OFF else "snapshots"
        yield Item(BOOK.text("files_stay", kind=kind, setting=settings.MIN_BATCHES_TO_RETAIN))
        yield Item(f"To go back, set the other value ({back}) at any later start; nothing needs to be undone.")
        if switch.next_version is not None:
            ending = "changelog" if switch.to is Changelog.ON else "zip"
            yield Item(f"The first batch afterwards writes {switch.next_version}.{ending} in every partition.")


def _show_files(switch: ChangelogSwitch) -> Iterator[Block]:
    if switch.outcome not in (SwitchOutcome.SWITCHED, SwitchOutcome.PARTLY, SwitchOutcome.NOT_YET):
        return
    yield Heading("Files", "the newest versions of each partition")
    rows = []
    for written in switch.written[:_SHOWN]:
        took = "no" if written.since is None else f"from {written.since} on"
        folder = f"state/{written.operator}/{written.partition}"
        rows.append((folder, written.store, took, " ".join(map(_name_files, written.versions))))
    yield Table(tuple(rows), ("below", "store", switch.to, "versions"))
    yield from more(len(switch.written) - _SHOWN)


def _name_files(version: Version) -> str:
    kinds = [kind for kind, path in (("zip", version.snapshot), ("changelog", version.changelog)) if path]
    return f"{version.version}.{'+'.join(kinds)}"


def _show_next(switch: ChangelogSwitch) -> Iterator[Block]:
    path, state, verdict = switch.inspection.checkpoint.uri, switch.inspection.checkpoint.state, _find_verdict(switch)
    match switch.outcome:
        case SwitchOutcome.ALREADY | SwitchOutcome.NOTHING:
            yield Next((), words("Nothing to do."))
        case SwitchOutcome.SWITCHED:
            if verdict in (ComparisonVerdict.SAME, ComparisonVerdict.DIFFERENT):
                yield Next((), BOOK.text(f"compared_{verdict}"))
            else:
                yield Next(BOOK.advise(f"switched_{verdict}", uri=path, changelog=switch.to.value).steps)
        case SwitchOutcome.REFUSED if switch.rewrite is not None:
            yield Next((run(switch.rewrite, BOOK.text("for_rocksdb")),))
        case SwitchOutcome.REFUSED:
            hdfs = state is not None and state.provider is Provider.HDFS
            yield Next(BOOK.advise("get_rocksdb" if hdfs else "see_what_is_there", uri=path).steps)
        case _:
            yield Next(BOOK.advise(f"switch_{switch.outcome}", uri=path, changelog=switch.to.value).steps)
