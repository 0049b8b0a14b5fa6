"""A switch of changelog checkpointing: as a page for a tired person, and as the JSON document of the contract."""

import json
from collections.abc import Iterator

from ckpt import settings
from ckpt.findings import Severity
from ckpt.migrate import ChangelogSwitch, Outcome, To, Verdict
from ckpt.migrate.written import Version, Written
from ckpt.model import Provider, Store
from ckpt.shell import quoted_path

from .comparison import comparison_entry, comparison_lines, headline_of, next_of
from .document import checkpoint_entry, tool
from .findings import COLOURS
from .layout import Page, for_standard_output
from .page import title
from .text import plural, printable

_SHOWN = 12  # how many partitions are named


def changelog_document(found: ChangelogSwitch) -> str:
    """The whole report, indented, keys in the order of the contract."""
    state = found.inspection.checkpoint.state
    report = {
        "ckpt": tool(),
        "checkpoint": checkpoint_entry(found.inspection),
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
    return json.dumps(report, indent=2)


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


def changelog_page(found: ChangelogSwitch) -> str:
    """The whole report, for the terminal or pipe that standard output is."""
    layout = for_standard_output()
    parts = (_state, _how, _files, _compared, _mind, _next)
    told = ("\n".join(part(found, layout)) for part in parts)
    return "\n\n".join(text for text in (title(found.inspection, layout), _headline(found, layout), *told) if text)


def _headline(found: ChangelogSwitch, layout: Page) -> str:
    changelog = f"changelog checkpointing {found.to}"
    since = "" if found.since is None else f", from version {found.since} on"
    state = headline_of(found.comparison)
    took = sum(one.since is not None for one in found.written)
    said, colour = {
        Outcome.READY: (f"CAN BE SWITCHED: the same checkpoint goes on with {changelog}", "33;1"),
        Outcome.ALREADY: (f"ALREADY SO: every partition is written with {changelog}{since}", "32;1"),
        Outcome.NOTHING: ("NOTHING TO SWITCH: the query keeps no state", "32;1"),
        Outcome.SWITCHED: (f"SWITCHED: every partition is written with {changelog}{since}{state}", _colour(found)),
        Outcome.PARTLY: (f"SWITCHED IN PART: {took} of {len(found.written)} have {changelog}", "33;1"),
        Outcome.NOT_YET: (f"NOT SWITCHED: no partition's newest version was written with {changelog}", "33;1"),
        Outcome.REFUSED: (f"NO SWITCH: {printable(found.refused or '')}", COLOURS[Severity.ERROR]),
    }[found.outcome]
    return "\n".join(layout.paint(line, colour) for line in layout.wrap(said, 0).splitlines())


def _colour(found: ChangelogSwitch) -> str:
    verdict = Verdict.SAME if found.comparison is None else found.comparison.verdict
    if verdict is Verdict.DIFFERENT:
        return COLOURS[Severity.ERROR]
    return "32;1" if verdict is Verdict.SAME else "33;1"


def _state(found: ChangelogSwitch, layout: Page) -> Iterator[str]:
    state = found.inspection.checkpoint.state
    if state is None or found.outcome not in (Outcome.READY, Outcome.ALREADY):
        return
    loads = "" if state.needed_version is None else f"   the next start loads version {state.needed_version}"
    yield layout.heading("State", f"{state.provider}, checkpoint format {state.format_version}{loads}")
    seen = f", but of {plural(state.unverified, 'file')} their ends do not tell" if state.unverified else ""
    for operator in state.operators:
        for store in operator.stores:
            replay = _replayed(store)
            newest = store.newest_snapshot_version
            facts = [
                f"{plural(len(store.partitions), 'partition')}, all of them loadable{seen}",
                "no snapshot yet" if newest is None else f"newest snapshot {newest}",
                *([f"a load replays {plural(replay, 'version')}"] if replay is not None else []),
            ]
            yield layout.wrap(printable(", ".join(facts)), 6, f"  operator {operator.id} {printable(store.name)}: ")
    after = (
        "Afterwards a load replays every version since the newest snapshot; batches write their changes only."
        if found.to is To.ON
        else "Afterwards a load replays nothing; every batch writes a snapshot."
    )
    yield layout.wrap(after, 2)


def _how(found: ChangelogSwitch, layout: Page) -> Iterator[str]:
    if found.outcome not in (Outcome.READY, Outcome.ALREADY, Outcome.PARTLY, Outcome.NOT_YET):
        return
    yield layout.heading("Setting", "in the session, before the query starts, at this start and every later one")
    yield from (f"  {key}={value}" for key, value in found.confs.items())
    yield layout.wrap("A checkpoint does not record it: started without it, Spark's default (off) counts.", 2)
    if found.outcome is Outcome.READY:
        back = To.OFF if found.to is To.ON else To.ON
        kind = "changelogs" if found.to is To.OFF else "snapshots"
        yield layout.wrap(
            f"What is on disk stays: {kind} of older versions are read until maintenance deletes those that "
            f"{settings.MIN_BATCHES_TO_RETAIN} does not keep.",
            2,
        )
        yield layout.wrap(f"The way back is the other value ({back}), at any later start; nothing has to be undone.", 2)
        if found.next_version is not None:
            ending = "changelog" if found.to is To.ON else "zip"
            shown = f"The first batch afterwards writes {found.next_version}.{ending} in every partition."
            yield layout.wrap(shown, 2)


def _files(found: ChangelogSwitch, layout: Page) -> Iterator[str]:
    if found.outcome not in (Outcome.SWITCHED, Outcome.PARTLY, Outcome.NOT_YET):
        return
    yield layout.heading("Files", "the newest versions of each partition")
    rows = []
    for one in found.written[:_SHOWN]:
        took = "no" if one.since is None else f"from {one.since} on"
        rows.append(
            [f"state/{one.operator}/{one.partition}", printable(one.store), took, " ".join(map(_ends, one.versions))]
        )
    yield layout.columns(rows, ["below", "store", found.to, "versions"])
    if len(found.written) > _SHOWN:
        yield f"  and {len(found.written) - _SHOWN} more, which -o json names"


def _compared(found: ChangelogSwitch, layout: Page) -> Iterator[str]:
    if found.comparison is not None:
        yield from comparison_lines(found.comparison, layout)


def _ends(version: Version) -> str:
    kinds = [kind for kind, path in (("zip", version.snapshot), ("changelog", version.changelog)) if path]
    return f"{version.version}.{'+'.join(kinds)}"


def _mind(found: ChangelogSwitch, layout: Page) -> Iterator[str]:
    if found.warnings:
        yield layout.heading("Mind")
        yield from (layout.wrap(printable(warning), 4, "  - ") for warning in found.warnings)


def _next(found: ChangelogSwitch, layout: Page) -> Iterator[str]:
    state = found.inspection.checkpoint.state
    path = quoted_path(found.inspection.checkpoint.uri)
    hdfs = state is not None and state.provider is Provider.HDFS
    verify = f"ckpt migrate changelog {path} --to {found.to} --verify"
    said, command = {
        Outcome.READY: ("stop the query, start it with the setting, and after some batches", verify),
        Outcome.ALREADY: ("nothing has to be done", ""),
        Outcome.NOTHING: ("nothing has to be done", ""),
        Outcome.SWITCHED: next_of(found.comparison, verify),
        Outcome.PARTLY: ("let one more batch run, then", verify),
        Outcome.NOT_YET: ("see that the session has the setting, let a batch run, then", verify),
        Outcome.REFUSED: (
            "see how RocksDB can be had" if hdfs else "see what is there",
            f"ckpt migrate provider {path} --to rocksdb" if hdfs else f"ckpt inspect {path}",
        ),
    }[found.outcome]
    yield layout.wrap(said, 10, "Next")
    if command:
        yield f"          {command}"
