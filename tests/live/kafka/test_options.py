"""Options of Spark's Kafka reader as settings of librdkafka, without a broker."""

import shutil
import socket
import sys
import time
from pathlib import Path

import pytest

from ckpt import UsageError, open_checkpoint
from ckpt.extras import install_command
from ckpt.live.asking import ask_sources
from ckpt.live.kafka.options import translate_options
from ckpt.live.kind import source_options
from tests.commands import contract
from tests.conftest import Ckpt
from tests.support.files import rewrite
from tests.support.places import SAMPLES
from tests.support.services.process import free_port

SERVERS = {"kafka.bootstrap.servers": "host:9092"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\\"b;c= d" ;'
OAUTH = "x.OAuthBearerLoginModule required clientId=me clientSecret='s' scope=\"a b\";"
TOKENS = {"kafka.sasl.oauthbearer.token.endpoint.url": "https://host/token"}

TRANSLATED: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"kafka.security.protocol": "SSL"}, {"security.protocol": "SSL"}),
    (
        {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": PLAIN.replace("plain.Plain", "scram.Scram"),
        },
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "me",
            "sasl.password": 'a"b;c= d',
        },
    ),
    ({"kafka.sasl.jaas.config": PLAIN}, {"sasl.username": "me", "sasl.password": 'a"b;c= d'}),
    (
        {"kafka.sasl.jaas.config": OAUTH.replace("'s'", '"s"'), **TOKENS},
        {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "s",
            "sasl.oauthbearer.scope": "a b",
            "sasl.oauthbearer.token.endpoint.url": "https://host/token",
        },
    ),
    ({"kafka.ssl.truststore.location": "/a/ca.pem"}, {"ssl.ca.location": "/a/ca.pem"}),
    ({"kafka.ssl.truststore.location": "/a/ca", "kafka.ssl.truststore.type": "PEM"}, {"ssl.ca.location": "/a/ca"}),
    ({"kafka.ssl.truststore.certificates": "-----"}, {"ssl.ca.pem": "-----"}),
    ({"kafka.ssl.keystore.location": "/a/me.p12"}, {"ssl.keystore.location": "/a/me.p12"}),
    ({"kafka.ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
    ({"kafka.fetch.max.bytes": "1", "kafka.default.api.timeout.ms": "1", "maxOffsetsPerTrigger": "7"}, {}),
]


@pytest.mark.parametrize(("given", "wanted"), TRANSLATED)
def test_an_option_is_translated(given: dict[str, str], wanted: dict[str, str]) -> None:
    assert translate_options({**SERVERS, **given}) == {"bootstrap.servers": "host:9092", **wanted}


def test_partitions_that_are_assigned_are_not_asked() -> None:
    options = {**SERVERS, "assign": '{"t": [0]}'}
    (source,) = ask_sources(open_checkpoint("sample_checkpoints/kafka-4.2"), {0: options})
    assert "assign" in (source.not_asked or "")


@pytest.mark.parametrize("given", [given for given, _ in TRANSLATED if "kafka.ssl.keystore.location" not in given])
def test_the_client_takes_what_it_is_given(given: dict[str, str]) -> None:
    admin = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")
    known = {"ssl.ca.location", "ssl.ca.pem"}  # the client looks into these
    settings = {key: value for key, value in translate_options({**SERVERS, **given}).items() if key not in known}
    admin.AdminClient({**settings, "bootstrap.servers": "127.0.0.1:9", "log_level": "0"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kafka.bootstrap.servers": ""}, "needs kafka.bootstrap.servers"),
        ({"kafka.sasl.mechanism": "GSSAPI"}, "cannot log in with sasl.mechanism GSSAPI"),
        ({"kafka.security.protocol": "SASL_SSL"}, "cannot log in with sasl.mechanism GSSAPI"),
        ({"kafka.sasl.mechanism": "AWS_MSK_IAM"}, "AWS_MSK_IAM"),
        ({"kafka.ssl.truststore.location": "/a/trust.jks"}, "must be a PEM file"),
        ({"kafka.ssl.truststore.location": "/a/x", "kafka.ssl.truststore.type": "jks"}, "must be a PEM file"),
        ({"kafka.ssl.keystore.location": "/a/key.JKS"}, "must be a PKCS#12 file"),
        ({"kafka.sasl.jaas.config": "a.Krb5LoginModule required useKeyTab=true;"}, "kafka.sasl.jaas.config must be"),
        ({"kafka.sasl.jaas.config": "password=secret"}, "kafka.sasl.jaas.config must be"),
        ({"failOnDataLos": "false"}, "has no option failOnDataLos"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        translate_options({**SERVERS, **given})
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_value_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jaas").write_text("of a file\n")
    monkeypatch.setenv("OF_KAFKA", "of the environment")
    found = source_options([f"0.a.b=@{tmp_path / 'jaas'}", "1.c=env:OF_KAFKA", "1.d=x=y"])
    assert found == {0: {"a.b": "of a file"}, 1: {"c": "of the environment", "d": "x=y"}}


@pytest.mark.parametrize(
    "word", ["", "a=b", "0=b", "0.=b", "0.a", "x.a=b", "-1.a=b", "0.a=@/nowhere", "0.a=env:NOT_SET"]
)
def test_words_that_are_no_options(word: str) -> None:
    with pytest.raises(UsageError, match="source_options"):
        source_options([word])
    with pytest.raises(UsageError, match="twice"):
        source_options(["0.a=1", "0.a=2"])


@pytest.mark.parametrize(
    ("sample", "words", "refusal"),
    [
        ("kafka-4.2", ["--source-options", "0.subscribe=a"], "--source-options needs --sources"),
        ("kafka-4.2", ["--sources"], "0.kafka.bootstrap.servers=HOST:PORT"),
        ("kafka-4.2", ["--sources", "--source-options", "1.subscribe=a"], "has no source 1"),
        ("kafka-4.2", ["--sources", "--source-options", "0.subscribe=a"], "needs kafka.bootstrap.servers"),
        (
            "kafka-4.2",
            ["--sources", *(f"--source-options=0.{one}" for one in ("kafka.bootstrap.servers=a:1", "failOnDataLoss="))],
            "failOnDataLoss must be true or false",
        ),
        (
            "stateless-4.2",
            ["--sources", "--source-options", "0.path=a"],
            "cannot ask a source of type rate-micro-batch",
        ),
        ("delta-4.2", ["--sources"], "name the table of source 0: 0.path=URI"),
        ("delta-4.2", ["--sources", "--source-options", "0.failOnDataLoss=false"], "source 0 needs path=URI"),
        ("delta-4.2", ["--sources", "--source-options", "0.path=a", "--source-options", "0.b=c"], "has no option b"),
    ],
)
def test_bad_usage(sample: str, words: list[str], refusal: str, ckpt: Ckpt) -> None:
    run = ckpt("inspect", SAMPLES / sample, *words)
    assert run.exit_code == 2
    assert refusal in run.refusal()


def test_a_source_that_cannot_be_asked_is_told_as_not_asked(ckpt: Ckpt) -> None:
    run = ckpt("inspect", SAMPLES / "stateless-4.2", "--sources")
    assert run.exit_code == 0
    assert "not asked: ckpt cannot ask a source of type rate-micro-batch" in " ".join(run.stdout.split())
    document = ckpt("inspect", SAMPLES / "stateless-4.2", "--sources", "-o", "json").json()
    assert [source["live"] for source in document["sources"]] == [None]


def test_brokers_that_are_down_are_one_line(ckpt: Ckpt) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    servers = f"0.kafka.bootstrap.servers=127.0.0.1:{free_port()}"
    run = ckpt("inspect", SAMPLES / "kafka-4.2", "--sources", "--source-options", servers)
    assert run.exit_code == 3
    assert "Connection refused" in run.unreached()


def test_what_cannot_be_reached_leaves_the_rest_of_the_document(ckpt: Ckpt, tmp_path: Path) -> None:
    words = ["--sources", "--source-options", f"0.path={tmp_path / 'nowhere'}", "--sink", tmp_path / "nothing"]
    run = ckpt("inspect", SAMPLES / "delta-4.2", *words, "-o", "json")
    plain = ckpt("inspect", SAMPLES / "delta-4.2", "-o", "json").json()
    document = run.json()
    (source,) = document["sources"]
    assert run.exit_code == 3
    assert [line.partition("; ")[0] for line in run.stderr.splitlines()] == [
        f"ckpt: sink not reached: {tmp_path / 'nothing'} does not exist: check the path",
        f"ckpt: source 0 {source['live']['said']}".partition("; ")[0],
    ]
    assert contract.disagreements(document) == []
    assert (source["live"]["outcome"], source["live"]["unit"]) == ("unreached", None)
    assert (document["sink"]["outcome"], document["sink"]["kind"]) == ("unreached", "unknown")
    for key in plain.keys() - {"sources", "sink", "not_asked", "next", "findings", "counts", "cause", "verdict"}:
        assert document[key] == plain[key]
    page = ckpt("inspect", SAMPLES / "delta-4.2", *words, "-o", "html")
    assert (page.exit_code, page.stdout.count("not reached: ")) == (3, 2)
    assert document["next"]
    assert "start" not in {step["do"] for step in document["next"][:1]}


@pytest.mark.slow
def test_a_broker_that_says_nothing_is_one_line_after_5_s(ckpt: Ckpt) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers, began = f"0.kafka.bootstrap.servers=127.0.0.1:{silent.getsockname()[1]}", time.monotonic()
        run = ckpt("inspect", SAMPLES / "kafka-4.2", "--sources", "--source-options", servers)
    assert run.exit_code == 3
    assert 4 < time.monotonic() - began < 30
    assert "no answer in 5 s" in run.unreached()


def test_without_the_package_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch, ckpt: Ckpt) -> None:
    for name in ("confluent_kafka", "confluent_kafka.admin"):
        monkeypatch.setitem(sys.modules, name, None)
    run = ckpt("inspect", SAMPLES / "kafka-4.2", "--sources", "--source-options", "0.kafka.bootstrap.servers=host:1")
    assert run.exit_code == 3
    assert install_command("kafka") in run.unreached()


def test_each_source_has_an_answer() -> None:
    answers = ask_sources(open_checkpoint(str(SAMPLES / "two-sources-3.5")), {})
    assert [answer.index for answer in answers] == [0, 1]
    assert all(answer.not_asked for answer in answers)


@pytest.mark.parametrize(
    ("offset", "name"),
    [
        ('{"commitTime":"20240101000000000"}', "Hudi"),
        ('{"shardId-000000000000":{"iteratorType":"TRIM_HORIZON"},"metadata":{"streamName":"s"}}', "Kinesis"),
        ('{"persistent://public/default/t":"CAoQAA=="}', "Pulsar"),
    ],
)
def test_a_source_that_ckpt_does_not_know_is_named_by_its_offset(
    offset: str, name: str, tmp_path: Path, ckpt: Ckpt
) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(SAMPLES / "stateless-4.2", checkpoint)
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        rewrite(file, lambda text: "\n".join([*text.splitlines()[:2], offset]))
    run = ckpt("inspect", checkpoint, "--sources")
    assert f"not asked: ckpt cannot ask a source that looks like {name}" in " ".join(run.stdout.split())
