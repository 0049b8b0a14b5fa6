"""Gaps, unreadable files and traps in the offset and commit logs of a stateless query.

The sample `SAMPLE` has batches 0 to `L`, all committed.
"""

from __future__ import annotations

from collections.abc import Iterator

from .model import Case, Mutation, copy, delete, delete_logs, mkdir, move, replace, truncate, write

SAMPLE = "stateless-3.5"
L = 5
ALL = range(L + 1)

END = '{"offset":60,"timestamp":1700000006000}'
"""The source line of offsets/L."""
V2_OFFSETS = (
    'v2\n{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{"spark.sql.shuffle.partitions":"2"},'
    '"sourceMetadataInfo":{}}\n0:' + END
)
V3_COMMIT = 'v3\n{"nextBatchWatermarkMs":0,"stateUniqueIds":null,"sinkMetadataMap":{}}'


BOTH_MODES = {"empty", "only-v1", "v9", "v2", "newline-at-end", "source-line-dash", "missing", "leading-zeros"}
"""Forms of damage to one log file that are tried with asynchronous tracking too, which reads files the same way."""


def _case(name: str, *mutations: Mutation, batches: int = 1, form: str | None = None) -> Case:
    sync_only = form is not None and form not in BOTH_MODES
    return Case(name, SAMPLE, tuple(mutations), batches=batches, sync_only=sync_only)


def gaps() -> Iterator[Case]:
    """Every combination of missing files that changes, or might change, the next start."""
    layouts: dict[str, tuple[set[int], set[int]]] = {
        "whole": (set(), set()),
        "fresh": (set(ALL), set(ALL)),
        "offsets-empty": (set(ALL), set()),
        "offsets-empty-commits-from-1": (set(ALL), {0}),
        "offsets-empty-latest-commit-only": (set(ALL), set(range(L))),
        "commits-empty": (set(), set(ALL)),
        "commits-empty-predecessor-missing": ({L - 1}, set(ALL)),
        "commits-empty-latest-alone": (set(range(L)), set(ALL)),
        "predecessor-missing": ({L - 1}, set()),
        "predecessor-missing-uncommitted": ({L - 1}, {L}),
        "predecessor-missing-both-logs": ({L - 1}, {L - 1}),
        "predecessor-missing-both-logs-uncommitted": ({L - 1}, {L - 1, L}),
        "two-predecessors-missing": ({L - 2, L - 1}, set()),
        "two-predecessors-missing-uncommitted": ({L - 2, L - 1}, {L - 2, L - 1, L}),
        "latest-alone": (set(range(L)), set(range(L))),
        "latest-alone-uncommitted": (set(range(L)), {L}),
        "latest-alone-commits-empty-but-0": (set(range(L)), set(range(1, L + 1))),
        "old-offsets-missing": (set(range(L - 1)), set()),
        "old-offsets-missing-uncommitted": (set(range(L - 1)), {L}),
        "old-gap": ({1, 2}, set()),
        "old-gap-uncommitted": ({1, 2}, {L}),
        "old-commits-missing": (set(), {1, 2}),
        "old-commits-missing-uncommitted": (set(), {1, 2, L}),
        "uncommitted": (set(), {L}),
        "commits-behind-by-2": (set(), {L - 1, L}),
        "commits-behind-by-4": (set(), set(range(L - 3, L + 1))),
        "only-commit-0": (set(), set(range(1, L + 1))),
        "previous-commit-missing": (set(), {L - 1}),
        "only-latest-commit": (set(), set(range(L))),
        "commits-ahead-by-1": ({L}, set()),
        "commits-ahead-by-1-latest-commit-missing": ({L}, {L - 1}),
        "commits-ahead-by-3": ({L - 2, L - 1, L}, set()),
        "commits-ahead-predecessor-missing": ({L - 2, L}, set()),
        "commits-ahead-predecessor-and-its-commit-missing": ({L - 2, L}, {L - 2}),
        "commit-ahead-by-3-those-between-missing": ({L - 2, L - 1, L}, {L - 3, L - 2, L - 1}),
        "only-batch-0": (set(range(1, L + 1)), set(range(1, L + 1))),
        "only-batch-0-uncommitted": (set(range(1, L + 1)), set(ALL)),
        "only-batch-0-commits-ahead": (set(range(1, L + 1)), set()),
        "only-batch-0-commit-1-ahead": (set(range(1, L + 1)), set(ALL) - {1}),
        "only-batches-0-and-1": (set(range(2, L + 1)), set(range(2, L + 1))),
        "only-batches-0-and-1-uncommitted": (set(range(2, L + 1)), set(range(1, L + 1))),
        "only-batches-0-and-1-none-committed": (set(range(2, L + 1)), set(ALL)),
        "only-batch-1": (set(ALL) - {1}, set(ALL) - {1}),
        "only-batch-1-uncommitted": (set(ALL) - {1}, set(ALL)),
    }
    for name, (offsets, commits) in layouts.items():
        yield _case(f"gap-{name}", *delete_logs(sorted(offsets), sorted(commits)))


