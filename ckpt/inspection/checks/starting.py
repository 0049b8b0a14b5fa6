"""Findings about the start that is about to be tried: another driver that is alive, settings of its session."""

from collections.abc import Iterable, Iterator, Mapping

from ckpt import settings
from ckpt.checkpoint.checkpoint import Checkpoint
from ckpt.restart import diagnoses
from ckpt.restart.findings import Finding
from ckpt.versions import Spark


def find_second_driver(changed: str | None) -> Iterator[Finding]:
    """Find another driver: ``changed`` is the path of a file that differed from one look to the next."""
    if changed is not None:
        yield Finding(diagnoses.starting.SECOND_DRIVER, changed, "it changed while ckpt was looking")


def find_missing_batches(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Find a checkpoint without a batch, where there has to be one."""
    if checkpoint.offsets.latest is None:
        yield Finding(diagnoses.starting.NOTHING_HERE, "offsets", "no batch is planned")


def compare_state_format(
    checkpoint: Checkpoint, versions: Iterable[Spark], session: Mapping[str, str], *, all_known: bool
) -> Iterator[Finding]:
    """Compare the state store checkpoint format, which the offset log does not record, with the session's.

    Args:
        checkpoint: Whose start it is.
        versions: That may start the query.
        session: Its settings.
        all_known: These are all settings that it has.

    """
    state = checkpoint.state
    if state is None or not state.operators or checkpoint.offsets.latest is None:
        return
    if not any(version.rules.takes_state_format for version in versions):
        return
    name, needed = settings.CHECKPOINT_FORMAT, str(state.format_version)
    value = session.get(name, "1" if all_known else None)
    if value == needed or (value is None and needed == "1"):
        return
    diagnosis, why = diagnoses.starting.WRONG_SETTING, f"; the session has {name}={value}"
    if value is None:
        diagnosis, why = diagnoses.starting.NEEDED_SETTING, f", which needs {name}={needed}"
    detail = f"the state has checkpoint format {needed}{why}"
    yield Finding(diagnosis, "state", detail, f"Start the query with `{name}={needed}`.")
