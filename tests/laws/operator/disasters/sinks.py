"""Disasters of sinks: killed drivers, and older copies of either side."""

from __future__ import annotations

from pathlib import Path

from tests.laws.operator.disasters.harm import (
    Change,
    Menu,
    both,
    crash_after_the_sink,
    crash_before_the_sink,
    crash_before_the_state,
    cut,
    empty,
    empty_folder,
    harm_all,
    has_state,
    newest,
    newest_delta_entry,
    remove,
    restore,
    state_files,
    writes,
)
from tests.laws.operator.queries import BATCHES, OLDER, World

MENU = Menu()


def _sink_entry(world: World, back: int) -> Path:
    """The entry of a batch in the log of the sink."""
    if world.kind.sink == "files":
        return world.out / "_spark_metadata" / str(newest(world.out / "_spark_metadata") - back)
    return newest_delta_entry(world.out, back)


def sink_forgets(world: World, count: int) -> None:
    """The sink as it was some batches ago."""
    for _ in range(count):
        if world.kind.sink == "append":
            file = world.out / "rows.jsonl"
            lines = file.read_text().splitlines(keepends=True)
            file.write_text("".join(lines[: len(lines) * (BATCHES - 1) // BATCHES]))
        else:
            entry = _sink_entry(world, 0)
            remove(entry)
            entry.with_suffix(".crc").unlink(missing_ok=True)


def _restore_both(batches: int) -> Change:
    return both(_restoring("checkpoint", batches), _restoring("out", batches))


def _restoring(folder: str, batches: int) -> Change:
    return lambda world, _: restore(world, folder, batches)


def _restore_part(batches: int, *folders: str) -> Change:
    return both(*(_restoring(f"checkpoint/{folder}", batches) for folder in folders))


_DELTA, _LOGGED = writes("delta", "txn", "merge"), writes("delta", "txn", "files")
MENU.add("killed after the sink, before the commit", crash_after_the_sink)
MENU.add("killed before the sink", crash_before_the_sink)
MENU.add("killed before the state", crash_before_the_state, has_state)
MENU.add(
    "killed after the sink, without the state",
    both(crash_after_the_sink, harm_all(remove, lambda w: state_files(w))),
    has_state,
)
MENU.add("sink deleted", lambda w, _: remove(w.out))
MENU.add("sink created again", lambda w, _: empty_folder(w.out))
MENU.add("sink table created again, empty", lambda w, _: _recreate_sink(w), writes("delta", "merge"))
MENU.add("newest entry of the sink's log lost", lambda w, _: sink_forgets(w, 1), _LOGGED)
MENU.add("two newest entries of the sink's log lost", lambda w, _: sink_forgets(w, 2), _LOGGED)
MENU.add("newest entry of the sink's log empty", lambda w, _: empty(_sink_entry(w, 0)), _LOGGED)
MENU.add("newest entry of the sink's log cut", lambda w, _: cut(_sink_entry(w, 0)), _LOGGED)
MENU.add("an older entry of the sink's log lost", lambda w, _: remove(_sink_entry(w, 2)), writes("files"))
MENU.add("log of the sink lost", lambda w, _: remove(w.out / "_spark_metadata"), writes("files"))
MENU.add("sink table restored to an older version", lambda w, _: _restore_table(w), _DELTA)
for _batches, _copy in zip(OLDER, ("older copy", "newer copy"), strict=True):
    MENU.add(f"{_copy} of the sink restored", _restoring("out", _batches))
    MENU.add(f"{_copy} of the checkpoint restored", _restoring("checkpoint", _batches))
    MENU.add(f"{_copy} of checkpoint and sink restored", _restore_both(_batches))
    MENU.add(f"{_copy} of the logs restored", _restore_part(_batches, "offsets", "commits"))
    MENU.add(f"{_copy} of the state restored", _restore_part(_batches, "state"), has_state)
MENU.add("newer checkpoint and older sink restored", both(_restoring("checkpoint", 4), _restoring("out", 3)))
MENU.add("older checkpoint and newer sink restored", both(_restoring("checkpoint", 3), _restoring("out", 4)))


def _recreate_sink(world: World) -> None:
    from deltalake import DeltaTable, write_deltalake

    none = DeltaTable(str(world.out)).to_pyarrow_table().slice(0, 0)
    remove(world.out)
    write_deltalake(str(world.out), none)


def _restore_table(world: World) -> None:
    world.spark.sql(f"RESTORE TABLE delta.`{world.out}` TO VERSION AS OF {_newest_version(world) - 2}").collect()


def _newest_version(world: World) -> int:
    return int(_sink_entry(world, 0).stem)
