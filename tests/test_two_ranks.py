"""Starts two ranks once per Keras version; each runs the tests of its folder, or of its file TWO_RANKS_FILE, as one pytest session."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SECONDS = 1500
# A signal does not interrupt a rank that waits inside TensorFlow; the timeout's thread ends it, and shows where it waited.
# Ranks differ as machines of a cluster may: in the order of their sets and dictionaries, and in the instructions they have.
RANK = (
    "export PYTHONHASHSEED=$HOROVOD_RANK; "
    "if [ $HOROVOD_RANK = 0 ]; then export DEEPREDUCE_CPU_LEVEL=portable; fi; "
    'exec "$0" -m pytest "$1" -p ranks -q -p no:cacheprovider --timeout 120 --timeout-method thread > "$2/rank$HOROVOD_RANK" 2>&1'
)


def run_two_ranks(folder, tmp_path, **environment):
    environment = {
        **os.environ,
        "HOROVOD_STALL_CHECK_TIME_SECONDS": "5",
        "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "20",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_NUM_INTRAOP_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]),
        **environment,
    }
    horovodrun = Path(sys.executable).with_name("horovodrun")
    command = [
        horovodrun,
        "-np",
        "2",
        "--gloo",
        "sh",
        "-c",
        RANK,
        sys.executable,
        TESTS / folder / os.environ.get("TWO_RANKS_FILE", ""),
        tmp_path,
    ]
    launcher = subprocess.Popen(
        [str(word) for word in command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = launcher.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, signal.SIGKILL)
        output, _ = launcher.communicate()
        output += f"\nkilled after {SECONDS} seconds"
    ranks = [f"--- rank {path.name[4:]} ---\n{path.read_text()}" for path in sorted(tmp_path.glob("rank*"))]
    if launcher.returncode != 0:
        pytest.fail("\n".join([output, *ranks]), pytrace=False)


@pytest.mark.timeout(SECONDS + 60)
def test_two_ranks_with_keras_3(tmp_path):
    run_two_ranks("two_ranks", tmp_path)


@pytest.mark.timeout(SECONDS + 60)
def test_two_ranks_with_keras_2(tmp_path):
    run_two_ranks("two_ranks_keras2", tmp_path, TF_USE_LEGACY_KERAS="1")
