"""A plugin of ckpt for a sink that keeps the id of its newest batch, of whichever query, in one file."""

from collections.abc import Mapping
from pathlib import Path

from ckpt.advice import Do, do, words
from ckpt.errors import StorageError
from ckpt.live.sink.records import SinkLog
from ckpt.restart.sinks import Sink

RULES = Sink(
    "ledger",
    drops_same_query=True,
    drops_new_query=True,
    new_checkpoint=lambda _: words("Use a new ledger."),
    taken_back=lambda seen: do(Do.CHANGE, words("Write {kept} into the ledger.", kept=seen.kept)),
)


def read_ledger(uri: str, storage_options: Mapping[str, str]) -> SinkLog | None:
    """Read which batches a ledger has; None where the place is no ledger."""
    scheme, _, path = uri.partition(":")
    if scheme != "ledger":
        return None
    try:
        return SinkLog(uri, "ledger", last_batch=int(Path(path).read_text()), rules=RULES)
    except OSError as error:
        raise StorageError(f"the ledger cannot be read: {error.strerror}") from None
