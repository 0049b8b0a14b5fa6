"""The shell of ``ckpt sql``, at a terminal."""

import json
import re
from pathlib import Path

import pytest

from commands.sql import read_typed
from tests.commands.test_terminal import on_a_terminal
from tests.support.places import SAMPLES

SAMPLE = str(SAMPLES / "aggregation-rocksdb-4.2")


def _answers(shown: str) -> list[object]:
    """The rows of each document among what is shown."""
    documents = re.findall(r"^\{\r?\n.*?^\}\r?$", shown, re.MULTILINE | re.DOTALL)
    return [json.loads(text)["rows"] for text in documents]


@pytest.mark.slow
def test_statements_are_answered_one_after_the_other(tmp_path: Path) -> None:
    """A refused statement does not end the shell; a statement may span lines, and Tab completes names."""
    typed = (
        b"SELECT 1 AS one;\nSELECT * FROM 'somewhere.csv';\nSELECT count(*) > 2 AS many\nFROM batche\t\n;\n"
        b"SELECT 1 AS two; SELECT 2 AS three;\n\n.exit\n"
    )
    shown = on_a_terminal("sql", SAMPLE, "-o", "json", typed=typed, XDG_STATE_HOME=str(tmp_path))

    assert _answers(shown) == [[{"one": 1}], [{"many": True}], [{"two": 1}], [{"three": 2}]]
    assert shown.count("ckpt: ") == 1
    assert "Traceback" not in shown
    history = tmp_path / "ckpt/sql_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "SELECT 1 AS one;" in history.read_text()


def test_ctrl_c_forgets_what_was_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines: list[str | type[BaseException]] = ["SELECT forgotten", KeyboardInterrupt, "SELECT 1", ";", EOFError]

    def type_line(_: str) -> str:
        line = lines.pop(0)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", type_line)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert list(read_typed(())) == ["SELECT 1\n;"]


@pytest.mark.slow
def test_the_history_comes_again(tmp_path: Path) -> None:
    on_a_terminal("sql", SAMPLE, "-o", "json", typed=b"SELECT 7 AS seven;\n.exit\n", XDG_STATE_HOME=str(tmp_path))
    up = b"\x1b[A\x1b[A\n.exit\n"
    shown = on_a_terminal("sql", SAMPLE, "-o", "json", typed=up, XDG_STATE_HOME=str(tmp_path))
    assert _answers(shown) == [[{"seven": 7}]]


def test_without_a_place_for_a_history_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shown = on_a_terminal(
        "sql", SAMPLE, "-o", "json", typed=b"SELECT 7 AS seven;\n.exit\n", XDG_STATE_HOME=str(tmp_path / "file")
    )
    assert _answers(shown) == [[{"seven": 7}]]
