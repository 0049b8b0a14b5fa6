"""Each incident under ``ckpt preflight --fix safe``: the fixes that were applied, and the rows after the start.

`python -m tests.laws.operator.unattended [SEED ...] [--folder=FOLDER]` records it, as `recorder` does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ckpt.inspection import activity
from tests.laws.next_obeyed import run
from tests.laws.operator.obeying import follow, suffer
from tests.laws.operator.recorder import Worlds, record
from tests.laws.operator.seeds import Seed

FILE = Path(__file__).with_name("unattended.jsonl")


def tell(worlds: Worlds, seed: Seed, _: Path) -> dict[str, Any]:
    """Let an incident happen, ask for safe fixes, and if any was applied let the operator start and count."""
    world = worlds.fresh(seed.kind)
    suffer(world, seed)
    try:
        document = run("preflight", str(world.checkpoint), "--fix", "safe", "--grace", "0")
    except AssertionError:  # there is no checkpoint any more
        return {"go": False, "fixed": []}
    answer = {"go": document["go"], "fixed": [fix["fix"] for fix in document["fixed"]]}
    if document["fixed"]:
        story = follow(world, asked=False)
        answer |= {"class": str(story.outcome), "counted": story.as_json()["counted"]}
    sys.stderr.write(f"{seed.number} {json.dumps(answer)}\n")
    return answer


if __name__ == "__main__":
    activity.LOOKS_APART_S = 0.0  # nobody else writes here
    record(FILE, tell, sys.argv[1:])
