"""Runs one step of the set-up: its output goes to a log, one line shows its progress, and a failure shows the end of the log.

usage: step.py NAME [--log FILE] [--show REGEX] [--count REGEX --total COMMAND] -- COMMAND...

What is shown beside the elapsed time is the last "[ 45%]" that the command printed; or the part of its last line that matches --show; or
how many of its lines match --count, out of the number of such lines that the shell command --total prints, a dry run. Where that number
is 0, there is nothing to do and the step says nothing. On a terminal the line is rewritten as the step goes on; elsewhere it is written
once.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

NAME_WIDTH = 18
LAST_LINES = 30
SECONDS_BETWEEN_UPDATES = 0.2
PERCENTAGE = re.compile(r"\s*\[ *(\d+)%\]")
CLEAR_LINE = "\r\033[K"


class StatusLine:
    """The line of a step."""

    def __init__(self, name: str):
        self.name = name
        self.started = time.monotonic()
        self.terminal = sys.stdout.isatty()
        self.written = False

    def update(self, text: str = "") -> None:
        """Shows how far the step is; not on a terminal: that it has begun."""
        if self.terminal:
            line = f"{self.name:<{NAME_WIDTH}} {self.elapsed():>5}  {text}"
            print(CLEAR_LINE + line[: shutil.get_terminal_size().columns - 1], end="", flush=True)
        elif not self.written:
            print(f"{self.name} ... ", end="", flush=True)
        self.written = True

    def finish(self, text: str) -> None:
        """Shows how the step went, for good."""
        self.update()
        print(f"{CLEAR_LINE}{self.name:<{NAME_WIDTH}} {text}" if self.terminal else text, flush=True)

    def withdraw(self) -> None:
        """Leaves nothing of the line on a terminal."""
        if self.terminal:
            print(CLEAR_LINE, end="", flush=True)

    def elapsed(self) -> str:
        """The time since the step began, as 1:05."""
        seconds = int(time.monotonic() - self.started)
        return f"{seconds // 60}:{seconds % 60:02d}"


class Progress:
    """What the output of a step tells about how far it is."""

    def __init__(self, show: str | None, count: str | None, total: int):
        self.show, self.count, self.total = show, count, total
        self.counted = 0
        self.text = ""

    def add(self, line: str) -> None:
        """Takes the next line of the output."""
        if match := PERCENTAGE.match(line):
            self.text = f"{match[1]} %"
        elif self.show and (match := re.search(self.show, line)):
            self.text = match[0]
        elif self.count and re.search(self.count, line):
            self.counted += 1
            self.text = f"{min(self.counted, self.total)} of {self.total}"


def main() -> int:
    """Runs the step that the command line names and returns its exit status."""
    arguments = parse_arguments()
    log = arguments.log or Path("build/logs") / f"{re.sub('[^a-z0-9]+', '-', arguments.name.lower())}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    line = StatusLine(arguments.name)
    total = 0
    if arguments.total:
        if line.terminal:
            line.update()
        dry_run = subprocess.run(arguments.total, shell=True, capture_output=True, text=True)
        if dry_run.returncode:
            log.write_text(dry_run.stdout + dry_run.stderr)
            return fail(line, dry_run.returncode, log)
        total = len(re.findall(arguments.count, dry_run.stdout, re.MULTILINE))
        if total == 0:
            line.withdraw()
            return 0
    with open(log, "w") as file:
        status = run(arguments.command, file, line, Progress(arguments.show, arguments.count, total))
    if status:
        return fail(line, status, log)
    line.finish(f"done in {line.elapsed()}")
    return 0


def parse_arguments() -> argparse.Namespace:
    """The command line; everything after `--` is the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--log", type=Path, metavar="FILE", help="default: build/logs/NAME.log")
    parser.add_argument("--show", metavar="REGEX", help="what to show of the output's last line that has it")
    parser.add_argument("--count", metavar="REGEX", help="the lines that stand for one of --total")
    parser.add_argument("--total", metavar="COMMAND", help="a shell command that prints as many such lines as there will be")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if bool(arguments.count) != bool(arguments.total):
        parser.error("--count and --total go together")
    return arguments


def run(command: list[str], log: TextIO, line: StatusLine, progress: Progress) -> int:
    """Runs the command with its output in `log`, updating the line while it runs. Returns its exit status."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        log.write(f"{error}\n")
        return 127
    finished = threading.Event()

    def show() -> None:
        line.update()
        while not finished.wait(SECONDS_BETWEEN_UPDATES):
            line.update(progress.text)

    watcher = threading.Thread(target=show)
    watcher.start()
    try:
        for text in process.stdout:
            text = text.decode(errors="replace")
            log.write(text)
            log.flush()
            progress.add(text.rstrip())
        status = process.wait()
    except KeyboardInterrupt:
        process.wait()  # a terminal sends the signal to the command too
        status = 130
    finally:
        finished.set()
        watcher.join()
    return status if status >= 0 else 128 - status


def fail(line: StatusLine, status: int, log: Path) -> int:
    """Shows how a step failed, and returns its status."""
    line.finish(f"failed after {line.elapsed()} with exit status {status}. The last lines of its log:")
    for text in log.read_text(errors="replace").splitlines()[-LAST_LINES:]:
        print(f"  {text}")
    print(f"The whole log: {log}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
