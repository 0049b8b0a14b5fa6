"""What happens to a query that was stopped: a menu of disasters, as they come from disks, people and other systems."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.laws.operator.queries import BATCHES, OLDER, Kind, World, append_to_delta
from tests.support.spark.mutations import crc_of
from tests.support.spark.queries import STATE_STORES

Change = Callable[[World, Random], object]
_STATE_FILE = re.compile(r"(\d+)(_[\w-]+)?\.(delta|snapshot|zip|changelog)")


@dataclass(frozen=True)
class Disaster:
    """Something that happens, and the kinds of queries to which it can."""

    name: str
    happen: Change
    fits: Callable[[Kind], bool]


def _always(_: Kind) -> bool:
    return True


def _has_state(kind: Kind) -> bool:
    return kind.stateful


def _reads(*sources: str) -> Callable[[Kind], bool]:
    return lambda kind: kind.source in sources


def _writes(*sinks: str) -> Callable[[Kind], bool]:
    return lambda kind: kind.sink in sinks


def _keeps(*stores: str) -> Callable[[Kind], bool]:
    return lambda kind: kind.store in stores


MENU: dict[str, Disaster] = {}


def _on_menu(name: str, happen: Change, fits: Callable[[Kind], bool] = _always) -> None:
    assert name not in MENU, name
    MENU[name] = Disaster(name, happen, fits)


# Files, and what happens to one


def remove(path: Path) -> None:
    """Delete a file with its checksum, or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
        return
    path.unlink(missing_ok=True)
    crc_of(path).unlink(missing_ok=True)


def write(path: Path, text: str | bytes) -> None:
    """Replace a file, without a checksum."""
    crc_of(path).unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def _empty(path: Path) -> None:
    write(path, "")


