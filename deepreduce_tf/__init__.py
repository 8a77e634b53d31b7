"""Gradient compression for Horovod and TensorFlow."""

import importlib.util
import os
import sys

if sys.argv[:1] == ["-m"] and {__name__, f"-m{__name__}"} & {*sys.orig_argv}:
    # `python -m deepreduce_tf`: standard error is for the command's own messages. TensorFlow reads these when it is imported, and tells of
    # oneDNN, which the stages do not use, at any level.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

if importlib.util.find_spec("horovod") is not None:
    # First, since a loaded SavedModel needs Horovod's ops. The stages work without Horovod.
    import horovod.tensorflow  # noqa: F401

from deepreduce_tf.error_feedback import ErrorFeedback
from deepreduce_tf.index_codecs import (
    Adaptive,
    Bitmap,
    BloomFilter,
    DeltaHuffman,
    EliasFano,
    FixedWidth,
    Huffman,
    IndexCodec,
    Rice,
    RunLength,
)
from deepreduce_tf.segments import Segments
from deepreduce_tf.sparsifiers import Nonzero, RandomK, Selection, Sparsifier, Threshold, TopK
from deepreduce_tf.stage import Stage, register_stage
from deepreduce_tf.value_codecs import (
    QSGD,
    BFloat16,
    Deflate,
    DoubleExpFit,
    Float16,
    Float32,
    LogQuantizer,
    Natural,
    PolyFit,
    SketchML,
    TernGrad,
    ThreeLC,
    ValueCodec,
)
from deepreduce_tf.version import __version__

__all__ = [
    "QSGD",
    "Adaptive",
    "BFloat16",
    "Bitmap",
    "BloomFilter",
    "DeepReduce",
    "Deflate",
    "DeltaHuffman",
    "DoubleExpFit",
    "EliasFano",
    "ErrorFeedback",
    "FixedWidth",
    "Float16",
    "Float32",
    "Huffman",
    "IndexCodec",
    "LogQuantizer",
    "Natural",
    "Nonzero",
    "PolyFit",
    "RandomK",
    "Rice",
    "RunLength",
    "Segments",
    "Selection",
    "SketchML",
    "Sparsifier",
    "Stage",
    "TernGrad",
    "ThreeLC",
    "Threshold",
    "TopK",
    "ValueCodec",
    "__version__",
    "register_stage",
]

if importlib.util.find_spec("horovod") is not None:
    from deepreduce_tf.compressor import DeepReduce
else:

    def __getattr__(name: str) -> object:
        if name == "DeepReduce":
            raise ImportError("DeepReduce exchanges gradients with Horovod, which is not installed. See the README for how to build it.")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
