"""A new checkpoint with the state of another one, in another form (``ckpt rewrite``)."""

import ckpt.formats.rows  # noqa: F401  (which says in one line what is not installed)
