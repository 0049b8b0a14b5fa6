"""The forms in which people paste a text: each makes one of the text that a log writer wrote."""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Callable

Form = Callable[[str], str]


def each_line(change: Form) -> Form:
    return lambda text: "\n".join(map(change, text.split("\n")))


def _log4j_json(text: str) -> str:
    """One record of Log4j's JsonLayout for each line that begins one, with the lines after it as its message."""
    return "\n".join(
        json.dumps({"instant": {"epochSecond": 1}, "thread": "main", "message": line, "endOfBatch": False})
        for line in text.split("\n")
    )


def _in_seconds(prefix: str) -> Form:
    """A prefix with a time that goes on."""
    return lambda text: "\n".join(
        prefix.format(f"{number // 60 % 24:02}:{number % 60:02}:00.{number:09}") + line
        for number, line in enumerate(text.split("\n"))
    )


def _cut(text: str) -> str:
    """Cut within the first word and within the last line of a stack."""
    lines = text.split("\n")
    first = lines[0]
    lines[0] = re.sub(r"^[a-z]+\.(?=[\w.]+: )", "", first)
    if lines[-1].startswith("\tat "):
        lines[-1] = lines[-1][:-9]
    return "\n".join(lines)


def _wrapped_at_words(text: str) -> str:
    return "\n".join(
        part
        for line in text.split("\n")
        for part in textwrap.wrap(line, 100, break_on_hyphens=False, drop_whitespace=True) or [""]
    )


def _wrapped_hard(width: int) -> Form:
    return lambda text: "\n".join(
        line[at : at + width] for line in text.split("\n") for at in range(0, max(1, len(line)), width)
    )


FORMS: dict[str, Form] = {
    "no indentation": each_line(str.lstrip),
    "quoted": each_line(lambda line: "> " + line),
    "quoted twice, without indentation": each_line(lambda line: "> > " + line.lstrip()),
    "kubectl --timestamps": _in_seconds("2026-11-20T{}Z "),
    "kubectl --prefix": each_line(lambda line: "[pod/orders-driver/spark] " + line),
    "docker compose": each_line(lambda line: "spark-driver-1  | " + line),
    "docker compose in colours": each_line(lambda line: "\x1b[36mspark-driver-1  |\x1b[0m " + line),
    "stern": each_line(lambda line: "orders-driver spark-kubernetes-driver " + line),
    "journald": each_line(lambda line: "Nov 20 10:11:12 host spark-submit[4711]: " + line.replace("\t", "#011")),
    "container runtime": _in_seconds("2026-11-20T{}+02:00 stdout F "),
    "Airflow": each_line(lambda line: "[2026-11-22, 23:21:39 UTC] {spark_submit.py:579} INFO - " + line),
    "another logger": _in_seconds("2026-11-20 {} ERROR SparkLauncher: "),
    "EMR": each_line(lambda line: "[spark-driver] " + line),
    "numbered": lambda text: "\n".join(f"{number}: {line}" for number, line in enumerate(text.split("\n"), 1)),
    "colours": each_line(lambda line: "\x1b[1;31m" + line.replace(" ", " \x1b[0m", 1) + "\x1b[0m"),
    "HTML": html.escape,
    "HTML with breaks": lambda text: html.escape(text).replace("\t", "&nbsp;&nbsp;").replace("\n", "<br>\n"),
    "escaped": lambda text: json.dumps(text),
    "Docker's JSON": each_line(lambda line: json.dumps({"log": line + "\n", "stream": "stderr", "time": "x"})),
    "Log4j's JSON": _log4j_json,
    "wrapped at words": _wrapped_at_words,
    "wrapped at 80": _wrapped_hard(80),
    "wrapped at 132": _wrapped_hard(132),
    "cut": _cut,
    "one line": lambda text: " ".join(map(str.strip, text.split("\n"))),
    "Windows": lambda text: text.replace("\n", "\r\n"),
    "Markdown": lambda text: re.sub(r"([\[\]_*])", r"\\\1", text),
    "a comment of code": each_line(lambda line: " * " + line),
    "a column of a table": each_line(lambda line: '1763633472000,"' + line + '"'),
}
