"""A file that is read in pieces, and handed on as its format asks for it."""

from collections.abc import Iterator

_SKIPPED = 1 << 20  # bytes at a time


class Pieces:
    """A file that is read in pieces, from its beginning."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.at = 0  # of the next byte
        self._pieces = pieces
        self._held = b""
        self._from = 0

    def take(self, count: int) -> bytes:
        """The next bytes; fewer where the file ends."""
        parts, missing = [self._held[self._from : self._from + count]], count
        self._from += len(parts[0])
        while (missing := missing - len(parts[-1])) and (piece := next(self._pieces, b"")):
            parts.append(piece[:missing])
            self._held, self._from = piece, len(parts[-1])
        taken = b"".join(parts)
        self.at += len(taken)
        return taken

    def skip(self, count: int) -> int:
        """Pass over the next bytes; how many there were."""
        left = count
        while left and (skipped := len(self.take(min(left, _SKIPPED)))):
            left -= skipped
        return count - left
