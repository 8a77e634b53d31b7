"""`python -m deepreduce_tf inspect`: its figures against NumPy and SciPy, its output, and what it refuses."""

import itertools
import json
import math
import os
import pickle
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import figure8 as figure_8
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import gammaln

from deepreduce_tf import QSGD, Float32, IndexCodec, LogQuantizer, Rice, TopK, ValueCodec, register_stage, stage
from deepreduce_tf.__main__ import main
from deepreduce_tf.inspection import SETTINGS, Bucket, CodecError, join, label, measure_index, measure_pairs, measure_value, pareto_front
from deepreduce_tf.inspection import settings as settings_of

ROOT = Path(__file__).resolve().parent.parent
FACTS = ["file", "ratio", "min_size", "gradients", "elements", "kept", "small_gradients", "small_elements"]
FACTS += ["bound_bits_per_index", "select_ms", "pairs", "failed"]
PAIR = ["index", "value", "error_class", "bits_per_index", "bits_per_value", "index_bytes", "value_bytes", "bytes", "relative_volume"]
PAIR += ["sent", "relative_error", "energy_kept", "encode_ms", "decode_ms", "pareto"]


@pytest.fixture(autouse=True)
def built_in_stages_only(monkeypatch):
    """Other tests register stages of their own."""
    built_in = {name: each for name, each in stage._registry.items() if each.__module__.startswith("deepreduce_tf.")}
    monkeypatch.setattr(stage, "_registry", built_in)


@pytest.fixture
def gradients():
    draw = np.random.default_rng(5)
    return {
        "conv/kernel": (draw.standard_t(3, (3, 3, 32, 32)) * 1e-3).astype("float32"),
        "dense/kernel": (draw.normal(size=(200, 30)) * (draw.random((200, 1)) < 0.2)).astype("float32"),
        "dense/bias": draw.normal(size=30).astype("float32"),
    }


@pytest.fixture
def file(gradients, tmp_path):
    np.savez(tmp_path / "gradients.npz", **gradients)
    return tmp_path / "gradients.npz"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command in this process: exit code, standard output, standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["deepreduce_tf", "inspect", *map(str, arguments)])
        try:
            code = main()
        except SystemExit as error:  # of argparse
            code = error.code
        return code, *capsys.readouterr()

    return run


def large(gradients):
    return {name: gradient for name, gradient in gradients.items() if gradient.size >= 1024}


# Figures


def test_the_bound_is_the_logarithm_of_the_number_of_supports(gradients):
    bucket = Bucket(large(gradients), TopK(0.01))
    sizes, counts = np.array([9216, 6000]), np.array([92, 60])
    assert bucket.kept == counts.sum()
    nats = gammaln(sizes + 1) - gammaln(counts + 1) - gammaln(sizes - counts + 1)
    assert bucket.bound_bits == pytest.approx(nats.sum() / math.log(2), rel=1e-9)


@pytest.mark.parametrize("ratio", [0.01, 0.3])
@pytest.mark.parametrize("value", [Float32(), QSGD(4), LogQuantizer(8)], ids=repr)
def test_figures_of_a_pair_agree_with_each_gradient_coded_alone(gradients, ratio, value):
    bucket = Bucket(large(gradients), TopK(ratio))
    index = measure_index(Rice(), bucket)
    pair = join(index, measure_value(value, index.values, index.splits, error_feedback=False), bucket)
    index_bytes = value_bytes = 0
    zero = tf.zeros([], tf.int64)
    sent, kept = [], []
    for i, gradient in enumerate(large(gradients).values()):
        selection = TopK(ratio).select([tf.constant(gradient)], [], zero, zero)
        sizes, shapes = tf.constant([gradient.size], tf.int64), [tf.constant(gradient.shape)]
        index_bytes += Rice().encode(selection.indices, selection.splits, sizes, shapes, zero, zero)[0].shape[0]
        value_bytes += value.encode(selection.values, selection.splits, zero, zero)[0].shape[0]
        sent.append(np.zeros(gradient.size))
        sent[-1][selection.indices] = measure_value(value, bucket.values, bucket.splits, False).decoded[slice(*bucket.splits[i : i + 2])]
        kept.append(TopK(ratio)(gradient).numpy().ravel())
    sent, kept = np.concatenate(sent), np.concatenate(kept).astype("float64")
    dense = np.concatenate([gradient.ravel() for gradient in large(gradients).values()]).astype("float64")
    assert (pair.index_bytes, pair.value_bytes, pair.sent) == (index_bytes, value_bytes, bucket.kept)
    assert pair.bits_per_index == pytest.approx(8 * index_bytes / bucket.kept)
    assert pair.bits_per_value == pytest.approx(8 * value_bytes / bucket.kept)
    assert pair.relative_error == pytest.approx(np.linalg.norm(sent - kept) / np.linalg.norm(kept), rel=1e-6)
    assert pair.energy_kept == pytest.approx(1 - np.sum((sent - dense) ** 2) / np.sum(dense**2), rel=1e-6)


