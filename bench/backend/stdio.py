"""The backend on standard input and output: `python -S -m bench.backend.stdio ERA [CORE]`."""

import json
import os
import sys

from bench.backend.answers import Answers, head
from bench.work import Era

CHUNK = 1 << 16


def main() -> None:
    era, *core = sys.argv[1:]
    if core:
        os.sched_setaffinity(0, {int(core[0])})
    answers = Answers(Era(era))
    rest = b""
    while chunk := os.read(0, CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        said: list[bytes] = []
        for line in lines:
            message = json.loads(line)
            if "id" in message and "method" in message:
                said += (head(message["id"]), answers.tail(message["method"], message.get("params") or {}), b"\n")
        if said:
            _write(b"".join(said))


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(1, left) :]


if __name__ == "__main__":
    main()
