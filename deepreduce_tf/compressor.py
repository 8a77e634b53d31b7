"""DeepReduce: the compressor that a training job hands to Horovod."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Sequence

import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.error_feedback import ErrorFeedback, Slot, initialize, make_variable
from deepreduce_tf.index_codecs import APPLICATION_CODEC, IndexCodec, Rice, SeededSupport
from deepreduce_tf.presets import PRESETS
from deepreduce_tf.sparsifiers import Selection, Sparsifier
from deepreduce_tf.stage import agreement, check_integer, contraction_of, resolve_stage, serialize, variables_of
from deepreduce_tf.value_codecs import ValueCodec
from horovod_ext import Bucket, Encoded, GatherCompressor, ExchangeMetrics

# What FramePack tells of each bucket.
_FRAME_METRICS = ("payload_bytes", "indices", "index_bits", "value_bits", "bound_bits")
# What is added up over all exchanges.
_METRICS = (
    "steps",
    *_FRAME_METRICS,
    "small_bytes",
    "dense_bytes",
    "encode_seconds",
    "exchange_seconds",
    "decode_seconds",
)


class DeepReduce(tf.__internal__.tracking.AutoTrackable, GatherCompressor):
    """Sparsifies each gradient, codes the kept places and values, and exchanges the codes by one gather per bucket.

    Xu et al., "DeepReduce: A Sparse-tensor Communication Framework", NeurIPS 2021.

    The default keeps the largest 10 % with error feedback: about 4 % of the dense bytes.

    Args:
        sparsifier: which places are kept: a `Sparsifier` or the name of one.
        index: how the places are coded: an `IndexCodec` or the name of one. Not used with RandomK, which sends no places.
        value: how the values are coded: a `ValueCodec` or the name of one.
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
    ):
        super().__init__()
        self.sparsifier = resolve_stage("sparsifier", sparsifier, Sparsifier)
        self.index = resolve_stage("index", index, IndexCodec)
        self.value = resolve_stage("value", value, ValueCodec)
        if isinstance(self.index, SeededSupport):
            raise ValueError("`index` must be a codec that sends places; RandomK brings SeededSupport itself. Received: SeededSupport()")
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
        self._totals = {}

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
    def from_config(cls, config: dict[str, object]) -> DeepReduce:
        """The compressor that `get_config` describes, with residuals of its own."""
        return cls(**config)

    @classmethod
    def preset(cls, name: str, **arguments: object) -> DeepReduce:
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
        gradient = tf.convert_to_tensor(gradient, tf.float32)
        zero = tf.zeros([], tf.int64)
        bucket = Bucket(
            gradients=[gradient], slots=[Slot(None)], labels=["gradient float32"], step=tf.constant(step, tf.int64), rank=zero, number=0
        )
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
        plan = _Plan(self, bucket)
        if plan.sparse and not self.index.lossless:
            warnings.warn(
                f"all rows of tf.IndexedSlices must arrive: they are coded by {plan.index!r}, not by {self.index!r}.", stacklevel=2
            )
        seed = tf.constant(self.seed, tf.int64)
        residuals = [] if plan.sparse else [slot.residual for slot in bucket.slots if slot.residual is not None]
        if residuals and len(residuals) != len(bucket.slots):
            raise ValueError(
                f"a bucket must have residuals for all of its gradients or for none. Received: {len(residuals)} of {len(bucket.slots)}"
            )
        with tf.control_dependencies(initialize(residuals)):
            selection = plan.rows() if plan.sparse else self.sparsifier.select(bucket.gradients, residuals, seed, bucket.step)
        # Without a residual nothing returns what a contraction cuts off.
        index, value = map(contraction_of, (plan.index, self.value)) if residuals else (plan.index, self.value)
        code, code_splits, indices, splits = index.encode(selection.indices, selection.splits, plan.sizes, plan.shapes, seed, bucket.step)
        values = selection.values
        if index.regathers:
            with tf.control_dependencies([values]):
                values = ops.support_values(bucket.gradients, [r.handle for r in residuals], indices, splits)
        # Stochastic rounding must not be the same on every rank, or its errors would not average out.
        noise = seed + (bucket.rank + 1) * 2**32 + bucket.number * 2**48
        value_code, value_splits, sent = value.encode(values, splits * plan.widths[0] if plan.sparse else splits, noise, bucket.step)
        frame = ops.frame_pack(
            code,
            code_splits,
            value_code,
            value_splits,
            splits[1:] - splits[:-1],
            plan.sizes,
            plan.widths,
            seed,
            bucket.step,
            plan.fingerprint,
            index_codec=plan.index.codec_id,
            value_codec=self.value.codec_id,
        )

        def commit():
            return [ops.residual_commit([r.handle for r in residuals], indices, sent, splits, plan.sizes)] if residuals else []

        return Encoded(frame.payload, commit, {name: getattr(frame, name) for name in _FRAME_METRICS})

    def decode(self, payloads: tf.Tensor, bucket: Bucket, scale: tf.Tensor) -> list[tf.Tensor | tf.IndexedSlices]:
        plan = _Plan(self, bucket)
        codecs = {"index_codec": plan.index.codec_id, "value_codec": self.value.codec_id}
        built_in = APPLICATION_CODEC not in codecs.values()
        if built_in and not plan.sparse:
            sums = ops.frame_decode_sum(payloads, plan.sizes, plan.fingerprint, scale, N=len(bucket.gradients), **codecs)
            return plan.reshape(sums)
        if built_in:
            indices, values, _ = ops.frame_decode(payloads, plan.sizes, plan.fingerprint, plan.widths, **codecs)
        else:
            indices, values, splits = plan.decode_in_python(payloads, bucket.ranks, codecs)
        if not plan.sparse:
            return plan.reshape(ops.scatter_sum(indices, values, splits, plan.sizes, scale, N=len(bucket.gradients)))
        return [plan.merge(indices, values * scale)]

    def record(self, encoded: Sequence[Encoded], metrics: ExchangeMetrics) -> list[tf.Operation]:
        total = self._total()
        zero = tf.zeros([], tf.float64)
        step = {"steps": tf.ones([], tf.float64)} | vars(metrics)
        step |= {name: tf.add_n([zero, *(each.stats[name] for each in encoded)]) for name in _FRAME_METRICS}
        with tf.control_dependencies(initialize([total])):
            return [total.assign_add(tf.stack([step[name] for name in _METRICS]), read_value=False)]

    def _total(self) -> tf.Variable:
        with tf.init_scope():
            graph = "process" if tf.executing_eagerly() else f"graph_{id(tf.compat.v1.get_default_graph())}"
        if graph not in self._totals:
            self._totals[graph] = make_variable("metrics", [len(_METRICS)], tf.float64)
        return self._totals[graph]

    def stats(self, session: tf.compat.v1.Session | None = None) -> dict[str, float]:
        """What this rank exchanged since this compressor was made.

        Args:
            session: the session that trains, in a TF1-style graph.

        Returns:
            steps; payload_bytes, the gathered frames of this rank; small_bytes, gradients averaged densely; dense_bytes, float32 bytes of
            all gradients; pair_bytes, what raw index-value pairs would take, small gradients included; indices, places sent; index_bits,
            value_bits and bound_bits (log2 of the number of possible supports) of these; encode_seconds, exchange_seconds and
            decode_seconds, added over buckets, which may overlap.
        """
        if session is None:
            values = self._total().numpy()
        else:
            variable = self._totals.get(f"graph_{id(session.graph)}")
            try:
                values = session.run(variable) if variable is not None else [0.0] * len(_METRICS)
            except tf.errors.FailedPreconditionError:  # nothing was exchanged in this session
                values = [0.0] * len(_METRICS)
        metrics = dict(zip(_METRICS, map(float, values), strict=True))
        return metrics | {"pair_bytes": 8 * metrics["indices"] + metrics["small_bytes"]}


