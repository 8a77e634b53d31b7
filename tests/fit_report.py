"""PolyFit and DoubleExpFit beside the same models fitted by NumPy and SciPy: `python tests/fit_report.py GRADIENTS.npz`.

The file holds one array for each variable (`numpy.savez`). Printed are, for what TopK keeps of each variable of 1024 elements or more, the
relative error of the values and the bits per value.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from format.reference.sorted_curve import DOUBLE_EXPONENTIAL, POLYNOMIAL, Piece, read_curve
from scipy.optimize import OptimizeWarning, curve_fit

from deepreduce_tf import ops

KINDS = (0, 1, 2, 3)


@dataclass
class Coded:
    """What a codec makes of some values. `pieces` is empty when they are sent raw."""

    bits: float
    decoded: np.ndarray
    pieces: list[Piece]
    degree: int


def encode(codec: str, values: np.ndarray, **options) -> Coded:
    code, _, decoded = ops.codec(codec)[0](values, [0, len(values)], 0, 0, **options)
    code = code.numpy().tobytes()
    raw = len(code) == 4 * len(values)
    pieces = [] if raw else read_curve(len(values), code, KINDS)[0]
    return Coded(8 * len(code) / len(values), decoded.numpy(), pieces, 0 if raw else code[0])


def curves_of(coded: Coded, values: np.ndarray) -> Iterator[tuple[Piece, np.ndarray, np.ndarray]]:
    """Each piece with its magnitudes, sorted, and what they decode to."""
    order = np.lexsort((-np.abs(values), np.where(values == 0, 2, values < 0)))
    begin = 0
    for piece in coded.pieces:
        chosen = order[begin : begin + piece.length]
        yield piece, np.abs(values[chosen]).astype(np.float64), np.abs(coded.decoded[chosen]).astype(np.float64)
        begin += piece.length


def relative_error(parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Of (values, fitted values) in parts."""
    error = sum(np.sum((fitted - exact) ** 2) for exact, fitted in parts)
    return float(np.sqrt(error / sum(np.sum(exact**2) for exact, _ in parts)))


def error_of(coded: Coded, values: np.ndarray) -> float:
    return relative_error([(values.astype(np.float64), coded.decoded.astype(np.float64))])


def numpy_error(coded: Coded, values: np.ndarray) -> float:
    """The error with each polynomial piece fitted by NumPy instead: least squares by QR, Chebyshev basis, coefficients in float64."""
    parts = []
    for piece, exact, seen in curves_of(coded, values):
        x = np.linspace(-1, 1, max(2, piece.length))
        fitted = np.polynomial.Chebyshev.fit(x, exact, coded.degree)(x) if piece.kind == POLYNOMIAL else seen
        parts.append((exact, fitted))
    return relative_error(parts) if parts else 0.0


def double_exponential(x: np.ndarray, a: float, b: float, c: float, d: float) -> np.ndarray:
    return a * np.exp(b * x) + c * np.exp(d * x)


def scipy_curve(exact: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The double exponential that SciPy finds from `start`, by nonlinear least squares; a constant where it finds none."""
    x = np.arange(len(exact)) / (len(exact) - 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", OptimizeWarning)
        try:
            solution, _ = curve_fit(double_exponential, x, exact / exact[0], p0=start, maxfev=4000)
        except RuntimeError:
            return np.full_like(exact, exact.mean())
    return exact[0] * double_exponential(x, *solution)


FROM_SCRATCH = np.array([0.5, -1.0, 0.5, -10.0])


def scipy_errors(coded: Coded, values: np.ndarray) -> tuple[float, float]:
    """The error with each double exponential fitted by SciPy instead: started from its own solution, and from scratch."""
    refined, alone = [], []
    for piece, exact, seen in curves_of(coded, values):
        if piece.kind != DOUBLE_EXPONENTIAL:
            refined.append((exact, seen))
            alone.append((exact, seen))
            continue
        scaled = piece.numbers / np.array([exact[0], 1, exact[0], 1])
        refined.append((exact, scipy_curve(exact, scaled)))
        alone.append((exact, scipy_curve(exact, FROM_SCRATCH)))
    return (relative_error(refined), relative_error(alone)) if refined else (0.0, 0.0)


def kinds_of(coded: Coded) -> str:
    """One letter a piece: raw, polynomial, double exponential, zeros."""
    return "".join("RPDZ"[piece.kind] for piece in coded.pieces) or "raw"


def kept(gradient: np.ndarray, ratio: float) -> np.ndarray:
    """What TopK keeps, in the order of the indices."""
    flat = gradient.astype(np.float32).ravel()
    order = np.argsort(-np.abs(flat), kind="stable")[: max(1, round(ratio * flat.size))]
    return flat[np.sort(order)]


def row_of(name: str, values: np.ndarray) -> str:
    poly, exponential = encode("poly_fit", values), encode("double_exp_fit", values)
    refined, alone = scipy_errors(exponential, values)
    polynomials = f"{error_of(poly, values):8.5f}{numpy_error(poly, values):9.5f}{poly.bits:7.2f}  {kinds_of(poly):16}"
    exponentials = f"{error_of(exponential, values):8.5f}{refined:9.5f}{alone:9.5f}{exponential.bits:7.2f}  {kinds_of(exponential)}"
    return f"{name:24}{len(values):6} | {polynomials} | {exponentials}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gradients", help="a .npz file, one array for each variable")
    parser.add_argument("--ratios", type=float, nargs="+", default=[0.01, 0.1], help="shares that TopK keeps (default 0.01 0.1)")
    arguments = parser.parse_args()
    print(
        "PolyFit: its relative error, NumPy's (Chebyshev.fit on the same pieces), bits per value, pieces. DoubleExpFit: its relative error,"
    )
    print("SciPy's (curve_fit from DoubleExpFit's solution, and from scratch), bits, pieces: Raw, Polynomial, Double exponential, Zeros.")
    print(f"{'':24}{'kept':>6} | {'PolyFit':>8}{'NumPy':>9}{'bits':>7}  {'':16} | {'DoubleE.':>8}{'SciPy':>9}{'SciPy 0':>9}{'bits':>7}")
    with np.load(arguments.gradients) as gradients:
        large = [name for name in gradients.files if gradients[name].size >= 1024]
        for ratio in arguments.ratios:
            for name in large:
                print(row_of(name, kept(gradients[name], ratio)))


if __name__ == "__main__":
    main()
