"""Work in processes of its own: Ctrl-C is for whoever started them."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

from ckpt.processes import Processes
from tests.support.places import ROOT


def echo(place: str) -> Callable[[str], Iterator[str]]:
    """Work that gives its tasks back."""
    return lambda task: iter([f"{place}{task}"])


def interrupted() -> None:
    """Ctrl-C in a terminal, which reaches every process, before any worker was told its work."""
    signal.signal(signal.SIGINT, lambda *_: None)
    answers = Processes(2).run(echo, "did ", ["a", "b"])
    started = subprocess.Popen.__init__

    def starting(*given: object, **named: object) -> None:
        started(*given, **named)  # type: ignore[call-overload]
        os.killpg(0, signal.SIGINT)

    subprocess.Popen.__init__ = starting  # type: ignore[method-assign]
    sys.stdout.write(str(sorted(answer for _, answer in answers)))


def test_an_interrupt_reaches_no_worker_while_its_python_starts() -> None:
    """It would tell of it with a traceback of its own."""
    run = subprocess.run(
        [sys.executable, "-c", "from tests.test_processes import interrupted; interrupted()"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("['did a', 'did b']", "")