class FirstPlaces(IndexCodec):
    """Not lossless: sends nothing, receivers take the first places."""

    lossless = False

    def encode(self, indices, splits, sizes, shapes, seed, step):
        return tf.zeros([0], tf.uint8), tf.zeros_like(splits), *self.decode(None, None, splits[1:] - splits[:-1], sizes, shapes, seed, step)

    def decode(self, code, code_splits, counts, sizes, shapes, seed, step):
        return tf.cast(tf.ragged.range(counts).flat_values, tf.int32), tf.concat([[0], tf.cumsum(counts)], 0)


def test_a_codec_that_changes_the_support_is_measured_with_the_values_there(gradients):
    bucket = Bucket(large(gradients), TopK(0.1))
    (pair,), failures = measure_pairs(bucket, [FirstPlaces()], [QSGD(8)])
    sent, kept, dense = [], [], []
    decoded = measure_value(QSGD(8), *first_values(bucket)).decoded
    for i, gradient in enumerate(large(gradients).values()):
        dense.append(gradient.ravel())
        kept.append(TopK(0.1)(gradient).numpy().ravel() != 0)
        sent.append(np.zeros(gradient.size))
        values = decoded[slice(*bucket.splits[i : i + 2])]
        sent[-1][: len(values)] = values
    sent, kept, dense = np.concatenate(sent), np.concatenate(kept), np.concatenate(dense).astype("float64")
    concerned = kept | (sent != 0)
    assert not failures
    assert (pair.index_bytes, pair.sent) == (0, bucket.kept)
    assert pair.relative_error == pytest.approx(np.linalg.norm((sent - dense)[concerned]) / np.linalg.norm(dense[kept]), rel=1e-6)
    assert pair.energy_kept == pytest.approx(1 - np.sum((sent - dense) ** 2) / np.sum(dense**2), rel=1e-6)


def first_values(bucket):
    splits = bucket.splits.numpy()
    starts = zip(bucket.starts, np.diff(splits), strict=True)
    return tf.constant(np.concatenate([bucket.flat[start : start + count] for start, count in starts])), bucket.splits


def test_the_pareto_front_holds_what_nothing_beats(gradients):
    pairs, _ = measure_pairs(Bucket(large(gradients), TopK(0.05)), settings_of(IndexCodec), settings_of(ValueCodec))
    front = pareto_front(pairs)
    for pair in pairs:
        beaten = [other for other in pairs if other.bytes <= pair.bytes and other.relative_error < pair.relative_error]
        assert not (pair in front and beaten)
        assert any(other.bytes <= pair.bytes and other.relative_error <= pair.relative_error for other in front)


def test_every_setting_makes_a_stage():
    stages = settings_of(IndexCodec) + settings_of(ValueCodec)
    assert not [each for each in stages if isinstance(each, CodecError)]
    tried = {type(each).__name__ for each in stages}
    assert {each.__name__ for kind in (IndexCodec, ValueCodec) for each in stage.registered_stages(kind)} == tried
    assert len(set(map(label, stages))) == len(stages)
    assert SETTINGS["QSGD"] == [{"bits": each.bits} for each in stages if isinstance(each, QSGD)]


# Output


