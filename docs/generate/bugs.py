"""``docs/known-bugs.md``, from the table of known bugs of Spark's releases."""

import re

from ckpt.inspection.bugs import Bug, known_bugs, list_tried_releases

HEAD = """# Known bugs

`ckpt inspect CHECKPOINT --spark 3.5.3` finds which bugs of a release a checkpoint can hit (CKPT486).
`ckpt preflight` and `ckpt scan` have the same option.
If a release was not tested, ckpt says that its bugs are unknown (CKPT487).

Written by `make docs` from `ckpt/inspection/bugs.toml`.
Each bug of Spark was run on the releases @TRIED.
It occurred on those under "on", and on no later release of the same minor version.
A bug of a connector was run on the first and the last release under "on", and on the one that fixes it.
No file of a checkpoint says which release of a connector a query uses, so ckpt names the releases that have the bug.
Then the query of each bug was continued with the release that fixes the bug: nothing more was lost or changed.
The table leaves out bugs that could not be reproduced.

| bug | on | fixed in | what happens |
|---|---|---|---|
"""


def bugs_page() -> str:
    """``docs/known-bugs.md`` as it should read."""
    rows = [
        f"| [{bug.id}](#{_anchor(bug.id)}) | {_name(bug, 0)} | {_name(bug, 2)} | {bug.title} |" for bug in known_bugs()
    ]
    *before, newest = list_tried_releases()
    head = HEAD.replace("@TRIED", f"{', '.join(before)} and {newest}")
    return head + "\n".join(rows) + "\n\n" + "\n".join(map(_describe, known_bugs()))


def _name(bug: Bug, part: int) -> str:
    if part == 2:
        named = dict.fromkeys(fixed for *_, fixed in bug.ranges)
    else:
        named = dict.fromkeys(first if first == last else f"{first} to {last}" for first, last, _ in bug.ranges)
    return " ".join([*([bug.connector.removeprefix("the ")] if bug.connector else []), ", ".join(named)])


def _anchor(text: str) -> str:
    return re.sub(r"[^a-z0-9-]", "", text.lower())


def _describe(bug: Bug) -> str:
    of = "the releases in the table"
    if bug.connector:
        of = f"any release of Spark {bug.spark}" if bug.spark else "the releases before the one that fixes it"
    lines = [
        f"## {bug.id}",
        "",
        f"**{bug.title}.** What happens: {bug.happens}.",
        f"How it shows: {bug.shows}",
        f"On {of}, ckpt reports this bug if a checkpoint has {_needs(bug)}.",
        *([f"Without an upgrade: {bug.avoid}"] if bug.avoid else []),
    ]
    return "\n".join(lines) + "\n"


def _needs(bug: Bug) -> str:
    operators = " or ".join(map(_quote, bug.operators))
    needs = [
        *([f"a source of the kind `{bug.source}`"] if bug.source else []),
        *(["a planned batch without a commit"] if bug.uncommitted else []),
        *([f"the operator {operators}"] if operators else []),
        *(["several stateful operators"] if bug.several_operators else []),
        *(["several sources"] if bug.several_sources else []),
        *(["no stateful operator"] if bug.stateless else []),
        *(["a struct, an array or a map inside a value of state"] if bug.nested_state else []),
        *(["a value of state without columns"] if bug.keys_only else []),
        *([f"a column of a key of state of the name or type {' or '.join(map(_quote, bug.key))}"] if bug.key else []),
        *([f"a variable of the kind `{bug.variable}`"] if bug.variable else []),
        *(
            ["a folder in `offsets` or `commits` whose name is a number above the next batch"]
            if bug.numbered_folder
            else []
        ),
    ]
    return " and ".join(needs)


def _quote(name: str) -> str:
    return f"`{name}`"
