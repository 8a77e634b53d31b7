"""Configurations by the names that the methods have in the literature."""

from __future__ import annotations

from deepreduce_tf.index_codecs import BloomFilter, DeltaHuffman, FixedWidth, Huffman, RunLength
from deepreduce_tf.sparsifiers import TopK
from deepreduce_tf.stage import Stage
from deepreduce_tf.value_codecs import QSGD, Deflate, DoubleExpFit, Float32, PolyFit, SketchML, ThreeLC

# What differs from raw pairs of the largest 10 %: a method that codes one half leaves the other raw.
_METHODS: dict[str, dict[str, Stage]] = {
    "topk": {},
    "rle": {"index": RunLength()},
    "huffman": {"index": Huffman()},
    "bf-p0": {"index": BloomFilter(policy="p0")},
    "bf-p1": {"index": BloomFilter(policy="p1")},
    "bf-p2": {"index": BloomFilter(policy="p2")},
    "deflate": {"value": Deflate()},
    "fit-poly": {"value": PolyFit()},
    "fit-dexp": {"value": DoubleExpFit()},
    "qsgd": {"value": QSGD()},
    "sketchml": {"value": SketchML()},
    "fit-poly-bf-p0": {"index": BloomFilter(policy="p0"), "value": PolyFit()},
    "qsgd-bf-p0": {"index": BloomFilter(policy="p0"), "value": QSGD()},
    "qsgd-bf-p2": {"index": BloomFilter(policy="p2"), "value": QSGD()},
    "skcompress": {"index": DeltaHuffman(), "value": SketchML(bits=2)},
    "3lc": {"sparsifier": TopK(ratio=1.0), "value": ThreeLC()},
}

# Arguments of DeepReduce; those that are not named have their defaults.
PRESETS: dict[str, dict[str, Stage]] = {
    name: {"sparsifier": TopK(), "index": FixedWidth(), "value": Float32(), **stages} for name, stages in _METHODS.items()
}
