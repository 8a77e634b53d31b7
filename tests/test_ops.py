"""The op kernels under eager calls, which no shape function checks: a caller's fault is InvalidArgument, bad bytes are DataLoss."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from stages import bucket_of, residuals_of

from deepreduce_tf import QSGD, Bitmap, DeepReduce, Deflate, Rice, TopK, ops

INDEX_CODECS = ["fixed_width", "bitmap", "rice", "elias_fano", "run_length", "adaptive", "huffman", "delta_huffman", "seeded_support"]
VALUE_CODECS = [
    "float32",
    "float16",
    "b_float16",
    "qsgd",
    "log_quantizer",
    "poly_fit",
    "double_exp_fit",
    "sketch_ml",
    "tern_grad",
    "natural",
    "three_lc",
]
REFUSED = (tf.errors.InvalidArgumentError, tf.errors.DataLossError)

SIZES = np.array([200, 0, 300])
INDICES = np.int32([3, 50, 199, 0, 7, 8, 299])
SPLITS = np.array([0, 3, 3, 7])
VALUES = np.float32([1, -2, 3, 0.5, -0.25, 7, 8])
PLAN = {"seed": np.int64(1), "step": np.int64(2)}


def calls():
    """Each op with arguments it accepts."""
    gradients = [np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3), np.zeros(0, "float32"), np.ones(4, "float32")]
    yield ops.top_k_select, {"gradients": gradients, "residuals": [], "ratio": np.float64(0.5)}
    yield ops.threshold_select, {"gradients": gradients, "residuals": [], "threshold": np.float32(0.5)}
    yield ops.random_k_select, {"gradients": gradients, "residuals": [], "ratio": np.float64(0.5), **PLAN}
    residuals = [r.handle for r in residuals_of([np.zeros(size, "float32") for size in SIZES])]
    yield ops.residual_commit, {"residuals": residuals, "indices": INDICES, "sent": VALUES, "splits": SPLITS, "sizes": SIZES}
    counts = np.diff(SPLITS)
    for name in INDEX_CODECS:
        encode, decode = ops.codec(name)
        arguments = {"indices": INDICES, "splits": SPLITS, "sizes": SIZES, **PLAN}
        if name == "adaptive":
            arguments["dimensions"] = np.array([[5, 20], [1, 1], [3, 100]])
        yield encode, arguments
        code, code_splits = encode(**arguments)
        yield decode, {"code": code.numpy(), "code_splits": code_splits.numpy(), "counts": counts, "sizes": SIZES, **PLAN}
    encode, decode = ops.codec("bloom_filter")
    arguments = {"indices": INDICES, "splits": SPLITS, "sizes": SIZES, **PLAN, "fpr": 0.25, "policy": "p2"}
    yield encode, arguments
    code, code_splits, _, _ = encode(**arguments)
    yield decode, {"code": code.numpy(), "code_splits": code_splits.numpy(), "counts": counts, "sizes": SIZES, **PLAN}
    yield ops.support_values, {"gradients": gradients, "residuals": [], "indices": np.int32([0, 3, 5, 0, 1, 2, 3]), "splits": SPLITS}
    for name in VALUE_CODECS:
        encode, decode = ops.codec(name)
        arguments = {"values": VALUES, "splits": SPLITS, **PLAN}
        yield encode, arguments
        code, code_splits, _ = encode(**arguments)
        yield decode, {"code": code.numpy(), "code_splits": code_splits.numpy(), "counts": counts}
    inner = {"inner_code": VALUES.view(np.uint8), "inner_splits": 4 * SPLITS, "inner_decoded": VALUES}
    arguments = {**inner, "values": VALUES, "splits": SPLITS}
    for inner, decode in ((1, ops.codec("deflate")[1]), (255, ops.inflate)):
        code, code_splits, _ = ops.codec("deflate")[0](**arguments, inner=inner)
        yield decode, {"code": code.numpy(), "code_splits": code_splits.numpy(), "counts": counts}
    yield ops.codec("deflate")[0], arguments
    index_code, index_splits = ops.codec("rice")[0](INDICES, SPLITS, SIZES, **PLAN)
    codes = {
        "index_code": index_code.numpy(),
        "index_splits": index_splits.numpy(),
        "value_code": VALUES.view(np.uint8),
        "value_splits": 4 * SPLITS,
    }
    plan = {"sizes": SIZES, "fingerprint": np.int64(-5)}
    widths, codecs = np.ones(3, np.int64), {"index_codec": 3, "value_codec": 1}
    arguments = {**codes, "counts": counts, **plan, "widths": widths, **PLAN, **codecs}
    yield ops.frame_pack, arguments
    payload = np.tile(ops.frame_pack(**arguments)[0].numpy(), 2)
    yield ops.frame_decode_sum, {"payload": payload, **plan, "scale": np.float32(0.5), "N": 3, **codecs}
    yield ops.frame_decode, {"payload": payload, **plan, "widths": widths, **codecs}
    yield ops.frame_unpack, {"payload": payload, **plan, "widths": widths, "rank": np.int64(1), **codecs}
    twice = {"indices": np.tile(INDICES, 2), "values": np.tile(VALUES, 2), "splits": np.concatenate([SPLITS, 7 + SPLITS[1:]])}
    yield ops.scatter_sum, {**twice, "sizes": SIZES, "scale": np.float32(0.5), "N": 3}


CALLS = list(calls())
NAMES = [op.__name__.removeprefix("deep_reduce_") for op, _ in CALLS]
BASE = dict(zip(NAMES, CALLS, strict=True))


def arrays_of(arguments):
    return [name for name, value in arguments.items() if isinstance(value, np.ndarray | np.generic)]


def with_number(array, position, number):
    changed = array.copy()
    changed.flat[position] = number
    return changed


def other_shapes(array):
    if array.ndim == 0:
        return [array[None], np.empty(0, array.dtype), array[None, None]]
    return [array[None], array[:-1], array[:0], np.concatenate([array, array]), *([array[0]] if len(array) else [])]


def other_numbers(array):
    numbers = [-1, 0, 1, 5, 2**31 - 2**10] if array.dtype == np.int32 else [-1, 0, 1, 5, 2**31, 2**62, -(2**63)]
    if array.dtype.kind == "f":
        numbers = [0, -1, 2, np.nan, np.inf]
    if array.dtype == np.uint8:
        numbers = [0, 1, 127, 128, 255]
    positions = {0, array.size // 2, array.size - 1} if array.size else set()
    return [
        *(with_number(np.asarray(array), position, n) for position in positions for n in numbers),
        *([array[::-1].copy()] if array.ndim else []),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_that_the_others_change_are_accepted(name):
    op, arguments = BASE[name]
    op(**arguments)


@pytest.mark.parametrize("name", NAMES)
def test_a_vector_for_a_scalar_a_scalar_for_a_vector_or_another_length_is_refused(name):
    op, arguments = BASE[name]
    for argument in arrays_of(arguments):
        free = {"payload", "gradients"}  # of which a part, nothing, or the double may be right
        for shaped in other_shapes(np.asarray(arguments[argument])):
            if (argument in free and shaped.ndim == 1) or shaped.shape == np.shape(arguments[argument]):
                continue
            with pytest.raises(REFUSED):
                op(**{**arguments, argument: shaped})
                pytest.fail(f"{argument} of shape {shaped.shape} was accepted")


@pytest.mark.parametrize("name", NAMES)
def test_other_numbers_are_refused_or_harmless(name):
    op, arguments = BASE[name]
    for argument in arrays_of(arguments):
        for changed in other_numbers(np.asarray(arguments[argument])):
            try:
                op(**{**arguments, argument: changed})
            except REFUSED as error:
                assert len(str(error)) > 30  # it says why


@pytest.mark.parametrize("name", NAMES)
def test_several_wrong_arguments_together_are_refused_or_harmless(name):
    op, arguments = BASE[name]
    draw = np.random.default_rng(3)
    names = arrays_of(arguments)
    choices = {each: [*other_shapes(np.asarray(arguments[each])), *other_numbers(np.asarray(arguments[each]))] for each in names}
    for _ in range(150):
        changed = {each: choices[each][draw.integers(len(choices[each]))] for each in names if draw.random() < 0.4}
        with contextlib.suppress(REFUSED):
            op(**{**arguments, **changed})


def refused(op, arguments, message, **changed):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        op(**{**arguments, **changed})


@pytest.mark.parametrize("name", [name for name, (_, arguments) in BASE.items() if "splits" in arguments])
def test_splits_that_decrease_or_do_not_end_with_the_elements_are_refused_with_both_numbers(name):
    op, arguments = BASE[name]
    total = arguments["splits"][-1]
    refused(
        op, arguments, "`splits` must not decrease. Received: 5 followed by 3 at segment 1", splits=np.r_[0, 5, arguments["splits"][2:]]
    )
    refused(
        op, arguments, f"`splits` must go from 0 to {total}. Received: 0 to {total + 1}", splits=np.r_[arguments["splits"][:-1], total + 1]
    )
    refused(op, arguments, f"`splits` must go from 0 to {total}. Received: 1 to {total}", splits=np.r_[1, arguments["splits"][1:]])


@pytest.mark.parametrize("name", [f"{codec}_encode" for codec in [*INDEX_CODECS, "bloom_filter"]] + ["residual_commit"])
@pytest.mark.parametrize(
    ("position", "index", "received"), [(1, 3, "3 after 3"), (1, 200, "200 after 3"), (0, -1, "-1 after -1"), (2, 1, "1 after 50")]
)
def test_indices_that_repeat_descend_or_leave_the_size_are_refused(name, position, index, received):
    op, arguments = BASE[name]
    message = rf"the indices of a segment must ascend strictly in \[0, 200\). Received: {received} in segment 0"
    refused(op, arguments, message, indices=with_number(INDICES, position, index))


def test_indices_of_the_application_that_leave_the_size_are_told_with_rank_and_segment():
    op, arguments = BASE["scatter_sum"]
    with pytest.raises(tf.errors.DataLossError, match=r"in \[0, 300\). Received: 300 after 8 from rank 1, segment 2"):
        op(**{**arguments, "indices": with_number(arguments["indices"], -1, 300)})


@pytest.mark.parametrize("name", [name for name in NAMES if "counts" in BASE[name][1] and "sizes" in BASE[name][1]])
def test_counts_beyond_sizes_and_sizes_beyond_the_limit_are_refused(name):
    op, arguments = BASE[name]
    refused(op, arguments, "keeps 0 to size indices. Received: count=1, size=0", counts=np.array([3, 1, 3]))
    refused(op, arguments, "keeps 0 to size indices. Received: count=-1, size=200", counts=np.array([-1, 0, 4]))
    refused(op, arguments, "must have 0 to 2147483647 elements. Received: size=2147483648", sizes=np.array([200, 0, 2**31]))
    refused(op, arguments, "must have 0 to 2147483647 elements. Received: size=-1", sizes=np.array([200, -1, 300]))


@pytest.mark.parametrize("name", ["frame_decode_sum", "frame_decode", "frame_unpack", "scatter_sum"])
def test_negative_sizes_are_refused_even_where_there_is_nothing_to_decode(name):
    op, arguments = BASE[name]
    nothing = (
        {"payload": np.empty(0, np.int64)}
        if "payload" in arguments
        else {"indices": INDICES[:0], "values": VALUES[:0], "splits": SPLITS[:1]}
    )
    refused(op, arguments, "Received: size=-1", **nothing, sizes=np.array([200, -1, 300]))


@pytest.mark.parametrize("name", ["top_k_select", "threshold_select", "random_k_select", "support_values"])
def test_residuals_must_match_the_gradients(name):
    op, arguments = BASE[name]

    def handles(*sizes):
        return [r.handle for r in residuals_of([np.zeros(size, "float32") for size in sizes])]

    refused(op, arguments, r"`residuals` must be empty or one per gradient \(3\). Received: 1", residuals=handles(6))
    refused(op, arguments, "the residual of segment 2 must hold 4 initialised float32 elements. Received: 5", residuals=handles(6, 0, 5))
    double = tf.Variable(tf.zeros([4], tf.float64))
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.NotFoundError)):
        op(**{**arguments, "residuals": [*handles(6, 0), double.handle]})
    refused(op, arguments, "Empty resource handle", residuals=[*handles(6, 0), handles(4)[0][None][:0]])


def test_frames_with_rows_too_long_or_empty_are_refused():
    op, arguments = BASE["frame_pack"]
    refused(op, arguments, "Received: 3 rows of 0 in segment 0", widths=np.array([0, 1, 1]))
    refused(op, arguments, "Received: 4 rows of 1073741824 in segment 2", widths=np.array([1, 1, 2**30]))
    refused(op, arguments, "Received: 4 rows of 4611686018427387904 in segment 2", widths=np.array([1, 1, 2**62]))


def test_parameters_out_of_range_are_refused():
    values = BASE["qsgd_encode"][1]
    curves = [("poly_fit", {"degree": 0}), ("poly_fit", {"degree": 16}), ("poly_fit", {"pieces": -1}), ("poly_fit", {"pieces": 65})]
    for name, wrong in (("qsgd", {"bits": 9}), ("qsgd", {"bits": 1}), ("log_quantizer", {"bits": 0}), ("qsgd", {"norm": "l1"}), *curves):
        with pytest.raises(tf.errors.InvalidArgumentError):
            ops.codec(name)[0](**values, **wrong)
    for rate in (0.0, 1e-10, 1.0, np.nan):
        refused(*BASE["bloom_filter_encode"], r"`fpr` must be in \[1e-9, 0.999\]. Received: fpr=", fpr=rate)
    for name in ("top_k_select", "random_k_select"):
        op, arguments = BASE[name]
        for ratio in (0.0, -0.5, 1.5, np.nan):
            refused(op, arguments, r"`ratio` must be in \(0, 1\]. Received: ratio=", ratio=np.float64(ratio))
    op, arguments = BASE["threshold_select"]
    for threshold in (0, -1, np.nan, np.inf):
        refused(op, arguments, "`threshold` must be positive and finite. Received: threshold=", threshold=np.float32(threshold))
    for multiplier in (0.99, 2.0, np.nan):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"`multiplier` must be in \[1, 2\)\. Received: multiplier="):
            ops.codec("three_lc")[0](**values, multiplier=multiplier)
    op, arguments = BASE["deflate_encode"]
    for inner in (-1, 0, 6, 99, 256):
        refused(op, arguments, f"`inner` must be the id of another value codec. Received: inner={inner}", inner=inner)
    refused(op, arguments, "`level` must be 1 to 9. Received: level=0", level=0)
    op, arguments = BASE["frame_decode"]
    refused(op, arguments, "no built-in codecs with these ids. Received: index_codec=255, value_codec=1", index_codec=255)
    op, arguments = BASE["frame_unpack"]
    refused(op, arguments, r"`rank` must be in \[0, 2\). Received: rank=2", rank=np.int64(2))


# Damaged codes


def second_code_changed(arguments, change):
    """The codes of two segments, the second one changed."""
    code, splits = arguments["code"], arguments["code_splits"]
    first, second = code[: splits[-2]], change(code[splits[-2] :])
    return {**arguments, "code": np.r_[first, second].astype(np.uint8), "code_splits": np.r_[splits[:-1], len(first) + len(second)]}


CHANGES = {"cut off": lambda code: code[:-1], "a byte more": lambda code: np.r_[code, code[-1:]], "nothing": lambda code: code[:0]}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", [f"{codec}_decode" for codec in [*INDEX_CODECS[:3], *VALUE_CODECS, "deflate"]])
def test_a_damaged_code_is_told_with_its_segment_and_byte(name, change):
    draw = np.random.default_rng(1)
    encode, decode = ops.codec(name.removesuffix("_decode"))
    if name.removesuffix("_decode") in INDEX_CODECS:
        kept = [np.sort(draw.choice(2000, 150, replace=False)) for _ in range(2)]
        code, code_splits = encode(np.concatenate(kept), [0, 150, 300], [2000, 2000], **PLAN)
        arguments, kind = {"counts": np.array([150, 150]), "sizes": np.array([2000, 2000]), **PLAN}, "index"
    else:
        values, splits = draw.normal(size=300).astype("float32"), np.array([0, 150, 300])
        if name == "deflate_decode":
            code, _ = Deflate(QSGD(4)).encode(tf.RaggedTensor.from_row_splits(values, splits), **PLAN)
            code, code_splits = code.values, code.row_splits
        else:
            code, code_splits, _ = encode(values, splits, **PLAN)
        arguments, kind = {"counts": np.array([150, 150])}, "value"
    arguments = {"code": code.numpy(), "code_splits": code_splits.numpy(), **arguments}
    decode(**arguments)
    with pytest.raises(tf.errors.DataLossError, match=rf"the {kind} code of segment 1 is damaged: .* at byte \d+ of it"):
        decode(**second_code_changed(arguments, change))


def test_a_damaged_code_in_a_frame_is_told_with_rank_and_segment():
    op, arguments = BASE["frame_decode_sum"]
    header = 32 + 3 * 5 + 2  # sizes 200 and 300 take two bytes
    damaged = arguments["payload"].copy()
    damaged.view(np.uint8)[damaged.nbytes // 2 + header] = 0xFF  # the parameter of the first Rice code, or a raw index
    with pytest.raises(tf.errors.DataLossError, match=r"the index code of rank 1, segment 0 is damaged: .* at byte \d+ of it"):
        op(**{**arguments, "payload": damaged})


# Frames of another model, order or configuration

MINE = [np.ones((10, 20), "float32"), np.ones(300, "float32")]


def frames(*senders, gradients=MINE, labels=None):
    payloads = [
        sender.encode(bucket_of(gradients if rank else MINE, rank=rank, labels=labels if rank else None)).payload
        for rank, sender in enumerate(senders)
    ]
    return tf.concat(payloads, 0)


def mismatch(payload, message, receiver=None):
    receiver = receiver or DeepReduce()
    with pytest.raises(tf.errors.DataLossError, match="the frame of rank 1 does not match this rank's plan: " + message) as error:
        receiver.decode(payload, bucket_of(MINE, ranks=2), tf.constant(1.0))
    assert "All ranks must use the same model, order of variables and DeepReduce configuration" in str(error.value)


def test_frames_that_match_are_added():
    for total in DeepReduce(TopK(1.0)).decode(frames(*[DeepReduce(TopK(1.0))] * 2), bucket_of(MINE, ranks=2), tf.constant(1.0)):
        np.testing.assert_array_equal(total, np.full(total.shape, 2))


def test_a_gradient_of_another_size_is_told_with_rank_segment_and_both_sizes():
    payload = frames(DeepReduce(), DeepReduce(), gradients=[MINE[0], MINE[1][:299]])
    mismatch(payload, "size mismatch, segment 1, expected 300, received 299")


def test_gradients_in_another_order_are_told_by_size_or_by_fingerprint():
    mismatch(frames(DeepReduce(), DeepReduce(), gradients=MINE[::-1]), "size mismatch, segment 0, expected 200, received 300")
    fingerprint = r"another order of gradients, or other shapes, names or dtypes; their fingerprint, expected \d+, received \d+"
    mismatch(frames(DeepReduce(), DeepReduce(), labels=["kernel float32", "gamma float32"]), fingerprint)
    mismatch(frames(DeepReduce(), DeepReduce(), gradients=[MINE[0].T, MINE[1]]), fingerprint)


def test_more_gradients_are_told_with_both_numbers():
    mismatch(frames(DeepReduce(), DeepReduce(), gradients=[*MINE, MINE[0]]), "another number of gradients, expected 2, received 3")


@pytest.mark.parametrize(
    "other",
    [{"sparsifier": TopK(0.2)}, {"value": "QSGD", "seed": 1}, {"error_feedback": False}, {"min_size": 7}, {"bucket_bytes": 8}],
    ids=str,
)
def test_another_configuration_is_told_by_its_fingerprint(other):
    mismatch(frames(DeepReduce(), DeepReduce(**other)), r"another configuration; its fingerprint, expected \d+, received \d+")


def test_another_codec_is_told_by_its_id():
    mismatch(frames(DeepReduce(), DeepReduce(index=Bitmap())), "another index codec, expected 3, received 2")
    mismatch(frames(DeepReduce(), DeepReduce(value="float16")), "another value codec, expected 4, received 2")
    mismatch(frames(DeepReduce(), DeepReduce("random_k", index=Rice())), "another index codec, expected 3, received 0")


def test_a_frame_that_is_cut_off_or_none_at_all_is_told_with_its_rank():
    payload = frames(DeepReduce(), DeepReduce())
    mismatch(payload[:-1], r"the codes are cut off; bytes of the frame, expected \d+, received \d+")
    mismatch(tf.concat([payload, [0, 0, 0, 0]], 0)[: len(payload) // 2 + 3], "the header is cut off; its length, expected 32, received 24")
    with pytest.raises(tf.errors.DataLossError, match=r"the frame of rank 2 .*no frame begins here"):
        DeepReduce().decode(tf.concat([payload, [0, 0, 0, 0]], 0), bucket_of(MINE, ranks=2), tf.constant(1.0))
