"""Errors of Spark, as one line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from ckpt.errors import CkptError
from ckpt.storage.base import one_line
from ckpt.texts import mask_secrets

_LONGEST = 400


class SparkFailed(CkptError):
    """Spark could not do what it was asked; the text has its own words."""


@contextmanager
def translate_failures(doing: str) -> Iterator[None]:
    """Turn whatever Spark throws into SparkFailed: ``doing`` says what was tried."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(f"{doing} failed in Spark: {words_of(error)}") from error


def words_of(error: Exception) -> str:
    """The message that says most: that of the innermost cause that has an error condition, or of the last cause."""
    messages = [*_list_causes(error.java_exception)] if isinstance(error, Py4JJavaError) else [str(error)]
    named = [message for message in messages if re.search(r"\[[A-Z][A-Z0-9_.]{4,}\]", message)]
    text = _shorten_traceback((named or messages)[-1])
    first = re.split(r"\n\s*(?:at |JVM stacktrace|Driver stacktrace)|\nCaused by", text.strip())[0]
    line = one_line(mask_secrets(" ".join(first.split())))
    return line if len(line) <= _LONGEST else line[:_LONGEST] + " ..."


def _shorten_traceback(text: str) -> str:
    """Shorten a Python worker's traceback to its last line, which says what it was; leave other text as it is."""
    _, mark, traceback = text.partition("Traceback (most recent call last):")
    lines = re.split(r"\n\s*\n?\tat ", traceback)[0].split("\n")
    messages = [line for line in lines if line and not line[0].isspace()]
    return f"in a Python worker: {messages[-1]}" if mark and messages else text


def _list_causes(thrown: Any) -> Iterator[str]:
    """The messages of an exception of the JVM and of its causes."""
    for _ in range(20):
        if thrown is None:
            return
        yield str(thrown.toString())
        thrown = thrown.getCause()
