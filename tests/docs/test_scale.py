"""The figures of docs/scale.md are those of benchmarks/scale.json."""

import json
from typing import Any

from benchmarks.cost_model import tabulate
from ckpt.storage.remote import REQUESTS_AT_ONCE
from tests.support.places import ROOT

PAGE = (ROOT / "docs/scale.md").read_text(encoding="utf-8")
RECORD: dict[str, Any] = json.loads((ROOT / "benchmarks/scale.json").read_text(encoding="utf-8"))


def test_its_tables_are_those_of_the_record() -> None:
    rows = {line for line in PAGE.splitlines() if line.startswith("| `")}
    assert rows == {row for rows in tabulate(RECORD).values() for row in rows}


def test_what_was_measured_is_what_was_predicted() -> None:
    for name, costs in RECORD["commands"].items():
        ratio = costs["measured"]["requests"] / costs["predicted"]["requests"]
        assert abs(ratio - 1) < 0.01, name
        assert costs["growth"]["requests"] <= 10, name


def test_it_names_the_limit_of_connections() -> None:
    assert f"at most {REQUESTS_AT_ONCE} connections" in PAGE
