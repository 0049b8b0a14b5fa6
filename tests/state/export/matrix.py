"""Which Spark reads which checkpoint through ckpt: every stateful sample, exported under several versions.

    python -m tests.state.export.matrix --spark 4.0=/path/to/python --spark 4.2=/path/to/python ...

starts each interpreter in turn, which need not have ckpt installed, and records in ``matrix.json`` what came of each
unit, and of the frame of initial state of each operator: ``equal`` (its rows are those of
``answers.json``) or Spark's words. Nothing in it is written by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ckpt.state.reading.units import StateUnit

RECORD = Path(__file__).with_name("matrix.json")
ROOT = Path(__file__).parents[3]


def read_all() -> dict[str, Any]:
    """Read every unit of every stateful sample, and all of each operator, with the pyspark of this interpreter."""
    import pyspark

    import ckpt
    from tests.state.export import rows
    from tests.support.spark.queries import session
    from tests.support.spark.samples import FOLDER

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    told: dict[str, dict[str, str]] = {"units": {}, "initial": {}}
    for sample in rows.ANSWERS:
        units = [u for u in ckpt.state_units(ckpt.open_checkpoint(str(FOLDER / sample))) if not u.shown_elsewhere]
        for unit in units:
            told["units"][f"{sample}: {unit.label}"] = _outcome(partial(_unit_is_equal, spark, sample, unit))
        for operator in sorted({unit.operator for unit in units}):
            own = [unit for unit in units if unit.operator == operator]
            name = f"{sample}: operator {operator}"
            told["initial"][name] = _outcome(partial(_initial_is_equal, spark, sample, own))
    spark.stop()
    return {"spark": pyspark.__version__, **told}


def _outcome(read: Callable[[], bool]) -> str:
    """What came of a reading: ``equal``, or what was said."""
    from tests.support.spark.samples import FOLDER

    try:
        return "equal" if read() else "other rows"
    except Exception as error:
        return " ".join(str(error).split())[:300].replace(str(FOLDER), "")


def _unit_is_equal(spark: Any, sample: str, unit: StateUnit) -> bool:
    import ckpt
    from ckpt.state.reading.columns import flat_columns
    from tests.state.export import rows
    from tests.support.spark.samples import FOLDER

    frame = ckpt.read_state(spark, str(FOLDER / sample), **rows.choice(unit))
    columns = flat_columns({"type": "struct", "fields": _fields(unit.schema)})
    return rows.content(frame) == rows.flattened(rows.answer(sample, unit), columns)


def _initial_is_equal(spark: Any, sample: str, units: list[StateUnit]) -> bool:
    import ckpt
    from tests.state.export import grouped
    from tests.support.spark.samples import FOLDER

    frame = ckpt.read_initial_state(spark, str(FOLDER / sample), operator=units[0].operator)
    return grouped.found_in(frame) == grouped.wanted_of(sample, units)


def _fields(schema: Any) -> Any:
    return schema["fields"]


def main(interpreters: dict[str, str]) -> None:
    """Ask each interpreter, and record what it says."""
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for version, python in interpreters.items():
        done = subprocess.run(
            [python, "-m", "tests.state.export.matrix", "--here"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        record[version] = json.loads(done.stdout.splitlines()[-1])
    RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["--here"]:
        sys.stdout.write(json.dumps(read_all()) + "\n")
    else:
        main(dict(word.split("=", 1) for word in words if word != "--spark"))
