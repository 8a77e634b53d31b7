"""`python -m deepreduce_tf inspect`: its metrics against NumPy and SciPy, its output, and what it refuses."""

import contextlib
import errno
import functools
import io
import itertools
import json
import math
import os
import pickle
import re
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import figure8 as figure_8
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import gammaln
from stages import segments_of

from deepreduce_tf import QSGD, BloomFilter, Float32, IndexCodec, LogQuantizer, Rice, TernGrad, TopK, ValueCodec, register_stage, stage
from deepreduce_tf.__main__ import main
from deepreduce_tf.inspect import measure
from deepreduce_tf.inspect.measure import PairMetrics, Sample, join, measure_index, measure_pairs, measure_value
from deepreduce_tf.inspect.report import pareto_front
from deepreduce_tf.inspect.settings import SETTINGS, CodecError, label, stages_to_try
from deepreduce_tf.presets import PRESETS

ROOT = Path(__file__).resolve().parent.parent
FACTS = ["file", "ratio", "min_size", "gradients", "elements", "kept", "small_gradients", "small_elements"]
FACTS += ["bound_bits_per_index", "select_ms", "pairs", "failed"]
PAIR = ["index", "value", "error_class", "bits_per_index", "bits_per_value", "index_bytes", "value_bytes", "bytes", "relative_volume"]
PAIR += ["sent", "relative_error", "energy_kept", "encode_ms", "decode_ms", "pareto"]


@pytest.fixture(scope="module", autouse=True)
def built_in_stages_timed_once():
    """Other tests register stages of their own; the fastest of a few runs is for users."""
    built_in = {name: each for name, each in stage._registry.items() if each.__module__.startswith("deepreduce_tf.")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage, "_registry", built_in)
        patch.setattr(measure, "timed", functools.partial(measure.timed, enough_seconds=0))
        yield


@pytest.fixture(autouse=True)
def stages_registered_here_are_gone_afterwards(monkeypatch):
    monkeypatch.setattr(stage, "_registry", dict(stage._registry))


@pytest.fixture(scope="module")
def gradients():
    draw = np.random.default_rng(5)
    return {
        "conv/kernel": (draw.standard_t(3, (3, 3, 32, 32)) * 1e-3).astype("float32"),
        "dense/kernel": (draw.normal(size=(200, 30)) * (draw.random((200, 1)) < 0.2)).astype("float32"),
        "dense/bias": draw.normal(size=30).astype("float32"),
    }


@pytest.fixture(scope="module")
def file(gradients, tmp_path_factory):
    path = tmp_path_factory.mktemp("gradients") / "gradients.npz"
    np.savez(path, **gradients)
    return path


