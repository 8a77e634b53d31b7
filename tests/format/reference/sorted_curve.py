"""What PolyFit and DoubleExpFit share: a descending curve in pieces, and the position of each value on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from format.reference.bits import (
    LARGEST_FLOAT,
    SMALLEST_NORMAL_BITS,
    floats,
    index_width,
    pack_bits,
    packed_length,
    require,
    unpack_bits,
    without_sign,
)

RAW, POLYNOMIAL, DOUBLE_EXPONENTIAL, ZEROS = range(4)
LOWEST = 2.0**-126
MAX_RATE = 200
LOG2_E = float.fromhex("0x1.71547652b82fep0")
LN_2_HIGH, LN_2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")


@dataclass
class Piece:
    kind: int
    negative: bool
    length: int
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))


def number_of(piece: Piece, degree: int) -> int:
    return {RAW: piece.length, POLYNOMIAL: degree + 1, DOUBLE_EXPONENTIAL: 4, ZEROS: 0}[piece.kind]


# Evaluation


def gram_abscissa(m: int) -> np.ndarray:
    return (2 * np.arange(m, dtype=np.float64) - (m - 1)) / (m - 1)


def gram_beta(k: int, m: int) -> float:
    return float(k**2) * (float(m) * float(m) - float(k**2)) / ((4 * float(k**2) - 1) * (float(m - 1) * float(m - 1)))


def evaluate_polynomial(coefficients: np.ndarray, m: int) -> np.ndarray:
    x = gram_abscissa(m)
    y, above = np.zeros(m), np.zeros(m)
    for k in reversed(range(len(coefficients))):
        y, above = (float(coefficients[k]) + x * y) - gram_beta(k + 1, m) * above, y
    return y


def exponential(z: np.ndarray) -> np.ndarray:
    k = np.trunc(z * LOG2_E + np.where(z < 0, -0.5, 0.5))
    r = (z - k * LN_2_HIGH) - k * LN_2_LOW
    total = np.full_like(r, 1 / math.factorial(13))
    for j in reversed(range(13)):
        total = total * r + 1 / math.factorial(j)
    return np.ldexp(total, k.astype(np.int64))


def evaluate_double_exponential(numbers: np.ndarray, m: int) -> np.ndarray:
    a, b, c, d = numbers.astype(np.float64)
    x = np.arange(m) / (m - 1)
    return a * exponential(b * x) + c * exponential(d * x)


def magnitudes_of(piece: Piece) -> np.ndarray:
    """What a piece decodes to, without its sign."""
    if piece.kind == RAW:
        return piece.numbers
    if piece.kind == ZEROS:
        return np.zeros(piece.length, np.float32)
    evaluate = evaluate_polynomial if piece.kind == POLYNOMIAL else evaluate_double_exponential
    return np.clip(evaluate(piece.numbers, piece.length), LOWEST, float(LARGEST_FLOAT)).astype(np.float32)


# Decoding


def decode_curve(number: int, code: bytes, kinds: tuple[int, ...]) -> np.ndarray:
    pieces, positions = read_curve(number, code, kinds)
    require(np.array_equal(np.sort(positions), np.arange(number)), "positions are a permutation")
    curve = [np.where(piece.negative, -magnitudes_of(piece), magnitudes_of(piece)) for piece in pieces]
    return np.concatenate(curve)[positions]


def read_curve(number: int, code: bytes, kinds: tuple[int, ...]) -> tuple[list[Piece], np.ndarray]:
    """The pieces, and the position of each value on the curve."""
    degree, width = code[0], index_width(number)
    require(1 <= degree <= 15, "degree of polynomials")
    pieces, at = read_headers(number, code, width, degree, kinds)
    for piece in pieces:
        end = at + 4 * number_of(piece, degree)
        piece.numbers = floats(code[at:end])
        check_numbers(piece)
        at = end
    return pieces, unpack_bits(code[at:], number, width)


def read_headers(number: int, code: bytes, width: int, degree: int, kinds: tuple[int, ...]) -> tuple[list[Piece], int]:
    """The pieces without their numbers, and where those begin; the whole code has the length that follows from the headers."""
    header_bits, stream = 3 + width, int.from_bytes(code[1:], "little")
    pieces: list[Piece] = []
    while (left := number - sum(piece.length for piece in pieces)) > 0:
        header = stream >> header_bits * len(pieces)
        piece = Piece(header & 3, bool(header >> 2 & 1), (header >> 3 & (1 << width) - 1) + 1)
        require(piece.kind in kinds, "kind of a piece")
        require(not (piece.kind == ZEROS and piece.negative), "sign of zeros")
        if pieces:
            last = pieces[-1]
            require(last.kind != ZEROS and (piece.kind == ZEROS or piece.negative >= last.negative), "order of the pieces")
        require(piece.length <= left, "lengths of the pieces")
        require(piece.kind in (RAW, ZEROS) or piece.length > degree, "a fitted piece of more values than the degree")
        pieces.append(piece)
    numbers_at = 1 + packed_length(len(pieces), header_bits)
    length = numbers_at + 4 * sum(number_of(piece, degree) for piece in pieces) + packed_length(number, width)
    require(len(code) == length, "value code length")
    unpack_bits(code[1:numbers_at], len(pieces), header_bits)
    return pieces, numbers_at


def check_numbers(piece: Piece) -> None:
    bits = piece.numbers.view(np.uint32) & 0x7FFFFFFF
    require(bool(np.isfinite(piece.numbers).all()), "numbers of a piece finite")
    if piece.kind == RAW:
        require(without_sign(piece.numbers) and bool((bits >= SMALLEST_NORMAL_BITS).all()), "raw magnitudes at least 2^-126")
    require(bool(((bits == 0) | (bits >= SMALLEST_NORMAL_BITS)).all()), "coefficients not denormal")
    if piece.kind == DOUBLE_EXPONENTIAL:
        require(bool((np.abs(piece.numbers[1::2]) <= MAX_RATE).all()), "rates at most 200")


# Encoding. Pieces are cut evenly: where to cut is an encoder's affair.


def write_curve(degree: int, pieces: list[Piece], positions: np.ndarray) -> bytes:
    """The bytes for given pieces, also such that no encoder chooses."""
    width = index_width(len(positions))
    headers = [piece.kind | piece.negative << 2 | (piece.length - 1) << 3 for piece in pieces]
    numbers = b"".join(np.asarray(piece.numbers, "<f4").tobytes() for piece in pieces)
    return bytes([degree]) + pack_bits(headers, 3 + width) + numbers + pack_bits(positions, width)


def descending_order(values: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """The indices of the values along the curve, and how many are positive, negative and zeros."""
    zeros = (values.view(np.uint32) & 0x7FFFFFFF) < SMALLEST_NORMAL_BITS
    parts = np.where(zeros, 2, np.signbit(values))
    order = np.lexsort((np.where(zeros, 0, -np.abs(values)), parts))
    return order, [int((parts == part).sum()) for part in range(3)]


def fit_polynomial(y: np.ndarray, degree: int) -> np.ndarray:
    """Least squares by QR of Legendre polynomials, then the coefficients of the same polynomial in the basis of the page."""
    m = len(y)
    x = gram_abscissa(m)
    fitted = np.polynomial.legendre.legval(x, np.polynomial.legendre.legfit(x, y.astype(np.float64), degree))
    basis = [np.ones(m), x]
    for k in range(1, degree):
        basis.append(x * basis[k] - gram_beta(k, m) * basis[k - 1])
    return np.array([fitted @ p / (p @ p) for p in basis[: degree + 1]])


def fit_double_exponential(y: np.ndarray) -> np.ndarray | None:
    """The integral equation by an ordinary least-squares solver."""
    y, m = y.astype(np.float64), len(y)
    x = np.arange(m) / (m - 1)
    first = np.concatenate([[0], np.cumsum((y[1:] + y[:-1]) / 2)]) / (m - 1)
    second = np.concatenate([[0], np.cumsum((first[1:] + first[:-1]) / 2)]) / (m - 1)
    columns = np.stack([second, first, x, np.ones(m)], 1)
    (product, total, _, _), _, rank, _ = np.linalg.lstsq(columns / np.abs(columns).max(0), y, rcond=1e-9)
    product, total = product / np.abs(second).max(), total / np.abs(first).max()
    discriminant = total**2 + 4 * product
    if rank < 4 or discriminant <= 0:
        return None
    b, d = (np.float32((total + sign * math.sqrt(discriminant)) / 2) for sign in (1, -1))
    if max(abs(b), abs(d)) > MAX_RATE:
        return None
    (a, c), _, rank, _ = np.linalg.lstsq(np.exp(np.outer(x, np.float64([b, d]))), y, rcond=None)
    return np.array([a, b, c, d]) if rank == 2 else None


def rounded(coefficients: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.where(np.abs(coefficients) < LOWEST, 0, coefficients).astype(np.float32)


def squared_error(piece: Piece, y: np.ndarray) -> float:
    """Infinity where the piece may not be written: no contraction, or numbers that are not finite."""
    if not np.isfinite(piece.numbers).all():
        return math.inf
    exact = y.astype(np.float64)
    error = float(np.sum((magnitudes_of(piece) - exact) ** 2))
    return error if error < np.sum(exact**2) else math.inf


def polynomial_piece(y: np.ndarray, negative: bool, degree: int) -> Piece:
    if len(y) > degree:
        piece = Piece(POLYNOMIAL, negative, len(y), rounded(fit_polynomial(y, degree)))
        if squared_error(piece, y) < math.inf:
            return piece
    return Piece(RAW, negative, len(y), y)


def fitted_pieces(y: np.ndarray, negative: bool, degree: int, pieces: int, exponential: bool) -> list[Piece]:
    if exponential and len(y) > degree:
        whole = polynomial_piece(y, negative, degree)
        numbers = fit_double_exponential(y)
        if numbers is not None:
            piece = Piece(DOUBLE_EXPONENTIAL, negative, len(y), rounded(numbers))
            if squared_error(piece, y) < math.inf and (whole.kind == RAW or squared_error(piece, y) <= squared_error(whole, y)):
                return [piece]
    pieces = max(1, min(pieces, len(y) // (4 * degree + 4)))
    return [polynomial_piece(part, negative, degree) for part in np.array_split(y, pieces) if len(part)]


def encode_curve(values: np.ndarray, degree: int, pieces: int, exponential: bool) -> bytes:
    order, (positive, negative, zeros) = descending_order(values)
    magnitudes = np.abs(values[order])
    chosen = fitted_pieces(magnitudes[:positive], False, degree, pieces, exponential)
    chosen += fitted_pieces(magnitudes[positive : positive + negative], True, degree, pieces, exponential)
    chosen += [Piece(ZEROS, False, zeros)] if zeros else []
    return write_curve(degree, chosen, np.argsort(order))
