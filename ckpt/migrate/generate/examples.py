"""Examples for ``Processor.update``, for each kind of operator: shown, never run."""

from collections.abc import Iterator
from textwrap import indent

from ckpt.migrate.generate.text import plain
from ckpt.migrate.transform import Api, TransformPlan
from ckpt.migrate.variables import OperatorFamily

_COUNTED = """\
count = (self.buffers.get() or (0,))[0]
count += sum(len(frame) for frame in rows)
self.buffers.update((count,))
yield pd.DataFrame([(*key, count)])"""

_SEEN = """\
if self.seen.get() is None:
    self.seen.update((True,))
    yield pd.DataFrame([key])"""

_SEEN_UNTIL = """\
first = next(rows)
if self.seen.get() is None:
    until = first["event_time"][0].value // 1000 + DELAY_MS * 1000
    self.seen.update((until,))
    yield pd.DataFrame([key])"""

_SESSIONS = """\
sessions = list(self.sessions.get())  # (start, end, buffers ...)
# merge rows into them: the session of one row ends GAP_MS after it
self.sessions.put(sessions)"""

_STATE = """\
count = (self.state.get() or (0,))[0]
count += sum(len(frame) for frame in rows)
self.state.update((count,))
self.handle.registerTimer(timers.getCurrentWatermarkInMs() + 10_000)
yield pd.DataFrame([key])"""

_OWN = """\
what handleInputRows of the old query did"""

_JOINED = """\
for frame in rows:
    for one in frame.to_dict("records"):
        mine, others = (
            (self.left, self.right) if one["side"] == "left" else (self.right, self.left)
        )
        mine.appendValue((one["time"], one["value"]))
        yield from (pd.DataFrame([(*key, *other)]) for other in others.get())"""

_PANDAS = {
    OperatorFamily.AGGREGATION: _COUNTED,
    OperatorFamily.WINDOWS: _COUNTED,
    OperatorFamily.SESSIONS: _SESSIONS,
    OperatorFamily.DEDUPLICATION: _SEEN,
    OperatorFamily.WITHIN_WATERMARK: _SEEN_UNTIL,
    OperatorFamily.GROUP_STATE: _STATE,
    OperatorFamily.TRANSFORM: _OWN,
    OperatorFamily.JOIN: _JOINED,
}


def _convert_to_rows(text: str) -> str:
    """Return the example for the API whose rows are ``Row``."""
    for old, new in (
        ("sum(len(frame) for frame in rows)", "sum(1 for _ in rows)"),
        ("pd.DataFrame([(*key, count)])", "Row(user=key[0], count=count)"),
        ("pd.DataFrame([(*key, *other)])", "Row(user=key[0], other=other[0])"),
        ("pd.DataFrame([key])", "Row(user=key[0])"),
        ('first["event_time"][0].value // 1000', 'int(first["event_time"].timestamp() * 1_000_000)'),
        (
            'for frame in rows:\n    for one in frame.to_dict("records"):\n',
            "for row in rows:\n    for one in [row.asDict()]:\n",
        ),
    ):
        text = text.replace(old, new)
    return text


EXAMPLES = {Api.PANDAS: _PANDAS, Api.ROW: {family: _convert_to_rows(text) for family, text in _PANDAS.items()}}
"""The body of ``update`` in Python, by API and family."""


def show_update(plan: TransformPlan) -> Iterator[str]:
    """The body of ``update`` where it is the user's."""
    yield '        """Handle the new rows of a key, and emit results.'
    yield ""
    yield "        As generated, it changes no state and emits nothing. For example::"
    yield ""
    yield from (line.rstrip() for line in indent(EXAMPLES[plan.api][plan.family], " " * 12).splitlines())
    if plan.aggregates:
        yield ""
        yield "        What the buffers hold, as far as their names and types tell:"
        yield from (f"        - {plain(kept.meaning)}" for kept in plan.aggregates)
    yield '        """'
    yield "        for _ in rows:"
    yield "            pass"
    yield "        return iter(())"
