"""Log files, whole and damaged, that Spark was asked to read: the cases behind ``spark_answers.json``.

Plain data without a test framework, so that ``ask_spark.py`` can load it inside any Spark's interpreter.
"""

from collections.abc import Iterator

from tests.formats.json_damage import BROKEN_JSON, JSON_VALUES, VERSION_LINES

CONF = '{"spark.sql.shuffle.partitions":"5","spark.sql.streaming.stateStore.compression.codec":"lz4"}'
META = f'{{"batchWatermarkMs":7,"batchTimestampMs":1795247663183,"conf":{CONF}}}'
META_V2 = f'{META[:-1]},"sourceMetadataInfo":{{"0":{{"sourceId":"0","providerName":"rate","apiVersion":"v2"}}}}}}'
KAFKA = '{"orders":{"1":295,"0":310}}'
COMMIT_2 = '{"nextBatchWatermarkMs":3,"stateUniqueIds":{"0":[["a","b"],["c","d"]],"1":[["e"]]}}'
COMMIT_3 = (
    '{"nextBatchWatermarkMs":3,"stateUniqueIds":{"0":[["a"]]},"sinkMetadataMap":{"main":{"sinkName":"main",'
    '"commitOffset":"-","providerName":"org.example.Sink","apiVersion":"v2","isActive":true}}}'
)
QUERY = '{"id":"16da3b92-5c0e-4a73-9f0c-2f6f1f6d8c11"}'
ENTRY = '{"path":"file:///in/a%20b.txt","timestamp":1795247663183,"batchId":0}'
SINK = (
    '{"path":"file:///out/p.parquet","size":10,"isDir":false,"modificationTime":1795247663183,'
    '"blockReplication":1,"blockSize":33554432,"action":"add"}'
)


