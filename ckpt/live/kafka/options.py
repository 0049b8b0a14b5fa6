"""Reader options of Spark's Kafka source as settings of librdkafka: an allow-list, because the two speak differently.

Each line was tried with librdkafka 2.16; what it refuses, or has another meaning for, is refused here by name.
"""

import re
from collections.abc import Iterator, Mapping

from ckpt.errors import one_line
from ckpt.live.book import BOOK
from ckpt.live.kind import unusable_option

SERVERS = "kafka.bootstrap.servers"
_SAME = {
    "bootstrap.servers",
    "client.dns.lookup",
    "client.id",
    "sasl.mechanism",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
}
_PEM = {"ssl.truststore.certificates": "ssl.ca.pem", "ssl.truststore.location": "ssl.ca.location"}
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_OF_OAUTH = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_READER = frozenset(
    """
    assign endingOffsets endingOffsetsByTimestamp endingTimestamp failOnDataLoss fetchOffset.numRetries
    fetchOffset.retryIntervalMs groupIdPrefix includeHeaders kafkaConsumer.pollTimeoutMs maxOffsetsPerTrigger
    maxRecordsPerPartition maxTriggerDelay minOffsetsPerTrigger minPartitions startingOffsets
    startingOffsetsByTimestamp startingOffsetsByTimestampStrategy startingTimestamp subscribe subscribePattern
    """.lower().split()
)
"""Options without ``kafka.``, whose case does not matter."""
_JAAS = re.compile(
    r"""\s*(?P<module>[\w.$]+)\s+\w+(?P<entries>(?:\s+[\w.]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;"]+))*)\s*;\s*"""
)
_ENTRY = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))""")


def translate_options(options: Mapping[str, str]) -> dict[str, str]:
    """Translate options of a reader into settings with which a client reaches the same brokers.

    Raises UsageError where that cannot be said, which never repeats a secret.

    >>> translate_options({"kafka.bootstrap.servers": "host:9092", "kafka.fetch.min.bytes": "1", "subscribe": "orders"})
    {'bootstrap.servers': 'host:9092'}
    """
    for key in options:
        if not key.startswith("kafka.") and key.lower() not in _READER:
            raise unusable_option(f"the Kafka source of Spark has no option {one_line(key)}")
    settings = {key.removeprefix("kafka."): value for key, value in options.items() if key.startswith("kafka.")}
    if not settings.get("bootstrap.servers"):
        raise unusable_option(f"a Kafka source needs {SERVERS}=HOST:PORT")
    logs_in = settings.get("security.protocol", "").upper().startswith("SASL")
    mechanism = settings.get("sasl.mechanism", "GSSAPI" if logs_in else "PLAIN")
    if mechanism.upper() not in _MECHANISMS:
        can = ", ".join(_MECHANISMS)
        raise unusable_option(f"ckpt cannot log in with sasl.mechanism {one_line(mechanism)}, only {can}")
    return dict(_translate(settings))


def _translate(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        if key in _SAME:
            yield key, value
        elif key in _PEM:
            yield _PEM[key], value
        elif key == "ssl.endpoint.identification.algorithm":
            yield key, value or "none"
        elif key == "sasl.jaas.config":
            yield from _translate_jaas(value, settings)
    for store, (types, endings, form) in _STORES.items():
        location, kind = settings.get(f"ssl.{store}.location", ""), settings.get(f"ssl.{store}.type", "").upper()
        if kind not in types or location.lower().endswith(endings):
            raise unusable_option(BOOK.text("kafka_java_key_store", store=store, form=form))


_STORES = {
    "truststore": (("", "PEM"), (".jks", ".p12", ".pfx"), "a PEM file"),
    "keystore": (("", "PKCS12"), (".jks",), "a PKCS#12 file"),
}
"""Types and endings of key stores: those that librdkafka reads, those that it does not, what it wants."""


def _translate_jaas(text: str, settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Translate a login module of Java: name and password, or an OAuth client."""
    login = _JAAS.fullmatch(text)
    module = login["module"].rpartition(".")[2] if login else ""
    entries = {key: re.sub(r"\\(.)", r"\1", a or b) for key, a, b in _ENTRY.findall(login["entries"] if login else "")}
    if module in ("PlainLoginModule", "ScramLoginModule") and {"username", "password"} <= entries.keys():
        yield "sasl.username", entries["username"]
        yield "sasl.password", entries["password"]
    elif module == "OAuthBearerLoginModule" and "sasl.oauthbearer.token.endpoint.url" in settings:
        yield "sasl.oauthbearer.method", "oidc"
        yield from ((name, entries[key]) for key, name in _OF_OAUTH.items() if key in entries)
    else:
        raise unusable_option(BOOK.text("kafka_login_module"))
