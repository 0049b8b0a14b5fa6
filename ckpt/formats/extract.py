"""Case classes as json4s extracts them from JSON: Spark's logs go through ``Serialization.read``.

Measured on 3.5.9 to 4.3.0 (``tests/formats/spark_answers.json``). json4s is lenient: unknown keys are
ignored, numbers become strings, fractions and overflowing integers become longs, and a value that is no
object has no fields.
"""

from collections.abc import Mapping

from ckpt.formats.text import Damaged, Repeated, quoted
from ckpt.model import Fault, Json

_LONG = 2**63


def fields_of(value: Json) -> Mapping[str, Json]:
    """The fields that json4s finds: those of an object, none in another value. Raises Damaged for null."""
    if value is None:
        raise Damaged(Fault.BAD_JSON, "its JSON is null")
    return value if isinstance(value, dict) else {}


def long_field(fields: Mapping[str, Json], name: str, default: int | None = None) -> int:
    """A Scala ``Long``; without a default the field must be there and not be null. Raises Damaged."""
    value = _present(fields, name, optional=default is not None)
    if value is None and default is not None:
        return default
    if isinstance(value, float):
        return int(min(max(value, -_LONG), _LONG - 1))
    if isinstance(value, int) and not isinstance(value, bool):
        return (value + _LONG) % (2 * _LONG) - _LONG
    raise _report_unusable(name, value)


def flag_field(fields: Mapping[str, Json], name: str) -> bool:
    """A Scala ``Boolean`` that has no default. Raises Damaged."""
    value = _present(fields, name, optional=False)
    if isinstance(value, bool):
        return value
    raise _report_unusable(name, value)


def text_field(fields: Mapping[str, Json], name: str) -> str | None:
    """A Scala ``String`` that has no default: it may be null, and not be missing. Raises Damaged."""
    return _text(_present(fields, name, optional=False), name)


def text_map(fields: Mapping[str, Json], name: str) -> dict[str, str]:
    """A ``Map[String, String]`` that is empty by default; a null in it becomes "". Raises Damaged."""
    return {key: _text(value, name) or "" for key, value in object_field(fields, name).items()}


def object_field(fields: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """A ``Map`` that is empty by default. Raises Damaged."""
    value = _present(fields, name, optional=True)
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise _report_unusable(name, value)


def whole_number(value: Json) -> int | None:
    """Return a JSON value that is a whole number; None for any other, ``true`` and ``false`` included."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _present(fields: Mapping[str, Json], name: str, *, optional: bool) -> Json:
    if isinstance(fields, Repeated) and name in fields.names:
        raise Damaged(Fault.BAD_JSON, f"its JSON names {name} more than once", f"No usable value for {name}")
    if name not in fields and not optional:
        raise Damaged(Fault.BAD_JSON, f"its JSON lacks {name}", f"No usable value for {name}")
    return fields.get(name)


def _text(value: Json, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise _report_unusable(name, value)


def _report_unusable(name: str, value: Json) -> Damaged:
    return Damaged(Fault.BAD_JSON, f"{name} in its JSON is {quoted(repr(value))}", f"No usable value for {name}")