def run(*arguments):
    """Runs the command in this process: exit code, standard output, standard error."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr(sys, "argv", ["deepreduce_tf", "inspect", *map(str, arguments)])
        output = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        errors = stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        try:
            code = main()
        except SystemExit as error:  # of argparse
            code = error.code
    return code, output.getvalue(), errors.getvalue()


@pytest.fixture(scope="module")
def json_of_all_pairs(file):
    return run(file, "--json", "--ratio", "0.05")


@pytest.fixture(scope="module")
def table_of_all_pairs(file, tmp_path_factory):
    """With a picture: its folder, and what the command gave."""
    folder = tmp_path_factory.mktemp("picture")
    return folder, run(file, "--all", "--plot", folder / "plot.png")


def large(gradients):
    return {name: gradient for name, gradient in gradients.items() if gradient.size >= 1024}


# Metrics


def test_the_bound_is_the_logarithm_of_the_number_of_supports(gradients):
    sample = Sample(large(gradients), TopK(0.01))
    sizes, counts = np.array([9216, 6000]), np.array([92, 60])
    assert sample.kept == counts.sum()
    nats = gammaln(sizes + 1) - gammaln(counts + 1) - gammaln(sizes - counts + 1)
    assert sample.bound_bits == pytest.approx(nats.sum() / math.log(2), rel=1e-9)


@pytest.mark.parametrize("ratio", [0.01, 0.3])
@pytest.mark.parametrize("value", [Float32(), QSGD(4), LogQuantizer(8)], ids=repr)
def test_metrics_of_a_pair_agree_with_each_gradient_coded_alone(gradients, ratio, value):
    sample = Sample(large(gradients), TopK(ratio))
    index = measure_index(Rice(), sample)
    pair = join(index, measure_value(value, index.values, error_feedback=False), sample)
    index_bytes = value_bytes = 0
    zero = tf.zeros([], tf.int64)
    sent, kept = [], []
    for i, gradient in enumerate(large(gradients).values()):
        selection = TopK(ratio).select([tf.constant(gradient)], [], zero, zero)
        index_bytes += Rice().encode(selection.indices, segments_of([gradient.shape]))[0].values.shape[0]
        value_bytes += value.encode(selection.values, zero, zero)[0].values.shape[0]
        sent.append(np.zeros(gradient.size))
        decoded = measure_value(value, sample.values, False).decoded
        sent[-1][selection.indices.values] = sample.values.with_values(decoded)[i]
        kept.append(TopK(ratio)(gradient).numpy().ravel())
    sent, kept = np.concatenate(sent), np.concatenate(kept).astype("float64")
    dense = np.concatenate([gradient.ravel() for gradient in large(gradients).values()]).astype("float64")
    assert (pair.index_bytes, pair.value_bytes, pair.sent) == (index_bytes, value_bytes, sample.kept)
    assert pair.bits_per_index == pytest.approx(8 * index_bytes / sample.kept)
    assert pair.bits_per_value == pytest.approx(8 * value_bytes / sample.kept)
    assert pair.relative_error == pytest.approx(np.linalg.norm(sent - kept) / np.linalg.norm(kept), rel=1e-6)
    assert pair.energy_kept == pytest.approx(1 - np.sum((sent - dense) ** 2) / np.sum(dense**2), rel=1e-6)


class FirstElements(IndexCodec):
    """Not lossless: sends nothing, receivers take the first elements."""

    lossless = False

    def encode(self, indices, segments):
        return tf.cast(indices[:, :0], tf.uint8), self.decode(None, indices.row_lengths(), segments)

    def decode(self, code, counts, segments):
        return tf.cast(tf.ragged.range(counts), tf.int32)


def test_a_codec_that_changes_the_support_is_measured_with_the_values_there(gradients):
    sample = Sample(large(gradients), TopK(0.1))
    (pair,), failures = measure_pairs(sample, [FirstElements()], [QSGD(8)])
    sent, kept, dense = [], [], []
    decoded = measure_value(QSGD(8), first_values(sample)).decoded
    for i, gradient in enumerate(large(gradients).values()):
        dense.append(gradient.ravel())
        kept.append(TopK(0.1)(gradient).numpy().ravel() != 0)
        sent.append(np.zeros(gradient.size))
        values = sample.values.with_values(decoded)[i]
        sent[-1][: len(values)] = values
    sent, kept, dense = np.concatenate(sent), np.concatenate(kept), np.concatenate(dense).astype("float64")
    concerned = kept | (sent != 0)
    assert not failures
    assert (pair.index_bytes, pair.sent) == (0, sample.kept)
    assert pair.relative_error == pytest.approx(np.linalg.norm((sent - dense)[concerned]) / np.linalg.norm(dense[kept]), rel=1e-6)
    assert pair.energy_kept == pytest.approx(1 - np.sum((sent - dense) ** 2) / np.sum(dense**2), rel=1e-6)


def first_values(sample):
    starts = zip(sample.starts, np.diff(sample.values.row_splits), strict=True)
    return sample.values.with_values(tf.constant(np.concatenate([sample.flat[start : start + count] for start, count in starts])))


@pytest.mark.parametrize("policy", ["p0", "naive"])
def test_metrics_of_a_bloom_filter_agree_with_numpy(gradients, policy):
    codec = BloomFilter(fpr=0.1, policy=policy)
    sample = Sample(large(gradients), TopK(0.05))
    (pair,), failures = measure_pairs(sample, [codec], [Float32()])
    zero, tensors = tf.zeros([], tf.int64), [tf.constant(gradient) for gradient in large(gradients).values()]
    indices, values = TopK(0.05).select(tensors, [], zero, zero)
    code, support = codec.encode(indices, segments_of([tensor.shape for tensor in tensors]))
    dense = np.concatenate([gradient.ravel() for gradient in large(gradients).values()]).astype("float64")
    positions = support.values.numpy() + np.repeat([0, 9216], support.row_lengths())
    kept = indices.values.numpy() + np.repeat([0, 9216], indices.row_lengths())
    sent = np.zeros(len(dense))
    sent[positions] = values.values if policy == "naive" else dense[positions]
    concerned = np.union1d(positions, kept)
    error = np.linalg.norm((sent - dense)[concerned]) / np.linalg.norm(dense[kept])
    assert not failures
    assert (pair.sent > sample.kept, error > 0.5) == ((True, False) if policy == "p0" else (False, True))
    assert (pair.index_bytes, pair.value_bytes, pair.sent) == (len(code.values), 4 * len(positions), len(positions))
    assert (pair.bits_per_index + pair.bits_per_value) * len(kept) == pytest.approx(8 * pair.bytes)
    assert pair.relative_error == pytest.approx(error, rel=1e-6)
    assert pair.energy_kept == pytest.approx(1 - np.sum((sent - dense) ** 2) / np.sum(dense**2), rel=1e-6)


def test_values_are_encoded_as_with_error_feedback(gradients):
    sample = Sample(large(gradients), TopK(1.0))
    (pair,), _ = measure_pairs(sample, [Rice()], [TernGrad()])
    zero = tf.zeros([], tf.int64)
    errors = []
    for codec in (TernGrad().contraction(), TernGrad()):
        decoded = codec.encode(sample.values, zero, zero)[1].values.numpy()
        errors.append(np.linalg.norm(decoded - sample.values.values.numpy()) / np.linalg.norm(sample.values.values))
    assert errors[0] < 1 < errors[1]
    assert pair.relative_error == pytest.approx(errors[0], rel=1e-6)
    plain = measure_value(TernGrad(), sample.values, error_feedback=False).decoded
    assert np.linalg.norm(plain - sample.values.values.numpy()) / np.linalg.norm(sample.values.values) == pytest.approx(errors[1], rel=1e-6)


def test_a_codec_that_says_lossless_and_drops_an_index_is_named(gradients):
    class Forgetful(Rice):
        def encode(self, indices, segments):
            return super().encode(tf.concat([indices[:-1], indices[-1:, :-1]], 0), segments)

    pairs, failures = measure_pairs(Sample(large(gradients), TopK(0.05)), [Forgetful(), Rice()], [Float32()])
    assert [type(pair.index) for pair in pairs] == [Rice]
    assert failures == ["Forgetful: Forgetful decodes to another support than its `encode` returned or, if lossless, was given"]


def test_decoded_values_must_be_the_promised_ones_to_the_bit():
    class Signless(Float32):
        def decode(self, code, counts):
            return super().decode(code, counts) + 0.0  # -0 becomes 0

    with pytest.raises(CodecError, match="Signless decodes to other values than its `encode` returned"):
        measure_value(Signless(), tf.RaggedTensor.from_row_lengths([1.0, -0.0], [2]))
    measure_value(Float32(), tf.RaggedTensor.from_row_lengths([1.0, -0.0, np.nan], [3]))


def pair_of(size, error):
    return PairMetrics(Rice(), Float32(), size, 0, 0, 0, 0, error, 0, 0, 0)


def test_ties_share_the_pareto_front_and_errors_above_all_that_is_kept_are_not_on_it():
    small, twin, exact, exact_twin = pair_of(10, 0.5), pair_of(10, 0.5), pair_of(20, 0.0), pair_of(20, 0.0)
    beaten = [pair_of(10, 0.6), pair_of(11, 0.5), pair_of(21, 0.0), pair_of(5, 1.0), pair_of(4, math.inf)]
    assert set(map(id, pareto_front([exact, *beaten, small, exact_twin, twin]))) == set(map(id, [small, twin, exact, exact_twin]))
    assert pareto_front(beaten[-2:]) == []


def test_the_pareto_front_holds_what_nothing_beats(json_of_all_pairs):
    pairs = [(pair["bytes"], pair["relative_error"], pair["pareto"]) for pair in json.loads(json_of_all_pairs[1])["pairs"]]
    for size, error, in_front in pairs:
        beaten = [other for other, other_error, _ in pairs if other <= size and other_error < error]
        assert not (in_front and beaten)
        worse_than_nothing = error >= 1
        covered = any(other <= size and other_error <= error for other, other_error, other_in_front in pairs if other_in_front)
        assert covered or worse_than_nothing
        assert not (in_front and worse_than_nothing)


def test_every_setting_makes_a_stage():
    (indices, unusable_indices), (values, unusable_values) = (stages_to_try(kind) for kind in (IndexCodec, ValueCodec))
    stages = indices + values
    assert not unusable_indices and not unusable_values
    tried = {type(each).__name__ for each in stages}
    assert {each.__name__ for kind in (IndexCodec, ValueCodec) for each in stage.registered_stages(kind)} == tried
    assert len(set(map(label, stages))) == len(stages)
    assert SETTINGS["QSGD"] == [{"bits": each.bits} for each in stages if isinstance(each, QSGD)]


# Output


def test_json_is_all_that_stands_on_standard_output(json_of_all_pairs, gradients):
    code, output, errors = json_of_all_pairs
    document = json.loads(output)
    assert (code, errors) == (0, "")
    assert list(document) == FACTS
    assert (document["gradients"], document["small_gradients"], document["small_elements"], document["failed"]) == (2, 1, 30, [])
    assert document["elements"] == sum(gradient.size for gradient in large(gradients).values())
    assert all(list(pair) == PAIR for pair in document["pairs"])
    (indices, _), (values, _) = (stages_to_try(kind) for kind in (IndexCodec, ValueCodec))
    tried = [(stage.serialize(index), stage.serialize(value)) for index, value in itertools.product(indices, values)]
    found = [(pair["index"], pair["value"]) for pair in document["pairs"]]
    assert len(found) == len(tried) and all(each in found for each in tried)
    for pair in document["pairs"]:
        assert pair["bytes"] == pair["index_bytes"] + pair["value_bytes"]
        assert pair["relative_volume"] == pytest.approx(pair["bytes"] / (4 * document["elements"]))
        assert pair["encode_ms"] > 0 and pair["decode_ms"] > 0
        assert (pair["relative_error"] == 0) == (pair["error_class"] == "lossless")


def test_pairs_are_sorted_by_class_of_error_and_bytes(file, json_of_all_pairs):
    names = ["lossless", "at most 1 %", "at most 5 %", "at most 20 %", "more than 20 %"]
    pairs = json.loads(json_of_all_pairs[1])["pairs"]
    keys = [(names.index(pair["error_class"]), pair["bytes"]) for pair in pairs]
    assert keys == sorted(keys) and len({error_class for error_class, _ in keys}) > 3
    pairs = json.loads(run(file, "--json", "--sort", "decode", "--index", "rice,bitmap,huffman")[1])["pairs"]
    keys = [(names.index(pair["error_class"]), pair["decode_ms"]) for pair in pairs]
    assert keys == sorted(keys)


def test_the_table_shows_some_rows_of_each_class_or_all(file):
    few, all_rows = (run(file, *more, "--index", "rice,bitmap", "--value", "float32,natural,qsgd") for more in (["--rows", "1"], ["--all"]))
    assert few[0] == all_rows[0] == 0 and few[2] == all_rows[2] == ""
    assert "error: lossless, 1 of 2 pairs" in few[1] and few[1].count("Float32") == 1
    assert "of 2 pairs" not in all_rows[1] and all_rows[1].count("Float32") == 2
    assert all_rows[1].count("Rice") == all_rows[1].count("Bitmap") == 5
    assert "left out: 1 gradients of fewer than 1024 elements, 30 together" in few[1]


def rows_of(table):
    """Index and value codec of each row of a printed table."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in table.split("\u2500")[-1].splitlines()]
    return [(row[0].removesuffix(" *"), row[1]) for row in cells if len(row) == 10]


