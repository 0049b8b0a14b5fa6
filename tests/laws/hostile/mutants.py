"""Damage to a copy of a checkpoint, chosen by a seed: to its bytes, its JSON, its names, its kinds of files.

A mutant is the same for the same number. Files are replaced and never written to, so that a copy may share them.
"""

import io
import json
import os
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from ckpt.formats.schemas import parse_state_schema
from ckpt.model import Unreadable

_RAW = "as it is: "  # what follows is no JSON that Python writes
ODD_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**300, -0.0, 1e308, 0.5),
    *("", " ", "0", "-1", "é", "\ud800", "\x00", "\x1b]0;owned\x07", "\u202e", "a\nb\r\n", "\x9b31m", "NaN"),
    *("null", "[]"),
    *("x" * 70_000, "'; $(touch x)", "s3a://KEY:SECRET@bucket/x", "../../../etc/passwd", "file:/nowhere", "long", "v1"),
    *([], {}, [[]], {"": {"": None}}, [None] * 1_000, {str(i): i for i in range(2_000)}),
    *(_RAW + text for text in ("NaN", "1e999", "-Infinity", "9" * 5_000, '{"a":1,"a":2}', "01", "'x'", "")),
    *(_RAW + "[" * deep + "]" * deep for deep in (400, 990, 100_000)),
    _RAW + '{"type":"struct","fields":[{"name":"a","type":' * 150 + "null" + "}]}" * 150,
]
ODD_NAMES = [
    *("0", "1", "7", "00", "-1", "+1", "99999999", "9223372036854775807", "9223372036854775808", "9" * 200, "٣", "1e3"),
    *("\x1b[2J", "\u202e", "a b", "a\nb", "a'b", 'a"b', "%31", "-rf", "$(touch x)", "\udcff\udcfe", "é", "*"),
    *("\\", " 1"),
    *("1.delta", "2.snapshot", "3.zip", "3_x.zip", "4.changelog", "4_a_b.changelog", "0.compact"),
    *("9.compact", ".1.crc"),
    *("metadata", "v2", "_metadata", "schema", "state", "offsets", "SSTs", "default", "_spark_metadata", ".1.tmp"),
]
ODD_LINES = [
    *(b"v1", b"v2", b"v3", b"v9", b"v-1", b"v99999999999", b"", b"-", b"{}", b"[]", b"null", b"5", b'"', b"\xff\xfe"),
    *(b"\xef\xbb\xbfv1", b"\x00" * 9, b"{" * 2_000, b"0:5", b"1e5", b'{"t":{"0":5}}', b'{"logOffset":1}'),
]


