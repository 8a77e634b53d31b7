"""Builds the op library against the TensorFlow that is installed; everything else is in pyproject.toml."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


class BuildWithOps(build_py):
    """Puts the op library beside the Python files."""

    def run(self):
        super().run()
        if self.editable_mode or os.environ.get("SKIP_OPS"):
            return  # the Makefile builds it in the checkout
        package = Path(self.build_lib).resolve() / "deepreduce_tf"
        package.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ)
        if importlib.util.find_spec("tensorflow") is None:
            # pip builds in an environment of its own, by way of PYTHONPATH; the ops are for the TensorFlow of the one they will run in.
            environment.pop("PYTHONPATH", None)
        if subprocess.run([sys.executable, "-c", "import tensorflow"], env=environment, capture_output=True, check=False).returncode != 0:
            sys.exit(
                "deepreduce-tf builds its ops against TensorFlow, which this Python cannot import: install it first, then run pip again."
            )
        command = ["make", "-s", f"-j{os.cpu_count()}", "-C", str(ROOT / "deepreduce_tf" / "cc"), "ops"]
        build = Path(self.get_finalized_command("build").build_temp).resolve()
        subprocess.run(
            [*command, f"PYTHON={sys.executable}", f"BUILD={build}", f"OPS_LIBRARY={package / '_ops.so'}"], env=environment, check=True
        )


class BinaryDistribution(Distribution):
    """The op library makes the wheel one of this platform."""

    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithOps}, distclass=BinaryDistribution)
