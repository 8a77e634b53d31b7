"""Value codes."""

from __future__ import annotations

import zlib

import numpy as np

from format_reference.bits import (
    LARGEST_FLOAT,
    SMALLEST_NORMAL_BITS,
    FormatError,
    finite,
    floats,
    pack_bits,
    packed_length,
    raw_values,
    require,
    unpack_bits,
    without_sign,
)
from format_reference.natural import decode_natural, encode_natural
from format_reference.sketch_ml import decode_sketch_ml, encode_sketch_ml
from format_reference.sorted_curve import decode_double_exp_fit, decode_poly_fit, encode_double_exp_fit, encode_poly_fit
from format_reference.tern_grad import decode_tern_grad, encode_tern_grad
from format_reference.three_lc import decode_three_lc, encode_three_lc

FLOAT32, FLOAT16, BFLOAT16, QSGD, LOG_QUANTIZER, DEFLATE, POLY_FIT, DOUBLE_EXP_FIT = 1, 2, 3, 4, 5, 6, 7, 8
SKETCH_ML = 9
TERN_GRAD, NATURAL, THREE_LC = 10, 11, 12
APPLICATION = 255
VALUE_CODECS = (
    FLOAT32,
    FLOAT16,
    BFLOAT16,
    QSGD,
    LOG_QUANTIZER,
    DEFLATE,
    SKETCH_ML,
    POLY_FIT,
    DOUBLE_EXP_FIT,
    TERN_GRAD,
    NATURAL,
    THREE_LC,
    APPLICATION,
)

SMALLEST_SCALE = np.float32(2.0**-100)
SCALE_GROUP = 512


def encode_value(codec: int, values: np.ndarray, **options) -> bytes:
    """The codec's own form where that is shorter and the values are finite, otherwise raw.

    Options: `bits` and `noise` for QSGD, `noise` for TernGrad and Natural, `bits` for LogQuantizer and SketchML, `multiplier` for ThreeLC,
    `degree` and `pieces` for PolyFit, `inner`, `shuffled` and those of the inner codec for Deflate.
    """
    values = np.asarray(values, np.float32)
    raw = raw_values(values)
    if len(values) == 0 or not np.isfinite(values).all():
        return raw
    coded = ENCODERS[codec](values, **options) if codec in ENCODERS else raw
    return coded if len(coded) < len(raw) else raw


def decode_value(codec: int, number: int, code: bytes) -> np.ndarray:
    """The values, float32[number]."""
    require(len(code) <= 4 * number, "value code length")
    if len(code) == 4 * number:
        return floats(code)
    require(codec != FLOAT32 and len(code) > 0, "value code length")
    return finite(DECODERS[codec](number, code))


def encode_float16(values: np.ndarray) -> bytes:
    with np.errstate(over="ignore"):
        halves = values.astype("<f2")
    return halves.tobytes() if np.isfinite(halves).all() else raw_values(values)


def decode_float16(number: int, code: bytes) -> np.ndarray:
    require(len(code) == 2 * number, "value code length")
    return np.frombuffer(code, "<f2").astype(np.float32)


def encode_bfloat16(values: np.ndarray) -> bytes:
    bits = values.view(np.uint32).astype(np.uint64)
    high = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    overflows = ((high & 0x7F80) == 0x7F80).any()
    return raw_values(values) if overflows else high.tobytes()


def decode_bfloat16(number: int, code: bytes) -> np.ndarray:
    require(len(code) == 2 * number, "value code length")
    return (np.frombuffer(code, "<u2").astype(np.uint32) << 16).view(np.float32)


def groups_of(number: int) -> int:
    return (number + SCALE_GROUP - 1) // SCALE_GROUP


def write_qsgd(bits: int, l2: bool, scales: np.ndarray, magnitudes: np.ndarray, negative: np.ndarray) -> bytes:
    """The bytes for given scales and levels, also such that no encoder chooses."""
    levels = np.asarray(magnitudes, np.int64) | np.asarray(negative, np.int64) << (bits - 1)
    return bytes([bits | l2 << 4]) + np.asarray(scales, "<f4").tobytes() + pack_bits(levels, bits)


