"""Runs a program without the log lines that nobody who runs it can do anything about: quiet.py COMMAND...

TensorFlow and oneDNN write some of them before any setting can tell them not to, so they are taken out of the output; nothing that the
program computes changes. Where the output goes to a terminal, the program sees one too. Of a run over several ranks, the launcher's
prefix of rank 0 is removed, and that of the others reads "rank 1: ".
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import termios
import tty

NOISE = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)"
    rb"|I\d{4} \d\d:\d\d:[\d.]+ +\d+ \S+\.cc:\d+\] "  # an INFO line of C++, and its second line
    rb"|To enable the following instructions: .* rebuild TensorFlow with the appropriate compiler flags"
    rb"|WARNING:tensorflow:.* triggered tf\.function retracing"
)
PREFIX = re.compile(rb"\[(\d+)\]<(?:stdout|stderr)>:")
SECONDS_OF_SILENCE = 0.1


class Filter:
    """Passes bytes on to a file descriptor, line by line, without noise."""

    def __init__(self, output: int):
        self.output = output
        self.pending = b""
        self.midline = False

    def add(self, data: bytes) -> None:
        """Takes bytes; those after the last end of a line wait for the rest of it."""
        *lines, self.pending = re.split(rb"(?<=[\r\n])", self.pending + data)
        for line in lines:
            self._write(line)

    def flush(self) -> None:
        """Passes on what waits: a program that is silent in the middle of a line wants it to be seen."""
        if self.pending:
            self._write(self.pending)
            self.pending = b""

    def _write(self, line: bytes) -> None:
        if not self.midline:
            prefix = PREFIX.match(line)
            if NOISE.match(line, prefix.end() if prefix else 0):
                return
            if prefix:
                line = (b"" if prefix[1] == b"0" else b"rank %s: " % prefix[1]) + line[prefix.end() :]
        self.midline = not line.endswith((b"\r", b"\n"))
        while line:
            line = line[os.write(self.output, line) :]


def main() -> int:
    """Runs the command of the command line and returns its exit status."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    stdout, stdout_sink = _connection(1)
    stderr, stderr_sink = _connection(2)
    try:
        process = subprocess.Popen(sys.argv[1:], stdout=stdout_sink, stderr=stderr_sink)
    except OSError as error:
        print(error, file=sys.stderr)
        return 127
    signal.signal(signal.SIGINT, lambda *_: None)  # a terminal sends it to the program too, which decides
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    with selectors.DefaultSelector() as selector:
        for source, sink, output in ((stdout, stdout_sink, 1), (stderr, stderr_sink, 2)):
            os.close(sink)
            selector.register(source, selectors.EVENT_READ, Filter(output))
        _pass_on(selector)
    status = process.wait()
    return status if status >= 0 else 128 - status


def _connection(output: int) -> tuple[int, int]:
    """A pipe, to read from and to write to; a terminal of the same size where `output` is one."""
    if not os.isatty(output):
        return os.pipe()
    source, sink = os.openpty()
    tty.setraw(sink)
    termios.tcsetwinsize(sink, termios.tcgetwinsize(output))
    return source, sink


def _pass_on(selector: selectors.BaseSelector) -> None:
    """Reads until all who write are gone."""
    while selector.get_map():
        ready = selector.select(SECONDS_OF_SILENCE)
        if not ready:
            for key in selector.get_map().values():
                key.data.flush()
        for key, _ in ready:
            data = b""
            with contextlib.suppress(OSError):  # a terminal that nobody writes to any more
                data = os.read(key.fd, 65536)
            if data:
                key.data.add(data)
            else:
                key.data.flush()
                selector.unregister(key.fd)


if __name__ == "__main__":
    sys.exit(main())
