"""Keys and tokens never leave: not in a line, not in a message that quotes a library, not in a file that is written."""

import json
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path

import pytest
from py4j.protocol import Py4JError

from ckpt.changes.relocate.plan import read_spark_root
from ckpt.errors import CkptError, UsageError
from ckpt.formats.text import quoted
from ckpt.migrate.handoff.plan import handoff
from ckpt.migrate.text import plain
from ckpt.spark.installed import SparkFailed
from ckpt.spark.jobs import translate_failures
from ckpt.storage import open_storage
from ckpt.storage.errors import explain
from ckpt.texts import mask_json, mask_secrets, quote_path
from tests.conftest import OUTPUTS, Ckpt, CopyOf
from tests.support.places import some_quick
from tests.support.spark.live import EVERY_CASE

SECRET = "wJalrXUtnFEMI7MDENGbPxRfiCY"

HOLD_ONE = [
    f"s3://KEY:{SECRET}@bucket/x",
    f"s3:/KEY:{SECRET}@bucket/x",
    f"s3a://KEY:{SECRET[:9]}/{SECRET[9:]}@bucket/x",
    f"sftp://user:{SECRET}@host:22/x",
    f"s3://bucket/x?region=r&secret_key={SECRET}",
    f"s3://bucket/x?secret%5Fkey={SECRET}",
    f"s3://bucket/x?SECRET_KEY={SECRET}",
    f"abfs://box@account/x?sas_token=sv=2020&sig={SECRET}",
    f"https://account.blob.core.windows.net/box/x?sv=2022&se=2030&sig={SECRET}%3D&sp=r",
    f"https://bucket.s3.amazonaws.com/x?X-Amz-Signature={SECRET}&x=y",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET}==",
    f"cannot open 's3a://KEY:{SECRET}@bucket' (403)",
    f"fs.s3a.secret.key={SECRET}",
    f"fs.azure.account.key.a.dfs.core.windows.net={SECRET}",
    f"/here/fs.s3a.secret.key={SECRET}",
    f'400: {{"access_token": "{SECRET}", "type": "x"}}',
    f"Authorization: Bearer {SECRET}",
]
# The grammar of what logs, offsets and settings show: names x what is between x quotes.
NAMES = [
    *("password", "sasl.password", "kafka.ssl.key.password", "ssl_keystore_password", "DB_PASSWORD", "passwd", "pwd"),
    *("fs.s3a.secret.key", "fs.s3a.access.key", "fs.s3a.session.token", "aws_secret_access_key", "AWS_SESSION_TOKEN"),
    *("fs.azure.account.key.a.dfs.core.windows.net", "fs.azure.sas.box.a.blob.core.windows.net", "AccountKey"),
    *("fs.azure.account.oauth2.client.secret", "client_secret", "clientSecret", "private_key", "api-key", "apiKey"),
    *("spark.hadoop.fs.s3a.bucket.x.secret.key", "sasl.jaas.config", "bearerToken", "access_token", "sig", "sas"),
    *("-Dpassword", "-Djavax.net.ssl.keyStorePassword", "pw", "schema.registry.basic.auth.user.info", "pass"),
    *("db_pass", "dbPass"),
    *("Authorization", "Proxy-Authorization", "X-Amz-Security-Token", "X-Amz-Signature", "ssl.truststore.password"),
]
BETWEEN = ["=", " = ", ":", ": ", " : ", " -> ", "->", " => "]
QUOTED = [("{}", "{}"), ("{}", '"{}"'), ("{}", "'{}'"), ('"{}"', '"{}"'), ("'{}'", "'{}'")]
QUOTED += [('\\"{}\\"', '\\"{}\\"'), ('\\\\\\"{}\\\\\\"', '\\\\\\"{}\\\\\\"'), ("\\'{}\\'", "\\'{}\\'")]
OTHER_FORMS = [
    *("--{} {}", "({},{})", '("{}", "{}")', "('{}', '{}')", '(\\"{}\\", \\"{}\\")'),
    *("<{}>{}</x>", "<name>{}</name><value>{}</value>", "<name>{}</name>\n  <value>{}</value>"),
    *("{} = '''{}'''", '{}="""{}"""', "{}     =     {}"),
    *('.option("{}", "{}")', "Map({} -> {}, b -> c)", "{{'b': 'c', '{}': '{}'}}", 'x required a="b" {}="{}";'),
]
AROUND = ["{}", "a=b, {}, c=d", "26/11/24 10:00:00 ERROR X: {}", "[{}]", "https://host/x?{}&y=z", "jdbc:x://h/d;{};a=b"]
VALUES = [f"A1{SECRET}", f"a.b/{SECRET}+c==", f"p@ss:{SECRET}!", f"{SECRET[:9]}$`{SECRET[9:]}0x"]
# A name that only blanks keep apart from its value.
APART = [name for name in NAMES if "." in name or name.lower().endswith(("passwd", "pwd", "password"))]
APART_FORMS = ["{} {}", "{}\t{}", '{} "{}"', "{} '{}'", "{}     {}", '"{}" "{}"']
SCHEMES = [
    "Token ",
    "ApiKey ",
    "Basic ",
    "Bearer ",
    "SharedKey account:",
    "AWS4-HMAC-SHA256 Credential=AK",
    "Negotiate ",
]
BY_FORM = [
    f"https://user:{SECRET}@host/x",
    f"https://{SECRET}@github.com/x",
    f"jdbc:oracle:thin:scott/{SECRET}@host:1521/x",
    f"mongodb+srv://u:{SECRET}@cluster/x?a=b",
    f"Basic {SECRET}0=",
    f"Bearer {SECRET}",
    f"eyJhbGciOiJIUzI1NiJ9.{SECRET}.{SECRET}",
    f"redirect=https%3A%2F%2Fa%2Fx%3Fsv%3D1%26sig%3D{SECRET}%253D%26x%3Dy",
    f"-----BEGIN PRIVATE KEY-----\\n{SECRET}\\n-----END PRIVATE KEY-----",
    f"url=https://a/x?sig={SECRET}",
    f'x.setPassword("{SECRET}").y()',
    f"x(password('{SECRET}'))",
    f'Authorization: Token token="{SECRET}", nonce="{SECRET}"',
    *(form + SECRET for form in ("curl -u u:", "curl -uu:", "curl --user u:", "curl -u 'u:", 'curl --proxy-user "u:')),
    *(f"CREATE USER u {by} '{SECRET}'" for by in ("identified by", "IDENTIFIED  BY")),
    *(f"user:{value}@{host}" for value in VALUES for host in ("host", "host:5432/x", "db.example.com", "10.0.0.1")),
]


