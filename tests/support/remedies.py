"""Doing by the letter what a remedy of ``ckpt inspect`` says: on a copy of a checkpoint."""

import re
from pathlib import Path
from typing import Any

from ckpt.changes.apply import Receipt
from ckpt.changes.fixes.repair import repair

NOW: Any = {"apply": True, "grace": 0, "accept_replay": True, "accept_skip": True}
"""To carry out a plan whatever it costs."""

_COMMAND = re.compile(r"`ckpt repair [^`]*`")


def obey(remedy: str, checkpoint: Path) -> Receipt | None:
    """Run the command that a remedy names, with what its plan asks to accept; None if it names none."""
    if _COMMAND.search(remedy) is None:
        return None
    return repair(str(checkpoint), **NOW)[1]


def remove(file: Path) -> None:
    """Delete a file and its hidden checksum file, where they are there."""
    file.unlink(missing_ok=True)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def spoil(file: Path) -> None:
    """Overwrite the compressed bytes of a state file, and keep its size and its end."""
    data = bytearray(file.read_bytes())
    data[22:-21] = b"\xa5" * len(data[22:-21])
    file.write_bytes(data)
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
