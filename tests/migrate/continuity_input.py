"""The input of the continuity cases: six units of twelve rows, each unit one file, table version or batch of offsets.

A unit is read by one batch. Event time is given in seconds after `BEGIN`; the delay of every watermark is 10 seconds,
so that the watermark after units 0, 1, 2 is 10, 30, 53. The units before `STOP` are read by the old query, the others
by the new one, whose own watermark starts at zero and is 52 after unit 3, below the old one. What the rows are for:

- 5, 8 in unit 2, 25, 29 in unit 3, 45, 49 in unit 4, 40, 48 in unit 5 are late however event time is looked at;
- 51, 53 in unit 4 and 50 in unit 5 lie behind the watermark of the export, but their window does not;
- 54 in unit 4 and 71 in unit 5 are old and not late;
- the window of 285 in unit 5 ends just on the last watermark, 290;
- keys 6 and 7 are silent from unit 1 to unit 5, so that what waits for them expires on the way;
- keys 8, 9, 11, 13 come with the new query, keys 3 to 5 go on through it.

Spark drops what was late in the batch before, and expires what is so now. After a kill no batch without rows has run,
so that the old query would still take rows between 30 and 53 in unit 3; after a clean stop it would not (4.2,
measured). The generated query leaves them out and says so. No such row is there.
"""

from dataclasses import dataclass

BEGIN = 1_704_067_200
"""2024-01-01T00:00:00Z, in seconds since 1970."""
STOP = 3
"""The unit before which the old query stops."""
DELAY = "10 seconds"
LAST_WATERMARK = 290
BIG = 2**53
"""Values lie above it and are odd and even: none survives a detour through float64 unharmed."""
SCHEMA = "id BIGINT, key BIGINT, ts TIMESTAMP, value BIGINT"

Places = tuple[tuple[int, int], ...]
_UNITS: tuple[tuple[Places, Places], ...] = (
    (
        ((0, 2), (2, 5), (4, 12), (6, 20), (0, 8), (2, 17)),
        ((1, 3), (3, 7), (5, 14), (7, 18), (1, 11), (3, 19)),
    ),
    (
        ((0, 24), (2, 22), (4, 40), (0, 35), (2, 9), (4, 37)),
        ((1, 26), (3, 31), (5, 25), (1, 38), (5, 33), (3, 28)),
    ),
    (
        ((0, 48), (2, 63), (4, 50), (2, 5), (4, 57), (0, 52)),
        ((1, 44), (3, 55), (5, 46), (5, 8), (3, 60), (1, 47)),
    ),
    (
        ((0, 25), (0, 62), (4, 58), (8, 56), (2, 54), (2, 58)),
        ((1, 29), (1, 57), (3, 59), (9, 55), (5, 54), (5, 58)),
    ),
    (
        ((0, 51), (2, 45), (4, 70), (8, 100), (4, 54), (8, 85)),
        ((3, 53), (1, 49), (9, 75), (9, 92), (11, 88), (11, 79)),
    ),
    (
        ((0, 300), (2, 71), (6, 95), (8, 110), (4, 48), (2, 50)),
        ((13, 300), (7, 97), (9, 91), (5, 40), (11, 285), (5, 66)),
    ),
)
"""Key and second of each row; rows of even keys go to partition 0 of a topic, of odd keys to partition 1."""

ROWS = sum(len(places) for unit in _UNITS for places in unit)
LATE_BY_TIME = {(2, 5), (5, 8), (0, 25), (1, 29), (0, 51), (2, 45), (3, 53), (1, 49), (4, 48), (2, 50), (5, 40)}
"""Key and second of what a query drops that compares event time with the watermark."""
LATE_BY_WINDOW = {(2, 5), (5, 8), (0, 25), (1, 29), (2, 45), (1, 49), (4, 48), (5, 40)}
"""... and of one that compares the end of a window of ten seconds."""


@dataclass(frozen=True)
class Row:
    """One row; `partition` matters to Kafka only."""

    id: int
    key: int
    second: int
    partition: int

    @property
    def value(self) -> int:
        return BIG + self.id

    @property
    def fields(self) -> dict[str, object]:
        """As JSON for a reader with `SCHEMA`."""
        time = f"2024-01-01T00:{self.second // 60:02}:{self.second % 60:02}Z"
        return {"id": self.id, "key": self.key, "ts": time, "value": self.value}


def units(first: int, last: int) -> list[list[Row]]:
    """The rows of units `first` to `last` - 1."""
    size = ROWS // len(_UNITS)
    found = []
    for number in range(first, last):
        places = [(place, partition) for partition in (0, 1) for place in _UNITS[number][partition]]
        found.append([Row(number * size + n, *place, partition) for n, (place, partition) in enumerate(places)])
    return found


def everything() -> list[Row]:
    return [row for unit in units(0, len(_UNITS)) for row in unit]
