"""A new checkpoint with state that was edited, or made elsewhere (``ckpt import-state``)."""

import ckpt.formats.rows  # noqa: F401  (which says in one line what is not installed)
