"""Run every command on mutants of the samples, and say where one breaks its promises.

Half of the mutants hold a secret of the generated set, and half lie in a folder whose name a shell would obey; then
every command line of a page is run in a shell. What writes leaves nothing where it is refused.

python -m tests.laws.hostile.fuzz FIRST COUNT        prints a JSON object for each fault
python -m tests.laws.hostile.fuzz FIRST COUNT DIR    keeps the mutants with faults in DIR

"""

import gc
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from ckpt.inspection import activity
from tests.commands import contract
from tests.conftest import OUTPUTS, Run
from tests.laws.hostile.measure import Cost, measured, run_here
from tests.laws.hostile.mutants import mutate
from tests.laws.hostile.test_secrets import SECRET, generated
from tests.laws.hostile.test_shell import COMMAND, said
from tests.support.cli import load_app

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "sample_checkpoints"
NAMES = [
    *("stateless-3.5", "stateless-killed-3.5", "two-sources-offsets-v2-4.2", "named-sink-4.3"),
    *("async-4.2", "kafka-4.2"),
    *("delta-4.2", "file-source-3.5", "continuous-4.2", "async-kafka-4.2", "aggregation-hdfs-3.5"),
    *("aggregation-changelog-4.0", "aggregation-rocksdb-4.2", "aggregation-format2-4.2", "join-v3-changelog-4.2"),
    *("join-v4-changelog-4.3", "join-hdfs-3.5", "session-window-hdfs-3.5", "dedup-hdfs-4.0", "limit-hdfs-4.2"),
    *("tws-changelog-4.0", "tws-rocksdb-4.2", "tws-format2-4.3", "tws-avro-changelog-4.2"),
]
CPU_S, PEAK_MIB = 2.0, 300.0
PAYLOAD = "it's $(touch PWN) ;touch PWN;`touch PWN`"
SECRET_TEXTS = [text for text in generated() if "\\\\" not in text]
WRITING: dict[str, list[list[str]]] = {
    "repair": [["--apply", "--backup", "{out}", "--grace", "0"], ["--leftovers", "--accept-replay"]],
    "repair-async": [["--apply", "--backup", "{out}", "--grace", "0", "--accept-replay"]],
    "rewind": [
        ["--to-batch", "2"],
        ["--to-batch", "3", "--apply", "--backup", "{out}", "--grace", "0"],
        ["--to-time", "2023-11-14T22:13:25Z", "--from", "{room}"],
    ],
    "skip": [[], ["--apply", "--backup", "{out}", "--grace", "0"]],
    "prune": [["--apply", "--backup", "{out}", "--grace", "0"]],
    "copy": [["{out}"], ["{out}", "--plan"], ["{out}", "--batch", "3", "--new-id"], ["{out}", "--keep", "last=2"]],
    "rewrite": [["{out}", "--jobs", "1"], ["{out}", "--plan"], ["{out}", "--jobs", "1", "--salvage", "--accept-loss"]],
    "offsets set": [["--to", "{{}}"], ["--shift", "0=+1"], ["--to", "earliest"], ["--to", "latest"]],
    "preflight": [["--fix", "safe", "--backup", "{out}", "--grace", "0"]],
}
"""Commands that may write, where the exit code is 0."""
COMMANDS: dict[str, list[list[str]]] = {
    "explain": [["x", "--checkpoint"]],
    "offsets export": [[]],
    "inspect": [
        [],
        ["--batches", "0"],
        ["--batches", "1", "--spark", "4.0"],
        ["--spark", "3.5", "--progress", "async"],
        ["--deep"],
    ],
    "scan": [[], ["--depth", "0", "--fail-on", "error"], ["--jobs", "1", "--changed-since", "1d"]],
    "preflight": [[], ["--spark", "4.0", "--conf", "spark.sql.shuffle.partitions=3"]],
    "repair-async": [[], ["--strategy", "fill"], ["--strategy", "rewind"], ["--accept-replay", "--spark", "4.3"]],
    "relocate": [[], ["--to", "s3a://bucket/x"], ["--to", "/moved/here"]],
    "evolve": [
        ["--in-place", "--to", "docs/query.json"],
        ["--in-place", "--to", "docs/query.json", "--map-source", "-=0"],
    ],
    "prune": [[], ["--keep-batches", "2"]],
    "offsets show": [[], ["--batch", "3"]],
    "state verify": [["--jobs", "1"]],
    "handoff": [[], ["--snippet", "python"], ["--snippet", "scala"], ["--batch", "3"]],
    "migrate transform-with-state": [
        ["--plan", "--to", "{out}"],
        ["--plan", "--to", "{out}", "--api", "row", "--batch", "3"],
        ["--plan", "--to", "{out}", "--operator", "0", "--format", "delta"],
    ],
    "migrate changelog": [["--to", "on"], ["--to", "off"], ["--to", "on", "--verify", "--files-only"]],
    "migrate real-time": [[], ["--spark", "4.2"]],
    "migrate provider": [["--to", "rocksdb"], ["--to", "hdfs"]],
    "state show": [[], ["--key", "key=3"], ["--batch", "2", "--limit", "2"], ["--timers"], ["--side", "left"]],
    "state history": [["--key", "key=3"], ["--key", "key=3", "--side", "left"], ["--timers", "--key", "key=2"]],
    "state keys": [[], ["--limit", "1"], ["--side", "left"]],
    "state count": [[], ["--batch", "1"]],
    "state diff": [["--from-batch", "0"], ["--from-batch", "1", "--to-batch", "2", "--limit", "0"]],
    "export-state": [
        ["--plan", "--to", "{out}"],
        ["--plan", "--to", "{out}", "--all-units", "--shape", "raw"],
        ["--plan", "--to", "{out}", "--shape", "initial-state", "--batch", "3"],
        ["--plan", "--to", "{out}", "--operator", "0", "--changes-from", "2", "--partition-id"],
        ["--plan", "--to", "{out}", "--side", "left", "--format", "csv"],
        ["--plan", "--to", "{out}", "--timers"],
    ],
}