def _forms(path: str, body: str) -> dict[str, list[Mutation]]:
    """Ways in which a log file can be unreadable, or odd and readable all the same."""
    return {
        "empty": [write(path, "")],
        "only-v1": [write(path, "v1")],
        "v1-newline": [write(path, "v1\n")],
        "v1-braces": [write(path, "v1\n{}")],
        "one-byte": [truncate(path, 1)],
        "json-cut-early": [truncate(path, 8)],
        "json-cut-in-key": [truncate(path, 15)],
        "last-byte-cut": [truncate(path, -1)],
        "garbage-text": [write(path, "the disk was full\nthe disk was full\n")],
        "garbage-bytes": [write(path, bytes(range(128, 256)) * 4)],
        "zero-bytes": [write(path, bytes(512))],
        "v9": [replace(path, "v1\n", "v9\n")],
        "v0": [replace(path, "v1\n", "v0\n")],
        "hello": [replace(path, "v1\n", "hello\n")],
        "blank-line": [write(path, "\n")],
        "newline-at-end": [replace(path, body, body + "\n")],
        "blank-line-at-end": [replace(path, body, body + "\n\n")],
        "crlf": [replace(path, "v1\n", "v1\r\n")],
        "byte-order-mark": [replace(path, "v1\n", "\ufeffv1\n")],
        "no-version-line": [replace(path, "v1\n", "")],
    }


def _offset_forms(batch: int, body: str) -> dict[str, list[Mutation]]:
    path = f"offsets/{batch}"
    return _forms(path, body) | {
        "source-line-cut": [truncate(path, -12)],
        "source-line-missing": [replace(path, "\n" + body, "")],
        "source-line-blank": [replace(path, body, "")],
        "source-line-dash": [replace(path, body, "-")],
        "source-line-of-another-source": [replace(path, body, '{"logOffset":3}')],
        "two-source-lines": [replace(path, body, body + "\n" + body)],
        "v2": [write(path, V2_OFFSETS.replace(END, body))],
        "v2-header-v1-lines": [replace(path, "v1\n", "v2\n")],
        "stale-crc": [replace(path, body, body.replace('"timestamp"', ' "timestamp"')) | {"keep_crc": True}],
    }


def _commit_forms(batch: int) -> dict[str, list[Mutation]]:
    path = f"commits/{batch}"
    return _forms(path, '{"nextBatchWatermarkMs":0}') | {
        "v2": [write(path, 'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}')],
        "v2-null-ids": [write(path, 'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":null}')],
        "v2-header-v1-body": [replace(path, "v1\n", "v2\n")],
        "v3": [write(path, V3_COMMIT)],
        "v3-header-v1-body": [replace(path, "v1\n", "v3\n")],
        "unknown-key": [replace(path, '{"next', '{"surprise":1,"next')],
        "stale-crc": [replace(path, ":0}", ": 0}") | {"keep_crc": True}],
    }


