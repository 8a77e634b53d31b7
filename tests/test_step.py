"""The two small programs that stand between the Makefile and the terminal: tools/step.py and tools/quiet.py."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"
STEP = [sys.executable, str(TOOLS / "step.py")]
QUIET = [sys.executable, str(TOOLS / "quiet.py")]


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def run_on_a_terminal(command, folder):
    """The exit status, and all that a terminal of 60 columns gets to show."""
    terminal, output = os.openpty()
    process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, env=os.environ | {"COLUMNS": "60"})
    os.close(output)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # nobody writes to it any more
            os.close(terminal)
            return process.wait(60), shown.decode().replace("\r\n", "\n")


def test_a_step_that_succeeds_is_one_line_and_a_log(tmp_path):
    done = run([*STEP, "Two words", "--", "sh", "-c", "echo one; echo two >&2"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"Two words \.\.\. done in 0:\d\d\n", done.stdout)
    assert (tmp_path / "build/logs/two-words.log").read_text() == "one\ntwo\n"


def test_a_step_that_fails_shows_the_end_of_its_log_and_where_it_is(tmp_path):
    done = run([*STEP, "Numbers", "--", "sh", "-c", "seq 100; exit 3"], tmp_path)
    first, *numbers, last = done.stdout.splitlines()
    assert done.returncode == 3
    assert re.fullmatch(r"Numbers \.\.\. failed after 0:\d\d with exit status 3. The last lines of its log:", first)
    assert numbers == [f"  {number}" for number in range(71, 101)]
    assert last == "The whole log: build/logs/numbers.log"
    assert (tmp_path / "build/logs/numbers.log").read_text().split() == [str(number) for number in range(1, 101)]


@pytest.mark.parametrize(("command", "status"), [(["no-such-program"], 127), (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM)])
def test_a_command_that_cannot_run_or_is_killed_fails_as_in_a_shell(tmp_path, command, status):
    done = run([*STEP, "Name", "--", *command], tmp_path)
    assert done.returncode == status
    assert f"with exit status {status}" in done.stdout


def test_a_terminal_sees_percentages_and_then_one_line(tmp_path):
    script = "echo '[  5%] Building'; sleep 0.5; echo '[ 45%] Building'; sleep 0.5"
    status, shown = run_on_a_terminal([*STEP, "Horovod", "--", "sh", "-c", script], tmp_path)
    assert status == 0
    assert "  5 %\r" in shown and "  45 %\r" in shown
    assert re.search(r"\r\033\[KHorovod            done in 0:\d\d\n$", shown)
    assert shown.count("\n") == 1


def test_a_terminal_sees_how_many_of_how_many_lines(tmp_path):
    script = "echo 'cc -o a.o'; sleep 0.5; echo 'cc -o b.o'; echo other"
    counted = ["--count", r" -o \S+\.o$", "--total", "echo 'cc -o a.o'; echo 'cc -o b.o'; echo 'mkdir x'"]
    status, shown = run_on_a_terminal([*STEP, "C++ ops", *counted, "--", "sh", "-c", script], tmp_path)
    assert status == 0
    assert "1 of 2" in shown
    assert (tmp_path / "build/logs/c-ops.log").exists()


def test_a_terminal_sees_the_part_of_the_last_line_that_was_asked_for_and_no_more_than_fits(tmp_path):
    script = f"echo 'Collecting keras (from x)'; sleep 0.5; echo 'Collecting {100 * 'k'}'; sleep 0.5"
    status, shown = run_on_a_terminal([*STEP, "Python packages", "--show", r"^Collecting \S+", "--", "sh", "-c", script], tmp_path)
    assert status == 0
    assert "Collecting keras\r" in shown
    assert max(len(line) for line in shown.replace("\033[K", "").split("\r")) == 59


def test_a_step_with_nothing_to_do_says_nothing_and_keeps_its_log(tmp_path):
    counted = ["Ops", "--count", "^make", "--total"]
    assert run([*STEP, *counted, "echo make", "--", "echo", "made"], tmp_path).stdout.startswith("Ops ... done in ")
    done = run([*STEP, *counted, "echo nothing", "--", "false"], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "build/logs/ops.log").read_text() == "made\n"


def test_a_dry_run_that_fails_fails_the_step(tmp_path):
    done = run([*STEP, "Ops", "--count", "x", "--total", "echo no rule >&2; exit 2", "--", "true"], tmp_path)
    assert done.returncode == 2
    assert "  no rule\n" in done.stdout


NOISE = (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    "I0000 00:00:1796642601.166963   18416 port.cc:153] oneDNN custom operations are on. You may see slightly different results.\n"
    "I0000 00:00:1796642581.392174   18116 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use available CPU.\n"
    "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.\n"
    "WARNING:tensorflow:5 out of the last 5 calls to <function f> triggered tf.function retracing. Tracing is expensive.\n"
)
SIGNAL = (
    "E0000 00:00:1796642601.166963   18416 file.cc:1] an error\n"
    "W0000 00:00:1796642601.166963   18416 file.cc:1] a warning\n"
    "WARNING:tensorflow:a warning of another kind\n"
    "it says: WARNING: All log messages before absl::InitializeLog()\n"
)


def test_quiet_leaves_out_the_noise_of_both_outputs_and_nothing_else(tmp_path):
    program = f"import sys; [print({NOISE + SIGNAL!r}, end='', file=file) for file in (sys.stdout, sys.stderr)]; sys.exit(5)"
    done = run([*QUIET, sys.executable, "-c", program], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (5, SIGNAL, SIGNAL)


def test_quiet_removes_the_launchers_prefix_of_rank_0_and_shortens_the_others(tmp_path):
    lines = "".join(f"[{rank}]<stderr>:{line}\n" for rank in (0, 1) for line in (NOISE.splitlines()[1], "Traceback"))
    done = run([*QUIET, "printf", "%s", lines], tmp_path)
    assert done.stdout == "Traceback\nrank 1: Traceback\n"


def test_quiet_shows_a_terminal_to_the_program_and_its_bar_as_it_grows(tmp_path):
    program = "import sys, time; assert sys.stderr.isatty(); [(print(f'\\r{n} %', end='', flush=True), time.sleep(0.5)) for n in (10, 20)]"
    status, shown = run_on_a_terminal([*QUIET, sys.executable, "-c", program], tmp_path)
    assert (status, shown) == (0, "\r10 %\r20 %")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_quiet_ends_when_its_program_does(tmp_path, signum):
    program = "import signal, sys, time; print('started', flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [*QUIET, sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdout.readline() == b"started\n"
    os.killpg(process.pid, signum)
    assert process.wait(30) == 128 + signum
