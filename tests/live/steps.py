"""What happens to a table, put together of steps; a table is anything with `append` and `sql`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[Any], object]


def steps(*some: Step) -> Callable[[Any], None]:
    def all_of_them(table: Any) -> None:
        for step in some:
            step(table)

    return all_of_them


def more(*numbers: int) -> Callable[[Any], None]:
    return steps(*(lambda table, number=number: table.append(number) for number in numbers))


def sql(*texts: str) -> Callable[[Any], None]:
    return steps(*(lambda table, text=text: table.sql(text) for text in texts))