def _body(batch: int) -> str:
    """The source line of offsets/<batch> of the sample."""
    return f'{{"offset":{(batch + 1) * 10},"timestamp":{1_700_000_000_000 + (batch + 1) * 1000}}}'


def _unreadable() -> Iterator[Case]:
    uncommitted = delete_logs(commits=[L])
    for form, damage in _offset_forms(L, END).items():
        yield _case(f"offset-latest-{form}", *damage, form=form)
        yield _case(f"offset-latest-{form}-uncommitted", *damage, *uncommitted, form=form)
    for form, damage in _offset_forms(L - 1, _body(L - 1)).items():
        yield _case(f"offset-predecessor-{form}", *damage, form=form)
        yield _case(f"offset-predecessor-{form}-uncommitted", *damage, *uncommitted, form=form)
    for form in ("empty", "json-cut-early", "v9", "garbage-bytes", "blank-line-at-end"):
        yield _case(f"offset-old-{form}", *_offset_forms(L - 2, _body(L - 2))[form], form=form)
        yield _case(
            f"offset-old-{form}-uncommitted", *_offset_forms(L - 2, _body(L - 2))[form], *uncommitted, form=form
        )
    for form, damage in _commit_forms(L).items():
        yield _case(f"commit-latest-{form}", *damage, form=form)
    for form, damage in _commit_forms(L - 1).items():
        yield _case(f"commit-previous-{form}-uncommitted", *damage, *uncommitted, form=form)
    for form in ("empty", "json-cut-early", "v9", "garbage-bytes"):
        yield _case(f"commit-old-{form}", *_commit_forms(L - 2)[form], form=form)
        yield _case(f"commit-ahead-{form}", *_commit_forms(L)[form], *delete_logs(offsets=[L]), form=form)
    for form in ("empty", "json-cut-early", "v9"):
        only = delete_logs(range(1, L + 1), range(1, L + 1))
        yield _case(f"only-batch-0-offset-{form}", *only, *_offset_forms(0, _body(0))[form], form=form)
        yield _case(f"only-batch-0-commit-{form}", *only, *_commit_forms(0)[form], form=form)


def _metadata() -> Iterator[Case]:
    uncommitted = delete_logs(commits=[L])
    forms: dict[str, list[Mutation]] = {
        "missing": delete("metadata"),
        "empty": [write("metadata", "")],
        "cut": [truncate("metadata", 20)],
        "garbage": [write("metadata", "garbage")],
        "number": [write("metadata", "7")],
        "list": [write("metadata", "[]")],
        "no-id": [write("metadata", "{}")],
        "id-number": [write("metadata", '{"id":7}')],
        "id-null": [write("metadata", '{"id":null}')],
        "id-not-a-uuid": [write("metadata", '{"id":"orders"}')],
        "extra-key": [replace("metadata", "{", '{"note":"x",')],
        "newline-at-end": [replace("metadata", "}", "}\n")],
        "crlf-at-end-stale-crc": [replace("metadata", "}", "}\r\n") | {"keep_crc": True}],
        "byte-order-mark": [replace("metadata", "{", "\ufeff{")],
        "directory": [*delete("metadata"), mkdir("metadata")],
        "orphan-crc": delete("metadata", keep_crc=True),
    }
    for form, damage in forms.items():
        yield _case(f"metadata-{form}", *damage, form=form)
    for form in ("missing", "empty", "garbage"):
        yield _case(f"metadata-{form}-uncommitted", *forms[form], *uncommitted, form=form)
    yield _case("metadata-missing-logs-empty", *forms["missing"], *delete_logs(ALL, ALL))
    yield _case("metadata-missing-offsets-empty", *forms["missing"], *delete_logs(ALL))
    yield _case("metadata-missing-only-batch-0", *forms["missing"], *delete_logs(range(1, L + 1), range(1, L + 1)))
    yield _case("metadata-missing-no-commits", *forms["missing"], *delete_logs((), ALL))


