"""Random schemas and rows of them, as SQL that a version of Spark understands; the same ones each time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

WORDS = ["", "a", "ä", "日本語", "x" * 7, "x" * 8, "x" * 9, "y" * 300, "it''s", "\U0001f600", "line\\nbreak"]
TIMES = ["0001-01-02 00:00:00", "1969-12-31 23:59:59.999999", "2026-11-22 09:20:00.000001", "9999-12-30 01:02:03"]
DAYS = ["-1 00:00:00", "0 00:00:00.000001", "99999 23:59:59.999999"]
WIDE = ["-99999999999999999999.999999999999999999", "0", "1e-18", "12345678901234567890.5"]
DOCUMENTS = ["null", "1", "[1, null, 2.5]", '{"a": {"b": "ä"}}', '"text"']
SIMPLE: dict[str, Callable[[Random], str]] = {
    "BOOLEAN": lambda r: r.choice(["true", "false"]),
    "TINYINT": lambda r: str(r.choice([-128, -1, 0, 127])),
    "SMALLINT": lambda r: str(r.choice([-32768, -1, 0, 32767])),
    "INT": lambda r: str(r.choice([-(2**31), -1, 0, 7, 2**31 - 1])),
    "BIGINT": lambda r: str(r.choice([-(2**63) + 1, -1, 0, 7, 2**63 - 1])),
    "FLOAT": lambda r: f"'{r.choice(['NaN', '-Infinity', '-0.0', '1.5', '3.4028235E38', '1.4E-45'])}'",
    "DOUBLE": lambda r: f"'{r.choice(['NaN', 'Infinity', '-0.0', '0.1', '1.7976931348623157E308', '4.9E-324'])}'",
    "STRING": lambda r: f"'{r.choice(WORDS)}'",
    "STRING COLLATE UTF8_LCASE": lambda r: f"'{r.choice(WORDS)}'",
    "BINARY": lambda r: f"X'{r.choice(['', '00', 'FF00FF00FF00FF00', 'ABCDEF'])}'",
    "DATE": lambda r: f"'{r.choice(['0001-01-01', '1582-10-15', '1969-12-31', '2026-11-22', '9999-12-31'])}'",
    "TIMESTAMP": lambda r: f"'{r.choice(TIMES)}Z'",
    "TIMESTAMP_NTZ": lambda r: f"'{r.choice(TIMES)}'",
    "DECIMAL(5,2)": lambda r: r.choice(["-999.99", "0.00", "0.01", "999.99"]),
    "DECIMAL(18,0)": lambda r: r.choice(["-999999999999999999", "0", "999999999999999999"]),
    "DECIMAL(19,3)": lambda r: r.choice(["-9999999999999999.999", "0", "-0.001", "1.280", "-0.128", "0.255"]),
    "DECIMAL(38,18)": lambda r: r.choice(WIDE),
    "INTERVAL DAY TO SECOND": lambda r: f"INTERVAL '{r.choice(DAYS)}' DAY TO SECOND",
    "INTERVAL HOUR": lambda r: f"INTERVAL '{r.choice(['-25', '0', '7'])}' HOUR",
}
SPECIAL: dict[str, Callable[[Random], str]] = {
    "VARIANT": lambda r: f"parse_json('{r.choice(DOCUMENTS)}')",
    "INTERVAL YEAR TO MONTH": lambda r: f"INTERVAL '{r.choice(['-1-1', '0-0', '178000-11'])}' YEAR TO MONTH",
    "INTERVAL": lambda r: f"make_interval({r.choice(['1, -2, 0, 3, -4, 5, 6.000001', '0, 0, 0, 0, 0, 0, 0'])})",
}
"""Only as columns: Arrow as Spark writes it has no intervals of months that pyarrow reads."""

LATER: dict[str, Callable[[Random], str]] = {
    f"TIME({digits})": lambda r: f"'{r.choice(['00:00:00', '12:34:56', '23:59:59'])}'" for digits in range(7)
}
"""Since Spark 4.1."""

VALUES = SIMPLE | SPECIAL | LATER


@dataclass(frozen=True)
class Types:
    simple: tuple[str, ...] = tuple(SIMPLE)
    special: tuple[str, ...] = tuple(SPECIAL)

    @staticmethod
    def of(spark: str) -> Types:
        older = spark == "3.5"
        simple = [name for name in SIMPLE if not (older and "COLLATE" in name)]
        special = [name for name in SPECIAL if not (older and name == "VARIANT")]
        return Types((*simple, *(LATER if spark >= "4.1" else ())), tuple(special))


KEYS = ("INT", "BIGINT", "STRING", "DATE", "DECIMAL(19,3)")  # of maps


@dataclass(frozen=True)
class Case:
    """A query of a few rows."""

    kinds: tuple[str, ...]
    sql: str

    @property
    def readable(self) -> list[str]:
        """The columns as expressions whose values are the same in Arrow."""
        return [f"{readable(kind, f'c{place}')} AS c{place}" for place, kind in enumerate(self.kinds)]


NO_VARIANT = b"\x11none"
"""What stands for a variant that is NULL, which Arrow as Spark writes it cannot hold: the text ``none``."""


def readable(kind: str, name: str) -> str:
    """A column as an expression whose values are the same in Arrow."""
    if kind == "VARIANT":
        return f"coalesce({name}, parse_json('\"none\"'))"
    if kind == "INTERVAL YEAR TO MONTH":
        return f"CAST(extract(YEAR FROM {name}) * 12 + extract(MONTH FROM {name}) AS INT)"
    if kind == "INTERVAL":
        months = f"CAST(extract(YEAR FROM {name}) * 12 + extract(MONTH FROM {name}) AS INT)"
        time = f"(extract(HOUR FROM {name}) * 60 + extract(MINUTE FROM {name})) * 60 + extract(SECOND FROM {name})"
        days = f"CAST(extract(DAY FROM {name}) AS INT)"
        return f"IF({name} IS NULL, NULL, array({months}, {days}, CAST(({time}) * 1000000 AS BIGINT)))"
    return name


def cases(count: int, seed: int = 20261122) -> list[Case]:
    """So many schemas, each with rows."""
    random = Random(seed)
    return [_case(random) for _ in range(count)]


def _case(random: Random) -> Case:
    columns = random.choice([1, 2, 3, 5, 8, 70])
    kinds = tuple(kind_of(random, Types()) for _ in range(columns))
    rows = []
    for _ in range(random.choice([1, 3, 6])):
        rows.append("(" + ", ".join(f"{cast(random, kind)}" for kind in kinds) + ")")
    names = ", ".join(f"c{place}" for place in range(columns))
    return Case(kinds, f"SELECT * FROM VALUES {', '.join(rows)} AS t({names})")


def kind_of(random: Random, types: Types, depth: int = 0) -> str:
    """A type, which may have others inside."""
    choice = random.random()
    if depth == 0 and choice < 0.12:
        return random.choice(types.special)
    if depth < 3 and choice < 0.45:
        match random.choice(["struct", "array", "map"]):
            case "struct":
                count = random.choice([1, 2, 4])
                return f"STRUCT<{', '.join(f'f{n}: {kind_of(random, types, depth + 1)}' for n in range(count))}>"
            case "array":
                return f"ARRAY<{kind_of(random, types, depth + 1)}>"
            case _:
                return f"MAP<{random.choice(KEYS)}, {kind_of(random, types, depth + 1)}>"
    return random.choice(types.simple)


def _parts(inner: str) -> list[str]:
    """What is between commas at the top level."""
    found, depth = [""], 0
    for letter in inner:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]


def _value(random: Random, kind: str) -> str:
    if random.random() < 0.2:
        return "NULL"
    name, _, inner = kind.partition("<")
    inner = inner.removesuffix(">")
    match name:
        case "STRUCT":
            fields = [part.partition(": ")[::2] for part in _parts(inner)]
            return "named_struct(" + ", ".join(f"'{n}', {cast(random, k)}" for n, k in fields) + ")"
        case "ARRAY":
            return "array(" + ", ".join(cast(random, inner) for _ in range(_length(random, inner))) + ")"
        case "MAP":
            key, value = _parts(inner)
            keys = sorted({SIMPLE[key](random) for _ in range(random.choice([0, 1, 3]))})
            return "map(" + ", ".join(f"CAST({k} AS {key}), {cast(random, value)}" for k in keys) + ")"
    return VALUES[kind](random)


def _length(random: Random, kind: str) -> int:
    """Sometimes more elements than one word has NULL bits for; not of arrays of arrays."""
    return random.choice([0, 1, 3] if "<" in kind else [0, 1, 3, 65])


def cast(random: Random, kind: str) -> str:
    """A value of a type, or NULL."""
    return f"CAST({_value(random, kind)} AS {kind})"
