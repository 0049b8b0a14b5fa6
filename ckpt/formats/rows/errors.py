"""Why bytes are not decoded."""

from ckpt.errors import CkptError

WITH_SPARK = "ckpt export-state --engine spark reads it"


class Undecodable(CkptError):
    """Bytes of state that are damaged, or of a kind that ckpt does not know; the text says which."""


class Unfit(Undecodable):
    """Rows that are not built as their schema says, though they are of a kind that ckpt knows."""


class TooLarge(Undecodable):
    """Files that unpack to more than is held in memory."""


class LeftToSpark(Undecodable):
    """State of a kind that ckpt does not know, and Spark may; the text says which, and how to have Spark read it."""

    def __init__(self, kind: str) -> None:
        """Say how to have it read, once."""
        super().__init__(kind if kind.endswith(WITH_SPARK) else f"{kind}: {WITH_SPARK}")
