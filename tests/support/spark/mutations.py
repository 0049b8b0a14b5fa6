"""Damage to a checkpoint, as data: a mutation is a JSON object, a mutated checkpoint a list of them.

`{"op": "delete", "path": "offsets/3"}` and so on; `OPERATIONS` holds every operation with the keys that it
takes. Paths are relative to the checkpoint, and a `*` in a `path` stands for whatever is there: each match is
mutated (none is an error, for a mutation that does nothing proves nothing). `{latest}` in a file name stands for
the highest number that a file of such a name has. A file's Hadoop checksum
`.<name>.crc` goes with it: whoever deletes or rewrites `3` also removes `.3.crc`, which is what any careful
hand would do, unless the mutation says `"keep_crc": true`.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Mutation = Mapping[str, Any]


def apply(checkpoint: Path, mutations: Iterable[Mutation]) -> None:
    """Carry out `mutations` in order on the files below `checkpoint`.

    Raises ValueError for an unknown operation or a path that matches nothing.
    """
    for mutation in mutations:
        operation = OPERATIONS.get(mutation["op"])
        if operation is None:
            raise ValueError(f"unknown operation in {dict(mutation)}")
        operation(checkpoint, mutation)


def copy_of(checkpoint: Path, target: Path, mutations: Iterable[Mutation] = ()) -> Path:
    """Copy a checkpoint to `target`, which must not exist, and mutate the copy."""
    os.makedirs(target)
    _copy_into(os.fspath(target), os.fspath(checkpoint))
    apply(target, mutations)
    return target


def _copy_into(target: str, folder: str) -> None:
    """Copy contents, permissions and times, as `shutil.copytree` does in four times the time: most tests begin so."""
    with os.scandir(folder) as entries:
        for entry in entries:
            to = f"{target}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), to)
            elif entry.is_dir():
                os.mkdir(to)
                _copy_into(to, entry.path)
            else:
                found = entry.stat()
                old, new = os.open(entry.path, os.O_RDONLY), os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                assert os.write(new, os.read(old, found.st_size)) == found.st_size
                os.fchmod(new, found.st_mode & 0o7777)
                os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns))
                os.close(old)
                os.close(new)
    shutil.copystat(folder, target)


def crc_of(path: Path) -> Path:
    """The checksum that Hadoop's local file system keeps beside `path`."""
    return path.with_name(f".{path.name}.crc")


def _matches(root: Path, mutation: Mutation) -> list[Path]:
    path = _latest(root, mutation["path"])
    found = sorted(root.glob(path)) if "*" in path else [root / path]
    if not found or not all(one.exists() for one in found):
        raise ValueError(f"nothing at {path} for {dict(mutation)}")
    return found


def _latest(root: Path, path: str) -> str:
    """Put the highest number for which there is a file in place of `{latest}`."""
    folder, _, name = path.rpartition("/")
    if "{latest}" not in name:
        return path
    before, after = name.split("{latest}")
    names = (one.name for one in (root / folder).iterdir() if one.name.startswith(before))
    numbers = (one[len(before) : len(one) - len(after)] for one in names if one.endswith(after))
    return path.replace("{latest}", str(max((int(number) for number in numbers if number.isdecimal()), default=0)))


def _forget_crc(path: Path, mutation: Mutation) -> None:
    if not mutation.get("keep_crc"):
        crc_of(path).unlink(missing_ok=True)


def _delete(root: Path, mutation: Mutation) -> None:
    for path in _matches(root, mutation):
        path.unlink()
        _forget_crc(path, mutation)


def _delete_tree(root: Path, mutation: Mutation) -> None:
    for path in _matches(root, mutation):
        shutil.rmtree(path)


def _truncate(root: Path, mutation: Mutation) -> None:
    """Keep the first `bytes` bytes, or all but the last `-bytes` where that is negative."""
    for path in _matches(root, mutation):
        path.write_bytes(path.read_bytes()[: mutation["bytes"]])
        _forget_crc(path, mutation)


def _write(root: Path, mutation: Mutation) -> None:
    path = root / mutation["path"]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = bytes.fromhex(mutation["hex"]) if "hex" in mutation else mutation["text"].encode()
    path.write_bytes(content)
    _forget_crc(path, mutation)


