"""Start a service as a process of its own, wait until it answers, stop it by its process id."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

STARTED = "CKPT_TESTS_STARTED"
"""Set while a test runs that may start no service: the file that records what it tried to start."""


class Unavailable(Exception):
    """A service cannot be had on this machine, because."""


def cache() -> Path:
    """Where downloads outlive a test run: the user's own cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home, "spark-ckpt-tests")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def prepared(name: str, *steps: Sequence[str | Path]) -> Path:
    """A folder of the cache that these commands filled, run once ever; two test runs do not mix.

    ``{}`` in a command stands for the folder. Raises Unavailable with the last line of what failed.
    """
    folder, done = cache() / name, cache() / f"{name}.done"
    with open(cache() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            for step in steps:
                run([str(word).replace("{}", str(folder)) for word in step])
            done.touch()
    return folder


def pip_installed(name: str, requirement: str) -> Path:
    """A virtual environment of the cache that has a package. Raises Unavailable."""
    pip = ("{}/bin/python", "-m", "pip", "install", "--quiet", requirement)
    return prepared(name, [sys.executable, "-m", "venv", "{}"], pip)


def spark_home() -> Path:
    """The folder of the pyspark that is installed. Raises Unavailable."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Unavailable("pyspark is not installed")
    return Path(spec.origin).parent


def run(command: Sequence[str], user: str | None = None) -> None:
    """Run a command to its end, as another user if one is named.

    Raises Unavailable with the last line of what it said where that fails.
    """
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=900, user=user)
    except FileNotFoundError as error:
        raise Unavailable(f"{command[0]} is not installed") from error
    if ran.returncode:
        said = (ran.stderr or ran.stdout).strip().splitlines() or ["nothing was said"]
        raise Unavailable(f"{' '.join(command[:4])} … failed: {said[-1]}")


def _check_allowed(command: Sequence[str | Path]) -> None:
    if record := os.environ.get(STARTED):
        with open(record, "a") as out:
            print(*command[:4], file=out)
        raise RuntimeError(f"a test without the marker service may not start {command[0]}")


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listening(port: int) -> bool:
    """Whether something accepts connections on a loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def running(
    command: Sequence[str | Path],
    folder: Path,
    ready: Callable[[], bool],
    timeout: float = 240,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
) -> Iterator[None]:
    """Run a service in ``folder`` (its output goes to ``service.log`` there) until the block ends.

    Raises Unavailable if it ends, or is not ready within ``timeout`` seconds; RuntimeError where the running test may
    start no service.
    """
    _check_allowed(command)
    with open(folder / "service.log", "wb") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder if user is None else "/",
            env=env,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            user=user,
        )
        try:
            deadline = time.monotonic() + timeout
            while not ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    said = (folder / "service.log").read_text(errors="replace").strip().splitlines()
                    raise Unavailable(f"{Path(command[0]).name} did not start: {(said or [''])[-1]}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def kill_when_ready(command: Sequence[str], log: Path) -> None:
    """Run a program until it says `ready`, and kill it with all that it started: nobody gets to tidy up.

    Raises RuntimeError with the end of its log if it says something else.
    """
    root = Path(__file__).parents[3]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, cwd=root, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        with process:
            said = process.stdout.readline() if process.stdout else ""
            os.killpg(process.pid, signal.SIGKILL)  # a JVM too
    if said != "ready\n":
        raise RuntimeError(f"{' '.join(command[:3])} failed: {log.read_text(errors='replace')[-5000:]}")


_USED: list[int] = []  # locks of the services that this process shares with others


@contextmanager
def shared(folder: Path, start: Callable[[Path], AbstractContextManager[str]]) -> Iterator[str]:
    """Share a service with the other processes of a test run: the first that asks starts it in ``folder``.

    Gives what ``start`` gives, and ends the service when no process uses it any more. Raises what ``start`` raises.
    """
    folder.mkdir(exist_ok=True)
    address = folder / "address"
    _USED.append(_lock(folder / "users", fcntl.LOCK_SH))
    with ExitStack() as service:
        with open(folder / "starting", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            started_here = not address.exists()
            if started_here:
                address.write_text(service.enter_context(start(folder)))
        try:
            yield address.read_text()
        finally:
            while _USED:  # all of them: two processes that started one service each would wait for each other
                os.close(_USED.pop())
            if started_here:
                os.close(_lock(folder / "users", fcntl.LOCK_EX))


def _lock(file: Path, kind: int) -> int:
    opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(opened, kind)
    return opened
