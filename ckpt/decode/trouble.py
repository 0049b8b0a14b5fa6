"""Why bytes are not decoded."""

from ckpt.errors import CkptError

WITH_SPARK = "ckpt export-state --engine spark reads it"


class Undecodable(CkptError):
    """Bytes of state that are damaged, or of a kind that ckpt does not know; the text says which."""


class Unfit(Undecodable):
    """Rows that are not built as their schema says, though they are of a kind that ckpt knows."""


class TooLarge(Undecodable):
    """Files that unpack to more than is held in memory."""