def _offset_cases() -> Iterator[tuple[str, bytes]]:
    v1 = f"v1\n{META}\n{KAFKA}\n-\n42"
    v2 = f"v2\n{META_V2}\n0:42\nname-b:-"
    yield "whole-v1", v1.encode()
    yield "whole-v2", v2.encode()
    yield from ((f"v1-prefix-{n}", v1.encode()[:n]) for n in range(len(v1)))
    yield from ((f"v2-prefix-{n}", v2.encode()[:n]) for n in range(len(v2)))
    for line in VERSION_LINES:
        yield f"version {line!r}", f"{line}\n{META}\n42".encode()
    for name, value in JSON_VALUES.items():
        for key in ("batchWatermarkMs", "batchTimestampMs", "conf"):
            yield f"{key} {name}", f'v1\n{{"{key}":{value}}}\n42'.encode()
        yield f"conf value {name}", f'v1\n{{"conf":{{"a":{value}}}}}\n42'.encode()
        yield f"v2 sourceMetadataInfo {name}", f'v2\n{{"sourceMetadataInfo":{value}}}\n0:42'.encode()
        yield f"v2 controlBatchInfo {name}", f'v2\n{{"controlBatchInfo":{value}}}\n0:42'.encode()
    for name, text in BROKEN_JSON.items():
        yield f"metadata {name}", f"v1\n{text}\n42".encode()
        yield f"v2 metadata {name}", f"v2\n{text}\n0:42".encode()
        yield f"source {name}", f"v1\n{META}\n{text}".encode()
        yield f"v2 source {name}", f"v2\n{META_V2}\n0:{text}".encode()
    yield "crlf", v1.replace("\n", "\r\n").encode()
    yield "cr", v1.replace("\n", "\r").encode()
    yield "mixed-ends", f"v1\r{META}\r\n1\n\r2".encode()
    yield "newline-at-end", v1.encode() + b"\n"
    yield "two-newlines-at-end", v1.encode() + b"\n\n"
    yield "cr-at-end", v1.encode() + b"\r"
    yield "crlf-at-end", v1.encode() + b"\r\n"
    yield "only-newline", b"\n"
    yield "only-newlines", b"\n\n\n"
    yield "only-spaces", b"   "
    yield "no-metadata", b"v1\n\n42"
    yield "no-metadata-no-source", b"v1\n\n"
    yield "blank-metadata", b"v1\n \t\x00\x1f \n42"
    yield "nbsp-metadata", "v1\n\u00a0\n42".encode()
    yield "v2-no-metadata", b"v2\n\n0:42"
    yield "v2-no-metadata-no-source", b"v2\n"
    yield "v2-newline", b"v2\n\n"
    yield "v2-no-source", f"v2\n{META_V2}".encode()
    yield "v1-no-source", f"v1\n{META}".encode()
    yield "unicode-line-ends", f"v1\n{META}\n1\x0b2\x0c3\x85\u2028\u20294\x1c5\x1d6\x1e7".encode()
    yield "dash-space", f"v1\n{META}\n- \n -\n--".encode()
    yield "latin-1", f"v1\n{META}\n".encode() + b"\xff\xfe"
    yield "bad-utf8-first", b"\xffv1\n{}\n42"
    yield "bad-utf8-metadata", b'v1\n{"conf":{"a":"\xc3"}}\n42'
    yield "overlong", b'v1\n{"conf":{"a":"\xc0\xaf"}}\n42'
    yield "surrogate-bytes", b'v1\n{"conf":{"a":"\xed\xa0\x80"}}\n42'
    yield "beyond-unicode", b'v1\n{"conf":{"a":"\xf4\x90\x80\x80"}}\n42'
    yield "cut-utf8-at-end", f"v1\n{META}\n".encode() + b"\xe2\x82"
    yield "bad-utf8-far", f"v1\n{META}\n{'1' * 30000}".encode() + b"\xff"
    yield "nuls", bytes(300)
    yield "garbage", bytes(range(256)) * 4
    yield "conf-duplicate", b'v1\n{"conf":{"a":"1","a":"2"},"conf":{"b":"3"}}\n42'
    yield "watermark-duplicate", b'v1\n{"batchWatermarkMs":1,"batchWatermarkMs":2}\n42'
    yield "escaped-conf", b'v1\n{"conf":{"a\\u0062":"\\"q\\" \\\\ \\n"}}\n42'
    yield "v2-no-colon", f"v2\n{META_V2}\n42".encode()
    yield "v2-empty-line", f"v2\n{META_V2}\n\n0:1".encode()
    yield "v2-empty-name", f"v2\n{META_V2}\n:42".encode()
    yield "v2-duplicate-name", f"v2\n{META_V2}\n0:1\n0:2".encode()
    yield "v2-json-line", f"v2\n{META_V2}\n{KAFKA}".encode()
    yield "v2-dash-space", f"v2\n{META_V2}\n0: -\n1:- ".encode()
    yield (
        "v2-six-sources",
        f"v2\n{META_V2}\n".encode() + b"\n".join(b"%d:%d" % (n, n) for n in (5, 3, 0, 4, 2, 1)),
    )
    info = '{"sourceId":"0","providerName":"rate","apiVersion":"v2"}'
    for name, text in {
        "no-id": '{"providerName":"rate","apiVersion":"v2"}',
        "no-provider": '{"sourceId":"0","apiVersion":"v2"}',
        "no-api": '{"sourceId":"0","providerName":"rate"}',
        "extra": info[:-1] + ',"more":1}',
        "int-id": info.replace('"0"', "0"),
        "null-api": info.replace('"v2"', "null"),
        "empty": "{}",
        "list": "[]",
        "string": '"x"',
        "null": "null",
    }.items():
        yield f"v2 info {name}", f'v2\n{{"sourceMetadataInfo":{{"0":{text}}}}}\n0:42'.encode()
    for name, text in {
        "type": '{"operationType":"x"}',
        "both": '{"operationType":"x","operationInfo":"y"}',
        "empty": "{}",
    }.items():
        yield f"v2 control {name}", f'v2\n{{"controlBatchInfo":{text}}}\n0:42'.encode()