def test_json_is_all_that_stands_on_standard_output(run, file, gradients):
    code, output, errors = run(file, "--json")
    document = json.loads(output)
    assert (code, errors) == (0, "")
    assert list(document) == FACTS
    assert (document["gradients"], document["small_gradients"], document["small_elements"], document["failed"]) == (2, 1, 30, [])
    assert document["elements"] == sum(gradient.size for gradient in large(gradients).values())
    assert all(list(pair) == PAIR for pair in document["pairs"])
    tried = [(stage.serialize(i), stage.serialize(v)) for i, v in itertools.product(settings_of(IndexCodec), settings_of(ValueCodec))]
    found = [(pair["index"], pair["value"]) for pair in document["pairs"]]
    assert len(found) == len(tried) and all(each in found for each in tried)
    for pair in document["pairs"]:
        assert pair["bytes"] == pair["index_bytes"] + pair["value_bytes"]
        assert pair["relative_volume"] == pytest.approx(pair["bytes"] / (4 * document["elements"]))
        assert pair["encode_ms"] > 0 and pair["decode_ms"] > 0
        assert (pair["relative_error"] == 0) == (pair["error_class"] == "lossless")


def test_pairs_are_sorted_by_class_of_error_and_bytes(run, file):
    names = ["lossless", "at most 1 %", "at most 5 %", "at most 20 %", "more than 20 %"]
    pairs = json.loads(run(file, "--json")[1])["pairs"]
    keys = [(names.index(pair["error_class"]), pair["bytes"]) for pair in pairs]
    assert keys == sorted(keys) and len({place for place, _ in keys}) > 3
    pairs = json.loads(run(file, "--json", "--sort", "decode")[1])["pairs"]
    keys = [(names.index(pair["error_class"]), pair["decode_ms"]) for pair in pairs]
    assert keys == sorted(keys)


def test_the_table_shows_some_rows_of_each_class_or_all(run, file):
    few, all_rows = (run(file, *more, "--index", "rice,bitmap", "--value", "float32,natural,qsgd") for more in (["--rows", "1"], ["--all"]))
    assert few[0] == all_rows[0] == 0 and few[2] == all_rows[2] == ""
    assert "error: lossless, 1 of 2 pairs" in few[1] and few[1].count("Float32") == 1
    assert "of 2 pairs" not in all_rows[1] and all_rows[1].count("Float32") == 2
    assert all_rows[1].count("Rice") == all_rows[1].count("Bitmap") == 5
    assert "left out: 1 gradients of fewer than 1024 elements, 30 together" in few[1]


def test_one_gradient_in_an_npy_file(run, tmp_path):
    np.save(tmp_path / "layer.npy", np.random.default_rng(0).normal(size=(50, 40)))
    code, output, _ = run(tmp_path / "layer.npy", "--json", "--index", "rice", "--value", "float32", "--ratio", "1")
    (pair,) = json.loads(output)["pairs"]
    assert code == 0
    assert (pair["index_bytes"], pair["value_bytes"], pair["energy_kept"]) == (0, 8000, 1.0)


def test_gradients_of_zeros_have_no_error(run, tmp_path):
    np.save(tmp_path / "zeros.npy", np.zeros(2000, "float32"))
    code, output, _ = run(tmp_path / "zeros.npy", "--json")
    assert code == 0
    assert {(pair["relative_error"], pair["energy_kept"]) for pair in json.loads(output)["pairs"]} == {(0, 1)}


def test_a_codec_that_fails_is_named_and_the_others_go_on(run, file):
    @register_stage
    class Broken(ValueCodec):
        def encode(self, values, splits, seed, step):
            raise RuntimeError("out of\norder")

    @register_stage
    class Liar(ValueCodec):
        def encode(self, values, splits, seed, step):
            code, code_splits, _ = Float32().encode(values, splits, seed, step)
            return code, code_splits, tf.zeros_like(values)

        def decode(self, code, code_splits, counts):
            return Float32().decode(code, code_splits, counts)

    @register_stage
    class Unfinished(IndexCodec):
        def __init__(self, argument):
            self.argument = argument

    code, output, errors = run(file, "--json")
    document = json.loads(output)
    assert code == 0 and len(document["pairs"]) > 40
    assert run(file, "--index", "unfinished,rice,rice", "--value", "qsgd")[1].count("Rice") == 3
    code, output, alone = run(file, "--value", "broken")
    assert (code, output) == (2, "") and re.fullmatch("inspect: no pair of codecs could be measured. .*Broken: out of order.*\n", alone)
    unfinished, *others = document["failed"]
    assert unfinished.startswith("Unfinished cannot be made: ") and "argument" in unfinished
    assert others == ["Broken: out of order", "Liar: Liar decodes to other values than its `encode` returned"]
    assert errors.splitlines() == [f"inspect: {failure}" for failure in document["failed"]]