def _cut(path: Path) -> None:
    content = path.read_bytes()
    write(path, content[: len(content) * 2 // 3])


def _garble(path: Path) -> None:
    write(path, "\x00\x17garbled" * 3)


def _keep_version(path: Path) -> None:
    write(path, "v1\n")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    write(path, bytes(content))


def _flip_unnoticed_by_its_checksum(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def _harm_all(harm: Callable[[Path], None], paths: Callable[[World], list[Path]]) -> Change:
    """Do the same to several files, which are looked up first."""

    def happen(world: World, _: Random) -> None:
        for path in paths(world):
            harm(path)

    return happen


_HARMS: dict[str, Callable[[Path], None]] = {"lost": remove, "empty": _empty, "cut": _cut, "garbled": _garble}


def _to_log(name: str, back: int, harm: Callable[[Path], None]) -> Change:
    return lambda world, _: harm(world.checkpoint / name / str(_newest(world.checkpoint / name) - back))


def _newest(log: Path) -> int:
    """The newest batch of a log; 0 for an empty one."""
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdecimal()), default=0)


def _remove_all(*patterns: str) -> Change:
    def happen(world: World, _: Random) -> None:
        for pattern in patterns:
            for path in [*world.checkpoint.glob(pattern)]:
                remove(path)

    return happen


def _both(*changes: Change) -> Change:
    def happen(world: World, rng: Random) -> None:
        for change in changes:
            change(world, rng)

    return happen


def _edit(path: str, old: str, new: str) -> Change:
    """Replace by a regular expression what a hand edits, with its checksum removed; the newest batch is `{newest}`."""

    def happen(world: World, _: Random) -> None:
        file = world.checkpoint / path.format(newest=_newest(world.checkpoint / path.partition("/")[0]))
        write(file, re.sub(old, new, file.read_text()))

    return happen


# The logs of the checkpoint

for _log in ("offsets", "commits"):
    for _harm, _do in _HARMS.items():
        _on_menu(f"newest {_log} {_harm}", _to_log(_log, 0, _do))
    _on_menu(f"newest {_log} of a newer version", _edit(f"{_log}/{{newest}}", r"\Av\d+", "v9"))
    _on_menu(f"newest {_log} cut after its first line", _to_log(_log, 0, _keep_version))
    _on_menu(f"all {_log} lost", _remove_all(f"{_log}/[0-9]*", f"{_log}/.*.crc"))
for _harm, _do in _HARMS.items():
    _on_menu(f"offsets before the newest {_harm}", _to_log("offsets", 1, _do))
    _on_menu(f"metadata {_harm}", _harm_all(_do, lambda w: [w.checkpoint / "metadata"]))


def _next_batch(world: World) -> str:
    return str(_newest(world.checkpoint / "offsets") + 1)


def _log_file(world: World, log: str) -> Path:
    return world.checkpoint / log / str(_newest(world.checkpoint / log))


def _lose(*names: tuple[str, int]) -> Change:
    return _both(*(_to_log(log, back, remove) for log, back in names))


_on_menu("commits before the newest lost", _to_log("commits", 1, remove))
_on_menu(
    "an old batch lost from both logs",
    _harm_all(remove, lambda w: [w.checkpoint / log / "1" for log in ("offsets", "commits")]),
)
_on_menu("two newest commits lost", _lose(*[("commits", 0)] * 2))
_on_menu("three newest commits lost", _lose(*[("commits", 0)] * 3))
_on_menu("two newest offsets lost", _lose(*[("offsets", 0)] * 2))
_on_menu("newest batch deleted by hand", _lose(("offsets", 0), ("commits", 0)))
_on_menu("two newest batches deleted by hand", _lose(("offsets", 0), ("commits", 0), ("offsets", 0), ("commits", 0)))
_on_menu(
    "offsets before the newest and newest commit lost",
    _both(_to_log("offsets", 1, remove), _to_log("commits", 0, remove)),
)
_on_menu(
    "offsets before the newest and its commit lost", _both(_to_log("offsets", 1, remove), _to_log("commits", 1, remove))
)
_on_menu("both logs lost", _remove_all("offsets", "commits"))
_on_menu("another query id", lambda w, _: write(w.checkpoint / "metadata", json.dumps({"id": str(uuid.UUID(int=7))})))
_on_menu("checkpoint deleted", lambda w, _: remove(w.checkpoint))
_on_menu("checkpoint emptied", _remove_all("*", ".*.crc"))
_on_menu(
    "checksum of the next offsets left over",
    lambda w, _: shutil.copyfile(crc_of(_log_file(w, "offsets")), w.checkpoint / "offsets" / f".{_next_batch(w)}.crc"),
)
_on_menu(
    "checksum of the next commit left over",
    lambda w, _: shutil.copyfile(crc_of(_log_file(w, "commits")), w.checkpoint / "commits" / f".{_next_batch(w)}.crc"),
)
_on_menu(
    "newest offsets flipped under their checksum", lambda w, _: _flip_unnoticed_by_its_checksum(_log_file(w, "offsets"))
)
_on_menu(
    "newest commit flipped under its checksum", lambda w, _: _flip_unnoticed_by_its_checksum(_log_file(w, "commits"))
)
_on_menu(
    "a folder named like the next batch",
    lambda w, _: write(w.checkpoint / "offsets" / _next_batch(w) / "stray", "stray"),
)
_on_menu(
    "temporary files of a killed driver",
    lambda w, _: write(w.checkpoint / "offsets" / f".{_next_batch(w)}.5c1f2ab6-0f5e-4c43-9a0b-1b7f0a6d9e11.tmp", "v1"),
)
_on_menu(
    "offsets copied by hand as the next batch",
    lambda w, _: write(w.checkpoint / "offsets" / _next_batch(w), _log_file(w, "offsets").read_text()),
)
_on_menu(
    "offsets of an older batch copied over the newest",
    lambda w, _: write(_log_file(w, "offsets"), (w.checkpoint / "offsets" / "2").read_text()),
)
_on_menu(
    "a source's line lost from the newest offsets",
    lambda w, _: write(_log_file(w, "offsets"), "\n".join(_log_file(w, "offsets").read_text().split("\n")[:-1])),
    _reads("files", "delta"),
)

# The state


def _state_files(world: World, back: int = 0) -> list[Path]:
    """The files of the newest version, or one so many versions older, in each partition and store of one operator."""
    files = (file for file in sorted(world.checkpoint.glob("state/0/*/**/*")) if "_metadata" not in str(file))
    versions = [(int(match[1]), file) for file in files if (match := _STATE_FILE.fullmatch(file.name))]
    newest = max((version for version, _ in versions), default=0)
    return [file for version, file in versions if version == newest - back]


def _to_state(harm: Callable[[Path], None], back: int = 0, *, everywhere: bool = False) -> Change:
    def happen(world: World, rng: Random) -> None:
        files = _state_files(world, back)
        assert files, world.kind.name
        folder = rng.choice(sorted({file.parent for file in files}))
        for file in files:
            if everywhere or file.parent == folder:
                harm(file)

    return happen


for _harm, _do in {**_HARMS, "flipped": _flip, "flipped under its checksum": _flip_unnoticed_by_its_checksum}.items():
    _on_menu(f"newest state file {_harm}", _to_state(_do), _has_state)
_on_menu("newest state files empty in every partition", _to_state(_empty, everywhere=True), _has_state)
_on_menu("newest state files lost in every partition", _to_state(remove, everywhere=True), _has_state)
_on_menu("state file before the newest lost", _to_state(remove, 1), lambda kind: kind.stateful and kind.retained > 2)
_on_menu("state file before the newest cut", _to_state(_cut, 1), lambda kind: kind.stateful and kind.retained > 2)
_on_menu("first state file lost", _to_state(remove, BATCHES - 1), lambda kind: kind.stateful and kind.retained > 2)
_on_menu(
    "two newest state files lost",
    _both(_to_state(remove, everywhere=True), _to_state(remove, 1, everywhere=True)),
    _has_state,
)
_on_menu(
    "a partition's folder lost", lambda w, rng: remove(w.checkpoint / "state" / "0" / str(rng.randrange(2))), _has_state
)
_on_menu(
    "a partition's folder emptied",
    lambda w, rng: _empty_folder(w.checkpoint / "state" / "0" / str(rng.randrange(2))),
    _has_state,
)
_on_menu("state/ lost", lambda w, _: remove(w.checkpoint / "state"), _has_state)
_on_menu("state/0 lost", lambda w, _: remove(w.checkpoint / "state" / "0"), _has_state)
_on_menu("operator metadata lost", _remove_all("state/0/_metadata"), _has_state)
_on_menu("operator metadata empty", lambda w, _: _each(w, "state/0/_metadata/**/*", _empty), _has_state)
_on_menu(
    "state schemas lost",
    _remove_all("state/0/0/_metadata", "state/0/0/*/_metadata", "state/0/_stateSchema"),
    _has_state,
)
_on_menu(
    "state schemas empty",
    _both(
        lambda w, _: _each(w, "state/0/0/**/_metadata/schema", _empty),
        lambda w, _: _each(w, "state/0/_stateSchema/**/*", _empty),
    ),
    _has_state,
)
_on_menu("an SST file lost", lambda w, rng: _sst(w, rng, remove), _keeps("rocksdb"))
_on_menu("an SST file cut", lambda w, rng: _sst(w, rng, _cut), _keeps("rocksdb"))
_on_menu("an SST file flipped", lambda w, rng: _sst(w, rng, _flip), _keeps("rocksdb"))
_on_menu(
    "all SST files of a partition lost",
    lambda w, rng: _each(w, f"state/0/{rng.randrange(2)}/**/SSTs", remove),
    _keeps("rocksdb"),
)
_on_menu(
    "a store of the join lost",
    lambda w, _: _each(w, "state/0/0/right-keyWithIndexToValue", remove),
    lambda kind: kind.operator == "join",
)


def _empty_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def _each(world: World, pattern: str, harm: Callable[[Path], None]) -> None:
    for path in sorted(world.checkpoint.glob(pattern)):
        if path.exists() and (path.is_file() or harm is remove) and not path.name.endswith(".crc"):
            harm(path)


def _sst(world: World, rng: Random, harm: Callable[[Path], None]) -> None:
    harm(rng.choice(sorted(world.checkpoint.glob("state/0/*/**/*.sst"))))


def _crash_after_the_sink(world: World, _: Random) -> None:
    remove(_log_file(world, "commits"))


def _crash_before_the_sink(world: World, _: Random) -> None:
    """The newest batch has state, and is neither in the sink nor committed."""
    remove(_log_file(world, "commits"))
    _restore(world, "out", OLDER[-1])


def _crash_before_the_state(world: World, rng: Random) -> None:
    """The newest batch is planned, and no more."""
    _crash_before_the_sink(world, rng)
    for file in _state_files(world):
        remove(file)


def _restore(world: World, folder: str, batches: int) -> None:
    """A copy, made after so many batches, replaces the folder."""
    remove(world.folder / folder)
    shutil.copytree(world.copies / str(batches) / folder, world.folder / folder)


# The log of a file source, and what sources still have

for _harm, _do in _HARMS.items():
    _on_menu(f"newest sources/0 {_harm}", _to_log("sources/0", 0, _do), _reads("files"))
_on_menu("sources/0 lost", _remove_all("sources/0"), _reads("files"))
_on_menu("sources/ lost", _remove_all("sources"), _reads("files", "rate", "kafka"))
_on_menu("a hole in sources/0", lambda w, _: remove(w.checkpoint / "sources" / "0" / "2"), _reads("files"))
_on_menu("first of sources/0 lost", lambda w, _: remove(w.checkpoint / "sources" / "0" / "0"), _reads("files", "rate"))
_on_menu(
    "first of sources/0 garbled", lambda w, _: _garble(w.checkpoint / "sources" / "0" / "0"), _reads("files", "kafka")
)
_on_menu(
    "a source file of the planned batch deleted",
    _both(_crash_before_the_sink, lambda w, _: remove(w.into / f"{BATCHES - 1:03}.json")),
    _reads("files"),
)
_on_menu(
    "old source files archived",
    _harm_all(remove, lambda w: [w.into / f"{number:03}.json" for number in range(3)]),
    _reads("files"),
)
_on_menu(
    "a source file written again",
    lambda w, _: (w.into / "001.json").write_text('{"row": 4}\n{"row": 5}\n{"row": 6}\n'),
    _reads("files"),
)
_on_menu("source folder emptied", lambda w, _: _empty_folder(w.into), _reads("files"))


def _recreate_source(world: World, _: Random) -> None:
    """The table again, with the same rows in one commit."""
    remove(world.into)
    append_to_delta(world.into, world.added)


def _delta_source_goes_back(world: World, _: Random) -> None:
    """An older copy of the table is restored, and the rows come again, in another commit."""
    for version in range(3, 10):
        remove(world.into / "_delta_log" / f"{version:020}.json")
    append_to_delta(world.into, [number for number in world.added if number >= 12])


def _clean_delta_source(world: World, _: Random) -> None:
    from deltalake import DeltaTable

    table = DeltaTable(str(world.into))
    table.create_checkpoint()
    for file in sorted((world.into / "_delta_log").glob("*.json"))[:-1]:
        remove(file)


def _delete_from_delta_source(world: World, _: Random) -> None:
    from deltalake import DeltaTable

    DeltaTable(str(world.into)).delete("row = 5")


def _compact_delta_source(world: World, _: Random) -> None:
    from deltalake import DeltaTable

    table = DeltaTable(str(world.into))
    table.optimize.compact()
    DeltaTable(str(world.into)).vacuum(0, dry_run=False, enforce_retention_duration=False)


def _lose_planned_delta_file(world: World, rng: Random) -> None:
    _crash_before_the_sink(world, rng)
    log = json.loads("[" + ",".join(_newest_delta_entry(world.into).read_text().splitlines()) + "]")
    for action in log:
        if "add" in action:
            remove(world.into / action["add"]["path"])


_on_menu("source table created again", _recreate_source, _reads("delta"))
_on_menu("source table restored from an older copy", _delta_source_goes_back, _reads("delta"))
_on_menu("log of the source table cleaned", _clean_delta_source, _reads("delta"))
_on_menu("rows of the source table deleted", _delete_from_delta_source, _reads("delta"))
_on_menu("source table compacted and vacuumed", _compact_delta_source, _reads("delta"))
_on_menu("a data file of the planned batch lost", _lose_planned_delta_file, _reads("delta"))
_on_menu("source table gone", lambda w, _: remove(w.into), _reads("delta"))


def _recreate_topic(world: World, _: Random) -> None:
    world.broker.delete(world.topic)
    world.broker.create(world.topic, 1)
    world.broker.fill(world.topic, len(world.added), range(1), iter(world.added))


def _shorten_topic(world: World, _: Random) -> None:
    world.broker.delete(world.topic)
    world.broker.create(world.topic, 1)
    fresh = [*range(len(world.added), len(world.added) + 5)]
    world.added += fresh
    world.broker.fill(world.topic, len(fresh), range(1), iter(fresh))


def _expire(world: World, _: Random) -> None:
    """Retention takes rows that were not read."""
    world.add(1)
    world.broker.expire(world.topic, len(world.added) - 1, range(1))


_on_menu("topic created again and filled", _recreate_topic, _reads("kafka"))
_on_menu("topic created again, shorter", _shorten_topic, _reads("kafka"))
_on_menu("unread records expired", _expire, _reads("kafka"))
_on_menu(
    "planned records expired",
    _both(_crash_before_the_sink, lambda w, _: w.broker.expire(w.topic, len(w.added), range(1))),
    _reads("kafka"),
)
_on_menu("a partition added to the topic", lambda w, _: w.broker.add_partition(w.topic, 2), _reads("kafka"))

# Sinks


def _sink_entry(world: World, back: int) -> Path:
    """The entry of a batch in the log of the sink."""
    if world.kind.sink == "files":
        return world.out / "_spark_metadata" / str(_newest(world.out / "_spark_metadata") - back)
    return _newest_delta_entry(world.out, back)


def _newest_delta_entry(table: Path, back: int = 0) -> Path:
    return sorted((table / "_delta_log").glob("*.json"))[-1 - back]


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
    return _both(_restoring("checkpoint", batches), _restoring("out", batches))


def _restoring(folder: str, batches: int) -> Change:
    return lambda world, _: _restore(world, folder, batches)


def _restore_part(batches: int, *folders: str) -> Change:
    return _both(*(_restoring(f"checkpoint/{folder}", batches) for folder in folders))


_DELTA, _LOGGED = _writes("delta", "txn", "merge"), _writes("delta", "txn", "files")
_on_menu("killed after the sink, before the commit", _crash_after_the_sink)
_on_menu("killed before the sink", _crash_before_the_sink)
_on_menu("killed before the state", _crash_before_the_state, _has_state)
_on_menu(
    "killed after the sink, without the state",
    _both(_crash_after_the_sink, _harm_all(remove, lambda w: _state_files(w))),
    _has_state,
)
_on_menu("sink deleted", lambda w, _: remove(w.out))
_on_menu("sink created again", lambda w, _: _empty_folder(w.out))
_on_menu("sink table created again, empty", lambda w, _: _recreate_sink(w), _writes("delta", "merge"))
_on_menu("newest entry of the sink's log lost", lambda w, _: sink_forgets(w, 1), _LOGGED)
_on_menu("two newest entries of the sink's log lost", lambda w, _: sink_forgets(w, 2), _LOGGED)
_on_menu("newest entry of the sink's log empty", lambda w, _: _empty(_sink_entry(w, 0)), _LOGGED)
_on_menu("newest entry of the sink's log cut", lambda w, _: _cut(_sink_entry(w, 0)), _LOGGED)
_on_menu("an older entry of the sink's log lost", lambda w, _: remove(_sink_entry(w, 2)), _writes("files"))
_on_menu("log of the sink lost", lambda w, _: remove(w.out / "_spark_metadata"), _writes("files"))
_on_menu("sink table restored to an older version", lambda w, _: _restore_table(w), _DELTA)
for _batches, _copy in zip(OLDER, ("older copy", "newer copy"), strict=True):
    _on_menu(f"{_copy} of the sink restored", _restoring("out", _batches))
    _on_menu(f"{_copy} of the checkpoint restored", _restoring("checkpoint", _batches))
    _on_menu(f"{_copy} of checkpoint and sink restored", _restore_both(_batches))
    _on_menu(f"{_copy} of the logs restored", _restore_part(_batches, "offsets", "commits"))
    _on_menu(f"{_copy} of the state restored", _restore_part(_batches, "state"), _has_state)
_on_menu("newer checkpoint and older sink restored", _both(_restoring("checkpoint", 4), _restoring("out", 3)))
_on_menu("older checkpoint and newer sink restored", _both(_restoring("checkpoint", 3), _restoring("out", 4)))


def _recreate_sink(world: World) -> None:
    from deltalake import DeltaTable, write_deltalake

    none = DeltaTable(str(world.out)).to_pyarrow_table().slice(0, 0)
    remove(world.out)
    write_deltalake(str(world.out), none)


def _restore_table(world: World) -> None:
    world.spark.sql(f"RESTORE TABLE delta.`{world.out}` TO VERSION AS OF {_newest_version(world) - 2}").collect()


def _newest_version(world: World) -> int:
    return int(_sink_entry(world, 0).stem)


# Full disks, settings, poison


def _full_disk(world: World, _: Random) -> None:
    """What the newest batch wrote last is empty: its commit, its state, its offsets."""
    for file in (_log_file(world, "commits"), _log_file(world, "offsets"), *_state_files(world)):
        _empty(file)


def _poison(world: World, _: Random) -> None:
    """A row of the next batch on which the query always fails, and it has."""
    world.poison = len(world.added) + 1 if world.kind.source != "rate" else sum(SIZES_OF_RATE) + 1
    world.add(1)
    assert "poison" in world.start(1)


SIZES_OF_RATE = (4,) * BATCHES
"""Rows that the five starts of a query from `rate-micro-batch` read."""


def _set(key: str, *values: str) -> Change:
    def happen(world: World, _: Random) -> None:
        now = STATE_STORES.get(world.kind.store, {}).get(key)
        world.conf[key] = next(value for value in values if value != now)

    return happen


_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_PROVIDERS = tuple(STATE_STORES[store][_PROVIDER] for store in ("hdfs", "rocksdb"))
_on_menu(
    "disk full at the newest commit and state",
    _harm_all(_empty, lambda w: [_log_file(w, "commits"), *_state_files(w)]),
)
_on_menu("disk full at the newest batch", _full_disk)
_on_menu("disk full at the next offsets", lambda w, _: _empty(w.checkpoint / "offsets" / _next_batch(w)))
_on_menu(
    "disk full at offsets and source log",
    _both(_to_log("offsets", 0, _empty), _to_log("sources/0", 0, _empty), _to_log("commits", 0, remove)),
    _reads("files"),
)
_on_menu("poison row", _poison)
_on_menu("poison row, and the newest state file lost", _both(_poison, _to_state(remove)), _has_state)
_on_menu("session has another provider", _set(_PROVIDER, *_PROVIDERS), _keeps("hdfs", "rocksdb", "changelog"))
_on_menu("session has changelogs switched", _set(_CHANGELOG, "true", "false"), _keeps("rocksdb", "changelog"))
_on_menu(
    "shuffle partitions edited in the newest offsets",
    _edit("offsets/{newest}", r'shuffle\.partitions":"2"', 'shuffle.partitions":"3"'),
    _has_state,
)
_on_menu(
    "provider edited in the newest offsets",
    _edit("offsets/{newest}", r"HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"),
    _keeps("hdfs"),
)
_on_menu("settings removed from the newest offsets", _edit("offsets/{newest}", r'"conf":\{[^}]*\}', '"conf":{}'))
_on_menu(
    "watermark edited in the newest offsets",
    _edit("offsets/{newest}", r'"batchWatermarkMs":\d+', '"batchWatermarkMs":0'),
    lambda kind: kind.operator == "window",
)
_on_menu(
    "watermark edited in the newest commit",
    _edit("commits/{newest}", r'"nextBatchWatermarkMs":\d+', '"nextBatchWatermarkMs":0'),
    lambda kind: kind.operator == "window",
)
_on_menu(
    "position edited in the newest offsets",
    _edit("offsets/{newest}", r'"(logOffset|reservoirVersion|offset)":(\d+)', r'"\1":2'),
    _reads("files", "delta", "rate"),
)


def menu_for(kind: Kind) -> Iterator[Disaster]:
    """What can happen to a kind of query."""
    return (disaster for disaster in MENU.values() if disaster.fits(kind))