def generated() -> Iterator[str]:
    """Every name with everything that can be between it and its value, in all quotes; values and frames in turn."""
    values, around = cycle(VALUES), cycle(AROUND)
    for name in NAMES:
        for between, (quoted_name, quoted_value) in product(BETWEEN, QUOTED):
            pair = quoted_name.format(name) + between + quoted_value.format(next(values).replace("`", ""))
            yield next(around).replace("{}", pair)
        for form in OTHER_FORMS:
            yield next(around).replace("{}", form.format(name, next(values)))
    for name, form in product(APART, APART_FORMS):
        yield next(around).replace("{}", form.format(name, next(values).replace("`", "")))
    for scheme, (name, between) in product(
        SCHEMES, [("'{}'", ": "), ("'{}'", "="), ("'{}'", '": "'), ("'{}'", "' -> '"), ("{}", ": "), ("{}", "=")]
    ):
        yield next(around).replace("{}", name.format(f"Authorization{between}{scheme}{SECRET}"))
    for text, frame in product(BY_FORM, AROUND):
        yield frame.replace("{}", text)


HARMLESS = [
    *("DefaultAzureCredential: failed to get a token", "Credential: expired"),
    *("InvalidToken: token (HDFS_DELEGATION_TOKEN) cannot be found in cache", "Unexpected token: SELECT at line 1"),
    *("PasswordException: the file is protected", "ssl.key.password = null", "ssl.truststore.password = [hidden]"),
    *("fs.s3a.aws.credentials.provider=org.apache.hadoop.X", "sasl.oauthbearer.token.endpoint.url = https://a/b"),
    *("spark.redaction.regex=(?i)x", '{"token":{"0":5,"1":7}}', '{"password":{"0":306}}', "secret/0=306", "token/0=5"),
    *("maxTokens=5", "signature: no such method", "a key -> value map", "by key: value", "primary key = id"),
    *("Authentication failed: bad user", "Basic authentication is off", "org.apache.kafka.common.security.X: y"),
    *("the password file", "a password is wrong", "Second pass through the log", "pass 2 of 3"),
    *("pass=2", "pass: failed"),
    *("token expired", "Unexpected token 'SELECT'", "partition key 5", "a secret that nobody has", "no passwd entry"),
    *("the option kafka.ssl.key.password is not set", "column user.password cannot be resolved", "password (SASL)"),
    *("batch identified by its id", "delta:events@v12", "io.delta:delta-spark_2.13:4.0@jar", "x:Provider@1a2b3c4d"),
    *("host:8020/a@b", "docker -u root", "sort -u x", "by user: somebody", "a password, user or key", "-Dfile=x"),
    *('getPassword("a.b")', 'token("a")'),
    *("StructType(StructField(token,StringType,true))", "['token', 'password']", '["secret","b"]', "tokens: 5"),
]
HOLD_NONE = [
    *HARMLESS,
    "s3://bucket/x?region=r&endpoint_override=127.0.0.1:1",
    "abfss://container@account.dfs.core.windows.net/x",
    "hdfs://host:8020/a@b",
    "file:///data/a:b@c",
    "/in/token=5/part-0.json",
    '{"topic":{"0":5}}',
    "spark.sql.shuffle.partitions=200",
]


