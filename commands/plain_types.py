"""Words of a command line become text, whole numbers and choices without pydantic, whose import is a third of a look.

Typer has pydantic convert every word (since 0.29), whatever its type. Words that are not plainly right still go there,
so that all messages are its own.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, get_args, get_origin

import typer


def convert_plain_words(params: Iterable[Any]) -> None:
    """Let parameters of plain types convert their words; without effect on a Typer that has no pydantic."""
    for param in params:
        kind = getattr(param, "type_descriptor", None)
        if kind is not None and not (kind.is_path or kind.is_file):
            param._runtime_param = _PlainParam()


class _PlainParam:
    """Stands where Typer keeps the pydantic adapter of a parameter, and has it put there when it is needed."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert the words of a parameter, or its default."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        try:
            return _convert(value, param.type_descriptor.annotation, param.type_descriptor.parameter_info)
        except (ValueError, typer.BadParameter):
            param._runtime_param = None
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _convert(value: Any, annotation: Any, info: Any) -> Any:
    """Convert what is plainly right. Raises ValueError, or what a parser raises, for all else."""
    if get_origin(annotation) is list and isinstance(value, (list, tuple)):
        return [_convert(item, get_args(annotation)[0], info) for item in value]
    if info.parser:
        return info.parser(value)
    if issubclass(annotation, Enum):
        return annotation(value)
    if annotation is int and isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if type(value) is not annotation or (annotation is int and not _is_between(info.min, value, info.max)):
        raise ValueError(value)
    return value


def _is_between(least: float | None, value: float, most: float | None) -> bool:
    return (least is None or least <= value) and (most is None or value <= most)
