"""Numbers and untrusted text for people, whether in a terminal or in a browser."""

from collections.abc import Sequence

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def printable(text: str) -> str:
    """``text`` with everything that is not printable escaped, so that a terminal shows it and does not obey it."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def size(count: int) -> str:
    """Bytes for people: ``1.5 MiB``."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def ranges(spans: Sequence[tuple[int, int]], most: int = 4) -> str:
    """``3, 5 to 9 and 12 more``: inclusive ranges of numbers, the first ``most`` of them."""
    shown = [str(a) if a == b else f"{a} to {b}" for a, b in spans[:most]]
    more = f" and {len(spans) - most} more" if len(spans) > most else ""
    return ", ".join(shown) + more


def span(noun: str, first: int, last: int) -> str:
    """``batch 3``, ``batches 3 to 5``."""
    return f"{noun} {first}" if first == last else f"{plural_of(2, noun)} {first} to {last}"


def batch_ranges(spans: Sequence[tuple[int, int]]) -> str:
    """``batch 3``, ``batches 3, 5 to 9``."""
    return f"{'batch' if len(spans) == 1 and spans[0][0] == spans[0][1] else 'batches'} {ranges(spans)}"


def plural(count: int, noun: str) -> str:
    """``1 file``, ``3 files``, ``2 batches``."""
    return f"{count:,} {plural_of(count, noun)}"


def plural_of(count: int, noun: str) -> str:
    """``file``, ``files``, ``batches``, whichever goes with the number."""
    return noun if count == 1 else noun + ("es" if noun.endswith(("ch", "s")) else "s")
