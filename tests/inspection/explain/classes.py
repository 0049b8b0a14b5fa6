"""Which error classes exist where.

`python -m tests.inspection.explain.classes 4.2=JAR ... 'Delta 4.4.0=JAR'` records it.

Each JAR holds a list of error classes as JSON: spark-common-utils of a version, its Kafka connector, Delta. Recorded is
what the catalog names, with the text of the newest version, into `ckpt/inspection/explain/classes.json`.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from ckpt.inspection.explain.catalog import catalog

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


def main(pairs: list[str]) -> None:
    """Read the jars, oldest version first."""
    recorded: dict[str, dict[str, Any]] = {
        name: {"versions": [], "text": ""} for error in catalog() for name in error.classes
    }
    for pair in pairs:
        version, _, jar = pair.partition("=")
        for name, text in classes_in(Path(jar)).items():
            if name in recorded:
                versions = recorded[name]["versions"]
                recorded[name] = {"versions": [*versions, *({version} - {*versions})], "text": text}
    RECORDED.write_text(json.dumps(recorded, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
