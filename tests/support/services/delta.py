"""What brings Delta to the Spark that is installed: the jars that delta-spark's own helper names, and settings."""

import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from tests.support.services.maven import jars
from tests.support.services.process import Unavailable, spark_home


def delta_jars() -> list[Path]:
    """The jars for `spark.jars`, without those that Spark has, downloaded once. Raises Unavailable."""
    home = spark_home()
    try:
        minor, delta = ".".join(version("pyspark").split(".")[:2]), version("delta-spark")
    except PackageNotFoundError as error:
        raise Unavailable("delta-spark is not installed") from error
    own = {_artifact(jar) for jar in (home / "jars").glob("*.jar")}
    return [jar for jar in sorted(jars("delta", spark=minor, delta=delta).glob("*.jar")) if _artifact(jar) not in own]


def delta_settings() -> dict[str, str]:
    """What a session needs for Delta, as `spark__x__y`; nothing where delta-spark is not installed.

    The jars are those of `delta_jars`, or without Maven those that Spark's own Ivy finds.
    """
    if find_spec("delta") is None:
        return {}
    try:
        jars = {"spark__jars": ",".join(map(str, delta_jars()))}
    except Unavailable:
        from delta import configure_spark_with_delta_pip
        from pyspark.sql import SparkSession

        builder = configure_spark_with_delta_pip(SparkSession.builder)
        jars = {"spark__jars__packages": builder._options["spark.jars.packages"]}
    return {
        **jars,
        "spark__sql__extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark__sql__catalog__spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def _artifact(jar: Path) -> str:
    return re.sub(r"-[0-9][^-]*(-.*)?$", "", jar.stem)
