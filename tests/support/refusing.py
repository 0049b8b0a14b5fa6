"""A disk that does not let anybody read some files and folders of it, not even root."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock


@contextmanager
def refusing(*paths: Path, code: int) -> Iterator[None]:
    """Fail with an error code whenever one of the paths is opened."""
    real, closed = os.open, {str(path) for path in paths}

    def open_if_let(path: str, *args: int) -> int:
        if os.path.normpath(path) in closed:
            raise OSError(code, os.strerror(code), path)
        return real(path, *args)

    with mock.patch("os.open", open_if_let):
        yield
