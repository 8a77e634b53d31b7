"""Rice: the gaps in Golomb-Rice code."""

from __future__ import annotations

import numpy as np

from format.reference.bits import field_bits, pack_stream, require
from format.reference.gaps import codes_complement, gaps_of, support_of
from format.reference.index_codes import IndexCode, raw_index_length, register, write_raw

MAX_PARAMETER = 30


def rice_bits(gaps: np.ndarray, parameter: int) -> int:
    return int((gaps >> parameter).sum()) + len(gaps) * (1 + parameter)


def best_rice_parameter(gaps: np.ndarray) -> int:
    return min(range(MAX_PARAMETER + 1), key=lambda parameter: (rice_bits(gaps, parameter), parameter))


def write_rice(gaps: np.ndarray, parameter: int, complement: bool) -> bytes:
    """The bytes for given gaps and any parameter, also one that no encoder chooses."""
    bits: list[int] = []
    for gap in gaps.tolist():
        bits += [0] * (gap >> parameter) + [1] + field_bits(gap, parameter)
    return bytes([parameter | complement << 6]) + pack_stream(bits)


def encode_rice(size: int, indices: np.ndarray) -> bytes:
    """Raw where that is not longer: the bits of a support whose gaps are far from even need not fit in memory."""
    gaps = gaps_of(size, indices)
    parameter = best_rice_parameter(gaps)
    if 1 + (rice_bits(gaps, parameter) + 7) // 8 >= raw_index_length(size, len(indices)):
        return write_raw(size, indices)
    return write_rice(gaps, parameter, codes_complement(size, len(indices)))


def decode_rice(size: int, count: int, code: bytes) -> np.ndarray:
    require(len(code) >= 1, "index code length")
    parameter, complement = code[0] & 0x3F, bool(code[0] & 0x40)
    require(not code[0] & 0x80, "reserved bits")
    require(parameter <= MAX_PARAMETER, "rice parameter")
    require(complement == codes_complement(size, count), "rice complement")
    number = size - count if complement else count
    bits = np.unpackbits(np.frombuffer(code, np.uint8, offset=1), bitorder="little").astype(np.int64)
    ones = np.flatnonzero(bits)
    gaps = np.zeros(number, np.int64)
    position, index = 0, -1
    for j in range(number):
        following = np.searchsorted(ones, position)
        require(following < len(ones), "rice gaps end early")
        stop = int(ones[following]) + 1
        require(stop + parameter <= len(bits), "rice gaps end early")
        gaps[j] = (stop - 1 - position) << parameter | int(bits[stop : stop + parameter] @ (1 << np.arange(parameter, dtype=np.int64)))
        position = stop + parameter
        index += int(gaps[j]) + 1
        require(index < size, "index below size")
    require(len(code) == 1 + (position + 7) // 8, "bytes after the rice gaps")
    require(not bits[position:].any(), "unused bits")
    require(parameter == best_rice_parameter(gaps), "best rice parameter")
    return support_of(size, count, gaps)


RICE = register(IndexCode(3, "Rice", encode_rice, decode_rice))
