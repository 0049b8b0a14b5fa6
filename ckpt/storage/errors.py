"""Errors of storage libraries, in one line that says what would help."""

import re

from ckpt.advice import Words, plain
from ckpt.errors import NotAFolder, NotFound, NotThereYet, StorageError, UsageError, one_line
from ckpt.texts import mask_secrets

_NO_BUCKET = re.compile(r"NO_?SUCH_?BUCKET|ContainerNotFound|bucket does not exist|bucket not found", re.I)
# Arrow's Google Cloud file system raises a bare OSError for both.
_NOT_FOUND = re.compile("^No such file or directory")
_NO_FOLDER = re.compile("^Cannot use file .* as a directory")
_REGION = re.compile(r"bucket is located in '([\w-]+)'")
_REFUSED = re.compile(
    r"ACCESS_?DENIED|AccessControlException|\b40[13]\b|forbidden|unauthor|authenticat|permission denied|credential"
    r"|INVALID_?ACCESS_?KEY|SIGNATURE_?DOES_?NOT_?MATCH|ExpiredToken|invalid_grant|OAuth|Kerberos|GSS|\bSASL",
    re.I,
)
_OUT_OF_REACH = re.compile(
    r"NETWORK_CONNECTION|curlCode|timed? ?out|connection (refused|reset|aborted)|could(n.t| not) (connect|resolve)"
    r"|(un)?resolv|name or service|unreachable|Cannot connect|failed to connect|no route",
    re.I,
)
# What Arrow wraps round the cause: what it was doing before, and bookkeeping after it.
_PREAMBLE = re.compile(
    r'^RPCError\("[\w.$]*", "|'
    r"^When [^:]*: |^\[Errno \d+\] |^GetFileInfo[^:]*: |.*Details: |.*(?=curlCode)"
)
_POSTSCRIPT = re.compile(r"\s*\(Request ID: [^)]*\)|\.? Detail: .*$|\s*Azure Error: .*$", re.S)
_LONGEST = 160


def explain(error: Exception, path: str, cure: str | Words, doing: str = "read") -> StorageError | UsageError:
    """The error to raise instead of a library's own; ckpt's own errors pass unchanged.

    ``path`` is the file or folder that was asked for, as it is shown, ``cure`` what helps where this kind of storage
    refuses, ``doing`` what failed: ``read`` or ``written``.
    """
    if isinstance(error, StorageError | UsageError):
        return error
    line = _first_line(error)
    if _NO_BUCKET.search(line):
        return NotFound(f"{path} does not exist: there is no such bucket; check its name and region")
    if isinstance(error, FileNotFoundError) or _NOT_FOUND.search(line):
        return NotThereYet(f"{path} does not exist: check the path")
    if isinstance(error, NotADirectoryError) or _NO_FOLDER.search(line):
        return NotAFolder(f"{path} is not a folder: give the checkpoint's own folder")
    if elsewhere := _REGION.search(line):
        return StorageError.of(
            "{path} is in another region: give {--storage-options} region={elsewhere}",
            path=path,
            elsewhere=elsewhere[1],
        )
    reason = shorten_error(error)
    if isinstance(error, PermissionError) or _REFUSED.search(line):
        return StorageError(plain(f"{path} cannot be {doing}: ") + cure + f" ({reason})")
    if isinstance(error, ConnectionError | TimeoutError) or _OUT_OF_REACH.search(line):
        return StorageError(f"{path} cannot be reached: check the host and the network ({reason})")
    return StorageError(f"{path} cannot be {doing}: {reason}")


def shorten_error(error: BaseException) -> str:
    """The cause that a library names, without its wrapping, in one line of modest length."""
    text = _POSTSCRIPT.sub("", _PREAMBLE.sub("", _first_line(error))).strip()
    line = one_line(mask_secrets(" ".join(text.split()))) or type(error).__name__
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _first_line(error: BaseException) -> str:
    """Return what comes before a Java stack trace and the like (which hdfs-native passes on with escaped newlines)."""
    return next((line for line in re.split(r"\\n|\n", str(error)) if line.strip()), "")