@pytest.mark.parametrize("text", HOLD_ONE)
def test_a_secret_is_masked_wherever_it_is(text: str) -> None:
    for shown in (mask_secrets(text), quote_path(text), plain(text), mask_json(json.dumps({"x": [text]}))):
        assert SECRET[:9] not in shown
        assert SECRET[9:] not in shown
        assert "***" in shown
    assert json.loads(mask_json(json.dumps({text: text}, indent=2))) == {mask_secrets(text): mask_secrets(text)}
    assert mask_secrets(mask_secrets(text)) == mask_secrets(text)


def test_a_secret_is_masked_in_every_form_that_logs_and_offsets_have() -> None:
    """Raw, in JSON, and twice in JSON; each is masked once and for all."""
    texts = list(generated())
    assert len(texts) > 1500
    for text in texts:
        once, twice = json.dumps({"x": text}), json.dumps([json.dumps({"x": text})])
        for shown in (mask_secrets(text), mask_secrets(once), mask_json(once), mask_json(twice)):
            assert SECRET[:9] not in shown, text
            assert SECRET[9:] not in shown, text
            assert "***" in shown
        assert mask_secrets(mask_secrets(text)) == mask_secrets(text)
        json.loads(mask_json(once)), json.loads(json.loads(mask_json(twice))[0])


def test_a_line_of_a_properties_file_holds_a_secret_that_is_a_word() -> None:
    for line in ("spark.x.password hunter", "  spark.x.password   hunter  ", "a b\nspark.x.password hunter\nc d"):
        assert mask_secrets(line) == line.replace("hunter", "***")


def test_nothing_else_is_masked() -> None:
    """The pages of the documentation, and what commands print of the samples: only what stands for a secret there."""
    pages = [*Path("docs").rglob("*.md"), *Path("tests/inspection/golden").rglob("*.*"), *Path("ckpt").rglob("*.toml")]
    texts = [line for page in pages for line in page.read_text(errors="replace").splitlines() if "***" not in line]
    masked = [line.strip() for line in texts if mask_secrets(line) != line]
    assert len(texts) > 20_000
    known = ("=SECRET", ":secret@", 'password="..."', "$AZURE_KEY")
    assert [line for line in masked if not any(part in line for part in known)] == []
    assert len(masked) == 10