def mutate(rng: Random, root: Path) -> list[str]:
    """Damage a checkpoint once to four times; says how."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        kind = rng.choices((_content, _names, _kinds, _folders), (6, 3, 2, 1))[0]
        done.append(kind(rng, root))
    return done


def _files(root: Path) -> list[str]:
    """The files that are there, relative to the root and in an order that is always the same."""
    found = []
    for folder, _, files in os.walk(root):
        found += [path for name in files if not os.path.islink(path := f"{folder}/{name}") and os.path.isfile(path)]
    return sorted(path[len(str(root)) + 1 :] for path in found)


def _subfolders(root: Path) -> list[Path]:
    """The folders that are there, in the same way."""
    found = [f"{folder}/{name}" for folder, names, _ in os.walk(root) for name in names]
    return [Path(path) for path in sorted(found) if not os.path.islink(path)]


def _file(rng: Random, root: Path) -> Path:
    """One of the files; seldom a checksum, and logs as often as state."""
    files = _files(root)
    state = [file for file in files if file.startswith("state/")]
    logs = [file for file in files if not file.startswith("state/")]
    chosen = rng.choice([some for some in (state, logs) if some] or [["metadata"]])
    plain = [file for file in chosen if not file.endswith(".crc")]
    return root / rng.choice(chosen if rng.random() < 0.1 or not plain else plain)


def _free(rng: Random, folder: Path, names: list[str]) -> Path:
    """A place in a folder that is not taken."""
    free = [name for name in names if not os.path.lexists(folder / name)]
    return folder / rng.choice(free)


# What is in a file


def _content(rng: Random, root: Path) -> str:
    file = _file(rng, root)
    data = file.read_bytes() if file.is_file() and file.stat().st_size < 1 << 20 else b""
    how, changed = _changed(rng, file, data)
    _replace(file, changed)
    if rng.random() < 0.7:
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return f"{how} in {file.relative_to(root)}"


def _replace(file: Path, data: bytes) -> None:
    file.unlink(missing_ok=True)
    file.write_bytes(data)


def _changed(rng: Random, file: Path, data: bytes) -> tuple[str, bytes]:
    if rng.random() < 0.6:
        for shape in (_json_lines, _in_zip, _in_schema):
            changed = shape(rng, file, data)
            if changed is not None:
                return f"JSON ({shape.__name__})", changed
    how = rng.choice((_flip, _cut_out, _insert, _truncate, _repeat, _lines, _line, _empty))
    return how.__name__, how(rng, data)


def _flip(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 20)) if data else 0):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut_out(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice((1, 2, 8, 100)) :]


def _insert(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    what = rng.choice((b"\x00", b"\n", b"\x1b[2J", b"\xff", b'"', b"}", b"[" * 500, rng.randbytes(rng.choice((1, 50)))))
    return data[:start] + what + data[start:]


def _truncate(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _repeat(rng: Random, data: bytes) -> bytes:
    return data * rng.choice((2, 3, 50))


def _lines(rng: Random, data: bytes) -> bytes:
    return b"\n".join(rng.choices(ODD_LINES, k=rng.randrange(6)))


def _line(rng: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    lines[rng.randrange(len(lines))] = rng.choice(ODD_LINES)
    return b"\n".join(lines)


def _empty(rng: Random, data: bytes) -> bytes:
    return b""


def _json_lines(rng: Random, file: Path, data: bytes) -> bytes | None:
    lines = data.split(b"\n")
    values = {at: value for at, line in enumerate(lines) if (value := _parsed(line)) is not None}
    if not values:
        return None
    at = rng.choice(list(values))
    lines[at] = odd_json(rng, values[at])
    return b"\n".join(lines)


def _in_zip(rng: Random, file: Path, data: bytes) -> bytes | None:
    """The same in the entry of a RocksDB snapshot that says what belongs to it."""
    if not data.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as before:
            entries = {info.filename: before.read(info) for info in before.infolist()}
    except Exception:  # whatever the library says of a broken zip
        return None
    changed = _json_lines(rng, file, entries.get("metadata", b""))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as after:
        for name, content in (entries | ({"metadata": changed} if changed else {})).items():
            after.writestr(name, content)
    return target.getvalue()


def _in_schema(rng: Random, file: Path, data: bytes) -> bytes | None:
    """The same in a state schema, written in version 3."""
    families = parse_state_schema("", data)
    if isinstance(families, Unreadable):
        return None
    chosen = rng.randrange(len(families)) if families else -1
    parts = [_utf(b"v3"), struct.pack(">i", len(families))]
    for at, one in enumerate(families):
        texts = [_json_bytes(part) for part in (one.key_schema, one.value_schema, one.key_encoder, one.user_key_schema)]
        if at == chosen:
            place = rng.randrange(4)
            texts[place] = odd_json(rng, json.loads(texts[place]))
        name = rng.choice(ODD_NAMES) if at == chosen and rng.random() < 0.2 else one.name
        ids = (b"\x00\x00", b"\x00\x00", b"", b"")
        parts += [_utf(name.encode("utf-8", "surrogatepass")), *map(bytes.__add__, ids, map(_chunks, texts))]
    return b"".join(parts)


def _utf(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text


def _chunks(text: bytes) -> bytes:
    parts = [text[at : at + 60_000] for at in range(0, len(text), 60_000)]
    return struct.pack(">i", len(parts)) + b"".join(map(_utf, parts))


def odd_json(rng: Random, value: Any) -> bytes:
    """JSON with one odd value, key or repetition in it."""
    box = [value]
    holder, key = rng.choice(list(_places(box)))
    inner = holder[key]
    text = _parsed(inner.encode("utf-8", "replace")) if isinstance(inner, str) else None
    match rng.choice(("value", "value", "value", "remove", "key", "wrap", "repeat", "other", "inside")):
        case "remove" if isinstance(holder, dict):
            del holder[key]
        case "key" if isinstance(holder, dict):
            holder[rng.choice([odd for odd in ODD_VALUES if isinstance(odd, str) and not odd.startswith(_RAW)])] = inner
        case "wrap":
            holder[key] = rng.choice(([inner], {"a": inner}, str(inner)))
        case "repeat" if isinstance(inner, list):
            holder[key] = inner * rng.choice((2, 300))
        case "other":
            there, other = rng.choice(list(_places(box)))
            holder[key] = json.loads(json.dumps(there[other]))
        case _ if isinstance(text, dict | list):
            holder[key] = odd_json(rng, text).decode("utf-8", "surrogateescape")
        case _:
            holder[key] = rng.choice(ODD_VALUES)
    return _json_bytes(box[0])


def _json_bytes(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"))
    for odd in (odd for odd in ODD_VALUES if isinstance(odd, str) and odd.startswith(_RAW)):
        text = text.replace(json.dumps(odd), odd[len(_RAW) :])
    return text.encode()


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object in a value with every place in it."""
    pending = [value]
    while pending:
        holder = pending.pop()
        for key, inner in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            yield holder, key
            if isinstance(inner, dict | list):
                pending.append(inner)