def encode_qsgd(values: np.ndarray, bits: int = 8, noise: np.ndarray | float = 0.5) -> bytes:
    """Max norm. A magnitude m becomes the level floor(m * s / scale + noise); noise 0.5 rounds to nearest."""
    s = 2 ** (bits - 1) - 1
    starts = np.arange(0, len(values), SCALE_GROUP)
    scales = np.maximum.reduceat(np.abs(values), starts)
    scales[scales < SMALLEST_SCALE] = 0
    scale = np.repeat(scales, SCALE_GROUP)[: len(values)].astype(np.float64)
    relative = np.divide(np.abs(values), scale, out=np.zeros(len(values)), where=scale > 0)
    magnitudes = np.where(scale > 0, np.minimum(np.floor(relative * s + noise), s), 0).astype(np.int64)
    return write_qsgd(bits, False, scales, magnitudes, (values < 0) & (magnitudes > 0))


def decode_qsgd(number: int, code: bytes) -> np.ndarray:
    bits = code[0] & 0x0F
    require(not code[0] & 0xE0, "reserved bits")
    require(2 <= bits <= 8, "bits of a level")
    levels_at = 1 + 4 * groups_of(number)
    require(len(code) == levels_at + packed_length(number, bits), "value code length")
    scales = floats(code[1:levels_at])
    require(bool(np.isfinite(scales).all()) and without_sign(scales), "scale finite and not negative")
    require(bool(((scales == 0) | (scales >= SMALLEST_SCALE)).all()), "scale 0 or at least 2^-100")
    levels = unpack_bits(code[levels_at:], number, bits)
    magnitudes, negative = levels & (2 ** (bits - 1) - 1), levels >> (bits - 1) == 1
    require(not negative[magnitudes == 0].any(), "sign of a zero")
    step = np.repeat(scales / np.float32(2 ** (bits - 1) - 1), SCALE_GROUP)[:number]
    require(not magnitudes[step == 0].any(), "level under scale 0")
    with np.errstate(over="ignore"):
        values = np.minimum(magnitudes.astype(np.float32) * step, LARGEST_FLOAT)
    return np.where(negative, -values, values)


def log_bins(bits: int, zeros: bool) -> int:
    return 2 ** (bits - 1) - zeros


