"""Maven packages that bring table formats to a Spark version; a version is missing where there is none for it yet."""

PACKAGE = "CKPT_PACKAGE"
"""The environment variable that names one to a worker."""
DELTA = {
    "3.5": "io.delta:delta-spark_2.12:3.3.3",
    "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
}
ICEBERG = {
    "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0",
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
}
KAFKA = {
    "3.5": {"spark": "3.5.0", "scala": "2.12", "token": "3.5.0"},
    "4.0": {"spark": "4.0.0"},
    "4.1": {"spark": "4.1.3"},
}
"""What differs from the connector's POM: a release of each that the registry has; later versions take that of 4.2."""


def jar(package: str) -> str:
    """Return the name of the file that a package is."""
    _, artifact, version = package.split(":")
    return f"{artifact}-{version}"