class _Plan:
    """What both sides must know of a bucket: sizes, row lengths, codecs and the fingerprint of all that."""

    def __init__(self, compression: DeepReduce, bucket: Bucket):
        self.compression = compression
        self.gradients = bucket.gradients
        self.sparse = isinstance(bucket.gradients[0], tf.IndexedSlices)
        self.index = compression.index
        if self.sparse and (compression.sparsifier.seeded or not compression.index.lossless):
            self.index = Rice()
        elif not self.sparse and compression.sparsifier.seeded:
            self.index = SeededSupport()
        self.shapes = [tf.cast(g.dense_shape, tf.int32) if self.sparse else tf.shape(g) for g in bucket.gradients]
        if self.sparse:
            self.sizes = tf.stack([tf.cast(g.dense_shape[0], tf.int64) for g in bucket.gradients])
            self.widths = tf.stack([tf.cast(tf.reduce_prod(g.dense_shape[1:]), tf.int64) for g in bucket.gradients])
        else:
            self.sizes = tf.stack([tf.size(g, tf.int64) for g in bucket.gradients])
            self.widths = tf.ones_like(self.sizes)
        self.fingerprint = self._fingerprint(bucket)

    def _fingerprint(self, bucket: Bucket) -> tf.Tensor:
        c = self.compression
        stages = [agreement(stage) for stage in (c.sparsifier, c.index, c.value)]
        config = [*stages, c.error_feedback.enabled, c.min_size, c.bucket_bytes, c.seed]
        gradients = [[str(g.shape), label] for g, label in zip(bucket.gradients, bucket.labels, strict=True)]
        texts = (json.dumps(part, sort_keys=True).encode() for part in (config, [bucket.number, gradients]))
        digest = b"".join(hashlib.blake2b(text, digest_size=4).digest() for text in texts)
        return tf.constant(int.from_bytes(digest, "little", signed=True), tf.int64)

    def rows(self) -> Selection:
        """The rows of `tf.IndexedSlices` as the support: nothing is left out, so there is nothing to feed back."""
        (slices,) = self.gradients
        indices = tf.cast(slices.indices, tf.int32)
        return Selection(indices, tf.reshape(slices.values, [-1]), tf.stack([0, tf.size(indices, tf.int64)]))

    def reshape(self, sums: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        return [tf.reshape(total, shape) for total, shape in zip(sums, self.shapes, strict=True)]

    def merge(self, indices: tf.Tensor, values: tf.Tensor) -> tf.IndexedSlices:
        """The rows of all ranks, those of the same id added in the order of the ranks."""
        (slices,) = self.gradients
        order = tf.argsort(indices, stable=True)
        unique, segments = tf.unique(tf.gather(indices, order))
        rows = tf.gather(tf.reshape(values, tf.concat([[-1], self.shapes[0][1:]], 0)), order)
        return tf.IndexedSlices(tf.math.segment_sum(rows, segments), unique, slices.dense_shape)

    def decode_in_python(self, payloads: tf.Tensor, ranks: tf.Tensor, codecs: dict[str, int]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """All ranks' places and values through the methods of the stages, one rank after the other."""

        def add_rank(rank, all_indices, all_values, all_counts):
            index_code, index_splits, value_code, value_splits, counts, seed, step = ops.frame_unpack(
                payloads, self.sizes, self.fingerprint, self.widths, rank, **codecs
            )
            indices, _ = self.index.decode(index_code, index_splits, counts, self.sizes, self.shapes, seed, step)
            values = self.compression.value.decode(value_code, value_splits, counts * self.widths)
            pairs = ((all_indices, indices), (all_values, values), (all_counts, counts))
            return (rank + 1, *(tf.concat(pair, 0) for pair in pairs))

        none = (tf.zeros([], tf.int64), tf.zeros([0], tf.int32), tf.zeros([0], tf.float32), tf.zeros([0], tf.int64))
        shapes = tuple(tf.TensorShape(shape) for shape in ([], [None], [None], [None]))
        ranks = tf.cast(ranks, tf.int64)
        _, indices, values, counts = tf.while_loop(lambda rank, *_: rank < ranks, add_rank, none, shapes, parallel_iterations=1)
        return indices, values, tf.concat([[0], tf.cumsum(counts)], 0)