_BATCH = 100


class Master:
    """A sample on the file system of the mutants, from which they are linked."""

    def __init__(self, sample: Path, place: Path) -> None:
        shutil.copytree(sample, place)
        tree = [(folder[len(str(place)) :], files) for folder, _, files in os.walk(place)]
        self._folders = [folder for folder, _ in tree]
        self._files = [f"{folder}/{name}" for folder, files in tree for name in files]
        self._place = place

    def copy(self, to: Path) -> None:
        """Make a folder whose files are those of the sample."""
        for folder in self._folders:
            os.mkdir(f"{to}{folder}")
        for file in self._files:
            os.link(f"{self._place}{file}", f"{to}{file}")


def faults_of(number: int, masters: Mapping[str, Master], room: Path, app: Any) -> Iterator[dict[str, Any]]:
    """Make one mutant in an empty folder, run one command on it, and yield what is wrong."""
    rng = Random(number)
    sample = rng.choice(NAMES)
    checkpoint = room / (PAYLOAD if number % 2 else "mutant")
    masters[sample].copy(checkpoint)
    how = mutate(rng, checkpoint)
    if number % 4 > 1:
        _plant(rng, checkpoint)
    writes = rng.random() < len(WRITING) / (len(WRITING) + len(COMMANDS))
    commands = WRITING if writes else COMMANDS
    command, output = rng.choice(list(commands)), rng.choice(OUTPUTS)
    options = [word.format(out=room / "out", room=room) for word in rng.choice(commands[command])]
    words = [*command.split(), *([] if command == "explain" else [str(checkpoint)]), *options, "-o", output]
    if command == "explain":
        words = ["explain", rng.choice(SECRET_TEXTS), "--checkpoint", str(checkpoint), "-o", output]
    before = _facts(room)
    signal.setitimer(signal.ITIMER_PROF, 20)
    ended, cost = run_here(app, words)
    signal.setitimer(signal.ITIMER_PROF, 0)
    if cost.peak_mib > PEAK_MIB:  # this process holds what all commands import, and one of its own does not
        cost = Cost(cost.cpu_s, measured(*words)[1].peak_mib)
    dear = [f"it cost {cost}"] if cost.cpu_s > CPU_S or cost.peak_mib > PEAK_MIB else []
    after = _facts(room)
    refused = writes and (ended.exit_code > 1 or (ended.exit_code == 1 and command != "copy"))
    wrote = ["it left something"] if refused and _shape(after) != _shape(before) else []
    wrote += ["it wrote"] if not writes and after != before else []
    shown = ended.stdout + ended.stderr
    told = [f"it shows the secret {shown[max(at - 60, 0) : at + 40]!r}"] if (at := shown.find(SECRET[9:])) >= 0 else []
    shell = list(_obey(ended.stdout, room)) if output == "table" and number % 2 else []
    for fault in (*faults_in(ended, command, output), *dear, *wrote, *told, *shell):
        yield {"mutant": number, "sample": sample, "how": how, "words": words, "fault": fault}


def _plant(rng: Random, checkpoint: Path) -> None:
    """Put texts with secrets into settings, sources and the query's metadata."""
    for _ in range(3):
        text = rng.choice(SECRET_TEXTS)
        logs = [file for file in checkpoint.glob("offsets/[0-9]*") if file.is_file() and file.stat().st_size < 1 << 16]
        if not logs:
            return
        log = max(logs, key=lambda file: (len(file.name), file.name))
        lines = log.read_bytes().split(b"\n")
        member = json.dumps({f"{rng.random()}": text, "kafka.sasl.password": f"p{SECRET}"})[1:-1].encode()
        kept = [line.replace(b'"conf":{', b'"conf":{' + member + b",") for line in lines]
        if rng.random() < 0.5:
            kept[-1:] = [json.dumps(rng.choice([text, {text: 5}, {"password": f"p{SECRET}", "x": text}])).encode()]
        log.unlink()
        log.write_bytes(b"\n".join(kept))