def _flip(root: Path, mutation: Mutation) -> None:
    """Change the bits that are set in `hex`, from byte `at` on, or from the end where that is negative."""
    for path in _matches(root, mutation):
        content, pattern = bytearray(path.read_bytes()), bytes.fromhex(mutation["hex"])
        at = mutation["at"] % len(content)
        for place, bits in enumerate(pattern[: len(content) - at], at):
            content[place] ^= bits
        path.write_bytes(content)
        _forget_crc(path, mutation)


def _replace_text(root: Path, mutation: Mutation) -> None:
    """Replace `old`, which must be there, by `new` throughout, with its `{checkpoint}` and `{folder}` filled in."""
    for path in _matches(root, mutation):
        old, new = mutation["old"].encode(), mutation["new"]
        new = new.replace("{checkpoint}", str(root)).replace("{folder}", str(root.parent)).encode()
        content = path.read_bytes()
        if old not in content:
            raise ValueError(f"no such text for {dict(mutation)}")
        path.write_bytes(content.replace(old, new))
        _forget_crc(path, mutation)


def _line_ends(root: Path, mutation: Mutation) -> None:
    r"""Write \r\n for \n, as git does with core.autocrlf: in files without a zero byte at their beginning."""
    for path in _matches(root, mutation):
        content = path.read_bytes() if path.is_file() else b"\0"
        if b"\0" not in content[:8000] and b"\n" in content:
            path.write_bytes(content.replace(b"\n", b"\r\n"))
            _forget_crc(path, mutation)


def _zip_entry(root: Path, mutation: Mutation) -> None:
    """Replace `old` by `new` in the entry `entry` of a zip; the other entries stay as they are, and in their order."""
    for path in _matches(root, mutation):
        with zipfile.ZipFile(path) as before:
            entries = [(info, before.read(info)) for info in before.infolist()]
        with zipfile.ZipFile(path, "w") as after:
            for info, content in entries:
                named = info.filename == mutation["entry"]
                changed = content.replace(mutation["old"].encode(), mutation["new"].encode()) if named else content
                if named and changed == content:
                    raise ValueError(f"no such text for {dict(mutation)}")
                after.writestr(info, changed)
        _forget_crc(path, mutation)


def _copy(root: Path, mutation: Mutation) -> None:
    source, target = root / mutation["path"], root / mutation["to"]
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
        return
    shutil.copyfile(source, target)
    _forget_crc(target, mutation)


def _move(root: Path, mutation: Mutation) -> None:
    """Rename a file or folder; the checksum follows its file."""
    source, target = root / mutation["path"], root / mutation["to"]
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
    if not mutation.get("keep_crc") and crc_of(source).exists():
        crc_of(source).rename(crc_of(target))


def _link_out(root: Path, mutation: Mutation) -> None:
    """Put a file or folder beside the checkpoint, and in its place a symbolic link to it."""
    path = root / mutation["path"]
    outside = root.parent / f"{root.name}-outside-{path.name}"
    path.rename(outside)
    path.symlink_to(outside)


def _mkdir(root: Path, mutation: Mutation) -> None:
    (root / mutation["path"]).mkdir(parents=True)


OPERATIONS: dict[str, Callable[[Path, Mutation], None]] = {
    "delete": _delete,  # path, keep_crc
    "delete_tree": _delete_tree,  # path
    "truncate": _truncate,  # path, bytes, keep_crc
    "write": _write,  # path, text or hex, keep_crc; an empty text makes an empty file
    "flip": _flip,  # path, at, hex, keep_crc
    "replace_text": _replace_text,  # path, old, new, keep_crc
    "line_ends": _line_ends,  # path, keep_crc
    "zip_entry": _zip_entry,  # path, entry, old, new, keep_crc
    "copy": _copy,  # path, to, keep_crc
    "move": _move,  # path, to, keep_crc
    "mkdir": _mkdir,  # path
    "link_out": _link_out,  # path
}


def copied(query: Path, place: Path) -> Path:
    """Checkpoint and output of a query at another place; the log of a file sink names its files by absolute path."""
    shutil.copytree(query, place)
    for file in (place / "out" / "_spark_metadata").glob("[0-9]*"):
        text = file.read_text().replace(f"{query}/", f"{place}/")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        file.write_text(text)
    return place