def _traps() -> Iterator[Case]:
    """Things beside the batches: checksums without a file, folders in the way, leftovers and odd names."""
    uncommitted = delete_logs(commits=[L])
    nxt = L + 1
    yield _case("crc-orphan-commit-next", copy(f"commits/.{L}.crc", f"commits/.{nxt}.crc"))
    yield _case("crc-orphan-commit-latest", *delete(f"commits/{L}", keep_crc=True))
    yield _case("crc-orphan-commit-after-next", copy(f"commits/.{L}.crc", f"commits/.{nxt + 1}.crc"), batches=2)
    yield _case("crc-orphan-commit-old", *delete("commits/2", keep_crc=True))
    yield _case("crc-orphan-offset-next", copy(f"offsets/.{L}.crc", f"offsets/.{nxt}.crc"))
    yield _case("crc-orphan-offset-next-uncommitted", copy(f"offsets/.{L}.crc", f"offsets/.{nxt}.crc"), *uncommitted)
    yield _case(
        "crc-orphan-offset-next-uncommitted-2",
        copy(f"offsets/.{L}.crc", f"offsets/.{nxt}.crc"),
        *uncommitted,
        batches=2,
    )
    yield _case("crc-orphan-offset-latest", *delete(f"offsets/{L}", keep_crc=True), *uncommitted)
    yield _case("crc-orphan-offset-predecessor", *delete(f"offsets/{L - 1}", keep_crc=True))
    yield _case("crc-orphan-offset-old", *delete("offsets/2", keep_crc=True))
    yield _case(
        "crc-orphan-offset-and-commit-0",
        *delete(*(f"{log}/{n}" for log in ("offsets", "commits") for n in ALL), keep_crc=True),
    )
    for log in ("offsets", "commits"):
        yield _case(f"crc-missing-{log}", *delete(f"{log}/.{L}.crc"))
        yield _case(f"crc-missing-{log}-uncommitted", *delete(f"{log}/.{L - 1}.crc"), *uncommitted)
    yield _case("crc-garbage-offset", write(f"offsets/.{L}.crc", "garbage"))
    yield _case("directory-offset-next", mkdir(f"offsets/{nxt}"))
    yield _case("directory-offset-next-uncommitted", mkdir(f"offsets/{nxt}"), *uncommitted)
    yield _case("directory-offset-next-uncommitted-2", mkdir(f"offsets/{nxt}"), *uncommitted, batches=2)
    yield _case("directory-offset-far", mkdir("offsets/50"))
    yield _case("directory-offset-latest", *delete_logs([L], [L]), mkdir(f"offsets/{L}"))
    yield _case("directory-offset-predecessor", *delete_logs([L - 1]), mkdir(f"offsets/{L - 1}"))
    yield _case("directory-commit-next", mkdir(f"commits/{nxt}"))
    yield _case("directory-commit-latest", *uncommitted, mkdir(f"commits/{L}"))
    yield _case("directory-commit-after-next", mkdir(f"commits/{nxt + 1}"), batches=2)
    yield _case("leftover-tmp-offset", write(f"offsets/.{nxt}.0a1b2c3d.tmp", "v1"), write(f"offsets/{nxt}.tmp", "v1"))
    yield _case("leftover-tmp-commit", write(f"commits/.{nxt}.0a1b2c3d.tmp", "v1"), write(f"commits/{nxt}.tmp", "v1"))
    yield _case("leftover-tmp-uncommitted", write(f"commits/.{L}.0a1b2c3d.tmp", "v1"), *uncommitted)
    yield _case("leftover-hidden", write(f"offsets/.{nxt}", "v1"), write(f"commits/_{nxt}", "v1"))
    yield _case("leftover-readme", write("offsets/README", "x"), write("commits/README.md", "x"), write("README", "x"))
    for name, odd in {
        "leading-zeros": "0012",
        "leading-zeros-007": "007",
        "minus-one": "-1",
        "minus-twelve": "-12",
        "fraction": "1.5",
        "too-large": "99999999999999999999",
        "largest-long": "9223372036854775807",
        "plus": "+12",
        "space": "12 ",
        "hex": "0x0c",
        "arabic-digits": "\u0661\u0662",
        "copy-suffix": f"{nxt} (1)",
        "underscore": "1_2",
    }.items():
        yield _case(f"name-{name}-offset", copy(f"offsets/{L}", f"offsets/{odd}"), form=name)
        yield _case(f"name-{name}-commit", copy(f"commits/{L}", f"commits/{odd}"), form=name)
    yield _case("name-leading-zero-only-offset", move(f"offsets/{L}", f"offsets/0{L}"))
    yield _case("name-leading-zero-only-commit", move(f"commits/{L}", f"commits/0{L}"))
    yield _case("name-leading-zero-only-predecessor", move(f"offsets/{L - 1}", f"offsets/0{L - 1}"))
    yield _case("copied-offset-as-next", copy(f"offsets/{L}", f"offsets/{nxt}"))
    yield _case(
        "copied-offset-and-commit-as-next",
        copy(f"offsets/{L}", f"offsets/{nxt}"),
        copy(f"commits/{L}", f"commits/{nxt}"),
    )
    yield _case("filled-predecessor", *delete_logs([L - 2, L - 1]), copy(f"offsets/{L - 3}", f"offsets/{L - 1}"))
    yield _case(
        "filled-predecessor-uncommitted",
        *delete_logs([L - 2, L - 1], [L]),
        copy(f"offsets/{L - 3}", f"offsets/{L - 1}"),
    )
    yield _case("backwards-offset-latest", replace(f"offsets/{L}", END, _body(2)))
    yield _case("backwards-offset-latest-uncommitted", replace(f"offsets/{L}", END, _body(2)), *uncommitted)
    yield _case("no-logs-folders", *({"op": "delete_tree", "path": path} for path in ("offsets", "commits")))
    yield _case("no-commits-folder", {"op": "delete_tree", "path": "commits"})
    yield _case("no-offsets-folder", {"op": "delete_tree", "path": "offsets"})