def test_stages_of_an_application_are_tried(run, file, tmp_path, monkeypatch):
    (tmp_path / "own_stages.py").write_text(
        "import deepreduce_tf\n@deepreduce_tf.register_stage\nclass Own(deepreduce_tf.Float32):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    code, output, _ = run(file, "--json", "--import", "own_stages", "--index", "rice", "--value", "own")
    assert code == 0
    assert [pair["value"] for pair in json.loads(output)["pairs"]] == [{"class_name": "Own", "config": {}}]


def test_the_plot_is_a_png(run, file, tmp_path):
    pytest.importorskip("matplotlib")
    code, output, errors = run(file, "--plot", tmp_path / "plot.png")
    assert (code, errors) == (0, "") and "error: lossless" in output
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG\r\n")


PROGRAM = """
import runpy, sys
sys.modules["horovod"] = None  # as if it were not installed
sys.argv, sys.orig_argv = ["-m", *sys.argv[1:]], ["python", "-m", "deepreduce_tf"]  # as `python -m` has it while the package is imported
import deepreduce_tf
sys.argv[0] = "deepreduce_tf"
runpy.run_module("deepreduce_tf", run_name="__main__", alter_sys=True)
"""


def test_the_command_works_without_horovod_and_is_silent_on_standard_error(file):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    command = [sys.executable, "-c", PROGRAM, "inspect", str(file), "--json", "--value", "qsgd"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["gradients"] == 2


# What is refused


def savez(**arrays):
    return lambda path: np.savez(path, **arrays)


def truncated(path):
    np.savez(path, a=np.ones(5000, "float32"))
    path.write_bytes(path.read_bytes()[:9000])


def damaged(path):
    np.savez_compressed(path, a=np.arange(5000, dtype="float32"))
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(60)
    path.write_bytes(content)


def other_archive(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no array")


ONES = np.ones(2000, "float32")
BAD_FILES = {
    "missing": (lambda path: None, "No such file or directory. Expected an .npz file with one array per gradient"),
    "a pipe": (os.mkfifo, "Illegal seek. Expected an .npz file"),
    "a folder": (Path.mkdir, "Is a directory. Expected an .npz file"),
    "empty": (Path.touch, "Expected an .npz file .* Received: No data left in file"),
    "text": (lambda path: path.write_text("gradients"), "Expected an .npz file .* Received: pickled Python objects, or bytes that are not"),
    "truncated": (truncated, "Expected an .npz file .* Received: File is not a zip file"),
    "damaged": (damaged, "Expected an .npz file .* Received: "),
    "no arrays": (savez(), "Received: a file without arrays"),
    "another archive": (other_archive, "'readme.txt' must hold real numbers. Received: a file of another kind"),
    "text arrays": (savez(a=ONES, b=np.array(["x"])), "array 'b' must hold real numbers. Received: dtype <U1"),
    "complex": (savez(a=ONES.astype("complex64")), "array 'a' must hold real numbers. Received: dtype complex64"),
    "objects": (savez(a=np.array([None, ONES], object)), "Received: pickled Python objects"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps(ONES)), "Received: pickled Python objects"),
    "NaN": (savez(a=ONES, b=ONES * np.nan), "array 'b' must be finite in float32. Received: 2000 of 2000 elements"),
    "infinity": (savez(a=np.r_[ONES, -np.inf]), "array 'a' must be finite in float32. Received: 1 of 2001 elements"),
    "too large": (savez(a=np.r_[1e39, ONES.astype("float64")]), "Received: 1 of 2001 elements that are NaN, infinite or above 3.4e38"),
    "small": (savez(a=np.ones(1023, "float32"), b=np.float32(1)), "at least 1024 elements .* Received: 2 arrays, the largest of 1023"),
    "no elements": (savez(a=np.ones((0, 5), "float32")), "Received: 1 arrays, the largest of 0 elements. Lower --min-size"),
}


@pytest.mark.parametrize("make", BAD_FILES)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["table", "json"])
def test_a_file_without_usable_gradients_is_refused_in_one_line(run, tmp_path, make, more):
    path = tmp_path / "gradients.npz"
    write, message = BAD_FILES[make]
    write(path)
    code, output, errors = run(path, *more)
    assert (code, output, errors.count("\n")) == (2, "", 1), errors
    assert errors.startswith(f"inspect: {path}: ")
    assert re.search(message, errors), errors


BAD_ARGUMENTS = [
    (["--ratio", "0"], r"`ratio` must be in \(0, 1\]. Received: ratio=0.0"),
    (["--min-size", "-1"], "`--min-size` must be an integer in .* Received: --min-size=-1"),
    (["--rows", "0"], "`--rows` must be an integer"),
    (["--index", "rise"], "`index` must be of class IndexCodec, or the name of one: .*Rice.* Received: index='rise'"),
    (["--value", "rice"], "`value` must be of class ValueCodec, or the name of one: .* Received: value='rice'"),
    (["--import", "no_such_module"], "--import no_such_module: ModuleNotFoundError: No module named"),
    (["--plot", "plot.txt"], r"--plot must name a .png, .pdf or .svg file. Received: plot.txt"),
    (["--plot", "/no/such/folder/plot.png"], "--plot must name a file in a folder that exists. Received: /no/such/folder/plot.png"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_ARGUMENTS, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_arguments_that_do_not_fit_are_refused_in_one_line(run, file, arguments, message):
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
    code, output, errors = run(file, *arguments)
    assert (code, output, errors.count("\n")) == (2, "", 1), errors
    assert re.search(message, errors), errors


def test_what_must_be_installed_is_said(run, file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, output, errors = run(file, "--plot", tmp_path / "plot.png")
    assert (code, output) == (2, "")
    assert errors == "inspect: matplotlib must be installed. Run `pip install matplotlib`, or install the extra `tools`.\n"
    assert run(file, "--json", "--value", "qsgd")[0] == 0


# The paper's Figure 8


@pytest.fixture
def figure8(monkeypatch):
    presets = types.ModuleType("deepreduce_tf.presets")
    presets.PRESETS = {
        "topk": {"sparsifier": TopK(0.1), "index": Rice(), "value": Float32()},
        "3lc": {"sparsifier": TopK(1.0), "index": Rice(), "value": QSGD(2), "error_feedback": False},
    }
    monkeypatch.setitem(sys.modules, "deepreduce_tf.presets", presets)
    return figure_8


def test_figure_8_shows_volumes_and_times_of_each_method(figure8, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    draw = np.random.default_rng(1)
    np.savez(tmp_path / "gradients.npz", a=draw.normal(size=(3, 3, 64, 64)), b=draw.normal(size=(3, 3, 32, 64)), c=draw.normal(size=10))
    monkeypatch.setattr(sys, "argv", ["figure8.py", str(tmp_path / "gradients.npz"), "--output", str(tmp_path / "figure8.png")])
    figure8.main()
    output = capsys.readouterr().out
    assert (tmp_path / "figure8.png").read_bytes().startswith(b"\x89PNG\r\n")
    (topk,) = [line.split() for line in output.splitlines() if "Float32" in line]
    assert topk[topk.index("Float32") + 4] == "50.0"  # values: 4 of the 8 bytes of a raw pair
    assert "whole frames of one layer of 36,864 elements, 1 layers" in output


def test_figure_8_changes_the_ratio_of_sparse_methods_alone(figure8):
    ratios = {name: arguments["sparsifier"].ratio for name, arguments in figure8.methods(0.01).items()}
    assert ratios == {"topk": 0.01, "3lc": 1.0, "default": 0.01}
