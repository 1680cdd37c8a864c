"""A Redis of the benchmark's own."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

from bench.processes import Launch, free_port, running

PROGRAM = "redis-server"
START_SECONDS = 20.0


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


@contextmanager
def redis() -> Iterator[str]:
    """Yield its URL. It is configured as for replicas: it writes to a file every second."""
    with TemporaryDirectory(prefix="emceepee-bench-") as folder:
        path = Path(folder) / "redis.sock"
        port = free_port()
        command = (
            *(PROGRAM, "--bind", "127.0.0.1", "--port", str(port), "--unixsocket", str(path), "--dir", folder),
            *("--save", "", "--appendonly", "yes", "--appendfsync", "everysec"),
        )
        with running(Launch(command), beside_us=True) as child:
            give_up = perf_counter() + START_SECONDS
            while not path.exists():
                if perf_counter() > give_up or not child.is_running:
                    raise RuntimeError(f"Redis did not start: {child.last_words()}")
                sleep(0.01)
            yield f"redis://127.0.0.1:{port}/0"
