"""BloomFilter: a filter of the kept indices, from which both sides make another support."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from format.reference.bits import pack_stream, require
from format.reference.index_codes import IndexCode, register
from format.reference.random_support import MASK64, draw, mix, random_support, stream_key

POLICIES = ("naive", "p0", "p1", "p2", "leftmost", "middle", "rightmost")


def bits_of(indices: np.ndarray, hashes: int, words: int, key: int) -> np.ndarray:
    """The bits of each index, one row an index."""
    rows = []
    for block in np.unique(indices // 64).tolist():
        first, step = draw(key, 2 * block), draw(key, 2 * block + 1) | 1
        functions = [first]
        while len(functions) < hashes:
            functions.append((functions[-1] * 0xD1342543DE82EF95 + step) & MASK64)
        word = np.array([h * words >> 64 for h in functions], np.int64)
        rotation = np.array([h // 8 % 64 for h in functions], np.int64)
        rows.append(64 * word + (indices[indices // 64 == block][:, None] + rotation) % 64)
    return np.concatenate(rows)


def write_bloom_filter(policy: str, hashes: int, words: int, indices: np.ndarray, key: int) -> bytes:
    """The code of a filter of any length and number of hash functions."""
    filled = np.zeros(64 * words, np.uint8)
    filled[bits_of(np.asarray(indices, np.int64), hashes, words, key)] = 1
    return bytes([POLICIES.index(policy), hashes]) + pack_stream(filled)


def encode_bloom_filter(
    size: int, indices: np.ndarray, fpr: float, policy: str, seed: int = 0, step: int = 0, segment: int = 0
) -> tuple[bytes, np.ndarray]:
    """The code, and the support that it decodes to."""
    indices = np.asarray(indices, np.int64)
    if len(indices) in (0, size):
        return b"", indices
    m = math.ceil(len(indices) * abs(math.log(fpr)) / math.log(2) ** 2)
    hashes = min(32, max(1, round(m / len(indices) * math.log(2))))
    key = stream_key(seed, step, segment)
    code = write_bloom_filter(policy, hashes, math.ceil(m / 64), indices, key)
    count = len(accepted(size, code, key)) if policy == "p0" else len(indices)
    if count == size:
        return b"", np.arange(size)
    return code, decode_bloom_filter(size, count, code, seed, step, segment)


def accepted(size: int, code: bytes, key: int) -> np.ndarray:
    filled = np.unpackbits(np.frombuffer(code, np.uint8, offset=2), bitorder="little")
    indices = np.arange(size)
    return indices[filled[bits_of(indices, code[1], len(filled) // 64, key)].all(axis=1)]


def decode_bloom_filter(size: int, count: int, code: bytes, seed: int = 0, step: int = 0, segment: int = 0) -> np.ndarray:
    require(len(code) >= 10 and len(code) % 8 == 2, "whole words")
    require(code[0] < len(POLICIES), "policy")
    require(1 <= code[1] <= 32, "number of hash functions")
    policy, hashes, words = POLICIES[code[0]], code[1], len(code) // 8
    require(64 * (words - 1) < 3 * hashes * count, "words for the count")
    key = stream_key(seed, step, segment)
    indices = accepted(size, code, key)
    require(len(indices) >= count, "indices accepted")
    require(policy != "p0" or len(indices) == count, "indices accepted")
    beyond = len(indices) - count
    if policy == "p1":
        return indices[random_support(mix(key), len(indices), count)]
    if policy == "p2":
        require(64 * words < 2**32 and hashes * len(indices) < 2**32, "bits of p2")
        require(hashes * beyond <= 2**20 + 256 * -(-size // 64), "bits of p2")
        return conflict_sets(indices, bits_of(indices, hashes, words, key), count, mix(key))
    first = {"middle": beyond // 2, "rightmost": beyond}.get(policy, 0)
    return indices[first : first + count]


def conflict_sets(indices: np.ndarray, bits: np.ndarray, count: int, key: int) -> np.ndarray:
    sets = defaultdict(list)
    for index, row in zip(indices.tolist(), bits.tolist(), strict=True):
        for bit in set(row):
            sets[bit].append(index)
    order = sorted(sets, key=lambda bit: (len(sets[bit]), bit))
    taken = {members[0] for members in sets.values() if len(members) == 1}
    require(len(taken) <= count, "sets of one")
    sets = {bit: [index for index in sets[bit] if index not in taken] for bit in order}
    draws = 0
    while len(taken) < count:
        for members in sets.values():
            drawn = None
            while members and drawn is None and len(taken) < count:
                position = draw(key, draws) * len(members) >> 64
                draws += 1
                if members[position] not in taken:
                    drawn = members[position]
                    taken.add(drawn)
                members[position] = members[-1]
                members.pop()
    return np.array(sorted(taken), np.int64)


BLOOM_FILTER = register(IndexCode(8, "BloomFilter", None, decode_bloom_filter, has_raw=False))
