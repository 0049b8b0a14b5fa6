"""Disasters of the logs of the checkpoint: offsets, commits, metadata."""

from __future__ import annotations

import json
import shutil
import uuid

from tests.laws.operator.disasters.harm import (
    HARMS,
    Change,
    Menu,
    both,
    edit,
    flip_unnoticed_by_its_checksum,
    harm_all,
    keep_version,
    log_file,
    next_batch,
    reads,
    remove,
    remove_all,
    to_log,
    write,
)
from tests.support.spark.mutations import crc_of

MENU = Menu()

for _log in ("offsets", "commits"):
    for _harm, _do in HARMS.items():
        MENU.add(f"newest {_log} {_harm}", to_log(_log, 0, _do))
    MENU.add(f"newest {_log} of a newer version", edit(f"{_log}/{{newest}}", r"\Av\d+", "v9"))
    MENU.add(f"newest {_log} cut after its first line", to_log(_log, 0, keep_version))
    MENU.add(f"all {_log} lost", remove_all(f"{_log}/[0-9]*", f"{_log}/.*.crc"))
for _harm, _do in HARMS.items():
    MENU.add(f"offsets before the newest {_harm}", to_log("offsets", 1, _do))
    MENU.add(f"metadata {_harm}", harm_all(_do, lambda w: [w.checkpoint / "metadata"]))


def _lose(*names: tuple[str, int]) -> Change:
    return both(*(to_log(log, back, remove) for log, back in names))


MENU.add("commits before the newest lost", to_log("commits", 1, remove))
MENU.add(
    "an old batch lost from both logs",
    harm_all(remove, lambda w: [w.checkpoint / log / "1" for log in ("offsets", "commits")]),
)
MENU.add("two newest commits lost", _lose(*[("commits", 0)] * 2))
MENU.add("three newest commits lost", _lose(*[("commits", 0)] * 3))
MENU.add("two newest offsets lost", _lose(*[("offsets", 0)] * 2))
MENU.add("newest batch deleted by hand", _lose(("offsets", 0), ("commits", 0)))
MENU.add("two newest batches deleted by hand", _lose(("offsets", 0), ("commits", 0), ("offsets", 0), ("commits", 0)))
MENU.add(
    "offsets before the newest and newest commit lost",
    both(to_log("offsets", 1, remove), to_log("commits", 0, remove)),
)
MENU.add(
    "offsets before the newest and its commit lost", both(to_log("offsets", 1, remove), to_log("commits", 1, remove))
)
MENU.add("both logs lost", remove_all("offsets", "commits"))
MENU.add("another query id", lambda w, _: write(w.checkpoint / "metadata", json.dumps({"id": str(uuid.UUID(int=7))})))
MENU.add("checkpoint deleted", lambda w, _: remove(w.checkpoint))
MENU.add("checkpoint emptied", remove_all("*", ".*.crc"))
MENU.add(
    "checksum of the next offsets left over",
    lambda w, _: shutil.copyfile(crc_of(log_file(w, "offsets")), w.checkpoint / "offsets" / f".{next_batch(w)}.crc"),
)
MENU.add(
    "checksum of the next commit left over",
    lambda w, _: shutil.copyfile(crc_of(log_file(w, "commits")), w.checkpoint / "commits" / f".{next_batch(w)}.crc"),
)
MENU.add(
    "newest offsets flipped under their checksum", lambda w, _: flip_unnoticed_by_its_checksum(log_file(w, "offsets"))
)
MENU.add(
    "newest commit flipped under its checksum", lambda w, _: flip_unnoticed_by_its_checksum(log_file(w, "commits"))
)
MENU.add(
    "a folder named like the next batch",
    lambda w, _: write(w.checkpoint / "offsets" / next_batch(w) / "stray", "stray"),
)
MENU.add(
    "temporary files of a killed driver",
    lambda w, _: write(w.checkpoint / "offsets" / f".{next_batch(w)}.5c1f2ab6-0f5e-4c43-9a0b-1b7f0a6d9e11.tmp", "v1"),
)
MENU.add(
    "offsets copied by hand as the next batch",
    lambda w, _: write(w.checkpoint / "offsets" / next_batch(w), log_file(w, "offsets").read_text()),
)
MENU.add(
    "offsets of an older batch copied over the newest",
    lambda w, _: write(log_file(w, "offsets"), (w.checkpoint / "offsets" / "2").read_text()),
)
MENU.add(
    "a source's line lost from the newest offsets",
    lambda w, _: write(log_file(w, "offsets"), "\n".join(log_file(w, "offsets").read_text().split("\n")[:-1])),
    reads("files", "delta"),
)
