"""Small local files that somebody names as an argument: they end, and they are read whole."""

import errno
import os
import stat

_MOST = 1 << 24  # bytes
_OPENED = "/dev/fd/"  # what a shell has opened, as in <(command)


def ends(path: str) -> bool:
    """Tell whether reading a file comes to an end: no device, nor a pipe that nobody may write to. Raises OSError."""
    mode = os.stat(path).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and path.startswith(_OPENED))


def read_text(path: str) -> str:
    """The text of a file. Raises OSError, and ValueError where it is not UTF-8."""
    if not ends(path):
        raise OSError(errno.EINVAL, "it is no file")
    with open(path, "rb") as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise OSError(errno.EFBIG, f"it has more than {_MOST >> 20} MiB")
    return data.decode("utf-8")
