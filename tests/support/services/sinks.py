"""Databases that the code of a query writes to, on loopback ports: PostgreSQL, Cassandra, and DynamoDB by moto.

The clients are the dependency group `sinks`, in a folder of the cache: they are no packages of ckpt. PostgreSQL is in
a wheel, Cassandra on Maven Central.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.support.places import ROOT
from tests.support.services.maven import jars
from tests.support.services.process import free_port, listening, prepared, run, running
from tests.support.services.s3 import s3_server

_EXPORTED = (
    *(f"java.base/jdk.internal.{name}" for name in ("misc", "ref")),
    *(f"java.rmi/sun.rmi.{name}" for name in ("registry", "server", "transport.tcp")),
    "java.management/com.sun.jmx.remote.security",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.sql/java.sql",
)
_OPENED = (
    *(f"java.base/java.{name}" for name in ("io", "lang", "lang.module", "lang.reflect", "net", "nio", "util")),
    *(f"java.base/java.util.concurrent{name}" for name in ("", ".atomic")),
    *(f"java.base/jdk.internal.{name}" for name in ("loader", "math", "module", "ref", "reflect", "util.jar")),
    "java.base/sun.nio.ch",
    "jdk.management/com.sun.management.internal",
)
"""Packages of Java 17 as `jvm17-server.options` of Cassandra opens them."""
_CASSANDRA = """cluster_name: ckpt
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: 1
endpoint_snitch: SimpleSnitch
seed_provider:
- class_name: org.apache.cassandra.locator.SimpleSeedProvider
  parameters: [{{seeds: "127.0.0.1:{gossip}"}}]
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
native_transport_port: {port}
storage_port: {gossip}
data_file_directories: [{folder}/data]
commitlog_directory: {folder}/commitlog
hints_directory: {folder}/hints
saved_caches_directory: {folder}/caches
cdc_raw_directory: {folder}/cdc
commitlog_sync: periodic
commitlog_sync_period: 10000ms
"""


def clients() -> Path:
    """The folder of the clients, for the end of `sys.path`; downloaded once. Raises Unavailable."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", "{}"]
    return prepared("sinks", [*pip, "--group", f"{ROOT / 'pyproject.toml'}:sinks"])


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Start PostgreSQL with its tables in a folder; gives what psycopg2 connects to. Raises Unavailable."""
    port, programs, user = free_port(), clients(), None
    home = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))
    try:
        if os.geteuid() == 0:  # whom PostgreSQL refuses; `nobody` may not read the cache of root
            for name in ("pgserver", "pgserver.libs"):
                shutil.copytree(programs / name, home / name, symlinks=True)
            programs = home
            for path in (home, *home.rglob("*")):
                shutil.chown(path, "nobody")
            user = "nobody"
        data, program = home / "data", programs / "pgserver" / "pginstall"
        run([str(program / "bin" / "initdb"), "-D", str(data), "-U", "me", "-A", "trust", "-E", "UTF8"], user)
        quick = ["-c", "fsync=off", "-c", "unix_socket_directories="]
        command: list[str | Path] = [
            program / "bin" / "postgres",
            "-D",
            data,
            "-h",
            "127.0.0.1",
            "-p",
            str(port),
            *quick,
        ]
        with running(command, folder, lambda: listening(port), user=user):
            yield f"host=127.0.0.1 port={port} user=me dbname=postgres"
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def cassandra(folder: Path) -> Iterator[str]:
    """Start a node of Cassandra; gives its port. Raises Unavailable."""
    port, gossip = free_port(), free_port()
    (folder / "cassandra.yaml").write_text(_CASSANDRA.format(port=port, gossip=gossip, folder=folder))
    flags = [f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTED]
    flags += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    settings = [f"-Dcassandra.config=file://{folder}/cassandra.yaml", f"-Dcassandra.storagedir={folder}"]
    zero = ("jmx.remote.port", "ring_delay_ms", "skip_wait_for_gossip_to_settle")
    settings += [f"-Dcassandra.{name}=0" for name in zero]
    settings += ["-Djava.security.manager=allow", "-Dcassandra-foreground=yes"]
    java = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", *flags, *settings, "-cp", f"{jars('cassandra')}/*"]
    with running([*java, "org.apache.cassandra.service.CassandraDaemon"], folder, lambda: listening(port)):
        yield str(port)


@contextmanager
def dynamodb(folder: Path) -> Iterator[str]:
    """Start moto's server, which has DynamoDB; gives its URL. Raises Unavailable."""
    with s3_server(folder) as server:
        yield f"http://127.0.0.1:{server.port}"


SERVICES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "postgresql": postgresql,
    "cassandra": cassandra,
    "dynamodb": dynamodb,
}
