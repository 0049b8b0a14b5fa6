"""Which spellings mean the same place."""

from pathlib import Path

import pytest

from ckpt.storage.locations import is_inside, is_same_place


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ("/x/cp/bak", "/x/cp"),
        ("/x/cp", "/x/cp/"),
        ("/x//cp/./bak", "/x/cp"),
        ("/x/y/../cp/bak", "/x/cp"),
        ("file:/x/cp/bak", "/x/cp"),
        ("FILE:///x/cp/bak", "file://localhost/x/cp/"),
        ("file:///x/c%70/bak", "/x/cp"),
        ("/x/c%70/bak", "file:///x/c%70"),
        ("s3://b/cp/bak", "s3a://b/cp"),
        ("s3n://b/cp/bak", "s3://b/cp/"),
        ("S3://B//cp//bak", "s3://b/cp"),
        ("s3://key:secret@b/cp/bak?region=eu-west-1", "s3a://b/cp"),
        ("s3://b/other/../cp/bak", "s3://b/cp"),
        ("s3://b/cp/../bak", "s3://b/cp"),  # to the letter: a key that begins with "cp/"
        ("s3://b/bak", "s3://b"),
        ("gcs://b/cp/bak", "gs://b/cp"),
        ("gs://anonymous@b/cp/bak", "gs://b/cp"),
        ("abfss://c@a.dfs.core.windows.net/cp/bak", "wasbs://c@a.blob.core.windows.net/cp"),
        ("wasbs://c@a.blob.core.windows.net/cp/bak", "abfss://C@A.dfs.core.windows.net/cp"),
        ("az://c/cp/bak", "abfs://c@a.dfs.core.windows.net/cp"),
        ("abfs://c/cp/bak?account_name=a", "abfss://c@a.dfs.core.windows.net/cp"),
        ("hdfs:///cp/bak", "hdfs://nn:8020/cp"),
        ("hdfs://nn:8020/cp/bak", "hdfs:///cp"),
        ("hdfs://NN:8020/cp/bak", "hdfs://nn:8020/cp"),
        ("hdfs://user@nn:8020/cp/bak", "hdfs://nn:8020/cp"),
        ("hdfs://prod/cp/bak", "hdfs://nn:8020/cp"),
        ("viewfs:///cp/bak", "hdfs://nn:8020/cp"),
        ("dbfs:/x/bak", "/dbfs/x"),
        ("/dbfs/x/bak", "dbfs:///x"),
        ("file:/dbfs/x/bak", "dbfs:/x"),
        ("dbfs:/Volumes/main/x/bak", "/Volumes/main/x"),
        ("memory://cp/bak", "memory://cp"),
        ("memory:///cp/bak", "memory://cp"),
    ],
)
def test_a_place_in_a_folder_is_seen_however_it_is_spelled(place: str, folder: str) -> None:
    assert is_inside(place, folder)


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ("/x/cp.bak", "/x/cp"),
        ("/x", "/x/cp"),
        ("/x/c%70/bak", "/x/cp"),
        ("s3://b/cp.bak", "s3://b/cp"),
        ("s3://b/CP/bak", "s3://b/cp"),
        ("s3://b/c%70/bak", "s3://b/cp"),
        ("s3://other/cp/bak", "s3://b/cp"),
        ("gs://b/cp/bak", "s3://b/cp"),
        ("/cp/bak", "s3://b/cp"),
        ("abfss://d@a.dfs.core.windows.net/cp/bak", "abfss://c@a.dfs.core.windows.net/cp"),
        ("abfss://c@z.dfs.core.windows.net/cp/bak", "abfss://c@a.dfs.core.windows.net/cp"),
        ("hdfs://prod/cp/bak", "hdfs://spare/cp"),
        ("hdfs://nn:8020/cp/bak", "hdfs://other:8020/cp"),
        ("hdfs:///bak", "hdfs://nn:8020/cp"),
        ("dbfs:/y/bak", "/dbfs/x"),
        ("/x/bak", "dbfs:/x"),
        ("memory://cp-bak", "memory://cp"),
    ],
)
def test_another_place_is_none_of_it(place: str, folder: str) -> None:
    assert not is_inside(place, folder)


def test_links_and_relative_paths_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cp").mkdir()
    (tmp_path / "link").symlink_to("cp")
    (tmp_path / "cp" / "out").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path / "cp")

    assert is_inside(str(tmp_path / "link" / "bak"), str(tmp_path / "cp"))
    assert is_inside(str(tmp_path / "cp" / "bak"), str(tmp_path / "link"))
    assert is_inside("bak", f"file://{tmp_path}/link")
    assert is_inside("../cp/bak", ".")
    assert not is_inside("../bak", ".")


def test_a_recorded_path_is_taken_to_the_letter_and_looked_for_nowhere(tmp_path: Path) -> None:
    (tmp_path / "cp").mkdir()
    (tmp_path / "link").symlink_to("cp")

    assert is_same_place("file:/data/my cp", "file:/data/my%20cp")
    assert not is_same_place("file:/data/my%20cp", "/data/my cp")
    assert is_same_place(f"file:{tmp_path}/cp", f"{tmp_path}/link")
    assert not is_same_place(f"file:{tmp_path}/link", f"{tmp_path}/cp")
    assert is_same_place("hdfs://old:8020/cp", "hdfs://new:8020/cp")
    assert is_same_place("abfss://c@a.dfs.core.windows.net/cp", "az://c/cp")
