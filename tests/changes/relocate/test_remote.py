"""``ckpt relocate`` where the checkpoint does not lie on a local path."""

import pytest

from ckpt.changes.relocate.plan import guess_spark_root
from ckpt.errors import UsageError
from tests.conftest import Ckpt
from tests.support.places import SAMPLES
from tests.support.services.fixtures import Upload


@pytest.mark.service
@pytest.mark.parametrize(("kind", "scheme"), [("s3_uri", "s3a"), ("hdfs_uri", "hdfs")])
def test_a_remote_checkpoint_is_relocated_and_put_back(
    kind: str, scheme: str, ckpt: Ckpt, request: pytest.FixtureRequest
) -> None:
    upload: Upload = request.getfixturevalue(kind)
    uri, options = upload(SAMPLES / "tws-changelog-4.0")
    words = [word for key, value in options.items() for word in ("--storage-options", f"{key}={value}")]
    to = f"{scheme}://{uri.partition('://')[2]}"
    before = ckpt("inspect", uri, *words, "-o", "json").json()
    assert "CKPT305" in {one["code"] for one in before["findings"]}

    done = ckpt("relocate", uri, "--to", to, "--apply", "--grace", 0, *words, "-o", "json")
    assert done.exit_code == 0, done.stdout
    inspected = ckpt("inspect", uri, *words, "-o", "json")
    assert inspected.exit_code == 0
    assert "CKPT305" not in {one["code"] for one in inspected.json()["findings"]}
    assert ckpt("relocate", uri, *words).exit_code == 0

    undone = ckpt("relocate", uri, "--undo", done.json()["backup"], "--grace", 0, *words)
    assert undone.exit_code == 0
    assert ckpt("inspect", uri, *words, "-o", "json").json()["findings"] == before["findings"]


@pytest.mark.parametrize(
    ("uri", "recorded", "root"),
    [
        ("/data/a%20b", "file:/old", "file:/data/a%20b"),
        ("file:///data/a%20b/", "file:/old", "file:/data/a b"),
        ("/dbfs/mnt/ck", "dbfs:/old", "dbfs:/mnt/ck"),
        ("s3://new/ck?region=x", "s3a://old/ck", "s3a://new/ck"),
        ("s3a://key:secret@new/ck", "file:/old", "s3a://new/ck"),
        ("hdfs://nn:8020/ck", "file:/old", "hdfs://nn:8020/ck"),
        ("abfs://box@account.dfs.core.windows.net/ck", "file:/o", "abfs://box@account.dfs.core.windows.net/ck"),
    ],
)
def test_by_default_it_is_opened_where_it_lies(uri: str, recorded: str, root: str) -> None:
    assert guess_spark_root(uri, [recorded]) == root


@pytest.mark.parametrize("uri", ["s3://bucket/ck", "memory://ck", "abfs://box/ck", "az://box/ck"])
def test_where_spark_would_spell_it_otherwise_it_has_to_be_named(uri: str) -> None:
    with pytest.raises(UsageError, match="`to`"):
        guess_spark_root(uri, ["file:/old"])
