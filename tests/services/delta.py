"""The jars that bring Delta to the Spark that is installed, those that delta-spark's own helper names."""

import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from tests.services.maven import jars
from tests.services.process import Unavailable


def delta_jars() -> list[Path]:
    """The jars for `spark.jars`, without those that Spark has, downloaded once. Raises Unavailable."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise Unavailable("pyspark is not installed")
    try:
        minor, delta = ".".join(version("pyspark").split(".")[:2]), version("delta-spark")
    except PackageNotFoundError as error:
        raise Unavailable("delta-spark is not installed") from error
    own = {_artifact(jar) for jar in (Path(found.origin).parent / "jars").glob("*.jar")}
    return [jar for jar in sorted(jars("delta", spark=minor, delta=delta).glob("*.jar")) if _artifact(jar) not in own]


def _artifact(jar: Path) -> str:
    return re.sub(r"-[0-9][^-]*(-.*)?$", "", jar.stem)
