"""Records what Spark makes of random rows: their bytes, as state stores them, and their values.

``python -m tests.formats.rows.record`` writes ``recorded/rows.zip``: for each case the schema with the bytes of the
rows, and their values in Arrow. Takes a minute, with the pyspark of this interpreter.
"""

from __future__ import annotations

import base64
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.formats.rows.schemas import Case, cases

RECORD = Path(__file__).with_name("recorded") / "rows.zip"
CASES = 200


def ask(spark: Any, case: Case) -> dict[str, Any]:
    """Schema and bytes of the rows of a case, and their values."""
    frame = spark.sql(case.sql)
    plan = frame._jdf.queryExecution().executedPlan()
    found = [bytes(row.getBytes()) for row in plan.executeCollect()]
    return {
        "spark": spark.version,
        "schema": json.loads(frame.schema.json()),
        "rows": [base64.b64encode(row).decode() for row in found],
        "values": frame.selectExpr(*case.readable).toArrow(),
    }


def recorded() -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    with zipfile.ZipFile(RECORD) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".json"):
                values = archive.read(name.replace(".json", ".arrow"))
                yield json.loads(archive.read(name)) | {"values": pa.ipc.open_file(values).read_all()}


def main() -> None:
    """Ask Spark, and write the record."""
    import pyarrow as pa

    from tests.support.spark.queries import session

    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    RECORD.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(RECORD, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number, case in enumerate(cases(CASES)):
            found = ask(spark, case)
            values = found.pop("values")
            archive.writestr(zipfile.ZipInfo(f"{number:03}.json"), json.dumps(found), zipfile.ZIP_DEFLATED)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_file(sink, values.schema) as writer:
                writer.write_table(values)
            archive.writestr(zipfile.ZipInfo(f"{number:03}.arrow"), sink.getvalue().to_pybytes(), zipfile.ZIP_DEFLATED)
    spark.stop()
    sys.stdout.write(f"{CASES} cases, {RECORD.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
