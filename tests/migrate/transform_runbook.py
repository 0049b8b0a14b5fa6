"""``docs/runbooks/transform-with-state.md`` as it is now: ``python -m tests.migrate.transform_runbook``; takes long.

Runs the old query, the commands of the page in their order, fills in the blocks of code that it shows, and starts what
was generated. Prints the new query's answer as JSON. What differs from run to run is shown as it was once.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.migrate.continuity_new import replaced
from tests.support.cli import invoke
from tests.support.places import ROOT
from tests.support.spark.queries import drain, session

PAGE = ROOT / "docs" / "runbooks" / "transform-with-state.md"
_CONSOLE = re.compile(r"```console\n\$ (?P<words>[^\n]*)\n.*?```", re.S)
_CODE = re.compile(r"```python\n(.*?)```", re.S)
_MASKS = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "6f2d2b1c-5b57-4c3e-9d0b-2f1f6a3c7a55"),
    (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-11-21T17:00:00Z"),
)


def clicks(number: int, rows: list[tuple[str, int]]) -> None:
    """A file that the query is to read."""
    Path("clicks").mkdir(exist_ok=True)
    lines = (json.dumps({"user": user, "amount": amount}) for user, amount in rows)
    path = Path("clicks", f"{number}.json")
    path.write_text("\n".join(lines))
    os.utime(path, (time.time() - 100 + number,) * 2)


def old_query(spark: Any) -> None:
    """The query of the page, stopped after it has read all there is."""
    from pyspark.sql import functions as F

    clicks(0, [("ann", 5), ("bob", 1)])
    clicks(1, [("ann", 2), ("cid", 40)])
    rows = spark.readStream.schema("user STRING, amount BIGINT").option("maxFilesPerTrigger", 1).json("clicks")
    totals = rows.groupBy("user").agg(F.count("*"), F.sum("amount"))
    drain(totals, "checkpoints/clicks", "update", "noop")
    clicks(2, [("bob", 10), ("dan", 3)])


def fill_in(page: str) -> None:
    """Edit the generated files as the page says."""
    _, constants = _CODE.findall(page)
    file = Path("migrated/start.py")
    new = {name[0]: line for line in constants.splitlines() if (name := re.match(r"\w+", line))}
    file.write_text(replaced(file.read_text(), new))


def answer() -> list[list[Any]]:
    """What the new query wrote."""
    rows = [json.loads(line) for path in Path("totals").glob("*.json") for line in path.read_text().splitlines()]
    return sorted([row["user"], *list(row.values())[1:]] for row in rows)


def run(words: list[str]) -> str:
    if words[0] == "python":
        for _ in range(8):  # a machine under load may not start Python in the ten seconds that Spark waits
            ran = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
            if "Python worker failed to connect back" not in ran.stderr:
                break
        assert ran.returncode == 0, ran.stderr[-3000:]
        return ran.stdout
    result = invoke(*words[1:], "--quiet")
    return result.stdout + result.stderr


def page() -> tuple[str, list[list[Any]]]:
    """The page with the output of its commands as it is now, and the answer of the new query."""
    text = PAGE.read_text(encoding="utf-8")
    with TemporaryDirectory() as scratch, chdir(scratch):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = session(master="local[1]", spark__sql__shuffle__partitions="1")
        spark.sparkContext.setLogLevel("OFF")
        old_query(spark)

        def shown(block: re.Match[str]) -> str:
            words = shlex.split(block["words"])
            if words[0] == "python":
                fill_in(text)
            output = run(words).rstrip()
            for pattern, stable in _MASKS:
                output = re.sub(pattern, stable, output)
            return "\n".join(["```console", f"$ {block['words']}", *([output] if output else []), "```"])

        filled = _CONSOLE.sub(shown, text)
        spark.stop()
        return filled, answer()


if __name__ == "__main__":
    written, found = page()
    if sys.argv[1:] == ["--show"]:
        sys.stdout.write(json.dumps({"page": written, "answer": found}))
    else:
        PAGE.write_text(written, encoding="utf-8")
