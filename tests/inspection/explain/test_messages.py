"""Every message that Spark answered in the tests of ckpt, on any version, is explained, or declared unknown."""

import json

from tests.inspection.explain.messages import DECLARED, explained, messages


def test_every_recorded_message_is_explained_as_declared() -> None:
    declared = json.loads(DECLARED.read_text())
    wrong = []
    seen = set()
    for sign, text in messages():
        seen.add(sign)
        first = explained(text)
        if sign not in declared:
            wrong.append(f"new, look at it, and run python -m tests.record: {sign}")
        elif first != declared[sign]:
            wrong.append(f"{first} and not {declared[sign]}: {text[:300]}")

    assert wrong == []
    assert declared.keys() == seen, "declared, and recorded nowhere"
    assert len([one for one in declared.values() if one]) > 130


def test_what_is_unknown_has_no_words_of_its_own() -> None:
    """Without a stack these say nothing of a checkpoint; with one, `test_logs.py` shows that most of them are found."""
    unknown = [sign for sign, entry in json.loads(DECLARED.read_text()).items() if entry is None]
    assert len(unknown) < 30
