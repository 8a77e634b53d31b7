"""Gradient compression for Horovod and TensorFlow."""

import importlib.util

if importlib.util.find_spec("horovod") is not None:
    # First, since a loaded SavedModel needs Horovod's ops. The stages work without Horovod.
    import horovod.tensorflow  # noqa: F401

from deepreduce_tf.error_feedback import ErrorFeedback
from deepreduce_tf.index_codecs import Bitmap, EliasFano, FixedWidth, IndexCodec, Rice, RunLength
from deepreduce_tf.sparsifiers import Nonzero, RandomK, Sparsifier, Threshold, TopK
from deepreduce_tf.stage import Stage, register_stage
from deepreduce_tf.value_codecs import QSGD, BFloat16, Deflate, Float16, Float32, LogQuantizer, Natural, TernGrad, ThreeLC, ValueCodec

__all__ = [
    "QSGD",
    "BFloat16",
    "Bitmap",
    "DeepReduce",
    "Deflate",
    "EliasFano",
    "ErrorFeedback",
    "FixedWidth",
    "Float16",
    "Float32",
    "IndexCodec",
    "LogQuantizer",
    "Natural",
    "Nonzero",
    "RandomK",
    "Rice",
    "RunLength",
    "Sparsifier",
    "Stage",
    "TernGrad",
    "ThreeLC",
    "Threshold",
    "TopK",
    "ValueCodec",
    "register_stage",
]

if importlib.util.find_spec("horovod") is not None:
    from deepreduce_tf.compressor import DeepReduce
else:

    def __getattr__(name):
        if name == "DeepReduce":
            raise ImportError("DeepReduce exchanges gradients with Horovod, which is not installed. See the README for how to build it.")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
