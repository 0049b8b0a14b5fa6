"""State that Spark 2 wrote, without a schema: in checkpoints from Spark's own tests (`samples.GOLDENS`).

Their source exists in those tests only; here the offsets are those of the queries in `tests/support/spark/plans.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from .model import Case, Mutation, delete_logs, replace, write

JOIN = "checkpoint-version-2.4.0-streaming-join"
DECIMALS = "checkpoint-version-2.4.5-for-compatibility-test-sum-decimal"
DEDUP = "checkpoint-version-2.4.5-for-compatibility-test-deduplicate"
COUNTS = "checkpoint-version-2.3.1-streaming-aggregate-state-format-1"

_FORMATS = '"spark.sql.streaming.join.stateFormatVersion":"1","spark.sql.streaming.stateStore.compression.codec":"lz4"'
_TIME = {"metadata": {"spark.watermarkDelayMs": 5000}, "nullable": False}


def _at(batch: int, sources: int = 1) -> Mutation:
    """Make the offsets of a batch those of the rate source; in the original they are the batch's number."""
    end = f'{{"offset":{(batch + 1) * 10},"timestamp":{1_700_000_000_000 + (batch + 1) * 1000}}}'
    return replace(f"offsets/{batch}", "}}" + f"\n{batch}" * sources, "}}" + f"\n{end}" * sources)


def _schema(key: list[dict[str, object]], value: list[dict[str, object]]) -> bytes:
    """A state schema file of version 2, as Spark 3.1 and later write it (`SchemaV2Writer`)."""
    written = b"\0\2v2"
    for fields in (key, value):
        text = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":")).encode()
        written += (1).to_bytes(4, "big") + len(text).to_bytes(2, "big") + text
    return written


def _field(name: str, kind: str, **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}, **more}


def schemas_of_join() -> Iterator[Mutation]:
    """Those of the join's stores, as Spark 3.5 writes them when it continues it."""
    key = _field("field0", "integer")
    for side in ("left", "right"):
        columns = [_field(f"{side}Id", "integer"), _field(f"{side}Time", "timestamp", **_TIME)]
        stores = {
            "keyToNumValues": _schema([key], [_field("value", "long")]),
            "keyWithIndexToValue": _schema([key, _field("index", "long")], columns),
        }
        for store, content in stores.items():
            yield write(f"state/0/0/{side}-{store}/_metadata/schema", content)


def cases() -> Iterator[Case]:
    for how in ("inner", "outer", "semi"):
        yield Case(f"spark-2-join-{how}", JOIN, (_at(0, 2),), f"joined-by-spark-2-{how}")
    yield Case("spark-2-decimals", DECIMALS, (_at(0),), "decimals-of-spark-2")
    yield Case("spark-2-dedup", DEDUP, (_at(0),), "dedup-of-spark-2", batches=2)
    for name, damage in {"counts": [], "counts-uncommitted": delete_logs(commits=[1])}.items():
        yield Case(f"spark-2-{name}", COUNTS, (_at(0), _at(1), *damage), "counts-of-spark-2", batches=2)
    continued = replace("offsets/0", '"conf":{', f'"conf":{{{_FORMATS},')
    described = (_at(0, 2), continued, *schemas_of_join())
    yield Case("join-of-format-1-with-schemas", JOIN, described, "joined-by-spark-2-inner", batches=2)