def test_names_are_not_folded_in_a_narrow_terminal(file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, output, _ = run(file, "--all", "--index", "rice,bloom_filter", "--value", "deflate,three_lc")
    tried = (stages_to_try(IndexCodec, ["rice", "bloom_filter"]), stages_to_try(ValueCodec, ["deflate", "three_lc"]))
    assert sorted(rows_of(output)) == sorted(itertools.product(*(map(label, stages) for stages, _ in tried)))


def test_the_page_shows_what_is_printed(file, table_of_all_pairs):
    shown = re.search(r"```\n(gradients.npz: .*?)\n```", (ROOT / "docs" / "inspect.md").read_text(), re.DOTALL)[1]
    printed = table_of_all_pairs[1][1].rstrip().replace(str(file), file.name)

    def header(table):
        """What is printed above the rows, without its numbers."""
        return re.sub(r"[\d,.]*\d", "N", table.split("\u2500")[0]).split()

    assert header(shown) == header(printed)
    assert len(rows_of(shown)) == 10 and set(rows_of(shown)) <= set(rows_of(printed))
    assert re.findall("error: ([^,]*),", shown) == re.findall(r"error: (.*\S)", printed)
    assert shown.splitlines()[-1] == printed.splitlines()[-1]


def test_one_gradient_in_an_npy_file(tmp_path):
    np.save(tmp_path / "layer.npy", np.random.default_rng(0).normal(size=(50, 40)))
    code, output, _ = run(tmp_path / "layer.npy", "--json", "--index", "rice", "--value", "float32", "--ratio", "1")
    (pair,) = json.loads(output)["pairs"]
    assert code == 0
    assert (pair["index_bytes"], pair["value_bytes"], pair["energy_kept"]) == (0, 8000, 1.0)


def test_gradients_of_zeros_have_no_error(tmp_path):
    np.save(tmp_path / "zeros.npy", np.zeros(2000, "float32"))
    code, output, _ = run(tmp_path / "zeros.npy", "--json")
    assert code == 0
    assert {(pair["relative_error"], pair["energy_kept"]) for pair in json.loads(output)["pairs"]} == {(0, 1)}


def test_a_codec_that_fails_is_named_and_the_others_go_on(file):
    @register_stage
    class Broken(ValueCodec):
        def encode(self, values, seed, step):
            raise RuntimeError("out of\norder")

    @register_stage
    class Liar(ValueCodec):
        def encode(self, values, seed, step):
            code, _ = Float32().encode(values, seed, step)
            return code, tf.zeros_like(values)

        def decode(self, code, counts):
            return Float32().decode(code, counts)

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


def test_stages_of_an_application_are_tried(file, tmp_path, monkeypatch):
    (tmp_path / "own_stages.py").write_text(
        "import deepreduce_tf\n@deepreduce_tf.register_stage\nclass Own(deepreduce_tf.Float32):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    code, output, _ = run(file, "--json", "--import", "own_stages", "--index", "rice", "--value", "own")
    assert code == 0
    assert [pair["value"] for pair in json.loads(output)["pairs"]] == [{"class_name": "Own", "config": {}}]


def test_a_picture_that_links_to_itself_is_refused(file, tmp_path):
    (tmp_path / "plot.png").symlink_to("plot.png")
    code, output, errors = run(file, "--plot", tmp_path / "plot.png")
    assert (code, output) == (2, "")
    assert errors.startswith("inspect: --plot must name a file that may be written. Received: ") and len(errors.splitlines()) == 1


def test_the_plot_is_a_png(table_of_all_pairs):
    folder, (code, output, errors) = table_of_all_pairs
    assert (code, errors) == (0, "") and "error: lossless" in output
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert [path.name for path in folder.iterdir()] == ["plot.png"]


@pytest.mark.filterwarnings("error")
def test_the_plot_takes_any_name_and_pairs_that_are_all_worse_than_nothing(tmp_path):
    np.savez(tmp_path / "gradients.npz", **{"\u5377\u7a4d/kernel": np.random.default_rng(0).normal(size=5000)})
    code, output, errors = run(
        tmp_path / "gradients.npz", "--index", "bloom_filter", "--value", "three_lc", "--plot", tmp_path / "plot.svg"
    )
    assert (code, errors) == (0, "") and "more than 20 %" in output
    assert b"<svg" in (tmp_path / "plot.svg").read_bytes()


def test_a_full_disk_leaves_the_picture_that_was_there(file, tmp_path, monkeypatch):
    (tmp_path / "plot.png").write_bytes(b"old")

    def write_bytes(path, content):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write_bytes)
        code, _, errors = run(file, "--value", "qsgd", "--plot", tmp_path / "plot.png")
    assert (code, errors) == (2, f"inspect: --plot {tmp_path / 'plot.png'}: No space left on device\n")
    assert [path.name for path in tmp_path.iterdir()] == ["plot.png"]
    assert (tmp_path / "plot.png").read_bytes() == b"old"


PROGRAM = """
import runpy, sys
sys.modules["horovod"] = None  # as if it were not installed
sys.argv, sys.orig_argv = ["-m", *sys.argv[1:]], ["python", "-m", "deepreduce_tf"]  # as `python -m` has it while the package is imported
import deepreduce_tf
sys.argv[0] = "deepreduce_tf"
runpy.run_module("deepreduce_tf", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module")
def processes(file):
    """The command in processes of its own, in which Horovod is not installed: exit code, output and standard error of each.

    All start before the first is waited for, since each imports TensorFlow for seconds.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "PYTHONUNBUFFERED"))}

    def start(*arguments, stdout):
        command = [sys.executable, "-c", PROGRAM, "inspect", str(file), "--json", *arguments]
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True)

    reader, writer = os.pipe()
    os.close(reader)
    started = {"read": start("--value", "qsgd", stdout=subprocess.PIPE)}
    started["reader gone"] = start("--index", "rice", "--value", "qsgd", stdout=writer)
    os.close(writer)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            started["disk full"] = start("--index", "rice", "--value", "qsgd", stdout=full)
    try:
        outputs = {name: process.communicate(timeout=240) for name, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
    return {name: (started[name].returncode, *output) for name, output in outputs.items()}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is Linux's")
def test_what_could_not_be_written_is_said(processes):
    code, _, errors = processes["disk full"]
    assert (code, errors) == (2, "inspect: standard output: No space left on device\n")


def test_a_reader_that_goes_away_is_no_error(processes):
    code, _, errors = processes["reader gone"]
    assert (code, errors) == (0, "")


def test_the_command_works_without_horovod_and_is_silent_on_standard_error(processes):
    code, output, errors = processes["read"]
    assert (code, errors) == (0, "")
    assert json.loads(output)["gradients"] == 2


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


def archive_of(*names):
    """An archive with an array under each name, also where two are the same."""

    def write(path):
        with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of zipfile, about one name twice
            for name in names:
                with archive.open(name, "w") as member:
                    np.lib.format.write_array(member, ONES)

    return write


def terminal(path):
    """A file that gives bytes and cannot be read twice."""
    keyboard, screen = os.openpty()
    os.write(keyboard, b"gradients\n")
    path.symlink_to(os.ttyname(screen))


ONES = np.ones(2000, "float32")
BAD_FILES = {
    "missing": (lambda path: None, "No such file or directory. Expected an .npz file with one array per gradient"),
    "a pipe": (os.mkfifo, "Illegal seek. Expected an .npz file"),
    "a terminal": (terminal, r"not seekable\. Expected an .npz file"),
    "one name twice": (archive_of("a.npy", "b.npy", "b.npy"), "expected one array per name. Received: 2 arrays 'b'"),
    "names that differ in .npy": (archive_of("a", "a.npy"), "expected one array per name. Received: 2 arrays 'a'"),
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
def test_a_file_without_usable_gradients_is_refused_in_one_line(tmp_path, make, more):
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
def test_arguments_that_do_not_fit_are_refused_in_one_line(file, arguments, message):
    code, output, errors = run(file, *arguments)
    assert (code, output, errors.count("\n")) == (2, "", 1), errors
    assert re.search(message, errors), errors


def test_what_must_be_installed_is_said(file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, output, errors = run(file, "--plot", tmp_path / "plot.png")
    assert (code, output) == (2, "")
    assert errors == "inspect: matplotlib must be installed. Run `pip install matplotlib`, or install the extra `tools`.\n"
    assert run(file, "--json", "--value", "qsgd")[0] == 0


# The paper's Figure 8


def figure8(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["figure8.py", *map(str, arguments)])
    figure_8.main()


def test_figure_8_shows_volumes_and_times_of_each_method(tmp_path, monkeypatch, capsys):
    draw = np.random.default_rng(1)
    np.savez(tmp_path / "gradients.npz", a=draw.normal(size=(3, 3, 64, 64)), b=draw.normal(size=(3, 3, 32, 64)), c=draw.normal(size=10))
    figure8(monkeypatch, tmp_path / "gradients.npz", "--output", tmp_path / "figure8.png")
    output = capsys.readouterr().out
    assert (tmp_path / "figure8.png").read_bytes().startswith(b"\x89PNG\r\n")
    volumes, frames = output.split("whole frames of one layer of 36,864 elements, 1 layers")
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:]] for line in volumes.splitlines() if len(cells := line.split("\u2502")) > 9
    }
    assert [*rows] == [*PRESETS, "default", "smallest"]
    # Of a raw pair's 8 bytes 4 are the value; FixedWidth takes 16 of the 32 bits of an index below 36,864, and 15 of one below 18,432.
    kept = np.array([369, 184])
    index = 100 * (kept * [16, 15]).sum() / 64 / kept.sum()
    assert rows["topk"][:5] == [
        "FixedWidth, Float32",
        f"{index:.1f}",
        "50.0",
        f"{50 + index:.1f}",
        f"{(50 + index) * 8 * 553 / 4 / 55296:.3f}",
    ]
    assert [line.split("\u2502")[1].strip() for line in frames.splitlines() if "\u2502" in line] == [
        *figure_8.PUBLISHED_VOLUME,
        "default",
        "smallest",
    ]


def test_figure_8_changes_the_ratio_of_sparse_methods_alone():
    ratios = {name: arguments["sparsifier"].ratio for name, arguments in figure_8.methods(0.02).items()}
    assert [*ratios] == [*PRESETS, "default", "smallest"]
    assert ratios == dict.fromkeys(ratios, 0.02) | {"3lc": 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ratio", "0"], r"`ratio` must be in \(0, 1\]. Received: ratio=0.0"),
        (["--output", "/nope/x.png"], "--output must name a file in a folder that exists. Received: /nope/x.png. Make the folder first."),
        (["/nope/gradients.npz"], "/nope/gradients.npz: No such file or directory"),
    ],
)
def test_figure_8_refuses_in_one_line_before_it_measures_or_trains(monkeypatch, arguments, message):
    for name in ("train", "measure"):
        monkeypatch.setattr(figure_8, name, lambda *_: pytest.fail("too late"))
    with pytest.raises(SystemExit, match=f"^figure8.py: {message}[^\n]*$"):
        figure8(monkeypatch, *arguments)