@pytest.mark.parametrize("text", HOLD_NONE)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert mask_secrets(text) == text
    assert mask_json(json.dumps([text, {"say": 'a"=b@c:d'}])) == json.dumps([text, {"say": 'a"=b@c:d'}])


@pytest.mark.parametrize("indent", [None, 2])
def test_json_holds_no_secret_under_a_key_that_says_so(indent: int | None) -> None:
    held = {"access_token": SECRET, "password": f'a"{SECRET}\\', "offset": [{"client_secret": SECRET}], "tokens": 5}
    shown = {"access_token": "***", "password": "***", "offset": [{"client_secret": "***"}], "tokens": 5}
    assert json.loads(mask_json(json.dumps(held, indent=indent))) == shown
    assert json.loads(mask_secrets(json.dumps(held, indent=indent))) == shown


@pytest.mark.parametrize("text", [*HOLD_ONE, "s3://bucket/x?secret_key=***"])
def test_the_backquotes_around_a_command_are_kept(text: str) -> None:
    for command in (f"ckpt inspect {text}", f"ckpt inspect {quote_path(text)}"):
        for end in ("", " and wait", ".", ", then", ") or"):
            shown = mask_secrets(f"Run `{command}`{end}")
            assert (shown.count("`"), shown[-len(end) - 1 :]) == (2, f"`{end}")
            assert SECRET[9:] not in shown


def test_a_backquote_hides_no_part_of_a_secret() -> None:
    assert mask_secrets(f"secret_key=a`{SECRET}`b.`{SECRET} x") == "secret_key=*** x"


@pytest.mark.parametrize(
    "text",
    [
        *("s3:/a:", "a=", "='", '\\"token\\":', "x:/a:b", "a.%-", '"', "secret_key= ", "token=`."),
        *("a:b", "-u a", "password ", "x.token '", '"token":'),
    ],
)
def test_masking_takes_time_in_proportion(text: str) -> None:
    mask_json(json.dumps([mask_secrets(text * 20_000), text * 20_000]))  # a quadratic one would take minutes


@pytest.mark.parametrize("uri", [uri for uri in HOLD_ONE if uri.startswith("s3://")])
def test_a_storage_never_shows_the_secret_in_its_uri(uri: str) -> None:
    try:
        told = open_storage(uri, {"region": "r"}).uri
    except CkptError as error:  # an option that does not fit the others
        told = mask_secrets(str(error))
    assert SECRET not in told


@pytest.mark.parametrize("text", HOLD_ONE)
@pytest.mark.parametrize("before", [0, 60, 130, 150])
def test_a_secret_in_a_quoted_error_is_masked_before_the_error_is_cut(text: str, before: int) -> None:
    told = str(explain(OSError("." * before + " " + text), "s3://bucket/x", "give credentials"))
    assert SECRET[:9] not in told
    assert SECRET[9:] not in told


@pytest.mark.parametrize("text", HOLD_ONE)
def test_a_secret_in_a_quoted_file_or_words_of_spark_is_masked_before_they_are_cut(text: str) -> None:
    for before in range(0, 400, 8):
        with pytest.raises(SparkFailed) as error, translate_failures("reading"):
            raise Py4JError("." * before + " " + text)
        for told in (str(error.value), quoted("." * before + " " + text)):
            assert SECRET[:9] not in told
            assert SECRET[9:] not in told


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", f"s3:/KEY:{SECRET}@bucket/x"],
        ["inspect", f"nosuch://KEY:{SECRET}@bucket/x"],
        ["inspect", f"/no/such?secret_key={SECRET}"],
        ["inspect", f"hdfs://user:{SECRET}@127.0.0.1:1/x"],
        ["inspect", f"fs.s3a.secret.key={SECRET}"],
        ["explain", f"https://host/x?DB_PASSWORD\t{SECRET}"],
        ["inspect", "s3://bucket/x", "--storage-options", f"={SECRET}"],
        ["inspect", "s3://bucket/x", "--storage-options", SECRET],
        ["relocate", "sample_checkpoints/tws-rocksdb-4.2", "--to", f"s3a://KEY:{SECRET}@bucket/x"],
        ["relocate", "sample_checkpoints/stateless-3.5", "--to", f"s3a://bucket/x?secret_key={SECRET}"],
        ["export-state", "sample_checkpoints/aggregation-hdfs-4.2", "--to", f"hdfs://u:{SECRET}@host/x", "--plan"],
        [
            *("migrate", "transform-with-state", "sample_checkpoints/aggregation-hdfs-4.2"),
            *("--to", f"abfss://box:{SECRET}@account/x", "--plan"),
        ],
    ],
)
def test_a_refusal_does_not_repeat_a_secret(words: list[str], ckpt: Ckpt) -> None:
    run = ckpt(*words)
    assert run.exit_code in (2, 3)
    assert SECRET not in run.refusal()


