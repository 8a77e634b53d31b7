"""The training programs: their data, their network, and whole runs on two ranks."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
MODELS = REPOSITORY / "models"
JSON_KEYS = [
    "accuracy",
    "relative_volume",
    "relative_to_pairs",
    "bits_per_index",
    "index_bound",
    "bits_per_value",
    "bytes_per_step",
    "encode_ms",
    "exchange_ms",
    "decode_ms",
]
TRAINABLE_ELEMENTS = 269_722

sys.path.insert(0, str(MODELS))  # as `python models/train.py` has it

import data as image_data  # noqa: E402
from mlp import mlp  # noqa: E402
from resnet import resnet20  # noqa: E402


@pytest.fixture(scope="module")
def fashion_mnist():
    return image_data.load_fashion_mnist()


@pytest.fixture
def small_data():
    """30 train and 9 test images; pixel (0, 0) of an image is its number."""
    rng = np.random.default_rng(0)
    arrays = {}
    for part, count in (("train", 30), ("test", 9)):
        images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        images[:, 0, 0] = np.arange(count)
        arrays |= {f"{part}_images": images, f"{part}_labels": np.arange(count, dtype=np.uint8) % 10}
    return image_data.ImageData(name="small", mean=0.25, deviation=0.5, **arrays)


def image_numbers(images):
    return np.rint((np.asarray(images)[:, 2, 2, 0] * 0.5 + 0.25) * 255).astype(int).tolist()


def test_fashion_mnist_is_whole(fashion_mnist):
    assert fashion_mnist.name == "Fashion-MNIST"
    for part, count in (("train", 60_000), ("test", 10_000)):
        images, labels = getattr(fashion_mnist, f"{part}_images"), getattr(fashion_mnist, f"{part}_labels")
        assert (images.shape, images.dtype, labels.dtype) == ((count, 28, 28), np.uint8, np.uint8)
        assert np.bincount(labels).tolist() == [count // 10] * 10
    pixels = fashion_mnist.train_images.astype(np.float32) / 255
    assert pixels.mean(dtype=np.float64) == pytest.approx(fashion_mnist.mean, abs=1e-4)
    assert pixels.std(dtype=np.float64) == pytest.approx(fashion_mnist.deviation, abs=1e-4)


def test_fetched_data_is_read_from_the_cache_afterwards(tmp_path, monkeypatch):
    calls = []

    def source():
        calls.append(1)
        return {
            f"{part}_{kind}": np.zeros((count, 28, 28), np.uint8) if kind == "images" else (np.arange(count) % 10).astype(np.uint8)
            for part, count in image_data.PARTS.items()
            for kind in ("images", "labels")
        }

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(image_data, "_from_any_source", source)
    first, second = image_data.load_fashion_mnist(), image_data.load_fashion_mnist()
    assert calls == [1]
    np.testing.assert_array_equal(first.train_labels, second.train_labels)
    assert image_data.cache_file() == tmp_path / "deepreduce-tf" / "fashion-mnist.npz"


def test_incomplete_data_is_refused_and_not_cached(tmp_path, monkeypatch):
    few = {"train_images": np.zeros((5, 28, 28), np.uint8), "train_labels": np.zeros(5, np.uint8)}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(image_data, "_from_any_source", lambda: few)
    with pytest.raises(image_data.DataError, match=r"60000 train 28x28 images.*Received: \(5, 28, 28\)"):
        image_data.fetch()
    assert not image_data.cache_file().exists()


def test_without_any_source_one_line_names_both_ways(tmp_path, monkeypatch):
    def nothing():
        raise OSError("no\nnetwork")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for source in ("_from_system", "_from_debian_package", "_from_keras"):
        nothing.__name__ = source
        monkeypatch.setattr(image_data, source, nothing)
    with pytest.raises(image_data.DataError) as raised:
        image_data.fetch()
    message = str(raised.value)
    assert "\n" not in message
    assert "dataset-fashion-mnist" in message
    assert "keras.datasets.fashion_mnist.load_data()" in message


def test_images_get_a_black_frame_and_three_equal_channels(small_data):
    prepared = image_data.prepare(small_data.test_images, 0.25, 0.5).numpy()
    assert (prepared.shape, prepared.dtype) == ((9, 32, 32, 3), np.float32)
    np.testing.assert_array_equal(prepared[..., 0], prepared[..., 2])
    np.testing.assert_array_equal(prepared[:, :2], -0.5)
    np.testing.assert_allclose(prepared[:, 2:30, 2:30, 1], (small_data.test_images / 255 - 0.25) / 0.5, atol=1e-6)


def test_train_shares_are_disjoint_and_equally_long(small_data):
    seen = []
    for rank in range(4):
        batches = image_data.train_batches(small_data, rank, ranks=4, batch_size=7, seed=3)
        images, labels = next(iter(batches))
        assert images.shape == (7, 32, 32, 3)
        numbers = image_numbers(images)
        assert [number % 10 for number in numbers] == labels.numpy().tolist()
        seen.append(set(numbers))
    assert [len(numbers) for numbers in seen] == [7] * 4
    assert len(set().union(*seen)) == 28


def test_train_batches_go_on_over_the_end_and_follow_the_seed(small_data):
    def numbers(seed):
        batches = image_data.train_batches(small_data, 0, ranks=1, batch_size=20, seed=seed).take(3)
        return [image_numbers(images) for images, _ in batches]

    assert len(numbers(0)) == 3
    assert numbers(0) == numbers(0)
    assert numbers(0) != numbers(1)
    assert sorted(itertools.chain(*numbers(0))) == sorted(list(range(30)) * 2)


def test_test_shares_together_are_the_test_set(small_data):
    seen = []
    for rank in range(2):
        batches, labels = image_data.test_batches(small_data, rank, ranks=2, batch_size=2)
        numbers = [number for images, _ in batches for number in image_numbers(images)]
        assert [number % 10 for number in numbers] == labels.tolist()
        seen += numbers
    assert sorted(seen) == list(range(9))


def test_resnet20_has_the_papers_shape():
    model = resnet20()
    assert sum(int(np.prod(v.shape)) for v in model.trainable_weights) == TRAINABLE_ELEMENTS
    assert model.output_shape == (None, 10)
    assert sum(len(v.shape) == 4 for v in model.trainable_weights) == 19
    assert [layer.output.shape[1:3] for layer in model.layers if layer.name.startswith("global")] == [(64,)]


def test_the_mlp_has_two_hidden_layers_of_512_units_on_one_channel():
    model = mlp()
    shapes = [tuple(v.shape) for v in model.trainable_weights]
    assert shapes == [(1024, 512), (512,), (512, 512), (512,), (512, 10), (10,)]
    assert model.output_shape == (None, 10)


@pytest.mark.parametrize("network", [resnet20, mlp], ids=lambda network: network.__name__)
def test_networks_survive_saving(network, tmp_path):
    import keras

    model = network()
    model.save(tmp_path / "model.keras")
    images = np.random.default_rng(0).normal(size=(4, 32, 32, 3)).astype(np.float32)
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(images, verbose=0), model.predict(images, verbose=0))


def test_metrics_are_ratios_over_all_ranks(monkeypatch):
    import report

    stats = {
        "steps": 10.0,
        "payload_bytes": 900.0,
        "small_bytes": 100.0,
        "dense_bytes": 20_000.0,
        "pair_bytes": 4_000.0,
        "indices": 400.0,
        "index_bits": 2_000.0,
        "value_bits": 3_200.0,
        "bound_bits": 1_900.0,
        "encode_seconds": 0.02,
        "exchange_seconds": 0.03,
        "decode_seconds": 0.01,
    }
    monkeypatch.setattr(report.hvd, "allreduce", lambda tensor, name, op: 2 * tensor)  # two ranks with equal metrics
    metrics = report.compressed_metrics(0.9, SimpleNamespace(stats=lambda: stats))
    assert json.loads(metrics.to_json()) == {
        "accuracy": 0.9,
        "relative_volume": 0.05,
        "relative_to_pairs": 0.25,
        "bits_per_index": 5.0,
        "index_bound": 4.75,
        "bits_per_value": 8.0,
        "bytes_per_step": 100.0,
        "encode_ms": 2.0,
        "exchange_ms": 3.0,
        "decode_ms": 1.0,
    }


def test_metrics_that_do_not_apply_are_null(monkeypatch):
    import report

    keys = "steps payload_bytes small_bytes dense_bytes pair_bytes indices index_bits value_bits bound_bits"
    stats = dict.fromkeys(f"{keys} encode_seconds exchange_seconds decode_seconds".split(), 0.0) | {"steps": 1.0, "dense_bytes": 4.0}
    monkeypatch.setattr(report.hvd, "allreduce", lambda tensor, name, op: tensor)
    metrics = json.loads(report.compressed_metrics(0.5, SimpleNamespace(stats=lambda: stats)).to_json())
    assert metrics["bits_per_index"] is None
    assert metrics["relative_volume"] == 0


def test_a_weight_that_differs_on_one_rank_is_named(monkeypatch):
    import report

    model = resnet20()
    monkeypatch.setattr(report.hvd, "allgather_object", lambda digests: [digests, digests])
    assert report.differing_weights(model) == []
    monkeypatch.setattr(report.hvd, "allgather_object", lambda digests: [digests, [*digests[:-1], "another"]])
    assert report.differing_weights(model) == [model.weights[-1].path]


def train(*arguments, ranks=2):
    """Runs the program and returns the lines that rank 0 printed, without the launcher's prefix."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "HOROVOD_STALL_CHECK_TIME_SECONDS": "5",
        "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "20",
    }
    launcher = [sys.executable, "-m", "horovod.runner.launch", "-np", str(ranks), "--gloo"]
    command = [*launcher, sys.executable, str(MODELS / "train.py"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.removeprefix("[0]<stdout>:") for line in done.stdout.splitlines()]


@pytest.mark.timeout(300)
def test_two_ranks_train_with_compressed_gradients(fashion_mnist, tmp_path):
    lines = train("--steps", "3", "--batch-size", "8", "--json", str(tmp_path / "last.json"))
    metrics = json.loads(lines[-1])
    assert list(metrics) == JSON_KEYS
    assert (tmp_path / "last.json").read_text() == lines[-1] + "\n"
    assert all(isinstance(value, float) for value in metrics.values())
    assert 0.02 < metrics["relative_volume"] < 0.06
    assert metrics["relative_to_pairs"] < 0.5
    assert metrics["index_bound"] < metrics["bits_per_index"] < 1.1 * metrics["index_bound"] + 0.2
    assert 8 <= metrics["bits_per_value"] < 8.5
    assert metrics["bytes_per_step"] == pytest.approx(metrics["relative_volume"] * 4 * TRAINABLE_ELEMENTS, rel=1e-3)
    assert any("weights are equal, bit for bit, on 2 ranks" in line for line in lines)
    assert any("Fashion-MNIST" in line for line in lines)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("compression", "bytes_per_value"), [("none", 4), ("fp16", 2)])
