"""Who may look into whom: section 2 of the design, as docs/architecture.md draws it. Each message says what to do instead."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = ("deepreduce_tf", "horovod_ext", "models", "tests")
FORBIDDEN_STEMS = {"utils", "util", "common", "helpers", "helper", "base", "misc"}


def python_files(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)


def imports_of(path):
    """(module, names or None) of each import statement, wherever it stands; relative ones made absolute."""
    package = ".".join(path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = f"{package}.{node.module or ''}".strip(".") if node.level else node.module
            yield module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module" and isinstance(node.args[0], ast.Constant):
            yield node.args[0].value, None


def who_imports(package, files):
    """The files that import a package or a part of it."""

    def concerns(module):
        return module == package or module.startswith(package + ".")

    return [str(path.relative_to(ROOT)) for path in files if any(concerns(module) for module, _ in imports_of(path))]


def test_the_reader_of_imports_sees_every_form(tmp_path, monkeypatch):
    source = tmp_path / "deepreduce_tf" / "a.py"
    source.parent.mkdir()
    source.write_text(
        "import x.y as z\nfrom . import b\nfrom .c import d\ndef f():\n    from e import g\n    importlib.import_module('h.i')\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert {module for module, _ in imports_of(source)} == {"x.y", "deepreduce_tf", "deepreduce_tf.c", "e", "h.i"}
    assert who_imports("h", [source]) == ["deepreduce_tf/a.py"] and who_imports("x.z", [source]) == []


def test_horovod_ext_knows_nothing_of_deepreduce():
    wrong = who_imports("deepreduce_tf", python_files("horovod_ext"))
    assert not wrong, f"{wrong} import deepreduce_tf. Give GatherCompressor a method for what is needed, and let DeepReduce implement it."


def test_only_horovod_ext_and_the_compressor_import_horovod():
    allowed = {"deepreduce_tf/compressor.py", "deepreduce_tf/__init__.py"}
    wrong = set(who_imports("horovod", python_files("deepreduce_tf"))) - allowed
    assert not wrong, f"{sorted(wrong)} import horovod. Stages work without Horovod: pass what they need from deepreduce_tf/compressor.py."


def test_only_the_compressor_imports_horovod_ext():
    wrong = set(who_imports("horovod_ext", python_files("deepreduce_tf"))) - {"deepreduce_tf/compressor.py"}
    assert not wrong, f"{sorted(wrong)} import horovod_ext. Only deepreduce_tf/compressor.py joins the stages to the exchange."


def test_stages_do_not_look_up_to_the_compressor():
    files = [path for path in python_files("deepreduce_tf") if path.name != "__init__.py"]
    wrong = who_imports("deepreduce_tf.compressor", files)
    assert not wrong, f"{wrong} import the compressor. A stage gets all it needs as arguments of its methods; pass it there."


def test_deepreduce_brings_horovod_in_only_to_load_its_ops():
    imported = {module for module, _ in imports_of(ROOT / "deepreduce_tf" / "__init__.py") if module.startswith("horovod")}
    assert imported <= {"horovod.tensorflow"}, f"deepreduce_tf/__init__.py imports {imported}. Use Horovod in deepreduce_tf/compressor.py."


def test_models_use_the_public_api_only():
    public = set(ast.literal_eval(re.search(r"__all__ = (\[.*?\])", (ROOT / "deepreduce_tf" / "__init__.py").read_text(), re.DOTALL)[1]))
    for path in python_files("models"):
        for module, names in imports_of(path):
            hidden = module.startswith(("deepreduce_tf.", "horovod_ext"))
            assert not hidden, f"{path.name} imports {module}. Programs import from deepreduce_tf itself; make public what they need."
            private = set(names or []) - public if module == "deepreduce_tf" else set()
            assert not private, f"{path.name} imports {private} from deepreduce_tf. Add them to its __all__ if programs need them."


def test_packages_do_not_import_programs_or_tests():
    own = {path.stem for folder in ("models", "tests") for path in python_files(folder)} - {"__init__"}
    for path in python_files("deepreduce_tf") + python_files("horovod_ext"):
        for module, _ in imports_of(path):
            assert module.split(".")[0] not in own | {"models", "tests"}, (
                f"{path.name} imports {module}. Move what it needs into the package."
            )


INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def cc_files(folder):
    files = sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in (".cc", ".h"))
    assert files
    return files


def test_the_codec_library_is_plain_cpp():
    headers = {path.name for path in cc_files("deepreduce_tf/cc/lib")}
    for path in cc_files("deepreduce_tf/cc/lib"):
        for include in INCLUDE.findall(path.read_text()):
            plain = include in headers or "/" not in include
            assert plain, f"{path.name} includes {include}. cc/lib builds alone: take spans, and leave tensors to cc/kernels."
            assert not include.startswith(("tensorflow", "absl", "Eigen")), f"{path.name} includes {include}. Use the C++17 library."


def test_the_codec_library_neither_throws_nor_prints():
    for path in cc_files("deepreduce_tf/cc/lib"):
        code = re.sub(r"//.*", "", path.read_text())
        for word in ("throw", "printf", "std::cout", "std::cerr", "<iostream>", "abort", "assert"):
            assert not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", code), (
                f"{path.name} uses {word}. Return an Error; the kernels report it."
            )


def test_tests_of_the_codec_library_need_no_tensorflow():
    for path in cc_files("tests/cc"):
        for include in INCLUDE.findall(path.read_text()):
            assert not include.startswith(("tensorflow", "deepreduce_tf")), f"{path.name} includes {include}. Test kernels from Python."


def test_op_definitions_and_kernels_look_down_only():
    for path in cc_files("deepreduce_tf/cc/ops"):
        for include in INCLUDE.findall(path.read_text()):
            assert not include.startswith("deepreduce_tf"), f"{path.name} includes {include}. An op definition is names, shapes and a doc."
    for path in cc_files("deepreduce_tf/cc/kernels"):
        for include in INCLUDE.findall(path.read_text()):
            down = not include.startswith("deepreduce_tf") or include.startswith(("deepreduce_tf/cc/kernels/", "deepreduce_tf/cc/lib/"))
            assert down, f"{path.name} includes {include}. Kernels use cc/kernels and cc/lib."


def test_no_file_is_called_after_nothing():
    for folder in TOP:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".cc", ".h"):
                assert path.stem not in FORBIDDEN_STEMS, f"{path.relative_to(ROOT)}: name a file after what is in it."


# Without Horovod

BLOCKED = """
import sys
sys.modules["horovod"] = None  # as if it were not installed
import numpy as np
import deepreduce_tf
from deepreduce_tf import QSGD, Rice, TopK
seen = TopK(ratio=0.5)(np.float32([3, -4, 0.5, 1]))
assert seen.numpy().tolist() == [3, -4, 0, 0], seen
assert Rice()(seen).numpy().tolist() == [3, -4, 0, 0]
assert QSGD(bits=8)([0.0, 1.0, -1.0]).numpy().tolist() == [0, 1, -1]
assert "horovod_ext" not in sys.modules and "deepreduce_tf.compressor" not in sys.modules
{use}
"""


def without_horovod(use):
    run = subprocess.run([sys.executable, "-c", BLOCKED.format(use=use)], cwd=ROOT, capture_output=True, text=True, timeout=120)
    return run.returncode, run.stderr


def test_stages_work_without_horovod():
    code, errors = without_horovod("")
    assert code == 0, errors


@pytest.mark.parametrize("use", ["from deepreduce_tf import DeepReduce", "deepreduce_tf.DeepReduce()"])
def test_deepreduce_says_what_is_missing_without_horovod(use):
    code, errors = without_horovod(use)
    last = errors.strip().splitlines()[-1]
    assert code == 1
    assert last == "ImportError: DeepReduce exchanges gradients with Horovod, which is not installed. See the README for how to build it."
