"""Options that a description keeps: those that decide rows and values, as far as they are no defaults."""

import pytest

from ckpt.model import Json
from ckpt.query.reader_options import keep_options, keep_reader, list_affecting

SCHEMA: Json = {
    "type": "struct",
    "fields": [
        {"name": "n", "type": "integer"},
        {"name": "days", "type": {"type": "array", "elementType": "date", "containsNull": True}},
        {"name": "bad", "type": "string"},
    ],
}
TIMES: Json = {"type": "struct", "fields": [{"name": "at", "type": "timestamp"}]}
SETTINGS = {"zone": "Europe/Berlin", "parser": "", "corrupt": "_corrupt_record"}


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"Mode": "DROPMALFORMED", "multiLine": "TRUE"}, {"mode": "dropmalformed", "multiline": "true"}),
        ({"mode": "permissive", "multiLine": "False", "sep": ",", "charset": "utf-8"}, {}),
        ({"delimiter": ";"}, {"sep": "41b805ea"}),
        ({"password": "hush", "fs.s3a.secret.key": "hush", "maxFilesPerTrigger": "3", "path": "/a"}, {}),
        ({"columnNameOfCorruptRecord": "bad"}, {"columnnameofcorruptrecord": "bad"}),
        ({"columnNameOfCorruptRecord": "hush"}, {}),
        ({"kafka.isolation.level": "read_committed"}, {"kafka.isolation.level": "read_committed"}),
    ],
)
def test_options_that_decide_rows_and_values_are_kept(options: dict[str, str], kept: dict[str, str]) -> None:
    assert keep_options(options, SCHEMA) == kept


def test_no_text_of_a_user_is_kept() -> None:
    kept = keep_options(dict.fromkeys(("nullValue", "comment", "timestampFormat", "avroSchema"), "hush"), SCHEMA)
    assert len(kept) == 4
    assert "hush" not in kept.values()


def test_a_reader_falls_back_on_its_session() -> None:
    assert keep_reader("json", {}, TIMES, **SETTINGS) == {"format": "json", "timezone": "Europe/Berlin"}
    assert keep_reader("json", {"timeZone": "Etc/UTC"}, TIMES, **SETTINGS) == {"format": "json", "timezone": "UTC"}
    assert keep_reader("parquet", {}, TIMES, **SETTINGS) == {"format": "parquet"}
    assert keep_reader("csv", {"timestampFormat": "y"}, SCHEMA, **SETTINGS) == {"format": "csv"}
    legacy = keep_reader("csv", {}, SCHEMA, **{**SETTINGS, "parser": "legacy", "corrupt": "bad"})
    assert legacy == {"format": "csv", "timeparserpolicy": "legacy", "columnnameofcorruptrecord": "bad"}


def test_an_option_affects_values_of_its_types() -> None:
    options = {"dateformat": "1f", "mode": "dropmalformed", "pathglobfilter": "1f"}
    assert list_affecting(options, {"type": "array", "elementType": "date"}, "days").keys() == {"dateformat", "mode"}
    assert list_affecting(options, "integer", "n").keys() == {"mode"}