def test_two_ranks_train_with_horovods_own_compressions(fashion_mnist, tmp_path, compression, bytes_per_value):
    model = tmp_path / "model.keras"
    lines = train("--compression", compression, "--steps", "3", "--batch-size", "8", "--save", str(model))
    metrics = json.loads(lines[-1])
    assert list(metrics) == JSON_KEYS
    known = {"relative_volume": bytes_per_value / 4, "bytes_per_step": bytes_per_value * TRAINABLE_ELEMENTS}
    assert {key: value for key, value in metrics.items() if value is not None and key != "accuracy"} == known
    assert 0 < metrics["accuracy"] <= 1
    assert model.exists()


@pytest.mark.timeout(300)
def test_a_preset_trains_and_gradients_of_the_next_batch_are_saved(fashion_mnist, tmp_path):
    file = tmp_path / "gradients"  # NumPy would add an ending
    lines = train("--model", "mlp", "--preset", "bf-p1", "--steps", "2", "--batch-size", "8", "--save-gradients", str(file))
    assert any("MLP on Fashion-MNIST" in line for line in lines) and any("policy='p1'" in line for line in lines)
    gradients = dict(np.load(file))
    names = [f"{layer}/{kind}" for layer in ("dense", "dense_1", "dense_2") for kind in ("kernel", "bias")]
    shapes = [tuple(v.shape) for v in mlp().trainable_weights]
    assert [(name, gradient.shape) for name, gradient in gradients.items()] == list(zip(names, shapes, strict=True))
    for gradient in gradients.values():
        assert gradient.dtype == np.float32 and np.isfinite(gradient).all() and np.abs(gradient).max() > 0


@pytest.mark.parametrize(("path", "message"), [("missing/file", "the folder of .*file does not exist"), (".", "must be a file that")])
def test_gradients_that_cannot_be_written_are_refused_before_training(path, message, tmp_path):
    command = [sys.executable, str(MODELS / "train.py"), "--save-gradients", str(tmp_path / path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert re.search(message, done.stderr.splitlines()[-1])
