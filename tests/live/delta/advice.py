"""Incidents of a Delta table, and what obeying the advice about them leaves in a sink."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.live.delta.cases import INCIDENTS, ROWS, Table
from tests.live.first_remedy import BATCHES, LATER, Answer, Query, advised, done


class FromDelta(Query):
    """Versions 0 to 2 of a table were read, a file of ten numbers each; those of version 3 wait."""

    def run_old(self) -> None:
        table = Table(self.spark, self.old)
        for version in range(BATCHES):
            table.append(version)
            assert self.read(self.old) == ""
        table.append(BATCHES)

    def read(self, place: Path, options: Mapping[str, str] | None = None, **how: Any) -> str:
        reader = self.spark.readStream.format("delta").options(**{"maxFilesPerTrigger": "1", **(options or {})})
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        rows = reader.load(str(place / "table"))
        return self.start(place, rows.select(rows[0].alias("id")), **how)

    def _append(self, place: Path, version: int) -> None:
        """Ten numbers more, whatever the column is called now."""
        table = str(place / "table")
        name = self.spark.read.format("delta").load(table).columns[0]
        rows = self.spark.range(version * ROWS, (version + 1) * ROWS, 1, 1).toDF(name)
        rows.write.format("delta").mode("append").save(table)

    def obeyed(self, name: str, incident: str, state: str, given: Mapping[str, str] | None = None) -> Answer:
        """What came of an incident; ``state`` says whether the newest batch is committed, and if not, written."""
        place = self.copied(name)
        if state != "committed":
            self.uncommit(place, written=state == "written")
        table = Table(self.spark, place)
        INCIDENTS[incident](table)
        before = self.times(place)
        advice = advised(place / "checkpoint", {"path": str(place / "table"), **(given or {})})
        ran = [line for number, one in enumerate(advice.commands()) for line in done(one, number, place)]
        how: Answer = {"checkpoint": "new" if advice.new_checkpoint else "checkpoint", "settings": advice.settings}
        errors = [self.read(place, {**(given or {}), **advice.options}, **how)]
        for version in LATER:
            self._append(place, version)
            with_it = version == LATER[0]
            options = {**(given or {}), **(advice.options if with_it else {})}
            how["settings"] = advice.settings if with_it else {}
            errors.append(self.read(place, options, **how))
        said = json.dumps({"code": advice.code, "remedy": str(advice.advice), **advice.takes})
        return {
            **json.loads(said.replace(str(place), "/place")),
            "ran": ran,
            "errors": errors,
            "before": before,
            "times": self.times(place),
        }
