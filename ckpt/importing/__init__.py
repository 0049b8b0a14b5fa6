"""A new checkpoint with state that was edited, or made elsewhere (``ckpt import-state``)."""

from ckpt.importing.perform import import_state, write_state

__all__ = ["import_state", "write_state"]