def _shape(facts: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, int]]:
    """Names, kinds and sizes; of folders no sizes."""
    return {path: (fact[1], 0 if stat.S_ISDIR(fact[1]) else fact[3]) for path, fact in facts.items()}


def _obey(page: str, room: Path) -> Iterator[str]:
    """Run the command lines of a page in a shell where ckpt is a stub."""
    for line in page.splitlines():
        found = COMMAND.match(line)
        if found and "CHECKPOINT" not in found[1]:
            shell = room.parent / f"shell-{room.name}"
            shell.mkdir()
            try:
                said(found[1], shell)
            except (AssertionError, subprocess.SubprocessError, OSError) as error:
                yield f"a shell obeys {found[1]!r}: {error}"
            finally:
                shutil.rmtree(shell)


def faults_in(ended: Run, command: str, output: str) -> Iterator[str]:
    if ended.exit_code not in (0, 1, 2, 3):
        yield f"exit code {ended.exit_code}"
    lines = ended.stderr.splitlines()
    if not all(line.startswith("ckpt: ") and line.isprintable() for line in lines):
        yield f"on standard error: {ended.stderr[-1500:]}"
    if not ended.stdout:
        if ended.exit_code not in (2, 3) or len(lines) != 1:
            yield f"no document, exit code {ended.exit_code}, {len(lines)} lines on standard error"
    elif not all(line.isprintable() for line in ended.stdout.split("\n")):
        yield "control characters on standard output"
    elif output == "json":
        yield from _no_document(ended.stdout, command)


def _no_document(text: str, command: str) -> Iterator[str]:
    """What is wrong with JSON: what is no JSON, a key twice, what the contract does not publish."""
    try:
        document = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        yield f"no JSON: {error}"
    else:
        yield from list(contract.disagreements(document, command))[:3]
        if command == "inspect":
            yield from contract.contradictions(document)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _facts(top: Path) -> Mapping[str, tuple[int, ...]]:
    """All that writing would change: what is there, and when a content or an inode changed."""
    found = {}
    for folder, names, files in os.walk(top):
        for path in (folder, *(f"{folder}/{name}" for name in (*names, *files))):
            of = os.lstat(path)
            found[path] = (of.st_ino, of.st_mode, of.st_nlink, of.st_size, of.st_mtime_ns, of.st_ctime_ns)
    return found


def fuzz(numbers: range, keep: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield the faults of some mutants; each hundred of them gets a process, for one could end it."""
    app = load_app()
    with tempfile.TemporaryDirectory() as place:
        masters = {name: Master(SAMPLES / name, Path(place, "samples", name)) for name in NAMES}
        _warm_up(app, Path(place))
        for at in range(0, len(numbers), _BATCH):
            found = Path(place, "found")
            found.write_text("")
            child = os.fork()
            if child == 0:
                _batch(numbers[at : at + _BATCH], masters, keep or Path(place), app, found, kept=keep is not None)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            yield from map(json.loads, found.read_text().splitlines())
            if code:
                yield {"mutant": f"one of {numbers[at : at + _BATCH]}", "fault": f"exit code {code}"}


def _batch(
    numbers: range, masters: Mapping[str, Master], place: Path, app: Any, found: Path, *, kept: bool
) -> NoReturn:
    """What a process does for some mutants; it never returns."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        signal.signal(signal.SIGPROF, _too_slow)
        for number in numbers:
            room = place / str(number)
            room.mkdir()
            faults = list(faults_of(number, masters, room, app))
            if not (faults and kept):
                shutil.rmtree(room)
            with found.open("a") as told:
                told.writelines(json.dumps(fault) + "\n" for fault in faults)
        code = 0
    finally:
        if code:
            sys.excepthook(*sys.exc_info())
        os._exit(code)


def _too_slow(*_: object) -> NoReturn:
    raise TimeoutError("20 s of CPU")


def _warm_up(app: Any, place: Path) -> None:
    """Import all that a run imports, so that no mutant is charged for it; every mutant is young."""
    activity.LOOKS_APART_S = 0
    for commands in (COMMANDS, WRITING):
        for command, options in commands.items():
            for output in OUTPUTS:
                words = [word.format(out=place / "out") for word in options[0] if word != "--apply"]
                run_here(app, [*command.split(), str(SAMPLES / NAMES[0]), *words, "-o", output])
    contract.shapes = cache(contract.shapes)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    first, count, *keep = sys.argv[1:]
    for fault in fuzz(range(int(first), int(first) + int(count)), Path(*keep) if keep else None):
        sys.stdout.write(json.dumps(fault) + "\n")
        sys.stdout.flush()
