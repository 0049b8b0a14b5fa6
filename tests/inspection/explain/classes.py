"""Which error classes exist where: the suite `error-classes` of `python -m tests.record`.

Lists of error classes are JSON in jars: of spark-common-utils of a version, and of its Kafka connector; that of Delta
is read by `python -m tests.inspection.explain.classes 'Delta 4.4.0' JAR`. Recorded is what the catalog names, with the
text of the newest version, into `ckpt/inspection/explain/classes.json`.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ckpt.inspection.explain.catalog import catalog
from tests.record.suite import Whole
from tests.record.worker import Installed
from tests.support.services.kafka import connector_jars

RECORDED = Path(__file__).parents[3] / "ckpt" / "inspection" / "explain" / "classes.json"
_LISTS = ("error-conditions.json", "error-classes.json")


def classes_in(jar: Path) -> dict[str, str]:
    """Every error class of a jar, main and sub, with its text; a sub class has the text of its main class in front."""
    found: dict[str, str] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("error/") and name.endswith(_LISTS):
                for main, entry in json.loads(archive.read(name)).items():
                    if "message" in entry:
                        found |= _texts(main, entry)
    return found


def _texts(main: str, entry: dict[str, Any]) -> dict[str, str]:
    text = "\n".join(entry["message"])
    subs = {f"{main}.{name}": text + " " + "\n".join(sub["message"]) for name, sub in entry.get("subClass", {}).items()}
    return {main: text} | subs


def read() -> dict[str, dict[str, Any]]:
    """What is recorded of each error class that the catalog names: the versions that have it, and its text."""
    recorded = json.loads(RECORDED.read_text())
    return {name: recorded.get(name, {"versions": [], "text": ""}) for error in catalog() for name in error.classes}


def record(version: str, jars: Iterable[Path]) -> None:
    """Record the classes of a version."""
    recorded = read()
    newest = max(
        (known for entry in recorded.values() for known in entry["versions"] if known[0] == version[0]), default=""
    )
    for jar in jars:
        for name, text in classes_in(jar).items():
            if name in recorded:
                versions = recorded[name]["versions"]
                kept = recorded[name]["text"] if version < newest else text
                recorded[name] = {"versions": [*versions, *({version} - {*versions})], "text": kept}
    RECORDED.write_text(json.dumps(recorded, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


class Classes(Whole):
    """The error classes of a version; its connector may be of another release."""

    def wanted(self, minor: str) -> list[str]:
        return ["error classes"]

    def recorded(self, minor: str) -> list[str]:
        return ["error classes"] if any(minor in entry["versions"] for entry in read().values()) else []

    def ask_all(self, spark: Installed) -> None:
        record(spark.minor, [*spark.jars.glob("spark-common-utils_*.jar"), *connector_jars(spark.minor)])


SUITE = Classes()
if __name__ == "__main__":
    record(sys.argv[1], map(Path, sys.argv[2:]))
