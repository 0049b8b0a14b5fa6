"""The alert rules and the dashboard in docs/ ask for metrics that ``ckpt scan`` writes."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ckpt import scan
from ckpt.advice.spelling import SHELL
from ckpt.advice.words import speaking
from commands.render.prometheus import exposition
from tests.support.places import ROOT, SAMPLES

MONITORING = ROOT / "docs" / "monitoring"
SCANNED = ("aggregation-hdfs-4.2", "kafka-4.2")


@pytest.fixture
def written() -> dict[str, str]:
    """The help of every metric."""
    found = scan([str(SAMPLES / name) for name in SCANNED])
    asked = replace(found, checkpoints=tuple(replace(one, lag=7) for one in found.checkpoints))
    with speaking(SHELL):
        text = exposition(asked)
    return {family.name: family.documentation for family in text_string_to_metric_families(text)}


def metrics_in(text: str) -> set[str]:
    return set(re.findall(r"\bckpt_\w+", text))


def dashboard() -> Any:
    return json.loads((MONITORING / "dashboard.json").read_text())


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]:
        yield from group["rules"]


def test_rules_ask_for_what_is_written(written: dict[str, str]) -> None:
    asked = [(rule["alert"], metrics_in(rule["expr"])) for rule in rules()]
    assert len({name for name, _ in asked}) == len(asked) >= 9
    assert [name for name, metrics in asked if not metrics or not metrics <= written.keys()] == []


def test_panels_ask_for_what_is_written(written: dict[str, str]) -> None:
    panels = dashboard()["panels"]
    asked = [(panel["title"], metrics_in(target["expr"])) for panel in panels for target in panel["targets"]]
    assert [title for title, metrics in asked if not metrics or not metrics <= written.keys()] == []
    assert metrics_in(json.dumps(dashboard()["templating"])) <= written.keys()


def test_panels_have_a_place_and_a_number_of_their_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_metric_is_in_the_docs(written: dict[str, str]) -> None:
    page = (ROOT / "docs" / "scan.md").read_text()
    published = dict(re.findall(r"^\| `(ckpt_\w+)` \|[^|]*\| (.*) \|$", page, re.M))
    assert published == written
