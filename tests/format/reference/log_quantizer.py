"""LogQuantizer: bins between the smallest and the largest magnitude, logarithmic by octave."""

from __future__ import annotations

import numpy as np

from format.reference.bits import SMALLEST_NORMAL_BITS, floats, pack_bits, packed_length, require, unpack_bits, without_sign
from format.reference.value_codes import ValueCode, register


def log_bins(bits: int, zeros: bool) -> int:
    return 2 ** (bits - 1) - zeros


def log_centres(lo: int, hi: int, bins: int) -> np.ndarray:
    j = np.arange(bins, dtype=np.int64)
    return (lo + (2 * j + 1) * (hi - lo) // (2 * bins)).astype(np.uint32).view(np.float32)


def write_log(bits: int, zeros: bool, table: np.ndarray | None, bounds: tuple, levels: np.ndarray, negative: np.ndarray) -> bytes:
    """The bytes for given fields, also such that no encoder chooses. `bounds` is (lo, hi), used when `table` is None."""
    numbers = np.asarray(bounds if table is None else table, "<f4")
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
    bounds = tuple(np.array([lo, hi], np.uint32).view(np.float32))
    if len(values) < 16 * bins:
        return write_log(bits, zeros, None, bounds, levels, negative)
    means = [np.abs(values[bin_of == j]).mean(dtype=np.float64) if (bin_of == j).any() else 0 for j in range(bins)]
    return write_log(bits, zeros, np.array(means, np.float32), bounds, levels, negative)


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
        require(len(used) > 0 or bool((numbers == 1).all()), "bounds of a segment of zeros")
        centres = centres_between(numbers, bins)
    values = np.concatenate([[np.float32(0)] * zeros, centres]).astype(np.float32)[low]
    return np.where(negative, -values, values)


def check_means(means: np.ndarray, used: np.ndarray) -> np.ndarray:
    require(bool(np.isfinite(means).all()) and without_sign(means), "bin mean finite and not negative")
    bits = means.view(np.uint32)
    require(bool(((bits == 0) | (bits >= SMALLEST_NORMAL_BITS)).all()), "bin mean 0 or at least 2^-126")
    require(np.array_equal(np.flatnonzero(means), used), "bin mean 0 exactly for an empty bin")
    return means


def centres_between(bounds: np.ndarray, bins: int) -> np.ndarray:
    require(bool(np.isfinite(bounds).all()) and without_sign(bounds), "lowest and highest magnitude")
    lo, hi = (int(x) for x in bounds.view(np.uint32))
    require(SMALLEST_NORMAL_BITS <= lo <= hi, "lowest and highest magnitude")
    return log_centres(lo, hi, bins)


LOG_QUANTIZER = register(ValueCode(5, "LogQuantizer", encode_log, decode_log))
