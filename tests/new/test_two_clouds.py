"""Storage options for each of two places, whichever command makes the new checkpoint; no server is asked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ckpt
from ckpt.advice import Do, call, do, run, words
from ckpt.advice.spelling import SHELL
from ckpt.errors import StorageError, UsageError
from ckpt.new.placing import choose_new_options
from commands.render.blocks import TypedStorage
from tests.new.fill.test_import_state import exported
from tests.support.cli import invoke
from tests.support.places import ROOT, SAMPLES
from tests.support.services.s3 import S3Server

SAMPLE = str(SAMPLES / "aggregation-hdfs-4.2")
S3, OTHER_S3, MINIO = "s3://bucket/cp", "s3a://other/cp", "s3://bucket/cp?endpoint_override=minio:9000"
ONE, ONE_BLOB, TWO = (f"abfss://c@{account}.core.windows.net/cp" for account in ("one.dfs", "one.blob", "two.dfs"))
KEY, ACCESS, REGION, CLIENT = {"account_key": "k"}, {"access_key": "k"}, {"region": "r"}, {"client_id": "i"}

CASES: list[tuple[str, str, Mapping[str, str], Mapping[str, str] | None, Mapping[str, str] | str]] = [
    ("/cp", "/new", REGION, None, {}),
    ("/cp", S3, REGION, None, REGION),
    (S3, "/new", REGION, None, {}),
    (S3, "/new", {}, KEY, "is local"),
    (S3, OTHER_S3, REGION | ACCESS, None, REGION | ACCESS),
    (S3, OTHER_S3, ACCESS, REGION, REGION),
    (S3, ONE, ACCESS, None, {}),
    (S3, ONE, ACCESS, KEY, KEY),
    (ONE, "hdfs://host:8020/cp", KEY, None, {}),
    (ONE, ONE_BLOB, KEY, None, KEY),
    (ONE, TWO, KEY, None, "another"),
    (ONE, TWO, KEY, KEY, KEY),
    (ONE, TWO, KEY, {}, {}),
    (ONE, TWO, CLIENT, None, CLIENT),
    (MINIO, MINIO.replace("bucket", "other"), ACCESS, None, ACCESS),
    (MINIO, MINIO.replace("minio", "elsewhere"), ACCESS, None, "another"),
]


@pytest.mark.parametrize(("old", "new", "options", "own", "expected"), CASES)
def test_a_new_place_gets_its_own_options_or_those_that_fit(
    old: str, new: str, options: Mapping[str, str], own: Mapping[str, str] | None, expected: Mapping[str, str] | str
) -> None:
    if not isinstance(expected, str):
        assert choose_new_options(new, old, options, own) == expected
        return
    with pytest.raises(UsageError, match=f"{expected}.*|`to_storage_options`") as refused:
        choose_new_options(new, old, options, own)
    assert expected in str(refused.value)
    assert "`to_storage_options`" in str(refused.value)


@pytest.mark.parametrize("name", ["copy", "rewrite", "merge", "split", "import_state", "write_state", "evolve"])
def test_each_call_has_options_for_the_new_place_alone(name: str, tmp_path: Path) -> None:
    """No option of Azure is called so: the error names the argument that is for NEW."""
    call, parts = getattr(ckpt, name), ["key_key < 3", "key_key >= 3"]
    arguments: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "merge": ([[SAMPLE, SAMPLE], ONE], {}),
        "split": ([SAMPLE, [ONE, ONE.replace("/cp", "/other")]], {"where": parts}),
        "import_state": ([str(tmp_path / "export"), ONE], {"like": SAMPLE}),
        "write_state": ([{"operator 0": ckpt.read_state_arrow(SAMPLE)}, ONE], {"like": SAMPLE}),
        "evolve": ([SAMPLE, ONE], {"to": str(ROOT / "docs" / "query.json")}),
    }
    if name == "import_state":
        exported(Path(SAMPLE), tmp_path / "export")
    places, more = arguments.get(name, ([SAMPLE, ONE], {}))
    for to, unknown in (({"nonsense": "1"}, "`to_storage_options` nonsense"), (None, "`to_storage_options` region")):
        with pytest.raises(UsageError, match=unknown):
            call(*places, **more, storage_options=REGION, to_storage_options=to)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (f"copy {ONE} {TWO} --storage-options account_key=SECRET1", "--storage-options account_key is for the account"),
        (f"copy {SAMPLE} /new --to-storage-options account_key=SECRET1", "--to-storage-options is for a remote NEW"),
        (f"rewrite {SAMPLE} {ONE} --to-storage-options SECRET1", "--to-storage-options: write it as key=value"),
        (f"evolve {SAMPLE} --in-place --to query.json --to-storage-options a=SECRET1", "No such file|is for NEW"),
        (f"evolve {SAMPLE} --undo backup --to-storage-options a=SECRET1", "--undo restores everything: omit"),
        (f"merge {S3} {S3}2 {ONE} --to-storage-option a=SECRET1", "it is --to-storage-options"),
        (f"relocate {SAMPLE} --to {ONE} --to-storage-options a=SECRET1", "it only opens CHECKPOINT, even with --to"),
        (f"copy {S3} {ONE} --storage-options account_key=SECRET1", "; --to-storage-options is for NEW"),
        (f"split {SAMPLE} {ONE}1 {ONE}2 --where a --where b --to-storage-options x=SECRET1", "options x is unknown"),
    ],
)
def test_a_command_refuses_them_by_their_names_and_shows_no_secret(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "query.json").write_bytes((ROOT / "docs" / "query.json").read_bytes())
    monkeypatch.chdir(tmp_path)
    result = invoke(*words.split())
    assert result.exit_code == 2
    assert any(each in result.stderr for each in said.split("|"))
    assert "SECRET1" not in result.output


@pytest.mark.parametrize(
    ("old", "new", "place", "wanted"),
    [
        (S3, ONE, (ONE,), "--storage-options 'account_key=***'"),
        (S3, ONE, (f"{ONE}/0",), "--storage-options 'account_key=***'"),
        (S3, ONE, (S3,), "--storage-options region=r"),
        (S3, ONE, (S3, ONE), "--storage-options region=r --to-storage-options 'account_key=***'"),
        ("/cp", ONE, ("/cp", ONE), "--storage-options region=r --to-storage-options 'account_key=***'"),
        (S3, ONE, ("/cp",), ""),
        (S3, None, (S3,), "--storage-options region=r"),
    ],
)
def test_advised_commands_repeat_the_options_without_secrets(
    old: str, new: str | None, place: tuple[str, ...], wanted: str
) -> None:
    typed = TypedStorage(old, (new,) if new else (), ("region=r",), ("account_key=SECRET1",) if new else ())
    started = do(Do.START, words("Start it.")).or_(run(call("inspect", *place), words("Look.")))
    (look,) = typed.repeat(started).alternatives
    assert look.call is not None
    assert SHELL.call(look.call) == " ".join(filter(None, ("ckpt inspect", *place, wanted)))
    assert "SECRET1" not in str(look.words)


def test_without_own_options_the_new_place_repeats_those_that_it_was_given() -> None:
    look = run(call("inspect", OTHER_S3), words("Look."))
    for old, shared in ((S3, True), ("/cp", True), (ONE, False)):
        repeated = TypedStorage(old, (OTHER_S3,), ("region=r",)).repeat(look).call
        assert repeated is not None
        assert (dict(repeated.options) == {"storage_options": ("region=r",)}) is shared


@pytest.mark.service
def test_a_bucket_that_is_missing_is_not_taken_for_files_that_the_query_deletes(s3: S3Server) -> None:
    with pytest.raises(StorageError, match=r"there is no such bucket; check its name and region$"):
        ckpt.copy(SAMPLE, "s3://no-such-bucket/cp", storage_options=s3.options)
