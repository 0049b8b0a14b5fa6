"""What a runbook shows being typed, carried out in its order: Python, and commands of ckpt."""

import re
from collections.abc import Iterator

from tests.support.places import ROOT

_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Each block of a runbook: ``python`` and its code, or ``ckpt`` and the words of a command."""
    for kind, text in _BLOCK.findall((ROOT / "docs" / "runbooks" / page).read_text(encoding="utf-8")):
        if kind == "python":
            yield kind, text
        for line in text.splitlines() if kind == "console" else ():
            yield "ckpt", line.removeprefix("$ ckpt ")
