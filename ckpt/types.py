"""The types of what calls return and take: plans, receipts, requests, results; and errors that few calls raise.

Every name is in ``types.pyi`` and is imported when it is first asked for. ``docs/api.md`` lists all of them.
"""

from ckpt.names import import_name, read_stub

_NAMES = read_stub(__file__)


def __dir__() -> list[str]:
    return sorted(_NAMES)


def __getattr__(name: str) -> object:
    if name == "__all__":
        return __dir__()
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, import_name(*_NAMES[name]))
