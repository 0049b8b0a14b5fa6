"""In which partition 10,000 random keys are: by ckpt, and by Spark's own ``pmod(hash(...), n)``."""

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ckpt.formats.rows.partitions import partitions_of
from ckpt.formats.rows.types import arrow_type
from ckpt.model import Json

pytestmark = pytest.mark.spark
KEYS = 10_000
STRUCT: Json = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "b", "type": "string", "nullable": True, "metadata": {}},
    ],
}
ARRAY: Json = {"type": "array", "elementType": "long", "containsNull": True}


def text(rng: random.Random) -> str:
    return "".join(chr(rng.choice((rng.randrange(32, 127), 0xE9, 0x20AC, 0x1F600))) for _ in range(rng.randrange(20)))


def decimal(rng: random.Random, digits: int, scale: int) -> Decimal:
    return Decimal(rng.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale)


def double(rng: random.Random) -> float:
    return rng.choice((0.0, -0.0, float("nan"), float("inf"), -float("inf"), rng.uniform(-1e9, 1e9), rng.random()))


MADE: dict[str, tuple[Json, Callable[[random.Random], Any]]] = {
    "boolean": ("boolean", lambda rng: rng.random() < 0.5),
    "byte": ("byte", lambda rng: rng.randrange(-(2**7), 2**7)),
    "short": ("short", lambda rng: rng.randrange(-(2**15), 2**15)),
    "integer": ("integer", lambda rng: rng.randrange(-(2**31), 2**31)),
    "long": ("long", lambda rng: rng.randrange(-(2**63), 2**63)),
    "float": ("float", double),
    "double": ("double", double),
    "string": ("string", text),
    "binary": ("binary", lambda rng: rng.randbytes(rng.randrange(20))),
    "date": ("date", lambda rng: date(1970, 1, 1) + timedelta(rng.randrange(-50_000, 50_000))),
    "timestamp_ntz": (
        "timestamp_ntz",
        lambda rng: datetime(1970, 1, 1) + timedelta(microseconds=rng.randrange(-(10**15), 10**15)),
    ),
    "decimal(9,2)": ("decimal(9,2)", lambda rng: decimal(rng, 9, 2)),
    "decimal(18,4)": ("decimal(18,4)", lambda rng: decimal(rng, 18, 4)),
    "decimal(38,10)": ("decimal(38,10)", lambda rng: decimal(rng, 38, 10)),
    "struct": (STRUCT, lambda rng: {"a": rng.choice((None, rng.randrange(9))), "b": text(rng)}),
    "array": (ARRAY, lambda rng: [rng.choice((None, rng.randrange(-(2**63), 2**63))) for _ in range(rng.randrange(5))]),
}


def test_partitions_of_random_keys_are_those_of_spark(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(15)
    columns = {
        name: pa.array([None if rng.random() < 0.05 else make(rng) for _ in range(KEYS)], arrow_type(kind))
        for name, (kind, make) in MADE.items()
    }
    names = {name: f"c{place}" for place, name in enumerate(columns)}
    table = pa.table({names[name]: column for name, column in columns.items()} | {"row": pa.array(range(KEYS))})
    pq.write_table(table, tmp_path / "keys.parquet")
    asked = {name: ([name], rng.randrange(1, 300)) for name in columns}
    asked["all together"] = (list(columns), 200)
    said = [
        f"pmod(hash({', '.join(names[one] for one in of)}), {count}) AS p{place}"
        for place, (of, count) in enumerate(asked.values())
    ]
    rows = spark.read.parquet(str(tmp_path)).orderBy("row").selectExpr(*said).collect()
    for place, (name, (of, count)) in enumerate(asked.items()):
        found = partitions_of([(MADE[one][0], columns[one]) for one in of], KEYS, count)
        assert found.tolist() == [row[place] for row in rows], name
