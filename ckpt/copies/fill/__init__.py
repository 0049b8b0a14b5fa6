"""A new checkpoint with state that was edited, or made elsewhere (``ckpt import-state``)."""

import ckpt.formats.rows  # noqa: F401  (which says in one line what is not installed)
from ckpt.copies.fill.import_state import import_state, write_state

__all__ = ["import_state", "write_state"]
