"""DeepReduce: the compressor that a training job hands to Horovod."""

from __future__ import annotations

import copy
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.bucket_layout import BucketLayout, layout_of
from deepreduce_tf.codec import APPLICATION_CODEC, contraction_of
from deepreduce_tf.error_feedback import ErrorFeedback, Slot
from deepreduce_tf.fingerprint import fingerprint_of
from deepreduce_tf.index_codecs import IndexCodec, Rice, SeededSupport
from deepreduce_tf.indexed_rows import merge_rows, select_rows
from deepreduce_tf.metrics import FRAME_METRICS, Metrics
from deepreduce_tf.presets import PRESETS
from deepreduce_tf.python_decoder import decode_frames
from deepreduce_tf.segments import Segments
from deepreduce_tf.sparsifiers import Sparsifier
from deepreduce_tf.stage import agreement, check_integer, resolve_stage, serialize, variables_of
from deepreduce_tf.state_variables import initialize
from deepreduce_tf.value_codecs import ValueCodec
from horovod_ext import Bucket, Encoded, ExchangeMetrics, GatherCompressor


class DeepReduce(tf.__internal__.tracking.AutoTrackable, GatherCompressor):
    """Sparsifies each gradient, codes the kept indices and values, and exchanges the codes by one gather per bucket.

    Xu et al., "DeepReduce: A Sparse-tensor Communication Framework", NeurIPS 2021.

    The default keeps the largest 10 % with error feedback: about 4 % of the dense bytes.

    Args:
        sparsifier: which elements are kept: a `Sparsifier` or the name of one.
        index: how their indices are coded: an `IndexCodec` or the name of one. Not used with RandomK, which sends no indices.
        value: how their values are coded: a `ValueCodec` or the name of one.
        error_feedback: whether what was not sent is added to the next gradient.
        min_size: gradients with fewer elements are averaged densely, as stock Horovod does; they are counted in all volumes.
        bucket_bytes: dense bytes of the gradients that share a gather.
        seed: of RandomK and of stochastic rounding; the same on all ranks.

    Raises:
        ValueError: for arguments out of range, and for codecs with which error feedback would diverge.

    Example:
        >>> compression = DeepReduce(sparsifier=TopK(ratio=0.01, warmup_steps=500), index="rice", value=QSGD(bits=8))
        >>> optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression)
    """

    def __init__(
        self,
        sparsifier: Sparsifier | str = "topk",
        index: IndexCodec | str = "rice",
        value: ValueCodec | str = "qsgd",
        error_feedback: bool = True,
        min_size: int = 1024,
        bucket_bytes: int = 2**25,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.sparsifier = resolve_stage("sparsifier", sparsifier, Sparsifier)
        self.index = resolve_stage("index", index, IndexCodec)
        self.value = resolve_stage("value", value, ValueCodec)
        if isinstance(self.index, SeededSupport):
            raise ValueError("`index` must be a codec that sends indices; RandomK brings SeededSupport itself. Received: SeededSupport()")
        if not isinstance(error_feedback, bool):
            raise ValueError(f"`error_feedback` must be True or False. Received: error_feedback={error_feedback!r}")
        self.min_size = check_integer("min_size", min_size, 0, 2**31 - 1)
        self.bucket_bytes = check_integer("bucket_bytes", bucket_bytes, 1, 2**33)
        self.seed = check_integer("seed", seed, 0, 2**32 - 1)
        self.error_feedback = ErrorFeedback(error_feedback)
        for codec in (self.index, self.value) if error_feedback else ():
            contraction_of(codec)  # or a ValueError now rather than at the first step
        # A SavedModel of a training step must reach every variable that the step reads.
        self._stage_variables = [variable for stage in (self.sparsifier, self.index, self.value) for variable in variables_of(stage)]
        self._metrics = Metrics()
        # By bucket and graph, so that `decode` uses what `encode` made.
        self._layouts: weakref.WeakKeyDictionary[Bucket, dict[object, tuple[BucketLayout, tf.Tensor]]] = weakref.WeakKeyDictionary()

    def get_config(self) -> dict[str, object]:
        """The arguments that make an equal compressor, as values that JSON can hold."""
        return {
            "sparsifier": serialize(self.sparsifier),
            "index": serialize(self.index),
            "value": serialize(self.value),
            "error_feedback": self.error_feedback.enabled,
            "min_size": self.min_size,
            "bucket_bytes": self.bucket_bytes,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DeepReduce:
        """The compressor that `get_config` describes, with residuals of its own."""
        return cls(**config)

    @classmethod
    def preset(cls, name: str, **arguments: Any) -> DeepReduce:
        """A configuration by the name of its method in the literature: docs/presets.md.

        Args:
            name: `"bf-p2"`, `"skcompress"`, `"3lc"`, ...
            **arguments: of DeepReduce; they replace those of the preset.

        Raises:
            ValueError: for another name.

        Example:
            >>> compression = DeepReduce.preset("qsgd-bf-p2", sparsifier=TopK(ratio=0.01))
        """
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(f"`name` must be one of {', '.join(PRESETS)}. Received: name={name!r}")
        return cls(**copy.deepcopy(PRESETS[name]) | arguments)

    def __repr__(self) -> str:
        stages = f"sparsifier={self.sparsifier!r}, index={self.index!r}, value={self.value!r}"
        return f"DeepReduce({stages}, error_feedback={self.error_feedback.enabled})"

    def __call__(self, gradient: tf.Tensor, step: int = 0) -> tf.Tensor:
        """What receivers would see of a gradient (float32, of the same shape), without exchange and without a residual."""
        bucket = bucket_of([gradient], step=step)
        return self.decode(self.encode(bucket).payload, bucket, tf.constant(1.0))[0]

    # The contract of GatherCompressor.

    def slots(self, variables: Sequence[object], shapes: Sequence[tf.TensorShape]) -> list[Slot]:
        wanted = [shape.is_fully_defined() and shape.num_elements() >= max(1, self.min_size) for shape in shapes]
        return self.error_feedback.slots(variables, shapes, wanted)

    def step(self, slots: Sequence[Slot]) -> tf.Tensor:
        counter = self.error_feedback.step(slots)
        with tf.control_dependencies(initialize([counter])):
            return counter.read_value()

    def advance(self, slots: Sequence[Slot]) -> tf.Operation:
        return self.error_feedback.step(slots).assign_add(1, read_value=False)

    def encode(self, bucket: Bucket) -> Encoded:
        layout, fingerprint = self._layout(bucket)
        index, value, seed = self._index_codec(layout), self.value, tf.constant(self.seed, tf.int64)
        if layout.rows and not self.index.lossless:
            warnings.warn(f"all rows of tf.IndexedSlices must arrive: they are coded by {index!r}, not by {self.index!r}.", stacklevel=2)
        segments = Segments(layout.sizes, layout.shapes, seed, bucket.step)
        residuals = [] if layout.rows else [slot.residual for slot in bucket.slots if slot.residual is not None]
        if residuals and len(residuals) != len(bucket.slots):
            raise ValueError(
                f"a bucket must have residuals for all of its gradients or for none. Received: {len(residuals)} of {len(bucket.slots)}"
            )
        handles = [residual.handle for residual in residuals]
        with tf.control_dependencies(initialize(residuals)):
            if layout.rows:
                selection = select_rows(bucket.gradients[0], layout.widths[0])
            else:
                selection = self.sparsifier.select(bucket.gradients, residuals, seed, bucket.step)
        # Without a residual nothing returns what a contraction cuts off.
        if residuals:
            index, value = contraction_of(index), contraction_of(value)
        index_code, indices = index.encode(selection.indices, segments)
        values = selection.values
        if index.regathers:
            with tf.control_dependencies([values.values]):
                values = indices.with_values(ops.support_values(bucket.gradients, handles, indices.values, indices.row_splits))
        # Stochastic rounding must not be the same on every rank, or its errors would not average out.
        noise = seed + (bucket.rank + 1) * 2**32 + bucket.number * 2**48
        value_code, sent = value.encode(values, noise, bucket.step)
        codes = (index_code.values, index_code.row_splits, value_code.values, value_code.row_splits)
        known = (indices.row_lengths(), layout.sizes, layout.widths, seed, bucket.step, fingerprint)
        frame = ops.frame_pack(*codes, *known, index_codec=index.codec_id, value_codec=value.codec_id)

        def commit() -> list[tf.Operation]:
            return [ops.residual_commit(handles, indices.values, sent.values, indices.row_splits, layout.sizes)] if residuals else []

        return Encoded(frame.payload, commit, {name: getattr(frame, name) for name in FRAME_METRICS})

    def decode(self, payloads: tf.Tensor, bucket: Bucket, scale: tf.Tensor) -> list[tf.Tensor | tf.IndexedSlices]:
        layout, fingerprint = self._layout(bucket)
        index, segments = self._index_codec(layout), len(bucket.gradients)
        codecs = {"index_codec": index.codec_id, "value_codec": self.value.codec_id}
        built_in = APPLICATION_CODEC not in codecs.values()
        if built_in and not layout.rows:
            return layout.reshape(ops.frame_decode_sum(payloads, layout.sizes, fingerprint, scale, N=segments, **codecs))
        if built_in:
            indices, values, splits = ops.frame_decode(payloads, layout.sizes, fingerprint, layout.widths, **codecs)
        else:
            indices, values, splits = decode_frames(payloads, bucket.ranks, layout, fingerprint, index, self.value)
        if not layout.rows:
            return layout.reshape(ops.scatter_sum(indices, values, splits, layout.sizes, scale, N=segments))
        return [merge_rows(indices, values * scale, bucket.gradients[0])]

    def record(self, encoded: Sequence[Encoded], metrics: ExchangeMetrics) -> list[tf.Operation]:
        return [self._metrics.add([each.stats for each in encoded], vars(metrics))]

    def stats(self, session: tf.compat.v1.Session | None = None) -> dict[str, float]:
        """What this rank exchanged since this compressor was made.

        Args:
            session: the session that trains, in a TF1-style graph.

        Returns:
            steps; payload_bytes, the gathered frames of this rank; small_bytes, gradients averaged densely; dense_bytes, float32 bytes of
            all gradients; pair_bytes, what raw index-value pairs would take, small gradients included; indices, elements sent; index_bits,
            value_bits and bound_bits (log2 of the number of possible supports) of these; encode_seconds, exchange_seconds and
            decode_seconds, added over buckets, which may overlap.
        """
        metrics = self._metrics.read(session)
        return metrics | {"pair_bytes": 8 * metrics["indices"] + metrics["small_bytes"]}

    def _index_codec(self, layout: BucketLayout) -> IndexCodec:
        if layout.rows:
            return self.index if self.index.lossless and not self.sparsifier.seeded else Rice()
        return SeededSupport() if self.sparsifier.seeded else self.index

    def _layout(self, bucket: Bucket) -> tuple[BucketLayout, tf.Tensor]:
        """The layout of a bucket and its fingerprint, made once in each graph."""
        layouts = self._layouts.setdefault(bucket, {})
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        if graph not in layouts:
            stages = [agreement(stage) for stage in (self.sparsifier, self.index, self.value)]
            configuration = [*stages, self.error_feedback.enabled, self.min_size, self.bucket_bytes, self.seed]
            gradients = [[str(gradient.shape), label] for gradient, label in zip(bucket.gradients, bucket.labels, strict=True)]
            layouts[graph] = layout_of(bucket.gradients), tf.constant(fingerprint_of(configuration, [bucket.number, gradients]), tf.int64)
        return layouts[graph]


def bucket_of(
    gradients: Sequence[tf.Tensor | tf.IndexedSlices],
    residuals: Sequence[tf.Variable] = (),
    labels: Sequence[str] = (),
    step: tf.Tensor | int = 0,
    rank: tf.Tensor | int = 0,
    number: int = 0,
    ranks: tf.Tensor | int = 1,
) -> Bucket:
    """A bucket to encode and decode without an exchange, as `Bucket` describes it. Residuals and labels: one for each gradient, or none."""
    dense = [g if isinstance(g, tf.IndexedSlices) else tf.convert_to_tensor(g, tf.float32) for g in gradients]
    return Bucket(
        gradients=dense,
        slots=[Slot(residual) for residual in residuals or [None] * len(dense)],
        labels=labels or ["gradient float32"] * len(dense),
        step=tf.convert_to_tensor(step, tf.int64),
        rank=tf.convert_to_tensor(rank, tf.int64),
        number=number,
        ranks=tf.convert_to_tensor(ranks, tf.int32),
    )
