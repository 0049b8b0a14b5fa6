"""Why bytes are not decoded."""

from ckpt.errors import CkptError


class Undecodable(CkptError):
    """Bytes of state that are damaged, or of a kind that ckpt does not know; the text says which."""
