"""What a user types into the generated files of a continuity case: constants, and the logic of the old query."""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from types import ModuleType
from typing import Any

from tests.migrate.continuity_input import DELAY, SCHEMA
from tests.migrate.continuity_old import KEPT
from tests.migrate.continuity_sources import PARSED, Input

_SIGNATURES = {
    "update": "def update(self, key, rows, timers):",
    "expired": "def expired(self, key, timer_ms, timers):",
    "results": "def results(self, key):",
}


@dataclass(frozen=True)
class Logic:
    """The bodies of the methods that the user changes, and the schema of what they yield; what aggregates were of."""

    schema: str
    update: str = ""  # as generated
    expired: str = ""
    results: str = ""
    inputs: tuple[tuple[str, str], ...] = ()
    event_time: bool = True
    window: bool = False
    ttl: bool = False


_TOLD = """\
recent, parity = (list(self.recent.get()), sorted(self.parity.iterator()))
told = [" ".join(str(one[0]) for one in recent), " ".join(f"{odd[0]}={n[0]}" for odd, n in parity)]
"""
_KEPT = """\
columns = ["key", "n", "total", "recent", "parity", "timers"]
yield pd.DataFrame([(key[0], *self.sums.get(), *told, {timers})], columns=columns)
"""
_ADD = """\
frame = pd.concat(list(rows)).sort_values("id")
n, total = self.sums.get() if self.sums.exists() else (0, 0)
self.sums.update((n + len(frame), total + int(frame["value"].sum())))
for number in frame["id"]:
    self.recent.appendValue((int(number),))
    odd = (bool(number % 2),)
    old = self.parity.getValue(odd)[0] if self.parity.containsKey(odd) else 0
    self.parity.updateValue(odd, (old + 1,))
self.handle.registerTimer({timer})
"""
_LISTED = """ " ".join(str(timer) for timer in sorted(self.handle.listTimers()))"""
_LATEST = """int(frame["ts"].max().timestamp() * 1000)"""

LOGIC = {
    "counts": Logic(
        schema="key BIGINT, n BIGINT, total BIGINT",
        results="""\
        return pd.DataFrame([(key[0], *self.buffers.get())], columns=["key", "n", "total"])
        """,
        inputs=(("count", "1"), ("sum", "value")),
        event_time=False,
    ),
    "windows": Logic(
        schema="key BIGINT, begin BIGINT, n BIGINT, total BIGINT",
        results="""\
        found = (key[2], int(pd.Timestamp(key[0]).timestamp()), *self.buffers.get())
        return pd.DataFrame([found], columns=["key", "begin", "n", "total"])
        """,
        inputs=(("count", "1"), ("sum", "value")),
        window=True,
    ),
    "group-state": Logic(
        schema="key BIGINT, n BIGINT, total BIGINT, expired BOOLEAN",
        update=f"""\
        frame, (n, total) = pd.concat(list(rows)), self.state.get() or (0, 0)
        self.state.update((n + len(frame), total + int(frame["value"].sum())))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(max({_LATEST}, timers.getCurrentWatermarkInMs()) + 15_000)
        yield pd.DataFrame([(key[0], *self.state.get(), False)], columns=["key", "n", "total", "expired"])
        """,
        expired="""\
        found = (key[0], *self.state.get(), True)
        self.state.clear()
        yield pd.DataFrame([found], columns=["key", "n", "total", "expired"])
        """,
    ),
    "processing-time": Logic(
        schema=KEPT,
        update=_ADD.format(timer="4_102_444_800_000 + n") + _TOLD + _KEPT.format(timers=_LISTED),
        event_time=False,
        ttl=True,
    ),
    "event-time": Logic(
        schema=KEPT,
        update=_ADD.format(timer=f"{_LATEST} + 15_000") + _TOLD + _KEPT.format(timers=_LISTED),
        expired=_TOLD + _KEPT.format(timers='f"fired {timer_ms}"'),
    ),
}


def fill_in(generated: Path, kind: str, source: str, place: Input, run: Path) -> None:
    """Write into `processor.py` and `start.py` what no checkpoint records; every name must be there already."""
    logic = LOGIC[kind]
    constants: dict[str, Any] = {
        "CHECKPOINT": str(run / "checkpoint"),
        "SOURCE_0_OPTIONS": place.options(source),
        "OUTPUT_MODE": "append",
        "SINK_FORMAT": "json",
        "SINK_OPTIONS": {"path": str(run / "answers")},
    }
    if source != "kafka":
        constants["SOURCE_0_PATH"] = place.path(source)
    if source == "files":
        constants["SOURCE_0_SCHEMA"] = SCHEMA
    if logic.event_time:
        constants |= {"EVENT_TIME": "ts", "DELAY": DELAY}
    if logic.window:
        constants["WINDOW"] = "10 seconds"
    if logic.inputs:
        constants["INPUT"] = dict(logic.inputs)
    start = replaced((generated / "start.py").read_text(), {name: f"{name} = {v!r}" for name, v in constants.items()})
    if source == "kafka":
        body = f'return rows.selectExpr("inline(array({PARSED}))")'
        start = replaced(start, {"prepare": f"def prepare(rows):\n    {body}"})
    (generated / "start.py").write_text(start)

    typed = {"OUTPUT_SCHEMA": f"OUTPUT_SCHEMA = {logic.schema!r}"}
    if logic.ttl:
        a_day_ms = 24 * 60 * 60 * 1000
        typed["TTL_MS"] = f"TTL_MS = {dict.fromkeys(('sums', 'recent', 'parity'), a_day_ms)!r}"
    for name, signature in _SIGNATURES.items():
        body = indent(dedent(getattr(logic, name)), "        ").rstrip()
        if body:
            typed[f"Processor.{name}"] = f"    {signature}\n{body}"
    (generated / "processor.py").write_text(replaced((generated / "processor.py").read_text(), typed))


def replaced(text: str, new: dict[str, str]) -> str:
    """The module with the definitions of these names (`NAME`, or `Class.method`) replaced; each is there once."""
    lines, places = text.splitlines(), {}
    for node in ast.parse(text).body:
        inner = [(f"{node.name}.", one) for one in node.body] if isinstance(node, ast.ClassDef) else [("", node)]
        for prefix, one in inner:
            places[prefix + _name(one)] = one
    for name in sorted(new, key=lambda name: places[name].lineno, reverse=True):
        lines[places[name].lineno - 1 : places[name].end_lineno] = new[name].splitlines()
    return "\n".join(lines) + "\n"


def _name(node: ast.stmt) -> str:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.FunctionDef(name=name):
            return name
    return ""


def imported(generated: Path) -> ModuleType:
    """The generated `start.py`, and the `processor.py` beside it."""
    for name in ("start", "processor"):
        sys.modules.pop(name, None)
    sys.path.insert(0, str(generated))
    try:
        return importlib.import_module("start")
    finally:
        sys.path.remove(str(generated))
