"""ThreeLC: trits with runs of zeros."""

from __future__ import annotations

import numpy as np

from format.reference.bits import LARGEST_FLOAT, require
from format.reference.trits import pack_trits, read_scale, scale_of, scaled, trits_of, unpack_trits
from format.reference.value_codes import ValueCode, register

LONGEST_RUN = 14


def write_runs(packed: np.ndarray) -> bytes:
    """Bytes of trits, those of zeros joined to runs."""
    out, zeros = bytearray(), 0
    for byte in [*packed, None]:
        if byte == 0:
            zeros += 1
            continue
        whole, rest = divmod(zeros, LONGEST_RUN)
        out += b"\xff" * whole + (b"" if rest == 0 else b"\0" if rest == 1 else bytes([241 + rest]))
        zeros = 0
        if byte is not None:
            out.append(byte)
    return bytes(out)


def encode_three_lc(values: np.ndarray, multiplier: float = 1.0) -> bytes:
    with np.errstate(over="ignore"):
        scale = scale_of(min(np.float32(multiplier) * np.abs(values).max(), LARGEST_FLOAT))
    kept = (2 * np.abs(values).astype(np.float64) >= scale) & (scale > 0)
    return scale.tobytes() + write_runs(pack_trits(trits_of(np.signbit(values), kept)))


def decode_three_lc(number: int, code: bytes) -> np.ndarray:
    require(len(code) >= 4, "value code length")
    scale = read_scale(code[:4])
    packed, longest = [], (number + 4) // 5
    joined = True  # whether the run before is as long as one byte can tell
    for byte in code[4:]:
        require(len(packed) < longest, "bytes after the trits")
        run = 1 if byte == 0 else byte - 241 if byte >= 243 else 0
        require(joined or run == 0, "runs of zeros joined")
        require(len(packed) + run <= longest, "run of zeros within the values")
        packed += [0] * run if run else [byte]
        joined = run in (0, LONGEST_RUN)
    require(len(packed) == longest, "trits end early")
    return scaled(unpack_trits(np.array(packed), number), scale)


THREE_LC = register(ValueCode(12, "ThreeLC", encode_three_lc, decode_three_lc))
