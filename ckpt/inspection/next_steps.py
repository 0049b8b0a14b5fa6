"""Steps that are not values yet."""

from collections.abc import Iterable
from dataclasses import replace

from ckpt.advice import Call, Do, Instruction, Needs, RowCost, RowsEffect, Step, Words, plain
from ckpt.restart.legacy import _FROM_COPY, to_advice, to_call, to_words


def NextStep(
    what: str,
    shell: str = "",
    rows: RowCost = RowCost.UNKNOWN,
    writes: bool = False,
    before: tuple[str, ...] = (),
    stop: bool = False,
) -> Step:
    call = to_call(shell) if shell.startswith("ckpt ") else None
    words = to_words(what) if not shell or call is not None else plain(f"{what} ") + to_words(f"`{shell}`")
    doing = call if isinstance(call, Call) else Instruction(Do.CHANGE)
    needs = Needs.COPY if stop or needs_copy(what) else Needs.NOTHING
    return Step(
        doing,
        words,
        RowsEffect(rows),
        writes,
        tuple(to_words(f"{text[:1].upper()}{text[1:]}.") for text in before),
        needs,
        stop=stop,
    )


def split_remedy(remedy: str) -> tuple[Step, ...]:
    advice = to_advice(remedy)
    return tuple(advice.mark_stop().all_steps()) if advice else ()


def needs_copy(text: str) -> bool:
    return bool(_FROM_COPY.search(text))


def drop_repairs(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(
        replace(step, alternatives=())  # of those that it had, the ones that are kept are in ``steps`` too
        for step in steps
        if not any(isinstance(part, Call) and part.name == "repair" for part in (step.do, *step.what.parts))
        and step.needs is not Needs.COPY
        and not needs_copy(str(step.what))
    )


__all__ = ["NextStep", "RowCost", "Words", "drop_repairs", "needs_copy", "split_remedy"]
