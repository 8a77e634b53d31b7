"""How a training run shows that it is alive: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import collections
import os
import sys
import time

import keras
import psutil
import tqdm

WINDOW = 50
SECONDS_BETWEEN_LINES = 10.0
BAR = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"


class Progress(keras.callbacks.Callback):
    """Shows loss and accuracy over the last `WINDOW` steps and the steps per second. Use it on one rank only.

    Args:
        steps: how many steps the run has.
    """

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps
        self.bar: tqdm.tqdm | None = None

    def on_train_begin(self, logs: dict | None = None) -> None:
        self._last_line = time.monotonic()
        # (step, time, summed loss, summed accuracy): Keras reports means since the first step, which lag behind.
        self._sums = collections.deque([(0, self._last_line, 0.0, 0.0)], maxlen=WINDOW + 1)
        if is_terminal():
            self.bar = tqdm.tqdm(total=self.steps, ncols=100, bar_format=BAR, file=sys.stderr)

    def on_train_batch_end(self, batch: int, logs: dict) -> None:
        step, now = batch + 1, time.monotonic()
        self._sums.append((step, now, logs["loss"] * step, logs["accuracy"] * step))
        if self.bar is not None:
            self.bar.set_postfix_str(self._recent(), refresh=False)
            self.bar.update(1)
            return
        if now - self._last_line >= SECONDS_BETWEEN_LINES or step == self.steps:
            self._last_line = now
            print(f"step {step}/{self.steps}  {self._recent()}", flush=True)

    def on_train_end(self, logs: dict | None = None) -> None:
        if self.bar is not None:
            self.bar.close()

    def _recent(self) -> str:
        steps, seconds, loss, accuracy = (last - first for first, last in zip(self._sums[0], self._sums[-1], strict=True))
        return f"loss {loss / steps:.3f}, accuracy {accuracy / steps:.3f}, {steps / seconds:.2f} steps/s"


def is_terminal() -> bool:
    """Whether somebody watches standard error on a terminal, directly or through horovodrun, which pipes the output of its ranks."""
    if sys.stderr.isatty():
        return True
    for parent in psutil.Process().parents():
        try:
            if any("horovodrun" in word for word in parent.cmdline()[:2]):
                return os.readlink(f"/proc/{parent.pid}/fd/2").startswith(("/dev/pts/", "/dev/tty"))
        except (psutil.Error, OSError):
            pass  # a process that is gone or not ours, or a system without /proc: nobody watches
    return False