def log_centres(lo: int, hi: int, bins: int) -> np.ndarray:
    j = np.arange(bins, dtype=np.int64)
    return (lo + (2 * j + 1) * (hi - lo) // (2 * bins)).astype(np.uint32).view(np.float32)


def write_log(bits: int, zeros: bool, table: np.ndarray | None, ends: tuple, levels: np.ndarray, negative: np.ndarray) -> bytes:
    """The bytes for given fields, also such that no encoder chooses. `ends` is (lo, hi), used when `table` is None."""
    numbers = np.asarray(ends if table is None else table, "<f4")
    fields = np.asarray(levels, np.int64) | np.asarray(negative, np.int64) << (bits - 1)
    return bytes([bits | (table is not None) << 4 | zeros << 5]) + numbers.tobytes() + pack_bits(fields, bits)


def encode_log(values: np.ndarray, bits: int = 8) -> bytes:
    magnitudes = (values.view(np.uint32) & 0x7FFFFFFF).astype(np.int64)
    present = magnitudes >= SMALLEST_NORMAL_BITS
    if not present.any():
        return write_log(bits, True, None, (1, 1), np.zeros(len(values), np.int64), np.zeros(len(values), bool))
    zeros = not present.all()
    bins = log_bins(bits, zeros)
    lo, hi = int(magnitudes[present].min()), int(magnitudes[present].max())
    bin_of = np.where(present, (magnitudes - lo) * bins // (hi - lo + 1), -1)
    levels = bin_of + zeros
    negative = present & np.signbit(values)
    ends = tuple(np.array([lo, hi], np.uint32).view(np.float32))
    if len(values) < 16 * bins:
        return write_log(bits, zeros, None, ends, levels, negative)
    means = [np.abs(values[bin_of == j]).mean(dtype=np.float64) if (bin_of == j).any() else 0 for j in range(bins)]
    return write_log(bits, zeros, np.array(means, np.float32), ends, levels, negative)


def decode_log(number: int, code: bytes) -> np.ndarray:
    bits, with_table, zeros = code[0] & 0x0F, bool(code[0] & 0x10), bool(code[0] & 0x20)
    require(not code[0] & 0xC0, "reserved bits")
    require(2 <= bits <= 8, "bits of a level")
    bins = log_bins(bits, zeros)
    levels_at = 1 + 4 * (bins if with_table else 2)
    require(len(code) == levels_at + packed_length(number, bits), "value code length")
    fields = unpack_bits(code[levels_at:], number, bits)
    low, negative = fields & (2 ** (bits - 1) - 1), fields >> (bits - 1) == 1
    is_zero = (low == 0) & zeros
    require(is_zero.any() or not zeros, "zeros in the segment")
    require(not negative[is_zero].any(), "sign of a zero")
    used = np.unique(low[~is_zero] - zeros)
    numbers = floats(code[1:levels_at])
    if with_table:
        require(number >= 16 * bins and len(used) > 0, "table of bin means")
        centres = check_means(numbers, used)
    else:
        require(number < 16 * bins or len(used) == 0, "table of bin means")
        require(len(used) > 0 or bool((numbers == 1).all()), "ends of a segment of zeros")
        centres = centres_between(numbers, bins)
    values = np.concatenate([[np.float32(0)] * zeros, centres]).astype(np.float32)[low]
    return np.where(negative, -values, values)


def check_means(means: np.ndarray, used: np.ndarray) -> np.ndarray:
    require(bool(np.isfinite(means).all()) and without_sign(means), "bin mean finite and not negative")
    bits = means.view(np.uint32)
    require(bool(((bits == 0) | (bits >= SMALLEST_NORMAL_BITS)).all()), "bin mean 0 or at least 2^-126")
    require(np.array_equal(np.flatnonzero(means), used), "bin mean 0 exactly for an empty bin")
    return means


def centres_between(ends: np.ndarray, bins: int) -> np.ndarray:
    require(bool(np.isfinite(ends).all()) and without_sign(ends), "lowest and highest magnitude")
    lo, hi = (int(x) for x in ends.view(np.uint32))
    require(SMALLEST_NORMAL_BITS <= lo <= hi, "lowest and highest magnitude")
    return log_centres(lo, hi, bins)


def shuffle(raw: bytes, stride: int) -> bytes:
    return np.frombuffer(raw, np.uint8).reshape(-1, stride).T.tobytes()


def unshuffle(shuffled: bytes, stride: int) -> bytes:
    return np.frombuffer(shuffled, np.uint8).reshape(stride, -1).T.tobytes()


def number_bytes(inner: int, length: int, number: int) -> int:
    """The stride of an inner code's own numbers."""
    return 4 if length == 4 * number else 2 if inner in (FLOAT16, BFLOAT16) else 1


def encode_deflate(values: np.ndarray, inner: int = FLOAT32, shuffled: bool = True, **options) -> bytes:
    code = encode_value(inner, values, **options)
    stride = number_bytes(inner, len(code), len(values)) if shuffled else 1
    stream = zlib.compress(shuffle(code, stride), 9)
    return bytes([inner, stride]) + stream if len(stream) < len(code) else bytes([inner, 0]) + code


def inflate(stream: bytes, most: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(stream, most + 1)
    except zlib.error as error:
        raise FormatError("zlib stream") from error
    require(len(content) <= most, "length of the deflated content")
    require(inflater.eof, "zlib stream")
    require(inflater.unused_data == b"", "bytes after the zlib stream")
    return content


def decode_deflate(number: int, code: bytes) -> np.ndarray:
    require(len(code) > 2, "value code length")
    inner, stride = code[:2]
    require(inner in VALUE_CODECS and inner not in (DEFLATE, APPLICATION), "codec under deflate")
    require(stride in (0, 1, 2, 4), "stride of the byte shuffle")
    if stride == 0:
        return decode_value(inner, number, code[2:])
    content = inflate(code[2:], 4 * number)
    require(stride in (1, number_bytes(inner, len(content), number)), "stride of the byte shuffle")
    return decode_value(inner, number, unshuffle(content, stride))


ENCODERS = {
    FLOAT16: encode_float16,
    BFLOAT16: encode_bfloat16,
    QSGD: encode_qsgd,
    LOG_QUANTIZER: encode_log,
    DEFLATE: encode_deflate,
    POLY_FIT: encode_poly_fit,
    DOUBLE_EXP_FIT: encode_double_exp_fit,
    SKETCH_ML: encode_sketch_ml,
    TERN_GRAD: encode_tern_grad,
    NATURAL: encode_natural,
    THREE_LC: encode_three_lc,
}
DECODERS = {
    FLOAT16: decode_float16,
    BFLOAT16: decode_bfloat16,
    QSGD: decode_qsgd,
    LOG_QUANTIZER: decode_log,
    DEFLATE: decode_deflate,
    POLY_FIT: decode_poly_fit,
    DOUBLE_EXP_FIT: decode_double_exp_fit,
    SKETCH_ML: decode_sketch_ml,
    TERN_GRAD: decode_tern_grad,
    NATURAL: decode_natural,
    THREE_LC: decode_three_lc,
}
