"""Who may import whom, as docs/architecture.md draws it, and that no import or include leads back. Each message says what to do instead."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = "docs/architecture.md"
PACKAGES = ("deepreduce_tf", "horovod_ext")
FORBIDDEN_STEMS = {"utils", "util", "common", "helpers", "helper", "base", "misc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def tracked(*patterns: str) -> list[Path]:
    """The project's files, relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [Path(name) for name in listed.split("\0") if name and (ROOT / name).exists()]
    assert paths, patterns
    return paths


def block(name: str) -> list[str]:
    """The lines of a fenced block of the page that begins with its name."""
    return re.search(rf"^```{name}\n(.*?)^```", (ROOT / PAGE).read_text(), re.DOTALL | re.MULTILINE)[1].splitlines()


# What a file imports or includes: other files of the project


def imports_of(path: Path, source: str) -> list[tuple[str, list[str] | None]]:
    """(module, names or None) of each import statement, wherever it stands; relative ones made absolute."""
    package = ".".join(path.parent.parts)
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = f"{package}.{node.module or ''}".strip(".") if node.level else node.module
            found.append((module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module" and isinstance(node.args[0], ast.Constant):
            found.append((node.args[0].value, None))
    return found


def file_of(module: str, beside: Path) -> Path | None:
    """The file of a module of the project, which may lie beside a program that imports it."""
    parts = module.split(".")
    folders = (".",) if (ROOT / beside / "__init__.py").exists() else (".", beside)
    files = (Path(folder, *parts) for folder in folders)
    return next((file for path in files for file in (path.with_suffix(".py"), path / "__init__.py") if (ROOT / file).exists()), None)


def python_uses(path: Path) -> set[Path]:
    used = set()
    for module, names in imports_of(path, (ROOT / path).read_text()):
        # `from package import module` uses that module; the package itself only for what it defines.
        modules = [[f"{module}.{name}", module] for name in names or []] or [[module]]
        found = (next(filter(None, (file_of(each, path.parent) for each in choice)), None) for choice in modules)
        used |= {file for file in found if file is not None}
    return used - {path}


def cc_uses(path: Path) -> set[Path]:
    included = (Path(name) for name in INCLUDE.findall((ROOT / path).read_text()))
    return {name for name in included if (ROOT / name).exists() and name.parts[0] in ("deepreduce_tf", "tests")}


def uses() -> dict[Path, set[Path]]:
    python = {path: python_uses(path) for path in tracked("*.py")}
    return python | {path: cc_uses(path) for path in tracked("*.cc", "*.h")}


def test_the_reader_of_imports_sees_every_form():
    source = "import x.y as z\nfrom . import b\nfrom .c import d\ndef f():\n    from e import g\n    importlib.import_module('h.i')\n"
    assert [module for module, _ in imports_of(Path("package/a.py"), source)] == ["x.y", "package", "package.c", "e", "h.i"]


# No circle


def circle(graph: dict[Path, set[Path]]) -> list[Path]:
    """Some files each of which uses the next one and the last the first; empty if there are none."""
    done: set[Path] = set()

    def visit(path: Path, trail: list[Path]) -> list[Path]:
        if path in trail:
            return [*trail[trail.index(path) :], path]
        if path in done:
            return []
        found = next(filter(None, (visit(used, [*trail, path]) for used in sorted(graph.get(path, ())))), [])
        done.add(path)
        return found

    return next(filter(None, (visit(path, []) for path in sorted(graph))), [])


def test_a_circle_is_found():
    a, b, c = map(Path, "abc")
    assert circle({a: {b}, b: {c}, c: set()}) == [] and circle({a: {b}, b: {c}, c: {b}}) == [b, c, b]


def test_no_file_uses_itself_by_way_of_others():
    found = circle(uses())
    assert not found, f"{' uses '.join(map(str, found))}. Move what both need into a file below them."


def test_imports_stand_at_the_top_of_a_file():
    """One inside a function hides a circle, or a package that is optional: then a comment beside it says why no layout could avoid it."""
    wrong = []
    for path in tracked("deepreduce_tf/*.py", "horovod_ext/*.py", "models/*.py", "benchmarks/*.py"):
        lines = (ROOT / path).read_text().splitlines()
        functions = [n for n in ast.walk(ast.parse("\n".join(lines))) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
        nested = {node.lineno for function in functions for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)}
        # One comment may stand above several imports, some of them under a condition.
        for number in sorted(nested):
            above = number - 1
            while above in nested or not lines[above - 1].strip() or lines[above - 1].lstrip().startswith("if "):
                above -= 1
            if "#" not in lines[number - 1] and not lines[above - 1].lstrip().startswith("#"):
                wrong.append(f"{path}:{number}")
    assert not wrong, f"imports inside functions: {wrong}. Move them to the top, or say in a comment why no layout could avoid them."


# The layers that the page draws


def layers() -> dict[str, set[str]]:
    """From each layer of the page, a folder or a file, to those it may use."""
    drawn: dict[str, set[str]] = {}
    for line in block("imports"):
        layer, _, allowed = line.partition("->")
        drawn.setdefault(layer.strip(), set()).update(name.strip() for name in allowed.split(",") if name.strip() != "nothing")
    return drawn


def layer_of(path: Path, names: set[str]) -> str:
    """The narrowest layer that a file belongs to. A folder's name ends in a slash and stands for all that no narrower layer has."""
    fitting = [name for name in names if str(path) == name or (name.endswith("/") and str(path).startswith(name))]
    assert fitting, f"{path} belongs to no layer of {PAGE}. Put it into a folder that is drawn there, or draw its folder."
    return max(fitting, key=len)


def test_layers_use_each_other_as_the_page_draws():
    drawn = layers()
    used: dict[str, set[str]] = {name: set() for name in drawn}
    for path, others in uses().items():
        if path.parts[0] == "tests" and path.parts[1] != "cc":
            continue
        layer = layer_of(path, set(drawn))
        for other in others:
            below = layer_of(other, set(drawn))
            assert below in drawn[layer] | {layer}, (
                f"{path} uses {other}, which {PAGE} does not allow: {layer} may use {sorted(drawn[layer]) or 'nothing'}. "
                "Pass what is needed as an argument, or move it down."
            )
            used[layer].add(below)
    stale = {layer: sorted(drawn[layer] - used[layer]) for layer in drawn if drawn[layer] - used[layer]}
    assert not stale, f"{PAGE} draws what no file does: {stale}. Take it off the drawing."


def test_the_page_has_a_line_for_each_folder_and_for_no_other():
    folders = {f"{folder}/" for path in tracked() for folder in path.parents if folder != Path(".")}
    told = {line.split()[0]: line.split(maxsplit=1)[1:] for line in block("tree") if line.strip()}
    assert all(told.values()), "each folder of the tree needs a line that says what is in it"
    assert set(told) == folders, f"not told: {sorted(folders - set(told))}; told and not there: {sorted(set(told) - folders)}"


# Beyond the project


def importers(package: str, *patterns: str) -> set[str]:
    """The files that import a package or a part of it."""
    return {
        str(path)
        for path in tracked(*patterns)
        if any(module == package or module.startswith(f"{package}.") for module, _ in imports_of(path, (ROOT / path).read_text()))
    }


def test_only_horovod_ext_and_the_compressor_import_horovod():
    wrong = importers("horovod", "deepreduce_tf/*.py") - {"deepreduce_tf/compressor.py", "deepreduce_tf/__init__.py"}
    assert not wrong, f"{sorted(wrong)} import horovod. Stages work without Horovod: pass what they need from deepreduce_tf/compressor.py."


def test_deepreduce_brings_horovod_in_only_to_load_its_ops():
    path = Path("deepreduce_tf/__init__.py")
    imported = {module for module, _ in imports_of(path, (ROOT / path).read_text()) if module.startswith("horovod")}
    assert imported <= {"horovod.tensorflow"}, f"{path} imports {imported}. Use Horovod in deepreduce_tf/compressor.py."


def test_models_use_the_public_api_only():
    public = set(ast.literal_eval(re.search(r"__all__ = (\[.*?\])", (ROOT / "deepreduce_tf" / "__init__.py").read_text(), re.DOTALL)[1]))
    for path in tracked("models/*.py"):
        for module, names in imports_of(path, (ROOT / path).read_text()):
            hidden = module.startswith(("deepreduce_tf.", "horovod_ext"))
            assert not hidden, f"{path} imports {module}. Programs import from deepreduce_tf itself; make public what they need."
            private = set(names or []) - public if module == "deepreduce_tf" else set()
            assert not private, f"{path} imports {private} from deepreduce_tf. Add them to its __all__ if programs need them."


def test_the_codec_library_needs_neither_tensorflow_nor_exceptions_nor_output():
    for path in tracked("deepreduce_tf/cc/lib/*.cc", "deepreduce_tf/cc/lib/*.h"):
        code = re.sub(r"//.*", "", (ROOT / path).read_text())
        for include in INCLUDE.findall(code):
            plain = "/" not in include or include.startswith("deepreduce_tf/cc/lib/")
            assert plain, f"{path} includes {include}. cc/lib builds alone: take spans, and leave tensors to cc/kernels."
        for word in ("throw", "printf", "std::cout", "std::cerr", "<iostream>", "abort", "assert"):
            assert not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", code), f"{path} uses {word}. Return an Error; the kernels report it."


def test_tests_of_the_codec_library_need_no_tensorflow():
    for path in tracked("tests/cc/*.cc", "tests/cc/*.h"):
        wrong = [include for include in INCLUDE.findall((ROOT / path).read_text()) if include.startswith(("tensorflow", "absl"))]
        assert not wrong, f"{path} includes {wrong}. Test kernels from Python."


def test_no_file_is_called_after_nothing():
    for path in tracked("*.py", "*.cc", "*.h"):
        assert path.stem not in FORBIDDEN_STEMS, f"{path}: name a file after what is in it."


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
