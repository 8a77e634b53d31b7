"""DoubleExpFit: as PolyFit, with pieces that are sums of two exponentials."""

from __future__ import annotations

import numpy as np

from format.reference.sorted_curve import DOUBLE_EXPONENTIAL, POLYNOMIAL, RAW, ZEROS, decode_curve, encode_curve
from format.reference.value_codes import ValueCode, register


def encode_double_exp_fit(values: np.ndarray) -> bytes:
    return encode_curve(values, degree=5, pieces=3, exponential=True)


def decode_double_exp_fit(number: int, code: bytes) -> np.ndarray:
    return decode_curve(number, code, (RAW, POLYNOMIAL, DOUBLE_EXPONENTIAL, ZEROS))


DOUBLE_EXP_FIT = register(ValueCode(8, "DoubleExpFit", encode_double_exp_fit, decode_double_exp_fit))
