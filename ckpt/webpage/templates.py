"""The templates, and the one environment that fills them: it masks and escapes every text that is put into one."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

from ckpt.errors import CkptError
from ckpt.texts import escape_unprintable, instant, mask_secrets, plural, size
from ckpt.versions import __version__

_QUOTED = re.compile(r"`([^`]*)`")


class HtmlMissing(CkptError):
    """The package that fills templates is not installed."""


def fill_template(template: str, **values: Any) -> str:
    """Fill a template with its values. Raises HtmlMissing."""
    text: str = _make_environment().get_template(template).render(version=__version__, **values)
    return text


@cache
def _make_environment() -> Any:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ModuleNotFoundError:
        raise HtmlMissing("output as HTML needs the package jinja2: pip install 'spark-ckpt[html]'") from None
    environment = Environment(
        loader=FunctionLoader(_read_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_make_safe,
    )
    environment.filters |= {"size": size, "instant": instant, "counted": plural, "advice": split_advice}
    return environment


def _read_source(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _make_safe(value: Any) -> Any:
    """A text that may be from a checkpoint, without its secrets, and with what is not printable as escapes."""
    return "\n".join(map(escape_unprintable, mask_secrets(value).split("\n"))) if type(value) is str else value


def split_advice(text: str) -> list[tuple[bool, str]]:
    """The parts of a sentence: whether each is code, in backquotes, and its text."""
    parts = _QUOTED.split(mask_secrets(text))
    return [(bool(index % 2), part) for index, part in enumerate(parts) if part]
