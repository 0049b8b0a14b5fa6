"""Seeds that end badly, each with its reason: faults of ckpt that are not repaired yet."""

from __future__ import annotations

from typing import NamedTuple


class Known(NamedTuple):
    """Seeds that end in one way for one reason."""

    reason: str
    outcome: str
    mode: str
    seeds: tuple[int, ...]


KNOWN: tuple[Known, ...] = (
    Known(
        "`--source-option` is refused where the newest offsets cannot be read",
        "stuck",
        "asked",
        (3, 4, 5, 6, 31, 37, 43, 59, 75, 121, 122, 123, 135, 136, 139, 140, 146, 165, 168, 177, 255, 257, 269),
    ),
    Known("offsets that go back fail with an assertion that no forecast knows", "stuck", "bare", (42, 187, 310)),
    Known("offsets that go back fail with an assertion that no forecast knows", "stuck", "asked", (42, 187, 310)),
    Known("`explain` does not know what Spark says of a source table that is gone", "stuck", "bare", (88, 222)),
    Known("`explain` does not know what Spark says of a source table that is gone", "stuck", "asked", (88,)),
    Known("`explain` does not find the cause in the message, that Kafka lost the rows", "stuck", "bare", (91,)),
    Known("`explain` named `offsets set` without its words, which is repaired since", "stuck", "bare", (92,)),
    Known("the rows of a sink that was deleted are gone, and the plan does not say so", "unannounced", "asked", (98,)),
    Known("the log of a file sink is damaged, and its entries are not read", "unannounced", "asked", (103, 237, 238)),
    Known("the log of a file sink is damaged, and its entries are not read", "stuck", "bare", (174, 240)),
    Known("the log of a file sink is damaged, and its entries are not read", "stuck", "asked", (174,)),
    Known("`explain` does not know this assertion; `--sink` says it before", "stuck", "bare", (109, 167)),
    Known("no page leads to `ckpt skip` where a row always fails", "stuck", "bare", (124,)),
    Known("no page leads to `ckpt skip` where a row always fails", "stuck", "asked", (124,)),
    Known("only a copy helps, says the page, and `ckpt repair` has a fix", "stop", "bare", (128, 263)),
    Known("only a copy helps, says the page, and `ckpt repair` has a fix", "stop", "asked", (128, 263)),
    Known("nothing leads to `--deep` where a start fails by a flipped byte", "stuck", "bare", (182, 183, 316)),
    Known("nothing leads to `--deep` where a start fails by a flipped byte", "stuck", "asked", (182, 183, 316)),
    Known("a start wrote a newer batch over the hole that an older sink left", "unannounced", "asked", (252,)),
)
"""A stop is listed where another command of ckpt would have ended well."""
