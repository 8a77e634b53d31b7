"""Builds the op library against the TensorFlow that is installed; everything else is in pyproject.toml."""

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
        command = ["make", "-s", f"-j{os.cpu_count()}", "-C", str(ROOT / "deepreduce_tf" / "cc"), "ops"]
        build = Path(self.get_finalized_command("build").build_temp).resolve()
        subprocess.run([*command, f"PYTHON={sys.executable}", f"BUILD={build}", f"OPS_LIBRARY={package / '_ops.so'}"], check=True)


class BinaryDistribution(Distribution):
    """The op library makes the wheel one of this platform."""

    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithOps}, distclass=BinaryDistribution)