def test_no_secret_is_written_into_operator_metadata() -> None:
    for uri in (text for text in HOLD_ONE if "://" in text and " " not in text):
        with pytest.raises(UsageError, match="contains a secret"):
            read_spark_root(uri)


def test_no_code_is_written_with_the_secret_in_the_path_of_a_file(copy_of: CopyOf) -> None:
    checkpoint = copy_of("file-source-3.5")
    for log in (checkpoint / "sources" / "0").glob("[0-9]*"):
        log.write_text(log.read_text().replace("file:///", f"s3a://KEY:{SECRET}@bucket/"))
    with pytest.raises(CkptError, match="cannot generate code") as error:
        handoff(str(checkpoint), snippet="python")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("command", [["inspect"], ["relocate", "--to", "s3a://new/x"], ["handoff"]])
def test_a_report_does_not_repeat_the_secrets_of_a_checkpoint(
    command: list[str], output: str, ckpt: Ckpt, copy_of: CopyOf
) -> None:
    checkpoint = copy_of("tws-rocksdb-4.2")
    for file in (checkpoint / "state/0/_metadata/v2").glob("[0-9]*"):
        file.write_text(file.read_text().replace("file:/", f"s3a://KEY:{SECRET}@bucket/"))
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        file.write_text(file.read_text().replace('"conf":{', f'"conf":{{"x":"secret_key={SECRET}\\"",'))
    run = ckpt(command[0], checkpoint, *command[1:], "-o", output)
    assert SECRET not in run.stdout + run.stderr
    assert "***" in run.stdout.replace("\\", "")
    assert output != "json" or run.json()


def padded(padding: str) -> list[str]:
    """Lines of an offset log that hold a secret further to the right."""
    return [
        json.dumps({"a": padding, "access_token": SECRET}),
        json.dumps({"a": f"{padding} Authorization: Bearer {SECRET}"}),
        json.dumps({"a": f"{padding} s3a://user:{SECRET}@bucket/x"}),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("output", some_quick(OUTPUTS, 4))
def test_a_secret_is_masked_wherever_a_page_is_folded_or_cut(output: str, ckpt: Ckpt, copy_of: CopyOf) -> None:
    """An offset of an unknown source is shown as it is: folded at column 80, and cut after 500 characters."""
    newest = copy_of("stateless-4.2") / "offsets" / "5"
    head = newest.read_text().splitlines()[:2]
    for first in (*range(0, 80, 3 if EVERY_CASE else 12), *range(420, 500, 20)):
        lines = [line for padding in range(first, first + 3) for line in padded("x" * padding)]
        newest.write_text("\n".join([*head, *lines]))
        run = ckpt("inspect", newest.parents[1], "-o", output)
        assert run.exit_code in (0, 1)
        assert SECRET[:9] not in run.stdout, first
        assert SECRET[9:] not in run.stdout, first
        assert first >= 80 or run.stdout.replace("\\", "").count("***") >= len(lines)


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_target_is_shown_without_its_key(output: str, ckpt: Ckpt) -> None:
    to = f"s3a://KEY:{SECRET}@bucket/new"
    words = ("migrate", "transform-with-state", "sample_checkpoints/aggregation-hdfs-4.2", "--to", to, "--plan")
    run = ckpt(*words, "-o", output)
    assert run.exit_code == 1
    assert SECRET not in run.stdout + run.stderr
