"""`pip install .` into an environment that has TensorFlow and Horovod."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import os, sys
import numpy as np
import deepreduce_tf, horovod_ext
import horovod.tensorflow as hvd
assert deepreduce_tf.__file__.startswith(sys.argv[1]), deepreduce_tf.__file__
assert horovod_ext.__file__.startswith(sys.argv[1]), horovod_ext.__file__
hvd.init()
gradient = np.float32([1, 2, 3, 4] * 500) * (1 + 2 * hvd.rank())
compression = deepreduce_tf.DeepReduce(deepreduce_tf.TopK(1.0), value="float32")
mean = hvd.allreduce(gradient, compression=compression, name="gradient")
np.testing.assert_array_equal(mean, np.float32([2, 4, 6, 8] * 500))
print("installed", hvd.rank())
"""


def reuse_objects(source):
    """Spares the build most of the objects that the checkout has; those of the frame are compiled, some of each kind."""
    build = source / "build" / f"temp.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for kind in ("opt", "ops"):
        if (ROOT / "build" / kind).is_dir():
            shutil.copytree(ROOT / "build" / kind, build / kind, ignore=shutil.ignore_patterns("frame*.o"))
    if (ROOT / "build" / "tensorflow_flags.mk").exists():
        shutil.copy2(ROOT / "build" / "tensorflow_flags.mk", build)


@pytest.mark.timeout(900)
def test_the_wheel_works_from_a_clean_folder_over_two_ranks(tmp_path):
    source, wheels, site, elsewhere = (tmp_path / name for name in ("source", "wheels", "site", "elsewhere"))
    elsewhere.mkdir()
    files = subprocess.run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, files.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    reuse_objects(source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = subprocess.run([*pip, "wheel", "--no-deps", "-w", wheels, source], capture_output=True, text=True, check=False)
    assert build.returncode == 0, build.stdout + build.stderr
    (wheel,) = wheels.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "deepreduce_tf/_ops.so" in names
    assert not any(name.startswith(("tests/", "models/")) for name in names)
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], check=True)

    (elsewhere / "program.py").write_text(PROGRAM)
    horovodrun = os.path.join(os.path.dirname(sys.executable), "horovodrun")
    done = subprocess.run(
        [horovodrun, "-np", "2", "--gloo", sys.executable, "program.py", str(site)],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(site), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("installed") == 2

    command = [sys.executable, "-m", "deepreduce_tf", "inspect", "--help"]
    shown = subprocess.run(command, cwd=elsewhere, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, timeout=120)
    assert (shown.returncode, shown.stderr) == (0, ""), shown.stderr
    assert "GRADIENTS" in shown.stdout
