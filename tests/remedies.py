"""Doing by the letter what a remedy of ``ckpt inspect`` says: on a copy of a checkpoint, file by file."""

import re
import shutil
from pathlib import Path

_FILE = r"(?:offsets|commits)/\d+"
_MOVE = re.compile(rf"move ({_FILE})(?: (and|down to) ({_FILE}))?")
_COPY = re.compile(rf"copy ({_FILE}) to (?:each of )?({_FILE})(?: (and|to) ({_FILE}))?")
_STATE = re.compile(r"every state file of version (\d+) and above")


def moved_away(remedy: str) -> list[str]:
    """The files that a remedy says to move away, in its order."""
    found = _MOVE.search(remedy)
    if found is None:
        return []
    first, how, last = found.groups()
    if how == "down to":
        folder, begin, end = first.split("/")[0], *(int(path.split("/")[1]) for path in (first, last))
        return [f"{folder}/{i}" for i in range(begin, end - 1, -1)]
    return [first] if last is None else [first, last]


def copied(remedy: str) -> dict[str, str]:
    """The files that a remedy says to write, and which file each is to be a copy of."""
    found = _COPY.search(remedy)
    if found is None:
        return {}
    source, first, _, last = found.groups()
    folder, begin, end = first.split("/")[0], *(int((path or first).split("/")[1]) for path in (first, last))
    return {f"{folder}/{batch}": source for batch in range(begin, end + 1)}


def obey(remedy: str, checkpoint: Path) -> None:
    """Do to a checkpoint what a remedy says is to be done without a copy of the checkpoint."""
    state = _STATE.search(remedy)
    for path in moved_away(remedy):
        remove(checkpoint / path)
    for path, source in copied(remedy).items():
        remove(checkpoint / path)
        shutil.copyfile(checkpoint / source, checkpoint / path)
    for file in list(checkpoint.glob("state/**/*")) if state else ():
        version = re.match(r"(\d+)[._]", file.name)
        if state and version and file.is_file() and int(version[1]) >= int(state[1]):
            remove(file)


def remove(file: Path) -> None:
    """Delete a file and its hidden checksum file, where they are there."""
    file.unlink(missing_ok=True)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