def _commit_cases() -> Iterator[tuple[str, bytes]]:
    wholes = {"v1": 'v1\n{"nextBatchWatermarkMs":12}', "v2": f"v2\n{COMMIT_2}", "v3": f"v3\n{COMMIT_3}"}
    for version, text in wholes.items():
        yield f"whole-{version}", text.encode()
        yield from ((f"{version}-prefix-{n}", text.encode()[:n]) for n in range(len(text)))
    for line in VERSION_LINES:
        yield f"version {line!r}", f'{line}\n{{"nextBatchWatermarkMs":12}}'.encode()
    for name, value in JSON_VALUES.items():
        yield f"watermark {name}", f'v1\n{{"nextBatchWatermarkMs":{value}}}'.encode()
        yield f"v2 watermark {name}", f'v2\n{{"nextBatchWatermarkMs":{value}}}'.encode()
        yield f"v1 ids {name}", f'v1\n{{"stateUniqueIds":{value}}}'.encode()
        yield f"v2 ids {name}", f'v2\n{{"stateUniqueIds":{value}}}'.encode()
        yield f"v2 operator {name}", f'v2\n{{"stateUniqueIds":{{"0":{value}}}}}'.encode()
        yield f"v2 partition {name}", f'v2\n{{"stateUniqueIds":{{"0":[{value}]}}}}'.encode()
        yield f"v2 store {name}", f'v2\n{{"stateUniqueIds":{{"0":[[{value}]]}}}}'.encode()
        yield f"v3 sinks {name}", f'v3\n{{"sinkMetadataMap":{value}}}'.encode()
        yield f"v3 sink {name}", f'v3\n{{"sinkMetadataMap":{{"main":{value}}}}}'.encode()
    for name, text in BROKEN_JSON.items():
        yield f"json {name}", f"v1\n{text}".encode()
        yield f"v2 json {name}", f"v2\n{text}".encode()
        yield f"v3 json {name}", f"v3\n{text}".encode()
    for key in ("x", "-1", "+1", " 1", "1.0", "01", "", "9223372036854775808", "0x1", "1L", "1e1"):
        yield f"v2 operator key {key!r}", f'v2\n{{"stateUniqueIds":{{"{key}":[["a"]]}}}}'.encode()
    yield "v2 duplicate operator", b'v2\n{"stateUniqueIds":{"0":[["a"]],"0":[["b"]]}}'
    yield "v2 ragged", b'v2\n{"stateUniqueIds":{"0":[["a","b"],["c"],[]]}}'
    yield "v2 no operator", b'v2\n{"stateUniqueIds":{}}'
    sink = '{"sinkName":"main","commitOffset":"-","providerName":"p","apiVersion":"v2","isActive":true}'
    for field in (
        '"sinkName":"main",',
        '"commitOffset":"-",',
        '"providerName":"p",',
        '"apiVersion":"v2",',
        ',"isActive":true',
    ):
        yield (
            f"v3 sink without {field}",
            f'v3\n{{"sinkMetadataMap":{{"main":{sink.replace(field, "")}}}}}'.encode(),
        )
    for value in ("1", "null", "{}", '"{\\"a\\":1}"', '"5"'):
        changed = sink.replace('"-"', value)
        yield f"v3 commitOffset {value}", f'v3\n{{"sinkMetadataMap":{{"main":{changed}}}}}'.encode()
    old = sink.replace("true", "false").replace("main", "old")
    yield "v3 two sinks", f'v3\n{{"sinkMetadataMap":{{"main":{sink},"old":{old}}}}}'.encode()
    for key in ("0", "x"):
        yield f"v1 operator key {key!r}", f'v1\n{{"stateUniqueIds":{{"{key}":[["a"]]}}}}'.encode()
    yield "v1 no operator", b'v1\n{"nextBatchWatermarkMs":1,"stateUniqueIds":{}}'
    yield "crlf", b'v1\r\n{"nextBatchWatermarkMs":12}\r\n'
    yield "third-line", b'v1\n{"nextBatchWatermarkMs":12}\nhello'
    yield "empty-second", b"v1\n\n"
    yield "blank-second", b"v1\n  "
    yield "newline-only", b"\n"
    yield "version-newline", b"v1\n"
    yield "v2-alone", b"v2"
    yield "v3-alone", b"v3\n"
    yield "bad-utf8-second", b"v1\n\xff"
    yield "bad-utf8-third", b"v1\n{}\n\xff"
    yield "bad-utf8-third-far", b"v1\n{}\n" + b"x" * 30000 + b"\xff"
    yield "nuls", bytes(300)
    yield "garbage", bytes(range(256)) * 4


def _metadata_cases() -> Iterator[tuple[str, bytes]]:
    yield "whole", QUERY.encode()
    yield from ((f"prefix-{n}", QUERY.encode()[:n]) for n in range(len(QUERY)))
    for name, value in JSON_VALUES.items():
        yield f"id {name}", f'{{"id":{value}}}'.encode()
    for name, text in BROKEN_JSON.items():
        yield f"json {name}", text.encode()
        yield f"json with id {name}", text.replace('"a"', '"id"').encode()
    yield "no-uuid", b'{"id":"orders"}'
    yield "extra-key", b'{"id":"16da3b92-5c0e-4a73-9f0c-2f6f1f6d8c11","runId":"x"}'
    yield "duplicate", b'{"id":"16da3b92-5c0e-4a73-9f0c-2f6f1f6d8c11","id":"b"}'
    yield "lines", b'\n{\n"id":\r\n"16da3b92-5c0e-4a73-9f0c-2f6f1f6d8c11"}\n\n'
    yield "bad-utf8", b'{"id":"\xff"}'
    yield "garbage-behind", QUERY.encode() + b"\n\xff\xfehello"
    yield "nuls", bytes(50)
    yield "utf-16", QUERY.encode("utf-16")
    yield "upper", QUERY.upper().replace("ID", "id").encode()


