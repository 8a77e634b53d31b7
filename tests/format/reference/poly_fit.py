"""PolyFit: a descending curve in pieces, each raw or a polynomial."""

from __future__ import annotations

import numpy as np

from format.reference.sorted_curve import POLYNOMIAL, RAW, ZEROS, decode_curve, encode_curve
from format.reference.value_codes import ValueCode, register


def encode_poly_fit(values: np.ndarray, degree: int = 5, pieces: int = 3) -> bytes:
    return encode_curve(values, degree, pieces, exponential=False)


def decode_poly_fit(number: int, code: bytes) -> np.ndarray:
    return decode_curve(number, code, (RAW, POLYNOMIAL, ZEROS))


POLY_FIT = register(ValueCode(7, "PolyFit", encode_poly_fit, decode_poly_fit))
