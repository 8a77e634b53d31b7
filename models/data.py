"""Fashion-MNIST for the training programs: fetched once per machine, kept in a cache folder, served as batches.

`python models/data.py` fetches it; `load_fashion_mnist` does so too when it has to. Three sources are tried in turn: the files that the
Debian package `dataset-fashion-mnist` installs, the same package unpacked without installing it (needs no root), and Keras' own download.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import gzip
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf  # not at the top: fetching data must not wait seconds for it

DEBIAN_PACKAGE = "dataset-fashion-mnist"
DEBIAN_FOLDER = "usr/share/datasets/fashion-mnist"
PARTS = {"train": 60_000, "test": 10_000}
CLASSES = 10


@dataclasses.dataclass(frozen=True)
class ImageData:
    """Labelled grey images.

    Attributes:
        name: the data that this really is, for reports.
        train_images, test_images: uint8[count, 28, 28].
        train_labels, test_labels: uint8[count], below `CLASSES`.
        mean, deviation: of the training pixels divided by 255.
    """

    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    mean: float
    deviation: float


class DataError(RuntimeError):
    """No source had the data."""


def cache_file() -> Path:
    """Where the data is kept: `deepreduce-tf/fashion-mnist.npz` under $XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepreduce-tf" / "fashion-mnist.npz"


def load_fashion_mnist() -> ImageData:
    """Fashion-MNIST (Xiao et al. 2017) from the cache, fetched first when it is not there.

    Raises:
        DataError: no source had it.
    """
    with np.load(fetch()) as arrays:
        return ImageData(name="Fashion-MNIST", mean=0.2860, deviation=0.3530, **arrays)


def fetch() -> Path:
    """Brings the data into the cache and returns its file. Of all processes of a machine one fetches, the others wait.

    Raises:
        DataError: no source had it.
    """
    file = cache_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            arrays = _from_any_source()
            _check(arrays)
            unfinished = file.with_name("unfinished-" + file.name)
            np.savez(unfinished, allow_pickle=False, **arrays)
            unfinished.rename(file)
    return file


def train_batches(data: ImageData, rank: int, ranks: int, batch_size: int, seed: int) -> tf.data.Dataset:
    """Endless shuffled batches of this rank's share of the training images. Shares are disjoint and equally long.

    Returns:
        Dataset of float32[batch_size, 32, 32, 3] images (see `prepare`) and int64[batch_size] labels.
    """
    import tensorflow as tf  # not at the top: fetching data must not wait seconds for it

    share = slice(rank, len(data.train_images) // ranks * ranks, ranks)
    images, labels = data.train_images[share], data.train_labels[share].astype(np.int64)
    rows = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images), seed=seed + rank).repeat()
    return _prepared(rows.batch(batch_size, drop_remainder=True), data)


def test_batches(data: ImageData, rank: int, ranks: int, batch_size: int = 250) -> tuple[tf.data.Dataset, np.ndarray]:
    """Batches of this rank's share of the test images, and the labels of the whole share. The shares together are the test set."""
    import tensorflow as tf  # not at the top: fetching data must not wait seconds for it

    share = slice(rank, None, ranks)
    labels = data.test_labels[share].astype(np.int64)
    return _prepared(tf.data.Dataset.from_tensor_slices((data.test_images[share], labels)).batch(batch_size), data), labels


def prepare(images: tf.Tensor, mean: float, deviation: float) -> tf.Tensor:
    """uint8[batch, 28, 28] grey images as float32[batch, 32, 32, 3]: a black frame of 2 pixels, standardised, three equal channels."""
    import tensorflow as tf  # not at the top: fetching data must not wait seconds for it

    images = tf.pad(images, ((0, 0), (2, 2), (2, 2)))
    images = (tf.cast(images, tf.float32) / 255.0 - mean) / deviation
    return tf.repeat(images[..., tf.newaxis], 3, axis=-1)


def _prepared(batches: tf.data.Dataset, data: ImageData) -> tf.data.Dataset:
    # Bytes are kept and floats made per batch: a pass over ready-made floats would need 700 MB on every rank.
    return batches.map(lambda images, labels: (prepare(images, data.mean, data.deviation), labels)).prefetch(2)


def _from_any_source() -> dict[str, np.ndarray]:
    reasons = []
    for source in (_from_system, _from_debian_package, _from_keras):
        try:
            return source()
        except Exception as error:  # whatever kept one source from working, the next one may
            reasons.append(f"{source.__name__.removeprefix('_from_')}: {' '.join(str(error).split())[:200]}")
    raise DataError(
        f"Fashion-MNIST is neither in {cache_file()} nor to be had. Either install the Debian package (apt-get install {DEBIAN_PACKAGE}), "
        f"or connect to the internet for keras.datasets.fashion_mnist.load_data(). Tried: {'; '.join(reasons)}"
    )


def _from_system() -> dict[str, np.ndarray]:
    return _read_idx_files(Path("/") / DEBIAN_FOLDER)


def _from_debian_package() -> dict[str, np.ndarray]:
    for program in ("apt-get", "dpkg-deb"):
        if not shutil.which(program):
            raise FileNotFoundError(f"no {program} on this machine")
    with tempfile.TemporaryDirectory() as folder:
        # As root, apt would download as a user of its own, who may not write here; for anyone else the option means nothing.
        download = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", DEBIAN_PACKAGE]
        try:
            _run(download, folder)
        except RuntimeError:
            if os.geteuid() != 0:
                raise
            _run(["apt-get", "-qq", "update"], folder)  # a fresh machine has no package lists yet
            _run(download, folder)
        (package,) = Path(folder).glob("*.deb")
        _run(["dpkg-deb", "-x", package.name, "."], folder)
        return _read_idx_files(Path(folder) / DEBIAN_FOLDER)


def _from_keras() -> dict[str, np.ndarray]:
    import keras  # not at the top: fetching from a package needs none of it

    with _socket_timeout(30):
        (train_images, train_labels), (test_images, test_labels) = keras.datasets.fashion_mnist.load_data()
    return {"train_images": train_images, "train_labels": train_labels, "test_images": test_images, "test_labels": test_labels}


def _read_idx_files(folder: Path) -> dict[str, np.ndarray]:
    arrays = {}
    for part, prefix in (("train", "train"), ("test", "t10k")):
        images = gzip.decompress((folder / f"{prefix}-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress((folder / f"{prefix}-labels-idx1-ubyte.gz").read_bytes())
        arrays[f"{part}_images"] = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28)
        arrays[f"{part}_labels"] = np.frombuffer(labels, np.uint8, offset=8)
    return arrays


def _check(arrays: dict[str, np.ndarray]) -> None:
    for part, count in PARTS.items():
        images, labels = arrays[f"{part}_images"], arrays[f"{part}_labels"]
        labelled = np.bincount(labels, minlength=CLASSES).tolist()
        if images.shape != (count, 28, 28) or labelled != [count // CLASSES] * CLASSES:
            raise DataError(
                f"Fashion-MNIST has {count} {part} 28x28 images in {CLASSES} equal classes. Received: {images.shape}, per class {labelled}"
            )


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


@contextlib.contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    """A firewall that drops packets must not look like a slow download."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


if __name__ == "__main__":
    try:
        print(fetch())
    except DataError as error:
        sys.exit(str(error))
