"""``ckpt offsets set`` and ``import`` behind a network: planned, set and taken back as on a local path."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ckpt
from tests.support.places import SAMPLES
from tests.support.services.fixtures import Upload


@pytest.mark.parametrize(
    "kind", ["memory_uri", *(pytest.param(one, marks=pytest.mark.service) for one in ("s3_uri", "hdfs_uri"))]
)
def test_offsets_are_set_and_restored(kind: str, request: pytest.FixtureRequest, ckpt: Ckpt, tmp_path: Path) -> None:
    upload: Upload = request.getfixturevalue(kind)
    uri, options = upload(SAMPLES / "kafka-4.2")
    given = [word for key, value in options.items() for word in ("--storage-options", f"{key}={value}")]

    def shown() -> Any:
        return ckpt("offsets", "show", uri, *given, "-o", "json").json()["sources"][0]["to"]

    before = shown()
    file = tmp_path / "offsets.json"
    file.write_text(ckpt("offsets", "export", uri, *given).stdout)
    now = ("--apply", "--grace", 0, "--accept-skip", "--accept-replay", "-o", "json", *given)
    backup = f"{uri}-backup"
    done = ckpt("offsets", "set", uri, "--shift", "orders/0=-5", "--backup", backup, *now)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert shown() == {"orders": {**before["orders"], "0": before["orders"]["0"] - 5}}
    imported = ckpt("offsets", "import", uri, file, "--backup", f"{uri}-second", *now)
    assert imported.json()["applied"], imported.stdout
    assert shown() == before
    for name in ("second", "backup"):
        undone = ckpt("offsets", "set", uri, "--undo", f"{uri}-{name}", "--grace", 0, "-o", "json", *given)
        assert undone.json()["undone"], undone.stdout
    assert json.dumps(shown()) == json.dumps(before)
