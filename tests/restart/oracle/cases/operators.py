"""State and sources that are not one aggregation: joins, several operators, transformWithState, files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support.spark.samples import SAMPLES

from . import model
from .as_made import relocated
from .model import Case, Mutation, copy, delete, delete_logs, delete_tree, latest, replace, truncate, write

QUERIES = {sample.name: sample.query for sample in SAMPLES}
HOMES = {sample.name: relocated(sample) for sample in SAMPLES}


def _both(sample: str, damages: dict[str, list[Mutation]]) -> Iterator[Case]:
    """Each damage with the latest batch committed and uncommitted."""
    if not (model.SAMPLES / sample).is_dir():
        return
    uncommitted = delete_logs(commits=[latest(sample)])
    for name, damage in damages.items():
        for suffix, extra in (("", []), ("-uncommitted", uncommitted)):
            mutations = (*HOMES[sample], *damage, *extra)
            yield Case(f"{sample}-{name}{suffix}", sample, mutations, QUERIES[sample])


def _joins() -> Iterator[Case]:
    for sample, log in (("join-hdfs-3.5", "delta"), ("join-changelog-4.2", "changelog")):
        if not (model.SAMPLES / sample).is_dir():
            continue
        version = latest(sample) + 1
        store = "state/0/1/right-keyWithIndexToValue"
        yield from _both(
            sample,
            {
                "store-of-a-partition-gone": delete_tree(store),
                "store-gone": delete_tree("state/0/*/left-keyToNumValues"),
                f"{log}-needed-missing": delete(f"{store}/{version}.{log}"),
                f"{log}-needed-cut": [truncate(f"{store}/{version}.{log}", -30)],
                f"{log}-needed-empty": [write(f"{store}/{version}.{log}", "")],
                f"{log}-first-missing": delete(f"{store}/1.{log}"),
                "partition-gone": delete_tree("state/0/1"),
                "store-schema-gone": delete("state/0/0/left-keyToNumValues/_metadata/schema"),
                "state-gone": delete_tree("state"),
            },
        )


def _lost_settings() -> Iterator[Case]:
    """The newest offsets record no setting, as an edit by hand or a tool may leave them."""
    for sample in ("aggregation-hdfs-3.5", "aggregation-rocksdb-4.2"):
        if (model.SAMPLES / sample).is_dir():
            path = f"offsets/{latest(sample)}"
            recorded = re.search(r'"conf":\{[^}]*\}', (model.SAMPLES / sample / path).read_text())
            assert recorded
            change = replace(path, recorded[0], '"conf":{}')
            yield Case(f"{sample}-settings-lost", sample, (change,), QUERIES[sample])


def _other_operators() -> Iterator[Case]:
    for sample, log in (
        ("session-window-hdfs-3.5", "delta"),
        ("dedup-within-watermark-hdfs-3.5", "delta"),
        ("dedup-changelog-4.3", "changelog"),
        ("limit-hdfs-4.2", "delta"),
        ("pandas-with-state-changelog-4.2", "changelog"),
    ):
        if (model.SAMPLES / sample).is_dir():
            file = f"state/0/0/{latest(sample) + 1}.{log}"
            yield from _both(sample, {"needed-missing": delete(file), "needed-cut": [truncate(file, -30)]})
    for sample in ("session-window-hdfs-3.5", "windowed-aggregation-hdfs-4.2"):
        if (model.SAMPLES / sample).is_dir():
            yield from _both(sample, {"all-state-lost": delete_tree("state")})
    sample = "dedup-aggregation-hdfs-4.2"
    if (model.SAMPLES / sample).is_dir():
        version = latest(sample) + 1
        yield from _both(
            sample,
            {
                "operator-1-gone": delete_tree("state/1"),
                "operator-0-gone": delete_tree("state/0"),
                "operator-1-metadata-gone": delete("state/1/_metadata/metadata"),
                "operator-1-needed-missing": delete(f"state/1/1/{version}.delta"),
                "operator-0-and-1-needed-missing": delete(f"state/*/1/{version}.delta"),
            },
        )


def _transform_with_state() -> Iterator[Case]:
    for sample, log in (("tws-changelog-4.0", "changelog"), ("tws-rocksdb-4.2", "zip")):
        if (model.SAMPLES / sample).is_dir():
            version = latest(sample) + 1
            yield from _both(
                sample,
                {
                    "partition-gone": delete_tree("state/0/1"),
                    f"{log}-needed-missing": delete(f"state/0/0/{version}.{log}"),
                    f"{log}-needed-cut": [truncate(f"state/0/0/{version}.{log}", -30)],
                    "schemas-gone": delete_tree("state/0/_stateSchema"),
                    "operator-metadata-gone": delete_tree("state/0/_metadata"),
                },
            )


_ENTRY = 'v1\n{"path":"file:///tmp/ckpt-samples/inputs/file-source/part-00.json","timestamp":1700000000000,"batchId":0}'


def _sources() -> Iterator[Case]:
    second = '\n{"offset":80,"timestamp":1700000004000}'
    yield from _both(
        "two-sources-3.5",
        {
            "one-line-too-few": [replace("offsets/3", second, "")],
            "second-source-new": [replace("offsets/3", second, "\n-")],
            "predecessor-one-line-too-few": [replace("offsets/2", '\n{"offset":60,"timestamp":1700000003000}', "")],
            "predecessor-missing": delete_logs([2]),
        },
    )
    for sample in ("file-source-3.5", "file-source-4.2"):
        yield from _both(
            sample,
            {
                "latest-source-log-missing": delete("sources/0/11"),
                "compact-missing": delete("sources/0/9.compact"),
                "after-compact-missing": delete("sources/0/10"),
                "before-compact-missing": delete("sources/0/3"),
                "source-log-gone": delete_tree("sources"),
                "latest-source-log-empty": [write("sources/0/11", "")],
                "compact-cut": [truncate("sources/0/9.compact", -10)],
                "latest-backwards": [replace("offsets/11", '{"logOffset":11}', '{"logOffset":8}')],
            },
        )
        idle = copy("offsets/11", "offsets/10")  # the latest batch read no file, as one of a stateful query may
        lost = {
            "log-lost": delete_tree("sources"),
            "two-entries-lost": delete("sources/0/11", "sources/0/10"),
            "log-begun-again": [
                *delete_tree("sources"),
                write("sources/0/0", _ENTRY),
                replace("offsets/11", '{"logOffset":11}', '{"logOffset":0}'),
            ],
        }
        yield from _both(sample, {f"idle-{name}": [idle, *damage] for name, damage in lost.items()})
        # committed, the start takes the next file for one that was read, and waits
        skips = (idle, *delete("sources/0/11"), *delete_logs(commits=[11]))
        yield Case(f"{sample}-idle-newest-entry-lost-uncommitted", sample, skips, QUERIES[sample])
    yield from _before_the_first_batch()
    for query in ("two-sources", "file-source", "aggregation"):
        yield Case(f"other-query-{query}-on-stateless", "stateless-3.5", query=query)
    yield Case("other-query-stateless-on-two-sources", "two-sources-3.5")
    yield Case("other-query-stateless-on-aggregation", "aggregation-changelog-4.0")
    yield Case("other-query-dedup-on-aggregation", "aggregation-changelog-4.0", query="dedup")


def _before_the_first_batch() -> Iterator[Case]:
    """The first file of a source's log is there and no batch is planned, as a start that was killed leaves it."""
    contents: dict[str, str | bytes] = {
        "garbage": "garbage",
        "zeros": bytes(7),
        "blank": "\n",
        "version-only": "v1",
        "newer-version": f"v9{_ENTRY[2:]}",
    }
    for sample, log in (("file-source-4.2", delete_tree("sources")), ("stateless-4.2", [])):
        newest = latest(sample)
        nothing = [*delete_logs(range(newest + 1), range(newest + 1)), *log]
        for name, content in contents.items():
            mutations = (*HOMES[sample], *nothing, write("sources/0/0", content))
            yield Case(f"{sample}-first-source-file-{name}", sample, mutations, QUERIES[sample], sync_only=True)


def cases() -> Iterator[Case]:
    yield from _joins()
    yield from _lost_settings()
    yield from _other_operators()
    yield from _transform_with_state()
    yield from _sources()
