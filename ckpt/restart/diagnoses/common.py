"""How a diagnosis is declared: its texts are in ``ckpt/restart/words.toml``."""

from functools import partial

from ckpt.restart.findings import Asked, Diagnosis, Severity


def _declare(severity: Severity, title: str, when_asked: tuple[tuple[Asked, Severity], ...] = ()) -> Diagnosis:
    """Declare a diagnosis; ``title`` is its code and its name, such as ``CKPT101 unreadable-log-file``."""
    code, name = title.split()
    return Diagnosis(code, name, severity, when_asked)


note = partial(_declare, Severity.NOTE)
warning = partial(_declare, Severity.WARNING)
error = partial(_declare, Severity.ERROR)
