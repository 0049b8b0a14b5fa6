"""Why ckpt could not look. Damage in a checkpoint is data and never raised.

::

    CkptError               the base: one line that names the path and the cure
    ├── StorageError        something is there that cannot be reached, listed or read
    │   └── NotFound        nothing is there
    └── UsageError          the request itself is wrong: a URI, an option
"""


class CkptError(Exception):
    """Ckpt could not do what was asked; the text is one line, fit to show, and says what would help."""


class StorageError(CkptError):
    """A path cannot be reached, listed or read."""


class NotFound(StorageError):
    """There is nothing at a path, or no longer."""


class UsageError(CkptError):
    """The request cannot be understood: a malformed URI, an unknown scheme or storage option."""
