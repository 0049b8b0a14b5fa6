"""A migrated file source is given its folder under another spelling.

What is found says which rows the generated `source_0` reads, when its path leads through a symbolic link, to
another folder, to a folder with some of the files; with few files and with more than code names; and which it reads
where paths are compared as they are spelled.
"""

import contextlib
import io
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, functions as F

from ckpt.migrate.generate.start import MOST_IN_CODE
from ckpt.migrate.transform import plan_transform
from ckpt.spark.export import write_transform
from tests.migrate.handoff.continuity import error_of, run
from tests.support.spark.queries import drain

NEW = 5  # rows, a file each, that come after the old query


def write_files(folder: Path, first: int, last: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, last):
        (folder / f"{number}.json").write_text(f'{{"id": {number}}}\n')


def loaded(place: Path) -> Any:
    """The generated `start.py` as a module."""
    spec = spec_from_file_location("start", place / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def migrated(spark: SparkSession, folder: Path, count: int) -> dict[str, Any]:
    """An old query has read `count` files; what the new one reads."""
    real, link = folder / "in put", folder / "link"
    write_files(real, 0, count)
    link.symlink_to(real)
    rows = spark.readStream.schema("id BIGINT").json(str(real)).groupBy("id").count()
    drain(rows, folder / "old", "update", "noop")
    write_files(real, count, count + NEW)
    write_transform(spark, plan_transform(str(folder / "old")), f"file:{folder}/new")
    start = loaded(folder / "new")
    start.SOURCE_0_SCHEMA = "id BIGINT"
    found: dict[str, Any] = {"format": start.SOURCE_0_FORMAT, "code": (folder / "new/start.py").stat().st_size}

    def read(path: Path) -> list[int]:
        start.SOURCE_0_PATH = str(path)
        batches = run(start.source_0(spark), folder / f"read-{len(found)}")
        return sorted(one for batch in batches.values() for one in batch)

    found["same"] = read(real)
    found["link"] = read(link)
    found["pattern"] = read(Path(f"{link}/*.json"))
    found["spelled"] = as_spelled(spark, start, link, folder)
    write_files(folder / "elsewhere", 0, 3)
    found["refused"] = error_of(lambda: read(folder / "elsewhere"))
    with contextlib.redirect_stderr(io.StringIO()) as said:
        start.SOURCE_0_SEEN = [*files_seen(spark, start), f"file:{folder}/gone/0.json"]
        found["some"] = read(real)
    found["said"] = said.getvalue()
    paths = [("s3a://bucket/in/a",), ("s3://bucket/in/b",), ("s3n://bucket/into/c",)]
    names = spark.createDataFrame(paths, "file string").select(
        start.below(F.col("file"), start.folders(spark, "s3n://bucket/in"))
    )
    found["s3"] = [row[0] for row in names.collect()]
    return found


def files_seen(spark: SparkSession, start: Any) -> list[str]:
    seen = start.SOURCE_0_SEEN
    return [row.file for row in spark.read.parquet(seen).collect()] if isinstance(seen, str) else list(seen)


def as_spelled(spark: SparkSession, start: Any, path: Path, folder: Path) -> list[int]:
    """What is read where the paths of files are compared as they are spelled."""
    rows: DataFrame = spark.readStream.schema("id BIGINT").json(str(path))
    batches = run(rows.where(~F.col("_metadata.file_path").isin(files_seen(spark, start))), folder / "read-spelled")
    return sorted(one for batch in batches.values() for one in batch)


COUNTS = {"few": 12, "many": MOST_IN_CODE + 1}
"""Few files, which code names, and many, which are written as Parquet."""


def found(spark: SparkSession, folder: Path, name: str) -> dict[str, Any]:
    """What a migrated query reads where there are so many files."""
    return migrated(spark, folder, COUNTS[name]) | {"count": COUNTS[name]}
