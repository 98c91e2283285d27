"""The processes that are measured: Forebay and each peer. One JSON object a line, both ways."""

import json
import os
import select
import subprocess
import time


class Failed(Exception):
    """The process died, took too long, or answered with an error."""


class Arm:
    """One process, started at construction and stopped when it fails; `alive` says whether it can be asked."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.command = command
        self.environment = {**os.environ, **(environment or {})}
        self.start()

    def start(self):
        self.buffer = b""
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=self.environment)

    @property
    def alive(self):
        return self.process is not None

    def send(self, request):
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.stop()
            raise Failed(f"{self.name}: the process has ended")

    def receive(self, timeout):
        """The next answer."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                raise Failed(f"{self.name}: no answer in {timeout:.0f} s")
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                code = self.process.wait()
                self.stop()
                raise Failed(f"{self.name}: the process ended with status {code}")
            self.buffer += part
        line, self.buffer = self.buffer.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def ask(self, request, timeout=60):
        self.send(request)
        return self.receive(timeout)

    def stop(self):
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None
