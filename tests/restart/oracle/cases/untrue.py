"""Files that can be read, and say what is not so: exchanged folders, edited records, settings that no start takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from . import model
from .model import Case, Mutation, copy, latest, move, replace, write
from .operators import HOMES, QUERIES

_STREAMING = "spark.sql.streaming."
_STORE = _STREAMING + "stateStore."
FAR = 4_102_444_800_000
"""2100-01-01, in ms."""
LONG = 2**63 - 1


def exchange(first: str, second: str) -> list[Mutation]:
    """Let two folders or files change places."""
    return [move(first, "exchanged"), move(second, first), move("exchanged", second)]


def _case(sample: str, name: str, damage: list[Mutation], **more: object) -> Case:
    mutations = (*HOMES[sample], *damage)
    return Case(f"{sample}-{name}", sample, mutations, QUERIES[sample], sync_only=True, **more)  # type: ignore[arg-type]


def _folders() -> Iterator[Case]:
    for sample in ("aggregation-hdfs-3.5", "aggregation-changelog-4.2", "aggregation-rocksdb-3.5", "dedup-hdfs-4.0"):
        yield _case(sample, "partitions-exchanged", exchange("state/0/0", "state/0/1"), batches=2)
    for sample in ("join-hdfs-3.5", "join-changelog-4.2"):
        for store in ("keyToNumValues", "keyWithIndexToValue"):
            swapped = [
                mutation
                for partition in (0, 1)
                for mutation in exchange(f"state/0/{partition}/left-{store}", f"state/0/{partition}/right-{store}")
            ]
            yield _case(sample, f"sides-exchanged-{store}", swapped, batches=2)
        yield _case(sample, "partitions-exchanged", exchange("state/0/0", "state/0/1"), batches=2)
    sample = "dedup-aggregation-hdfs-4.2"
    yield _case(sample, "operators-exchanged", exchange("state/0", "state/1"))
    yield _case(sample, "operator-id-of-another", [replace("state/1/_metadata/metadata", 'Id":1', 'Id":0')])
    yield _case("aggregation-changelog-4.2", "operator-id-7", [replace("state/0/_metadata/metadata", 'Id":0', 'Id":7')])
    tws = replace("state/0/_metadata/v2/{latest}", 'Id":0', 'Id":7')
    yield _case("tws-rocksdb-4.2", "operator-id-7", [tws])


def _operator_names() -> Iterator[Case]:
    """Names in the metadata of an operator that are not those of its state."""
    file = "state/0/_metadata/metadata"
    for sample, name, others in (
        ("aggregation-rocksdb-4.2", "stateStoreSave", ("dedupe", "dedupeWithinWatermark", "globalLimit")),
        ("aggregation-changelog-4.0", "stateStoreSave", ("sessionWindowStateStoreSaveExec",)),
        ("dedup-hdfs-4.0", "dedupe", ("stateStoreSave", "dedupeWithinWatermark")),
        ("limit-hdfs-4.2", "globalLimit", ("dedupe", "stateStoreSave")),
    ):
        for other in others:
            edit = replace(file, f'"operatorName":"{name}"', f'"operatorName":"{other}"')
            yield _case(sample, f"operator-called-{other}", [edit])
    for sample in ("tws-changelog-4.0", "tws-rocksdb-4.2"):
        newest, older = f"state/0/_metadata/v2/{latest(sample)}", f"state/0/_metadata/v2/{latest(sample) - 1}"
        mode = ('\\"outputMode\\":\\"Append\\"', '\\"outputMode\\":\\"Update\\"')
        time = ('\\"timeMode\\":\\"ProcessingTime\\"', '\\"timeMode\\":\\"EventTime\\"')
        named = ('"transformWithStateInPandasExec"', '"dedupe"')
        edits = {"output-mode": mode, "time-mode": time, "name": named}
        for which, (old, new) in edits.items():
            yield _case(sample, f"newest-{which}-edited", [replace(newest, old, new)])
        yield _case(sample, "older-output-mode-edited", [replace(older, *mode)])
    for sample in ("aggregation-rocksdb-4.2", "aggregation-changelog-4.0", "dedup-hdfs-4.0"):
        edit = replace(file, '"storeName":"default"', '"storeName":"other"')
        yield _case(sample, "store-called-other", [edit], batches=2)


def recorded(sample: str, name: str, value: str) -> list[Mutation]:
    """Let the newest offsets record another value of a setting."""
    last = latest(sample)
    text = (model.SAMPLES / sample / "offsets" / str(last)).read_text()
    pattern = re.escape(json.dumps(name)) + r':"((?:[^"\\]|\\.)*)"'
    old = re.search(pattern, text)
    new = f"{json.dumps(name)}:{json.dumps(value)}"
    if old is None:
        return [replace(f"offsets/{last}", '"conf":{', '"conf":{' + new + ",")]
    return [replace(f"offsets/{last}", old[0], new)]


SETTINGS: dict[str, tuple[str, ...]] = {
    "spark.sql.shuffle.partitions": ("x", "0", "-1", "1", "3", "2.0", " 2"),
    _STORE + "providerClass": ("x.y.Z", "RocksDBStateStoreProvider"),
    _STREAMING + "multipleWatermarkPolicy": ("banana", "MAX", "max"),
    _STREAMING + "aggregation.stateFormatVersion": ("x", "0", "1", "3"),
    _STREAMING + "join.stateFormatVersion": ("x", "0", "1"),
    _STREAMING + "flatMapGroupsWithState.stateFormatVersion": ("x", "0", "1", "3"),
    _STORE + "compression.codec": ("banana", "LZ4", "snappy", "zstd", "org.apache.spark.io.LZ4CompressionCodec"),
    _STORE + "rocksdb.formatVersion": ("x", "-1", "0", "2", "99"),
    _STREAMING + "statefulOperator.useStrictDistribution": ("x", "false", "TRUE", "yes"),
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": ("x", "true"),
    _STORE + "encodingFormat": ("x", "avro", "UnsafeRow"),
    _STORE + "rocksdb.mergeOperatorVersion": ("x", "0", "1", "3"),
    _STORE + "rowChecksum.enabled": ("x", "true"),
    _STREAMING + "queryEvolution.enableSourceEvolution": ("x", "true"),
    "spark.sql.function.protobufExtensions.enabled": ("x", "true"),
    _STREAMING + "statefulOperator.alwaysNullableOutput.enabled": ("x", "true"),
    "spark.sql.dropDuplicates.deterministicKeyOrder.enabled": ("x", "true"),
}
"""Values of recorded settings that nobody has set: wrong, of another spelling, or of another state."""

_ASKED = {
    "spark.sql.shuffle.partitions": ("x", "0", "1", "3"),
    _STORE + "providerClass": ("x.y.Z",),
    _STREAMING + "multipleWatermarkPolicy": ("banana", "MAX"),
    _STREAMING + "aggregation.stateFormatVersion": ("0", "1", "3"),
    _STREAMING + "join.stateFormatVersion": ("0",),
    _STREAMING + "flatMapGroupsWithState.stateFormatVersion": ("3",),
    _STORE + "compression.codec": ("banana", "LZ4", "snappy", "zstd"),
    _STORE + "rocksdb.formatVersion": ("-1", "99"),
    _STREAMING + "statefulOperator.useStrictDistribution": ("x", "TRUE"),
    _STORE + "encodingFormat": ("x", "avro"),
    _STORE + "rocksdb.mergeOperatorVersion": ("3",),
    _STORE + "rowChecksum.enabled": ("x", "true"),
    _STREAMING + "queryEvolution.enableSourceEvolution": ("x", "true"),
    _STREAMING + "statefulOperator.alwaysNullableOutput.enabled": ("x",),
}
"""Those of them that every version is asked about."""


def _settings() -> Iterator[Case]:
    sample = "aggregation-changelog-4.2"
    asked = [(sample, name, value) for name, values in _ASKED.items() for value in values]
    asked += [("stateless-4.2", _STORE + "compression.codec", "banana")]
    asked += [("stateless-4.2", _STORE + "encodingFormat", "x"), ("stateless-4.2", _STORE + "providerClass", "x.y.Z")]
    asked += [
        ("aggregation-hdfs-3.5", _STORE + "compression.codec", "zstd"),
        ("aggregation-hdfs-3.5", _STREAMING + "aggregation.stateFormatVersion", "1"),
        ("aggregation-hdfs-4.2", _STORE + "rowChecksum.enabled", "true"),
        ("aggregation-hdfs-4.2", _STORE + "encodingFormat", "avro"),
        ("aggregation-rocksdb-4.2", _STORE + "rowChecksum.enabled", "true"),
        ("join-changelog-4.2", _STREAMING + "multipleWatermarkPolicy", "banana"),
        ("join-changelog-4.2", _STREAMING + "join.stateFormatVersion", "1"),
        ("join-changelog-4.2", _STREAMING + "join.stateFormatVersion", "3"),
        ("join-hdfs-3.5", _STREAMING + "join.stateFormatVersion", "1"),
        ("tws-rocksdb-4.2", _STORE + "encodingFormat", "avro"),
        ("pandas-with-state-hdfs-3.5", _STREAMING + "flatMapGroupsWithState.stateFormatVersion", "1"),
        ("limit-hdfs-4.2", "spark.sql.shuffle.partitions", "3"),
    ]
    for sample, name, value in asked:
        short = name.rpartition("spark.sql.")[2].removeprefix("streaming.")
        yield _case(sample, f"recorded-{short}={value}", recorded(sample, name, value))


def _schemas() -> Iterator[Case]:
    schema = "state/0/0/_metadata/schema"
    for sample in ("aggregation-hdfs-3.5", "aggregation-changelog-4.2", "dedup-hdfs-4.0"):
        yield _case(sample, "schema-void", [replace(schema, '"long"', '"void"')], batches=2)
    sample = "join-v3-changelog-4.2"  # whose schema is read where it was written
    folder = model.SAMPLES / sample
    (schema,) = (str(path.relative_to(folder)) for path in folder.glob("state/0/_stateSchema/*/[0-9]*"))
    yield _case(sample, "schema-void", [replace(schema, '"long"', '"void"')], batches=2)
    yield _case(sample, "schema-cut", [model.truncate(schema, -30)], batches=2)
    yield _case(sample, "schema-key-misspelt", [replace(schema, '"nullable":true', '"nulloble":true')], batches=2)


def _file_sources() -> Iterator[Case]:
    for sample in ("file-source-3.5",):
        entry = "sources/0/11"
        made = json.loads((model.SAMPLES / sample / entry).read_text().splitlines()[1])
        stamp = f'"timestamp":{made["timestamp"]}'
        edits = {
            "timestamp-0": (stamp, '"timestamp":0'),
        }
        for name, edited in {"path-null": None, "path-empty": ""}.items():
            text = "v1\n" + json.dumps(made | {"path": edited}, separators=(",", ":"))
            yield _case(sample, name, [write(entry, text)], batches=2)
        without = {key: value for key, value in made.items() if key != "path"}
        yield _case(sample, "path-missing", [write(entry, "v1\n" + json.dumps(without))], batches=2)
        for name, (old, new) in edits.items():
            yield _case(sample, name, [replace(entry, old, str(new))], batches=2)


def _unique_ids() -> Iterator[Case]:
    sample = "aggregation-format2-4.2"
    last = latest(sample)
    commit = json.loads((model.SAMPLES / sample / "commits" / str(last)).read_text().splitlines()[1])
    before = json.loads((model.SAMPLES / sample / "commits" / str(last - 1)).read_text().splitlines()[1])
    ids, older = commit["stateUniqueIds"]["0"], before["stateUniqueIds"]["0"]
    forms = {
        "ids-two-for-a-partition": {"0": [[*ids[0], *older[0]], ids[1]]},
        "ids-twice-the-same": {"0": [ids[0] * 2, ids[1]]},
        "ids-exchanged": {"0": ids[::-1]},
        "ids-of-the-batch-before": {"0": older},
        "ids-of-one-operator-more": {"0": ids, "1": ids},
        "ids-of-one-partition-more": {"0": [*ids, ids[0]]},
        "ids-of-one-partition-less": {"0": ids[:1]},
    }
    for name, form in forms.items():
        text = "v2\n" + json.dumps(commit | {"stateUniqueIds": form}, separators=(",", ":"))
        yield _case(sample, name, [write(f"commits/{last}", text)], batches=2)


def _watermarks() -> Iterator[Case]:
    for sample in ("windowed-aggregation-hdfs-4.2", "dedup-within-watermark-hdfs-3.5"):
        last = latest(sample)
        commit = (model.SAMPLES / sample / "commits" / str(last)).read_text()
        old = re.search(r'"nextBatchWatermarkMs":\d+', commit)
        assert old is not None
        for name, value in {"far": FAR, "largest": LONG}.items():
            edit = replace(f"commits/{last}", old[0], f'"nextBatchWatermarkMs":{value}')
            yield _case(sample, f"watermark-{name}", [edit], batches=2)


def _offsets() -> Iterator[Case]:
    for sample in ("stateless-3.5",):
        last = latest(sample)
        end = json.loads((model.SAMPLES / sample / "offsets" / str(last)).read_text().splitlines()[2])["offset"]
        for name, value in {
            "largest": LONG,
            "nearly-largest": LONG - 5,
            "beyond-long": LONG + 1,
            "fraction": f"{end}.5",
            "in-quotes": f'"{end}"',
        }.items():
            yield _case(
                sample, f"rows-{name}", [replace(f"offsets/{last}", f'"offset":{end}', f'"offset":{value}')], batches=2
            )
        stamp = re.search(r'"timestamp":\d+', (model.SAMPLES / sample / "offsets" / str(last)).read_text())
        assert stamp is not None
        largest = replace(f"offsets/{last}", stamp[0], f'"timestamp":{LONG}')
        yield _case(sample, "rate-timestamp-largest", [largest], batches=2)
        yield _case(sample, "text-after-the-offset", [replace(f"offsets/{last}", stamp[0] + "}", stamp[0] + "} x")])
        yield _case(sample, "two-offsets-in-a-line", [replace(f"offsets/{last}", stamp[0] + "}", stamp[0] + "}{}")])
        more = replace(f"offsets/{last}", stamp[0] + "}", stamp[0] + ',"note":"x"}')
        yield _case(sample, "member-more", [more], batches=2)
        yield _case(sample, "member-more-uncommitted", [more, *model.delete_logs(commits=[last])], batches=2)
    sample = "file-source-4.2"
    yield _case(sample, "text-after-the-offset", [replace("offsets/11", '{"logOffset":11}', '{"logOffset":11} x')])
    yield _case(sample, "member-more", [replace("offsets/11", '{"logOffset":11}', '{"logOffset":11,"note":"x"}')])
    yield from _names_of_sources()
    sample, last = "two-sources-offsets-v2-4.2", 3
    zero, one = '\n0:{"offset":40,"timestamp":1700000004000}', '\n1:{"offset":80,"timestamp":1700000004000}'
    yield _case(sample, "first-line-gone", [replace(f"offsets/{last}", zero, "")], batches=2)
    yield _case(sample, "last-line-gone", [replace(f"offsets/{last}", one, "")], batches=2)
    last_of_both = [replace(f"offsets/{last}", one, "")]
    yield _case(sample, "last-line-gone-uncommitted", [*last_of_both, *model.delete_logs(commits=[last])], batches=2)
    dashes = [replace(f"offsets/{last}", one, "\n1:-")]
    yield _case(sample, "last-line-dash", dashes, batches=2)
    yield _case(sample, "last-line-renamed", [replace(f"offsets/{last}", one, one.replace("\n1", "\n7"))], batches=2)


def _names_of_sources() -> Iterator[Case]:
    """Offset log v2 goes by names: in another order, after v1, and without the names of some sources."""
    sample, last = "named-sources-4.2", latest("named-sources-4.2")
    lines = (model.SAMPLES / sample / f"offsets/{last}").read_text().split("\n")
    turned = write(f"offsets/{last}", "\n".join([*lines[:2], *lines[:1:-1]]))
    yield _case(sample, "lines-exchanged", [turned], batches=2)
    yield _case(sample, "lines-exchanged-uncommitted", [turned, *model.delete_logs(commits=[last])], batches=2)
    sample, last = "join-hdfs-3.5", latest("join-hdfs-3.5")
    _, head, *ends = (model.SAMPLES / sample / f"offsets/{last}").read_text().split("\n")
    forms = {
        "v2-after-v1": [f"0:{ends[0]}", f"1:{ends[1]}"],
        "v2-after-v1-first-only": [f"0:{ends[0]}"],
        "v2-after-v1-without-names": ends,
        "v2-after-v1-other-name": [f"0:{ends[0]}", f"7:{ends[1]}"],
    }
    for name, of_sources in forms.items():
        edited = write(f"offsets/{last}", "\n".join(["v2", head, *of_sources]))
        yield _case(sample, name, [edited], batches=2)
        yield _case(sample, f"{name}-uncommitted", [edited, *model.delete_logs(commits=[last])], batches=2)


def _state_ahead() -> Iterator[Case]:
    """State files above the version that the next start loads and writes, of versions that batches come to later."""
    for sample, kinds in {
        "aggregation-hdfs-3.5": ("delta",),
        "aggregation-changelog-4.0": ("changelog",),
        "aggregation-hdfs-4.2": ("delta", "snapshot"),
        "aggregation-changelog-4.2": ("changelog", "zip"),
        "aggregation-rocksdb-4.2": ("zip",),
    }.items():
        next_version = latest(sample) + 1
        for kind in kinds:
            of = max(model.versions(sample, "state/0/0", kind))
            files = [copy(f"state/0/{p}/{of}.{kind}", f"state/0/{p}/{next_version + 2}.{kind}") for p in (0, 1)]
            yield _case(sample, f"{kind}-two-ahead", files, batches=2)


def cases() -> Iterator[Case]:
    yield from _folders()
    yield from _operator_names()
    yield from _settings()
    yield from _schemas()
    yield from _file_sources()
    yield from _unique_ids()
    yield from _watermarks()
    yield from _offsets()
    yield from _state_ahead()
