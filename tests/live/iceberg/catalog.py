"""Make a query from one Iceberg table of a JDBC catalog into another, and keep its checkpoint and their metadata.

    python tests/live/iceberg/catalog.py FOLDER JARS [gzip]

with the Python of Spark 4.0 and the jars of Iceberg and of SQLite, once for tables as they are, and once for tables
whose metadata is compressed and deleted after a while; `tar` of `checkpoint*` and of every `metadata/*metadata.json`
in FOLDER is `catalog.tar.xz`.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

_SMALL = {
    "write.metadata.compression-codec": "gzip",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "2",
}


def main(folder: Path, jars: str, *compressed: str) -> None:
    """Three batches, and a snapshot that waits."""
    catalog, name = "spark.sql.catalog.jdbc", "small" if compressed else "plain"
    builder = SparkSession.builder.master("local[1]").config("spark.jars", jars)
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        ".uri": f"jdbc:sqlite:{folder}/catalog.db",
        ".jdbc.schema-version": "V1",
        ".warehouse": str(folder),
    }
    for key, value in settings.items():
        builder = builder.config(catalog + key, value)
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS jdbc.db")
    pairs = ", ".join(f"'{key}'='{value}'" for key, value in _SMALL.items())
    for table in (name, f"{name}_sink"):
        spark.sql(
            f"CREATE TABLE jdbc.db.{table} (id BIGINT) USING iceberg{f' TBLPROPERTIES ({pairs})' if compressed else ''}"
        )
    for batch in range(4):
        spark.range(batch * 10, batch * 10 + 10, 1, 1).writeTo(f"jdbc.db.{name}").append()
        if batch < 3:
            rows = spark.readStream.table(f"jdbc.db.{name}").writeStream.trigger(availableNow=True)
            rows = rows.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
            rows.toTable(f"jdbc.db.{name}_sink").awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
