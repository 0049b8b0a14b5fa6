"""Calls from a lower package to a higher one while a command runs: ``python -m tests.laws.upward inspect CHECKPOINT``.

The layers are those of ``pyproject.toml``. A named function counts each time that it begins, if the next function of
ckpt above it on the stack is in a lower package. Lambdas and comprehensions, which are values that were given down, the
methods that a dataclass has by itself, and what an import runs do not count. Another checkout can run a copy of this.
"""

import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Callable
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ckpt
from tests.support.cli import load_app

_TOP = 1_000
_GENERATED = "<string>"
_GOES_ON = 3  # bits in the argument of the instruction RESUME, of a generator that has begun before


def count_upward(work: Callable[[], Any]) -> Counter[str]:
    """Count the calls upwards while something runs, by ``caller -> callee``."""
    ranks, calls = _read_ranks(), Counter[str]()
    known: dict[CodeType, int | None] = {}

    def find_rank(frame: FrameType) -> int | None:
        code = frame.f_code
        if code not in known:
            package, _, module = str(frame.f_globals.get("__name__", "")).partition(".")
            is_command = package in ("commands", "ckpt_commands")
            known[code] = _TOP if is_command else ranks.get(module.partition(".")[0]) if package == "ckpt" else None
        return known[code]

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or code.co_filename == _GENERATED:
            return
        if code.co_flags & CO_GENERATOR and code.co_code[frame.f_lasti + 1] & _GOES_ON:
            return
        rank, caller = find_rank(frame), frame.f_back
        if rank is None:
            return
        while caller is not None and find_rank(caller) is None:
            caller = caller.f_back
        above = None if caller is None or caller.f_code.co_name == "<module>" else find_rank(caller)
        if above is not None and above < rank:
            calls[f"{_name(caller)} -> {_name(frame)}"] += 1

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


def _read_ranks() -> dict[str, int]:
    """Give each package of the library its height."""
    text = (Path(str(ckpt.__file__)).parents[1] / "pyproject.toml").read_text()
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("exhaustive"))
    return {name.strip(): -depth for depth, layer in enumerate(layers) for name in layer.split("|")}


def _name(frame: FrameType | None) -> str:
    assert frame is not None
    return f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"


if __name__ == "__main__":
    command = load_app()
    counted = count_upward(lambda: command(standalone_mode=False))
    lines = [f"{times:6} {pair}\n" for pair, times in (*counted.most_common(), ("calls upwards", counted.total()))]
    sys.stderr.writelines(lines)