# What files are called, and what is there in their place


def _names(rng: Random, root: Path) -> str:
    file = _file(rng, root)
    folder = rng.choice((file.parent, file.parent, rng.choice([root, *_subfolders(root)])))
    target = _free(rng, folder, ODD_NAMES)
    match rng.choice(("remove", "rename", "copy", "swap")):
        case "remove":
            file.unlink(missing_ok=True)
            return f"removed {file.relative_to(root)}"
        case "rename" if file.exists():
            file.rename(target)
        case "swap":
            target = _file(rng, root)
            _replace(target, file.read_bytes() if file.is_file() else b"")
        case _:
            target.write_bytes(file.read_bytes() if file.is_file() else b"")
    return f"{file.relative_to(root)} at {target.relative_to(root)!s}"


def _kinds(rng: Random, root: Path) -> str:
    file = _file(rng, root)
    if rng.random() < 0.3:
        file = _free(rng, file.parent, ODD_NAMES)
    file.unlink(missing_ok=True)
    makers: dict[str, Callable[[], object]] = {
        "folder": file.mkdir,
        "sparse": lambda: _sparse(file, rng.choice((5 << 20, 60 << 20, 190 << 20, 512 << 20, 1 << 40))),
        "pipe": lambda: os.mkfifo(file),
        "zero": lambda: file.symlink_to("/dev/zero"),
        "outside": lambda: file.symlink_to("/etc/passwd"),
        "dangling": lambda: file.symlink_to("nowhere"),
        "itself": lambda: file.symlink_to(file.name),
        "above": lambda: file.symlink_to(rng.choice((".", "..", root))),
        "sibling": lambda: file.symlink_to(rng.choice(sorted(one.name for one in file.parent.iterdir()) or ["."])),
    }
    kind = rng.choice(list(makers))
    makers[kind]()
    return f"{kind} at {file.relative_to(root)!s}"


def _sparse(file: Path, size: int) -> None:
    file.touch()
    os.truncate(file, size)


def _folders(rng: Random, root: Path) -> str:
    folders = _subfolders(root)
    if not folders:
        return "no folders"
    folder = rng.choice(folders)
    where = folder.relative_to(root)
    match rng.choice(("remove", "empty", "file", "copy", "rename", "link")):
        case "remove":
            shutil.rmtree(folder)
        case "empty":
            shutil.rmtree(folder)
            folder.mkdir()
        case "file":
            shutil.rmtree(folder)
            folder.write_text("v1\n{}")
        case "copy":
            shutil.copytree(folder, _free(rng, folder.parent, ODD_NAMES), symlinks=True, copy_function=os.link)
        case "link":
            aside = root.parent / f"aside-{rng.randrange(1 << 40)}"
            folder.rename(aside)
            folder.symlink_to(aside)
        case _:
            folder.rename(_free(rng, folder.parent, ODD_NAMES))
    return f"folder {where}"
