"""The files that a file source has read: what their names say, and the part of ``start.py`` that leaves them out."""

from collections.abc import Sequence
from posixpath import basename, splitext

MOST_IN_CODE = 300
"""How many files ``start.py`` names itself; more are written as Parquet beside it."""

_COMPRESSED = (".gz", ".bz2", ".snappy", ".zst", ".lz4", ".deflate", ".xz")
_FORMATS = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".orc": "orc",
    ".avro": "avro",
    ".txt": "text",
    ".xml": "xml",
}


def format_of(files: Sequence[str]) -> str:
    """The format of the reader, where the names of all files agree; otherwise empty."""
    formats = {_FORMATS.get(_extension_of(file)) for file in files}
    return next(iter(formats)) or "" if len(formats) == 1 else ""


def _extension_of(file: str) -> str:
    name, extension = splitext(basename(file).lower())
    return splitext(name)[1] if extension in _COMPRESSED else extension


UNREAD = '''

def folders(spark: SparkSession, path: str) -> list[str]:
    """A folder as Spark spells the paths of its files, and without symbolic links."""
    jvm: Any = spark.sparkContext._jvm
    path = re.split(r"/[^/]*[*?\\[{]", path)[0]  # what a pattern begins with
    found = jvm.org.apache.hadoop.fs.Path(path)
    if not re.match("s3[an]?:", path):
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        found = found.getFileSystem(conf).makeQualified(found)
    paths = [found]
    if found.toUri().getScheme() == "file":
        real = os.path.realpath(found.toUri().getPath())
        paths.append(jvm.org.apache.hadoop.fs.Path(f"file:{real}"))
    names = [
        re.sub("^(file|hdfs):///", r"\\1:/", one.toUri().toString()) for one in paths
    ]
    return [re.sub("^s3[an]:", "s3:", name.rstrip("/")) for name in names]


def below(file: Column, tops: list[str]) -> Column:
    """The name of a file in one of these folders; NULL where it is elsewhere."""
    file = F.regexp_replace(file, "^s3[an]:", "s3:")
    names = []
    for top in tops:
        name = file.substr(F.lit(len(top) + 2), F.length(file))
        names.append(F.when(file.startswith(f"{top}/"), name))
    return F.coalesce(*names)


def unread(
    spark: SparkSession, rows: DataFrame, path: str, seen: Sequence[str] | str
) -> DataFrame:
    """Leave out the files that the old query has read, however the way to them is spelled."""
    tops = folders(spark, path)
    if isinstance(seen, str):
        files = spark.read.parquet(seen)
    else:
        files = spark.createDataFrame([(file,) for file in seen], "file string")
    files = files.select("file", below(F.col("file"), tops).alias("ckpt_file"))
    counts = files.selectExpr("count(*)", "count(ckpt_file)", "min(file)").first()
    if counts is not None and counts[1] == 0:
        raise StartError(
            f"no file that the old query has read is in {path}, so all would be read again: "
            f"name the folder as the old query did, which read {counts[2]}"
        )
    if counts is not None and counts[1] < counts[0]:
        elsewhere = files.where("ckpt_file IS NULL").first()
        print(
            f"start.py: {counts[0] - counts[1]} files that the old query has read are not in "
            f"{path}, such as {elsewhere and elsewhere[0]}: if they are there under another "
            "name, they are read again",
            file=sys.stderr,
        )
    name = F.col("_metadata.file_path")
    lost = F.raise_error(F.concat(name, F.lit(f" is not in {tops[0]}"))).cast("string")
    named = rows.select("*", F.coalesce(below(name, tops), lost).alias("ckpt_file"))
    files = files.where("ckpt_file IS NOT NULL").select("ckpt_file").distinct()
    return named.join(files, "ckpt_file", "left_anti").drop("ckpt_file")'''
"""Spark would take a file for a new one if the way to it is spelled in another way than in the old query."""
