"""Which Spark reads which checkpoint through ckpt: every stateful sample, exported under several versions.

    python -m tests.export.matrix --spark 4.0=/path/to/python --spark 4.2=/path/to/python ...

starts each interpreter in turn, which need not have ckpt installed, and records in ``matrix.json`` what came of each
unit: ``equal`` (its rows are those of ``answers.json``) or Spark's words. Nothing in it is written by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("matrix.json")
ROOT = Path(__file__).parents[2]


def read_all() -> dict[str, Any]:
    """Read every unit of every stateful sample with the pyspark of this interpreter."""
    import pyspark

    import ckpt
    from ckpt.export.columns import flat_columns
    from tests.export import rows
    from tests.spark.queries import session
    from tests.spark.samples import FOLDER

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    told: dict[str, str] = {}
    for sample in rows.ANSWERS:
        for unit in ckpt.state_units(ckpt.open_checkpoint(str(FOLDER / sample))):
            if unit.shown_elsewhere:
                continue
            name = f"{sample}: {unit.label}"
            try:
                frame = ckpt.read_state(spark, str(FOLDER / sample), **rows.choice(unit))
                columns = flat_columns({"type": "struct", "fields": _fields(unit.schema)})
                same = rows.content(frame) == rows.flattened(rows.answer(sample, unit), columns)
                told[name] = "equal" if same else "other rows"
            except Exception as error:
                told[name] = " ".join(str(error).split())[:300].replace(str(FOLDER), "")
    spark.stop()
    return {"spark": pyspark.__version__, "units": told}


def _fields(schema: Any) -> Any:
    return schema["fields"]


def main(interpreters: dict[str, str]) -> None:
    """Ask each interpreter, and record what it says."""
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for version, python in interpreters.items():
        done = subprocess.run(
            [python, "-m", "tests.export.matrix", "--here"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
        record[version] = json.loads(done.stdout.splitlines()[-1])
    RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["--here"]:
        sys.stdout.write(json.dumps(read_all()) + "\n")
    else:
        main(dict(word.split("=", 1) for word in words if word != "--spark"))