def _source_log_cases(entry: str) -> Iterator[tuple[str, bytes]]:
    text = f"v1\n{entry}\n{entry}"
    yield "whole", text.encode()
    yield from ((f"prefix-{n}", text.encode()[:n]) for n in range(len(text)))
    for line in VERSION_LINES:
        yield f"version {line!r}", f"{line}\n{entry}".encode()
    for name, broken in BROKEN_JSON.items():
        yield f"json {name}", f"v1\n{broken}".encode()
    yield "newline-at-end", text.encode() + b"\n"
    yield "empty-line", f"v1\n\n{entry}".encode()
    yield "extra-key", f'v1\n{entry[:-1]},"more":1}}'.encode()
    yield "bad-utf8", f"v1\n{entry}\n".encode() + b"\xff"
    for field in entry[1:-1].split(","):
        rest = entry.replace(field, "").replace(",,", ",").replace("{,", "{").replace(",}", "}")
        yield f"without {field.split(':')[0]}", f"v1\n{rest}".encode()
        key = field.split(":")[0]
        for name, value in JSON_VALUES.items():
            yield f"{key} {name}", f"v1\n{entry.replace(field, f'{key}:{value}')}".encode()


KINDS = {
    "offsets": dict(_offset_cases()),
    "commits": dict(_commit_cases()),
    "metadata": dict(_metadata_cases()),
    "file-source": dict(_source_log_cases(ENTRY)),
    "file-sink": dict(_source_log_cases(SINK)),
}

NAMES = [
    "7",
    "007",
    "-1",
    "+5",
    "0",
    "-0",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "7 ",
    " 7",
    "7.0",
    "7L",
    "0x7",
    "1e3",
    "\u0661",
    "\uff17",
    "7.compact",
    "007.compact",
    ".7",
    ".7.crc",
    "7.crc",
    "7.tmp",
    "_7",
    "7~",
    "README",
    "1_000",
    "--7",
    "+-7",
    "\u221213",
    "\u00b2",
    "\u2167",
    "7.compact.compact",
    ".compact",
    "\U0001d7d7",
    "7\u200b",
]

COMPACTIBLE = {
    "nothing": [],
    "one": ["0"],
    "three": ["0", "1", "2"],
    "hole": ["0", "2"],
    "no-first": ["1", "2"],
    "compact": ["9.compact", "10", "11"],
    "compact-only": ["9.compact"],
    "compact-with-old": ["7", "8", "9.compact", "10"],
    "compact-hole": ["9.compact", "11"],
    "no-compact": ["10", "11"],
    "no-compact-full": [str(n) for n in range(9)] + ["10"],
    "plain-nine": [str(n) for n in range(10)],
    "two-compacts": ["9.compact", "19.compact", "20"],
    "two-compacts-hole": ["9.compact", "19.compact", "21"],
    "interval-3": ["2.compact", "5.compact", "6"],
    "interval-3-one": ["2.compact", "3", "4"],
    "interval-12": ["11.compact", "12"],
    "interval-12-hole": ["11.compact", "13"],
    "interval-7": ["6.compact", "7"],
    "interval-30": ["29.compact", "30"],
    "interval-30-hole": ["29.compact", "31"],
    "prime": ["22.compact", "23"],
    "broken-spacing": ["2.compact", "9.compact", "10"],
    "next-compact-lost": ["9.compact"] + [str(n) for n in range(10, 19)] + ["20"],
    "both-forms": ["9", "9.compact", "10"],
    "first-lost": [str(n) for n in range(1, 9)],
    "only-8": ["8"],
    "leading-zero": ["00", "01"],
    "latest-0-compact": ["0.compact"],
    "interval-1": ["0.compact", "1.compact"],
    "same-twice": ["9.compact", "09.compact"],
    "negative": ["-1"],
    "negative-and-0": ["-1", "0"],
    "far": ["0", "1", "9223372036854775807"],
}
