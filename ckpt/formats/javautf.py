"""Strings as Java's ``DataOutputStream.writeUTF`` writes them: a length of two bytes, then modified UTF-8."""

import struct


class EndsEarly(ValueError):
    """The bytes stop before what they announce."""


def read_utf(data: bytes, at: int) -> tuple[str, int]:
    """Read the string that begins at ``at``, and say where it ends.

    Modified UTF-8 writes a zero as C0 80 and characters beyond the first 65,536 as two surrogates of three bytes each;
    surrogates are kept, because a string can be cut between them (``join_parts`` fixes them).
    Raises EndsEarly, another ValueError or struct.error where there is no such string.
    """
    (length,) = struct.unpack_from(">H", data, at)
    text = data[at + 2 : at + 2 + length]
    if len(text) < length:
        raise EndsEarly
    return text.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass"), at + 2 + length


def write_utf(text: str) -> bytes:
    """A string as ``writeUTF`` writes it, for text in ASCII without zeros, of up to 65,535 bytes."""
    data = text.encode("ascii")
    return struct.pack(">H", len(data)) + data


def join_parts(parts: list[str]) -> str:
    """Join a string from its parts. Raises ValueError if a surrogate is alone."""
    text = "".join(parts)
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16")