def _offsets_of(batch: int) -> list[Mutation]:
    """Give all batches after one its offsets, which a start then resumes from."""
    return [copy(f"offsets/{batch}", f"offsets/{to}") for to in range(batch + 1, L + 1)]


REMEDIED: dict[str, tuple[list[Mutation], list[Mutation]]] = {
    "unreadable-latest-offsets": ([write(f"offsets/{L}", "")], _offsets_of(L - 1)),
    "unreadable-latest-offsets-uncommitted": (
        [write(f"offsets/{L}", ""), *delete_logs(commits=[L])],
        _offsets_of(L - 1),
    ),
    "unreadable-latest-offsets-commits-behind": (
        [write(f"offsets/{L}", ""), *delete_logs(commits=[L - 1, L])],
        _offsets_of(L - 2),
    ),
    "unreadable-latest-commit": ([write(f"commits/{L}", "")], delete_logs(commits=[L])),
    "commits-ahead": (delete_logs([L]), _offsets_of(L - 1)),
    "commits-ahead-by-two": (delete_logs([L - 1, L]), _offsets_of(L - 2)),
    "commits-ahead-by-three": (delete_logs([L - 2, L - 1, L]), _offsets_of(L - 3)),
    "commits-behind": (delete_logs(commits=[L - 2, L - 1, L]), _offsets_of(L - 3)),
}
"""Damage, and the files that a remedy of ``ckpt inspect`` says to move away or write: a test compares the two."""


def _remedies() -> Iterator[Case]:
    for name, (damaged, remedy) in REMEDIED.items():
        yield Case(f"remedy-{name}", SAMPLE, (*damaged, *remedy), batches=2, sync_only=True)


def damage() -> Iterator[Case]:
    """Every case of this module but the gaps."""
    yield from _remedies()
    yield from _unreadable()
    yield from _metadata()
    yield from _traps()
