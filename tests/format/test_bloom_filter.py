"""BloomFilter: that both implementations make the same supports, and bytes that are refused."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from format.decoders import OPS, REFERENCE, encode_op
from format.example_files import integers, integers_of, parametrize
from format.reference.bloom_filter import BLOOM_FILTER, POLICIES, accepted, bits_of, encode_bloom_filter, write_bloom_filter
from format.reference.random_support import stream_key

SIZE, INDICES = 400, np.array([3, 64, 65, 100, 130, 260, 261, 262, 333, 399])
KEY = stream_key(0, 0, 0)


def encode_with_ops(
    size: int, indices: np.ndarray, fpr: float, policy: str, seed: int = 0, step: int = 0, segment: int = 0
) -> tuple[bytes, np.ndarray]:
    assert segment == 0
    code, _, support, _ = encode_op(BLOOM_FILTER)(indices.astype(np.int32), [0, len(indices)], [size], seed, step, fpr=fpr, policy=policy)
    return code.numpy().tobytes(), support.numpy()


@parametrize("index", lambda example: example["file"] == "bloom_filter")
@pytest.mark.parametrize("encode", [encode_bloom_filter, encode_with_ops])
def test_example_is_what_the_encoder_writes(encode, example):
    options = {"fpr": float(example["fpr"]), "policy": example["policy"]} | integers_of(example, "seed", "step", "segment")
    code, support = encode(int(example["size"]), integers(example["indices"]), **options)
    assert code.hex(" ") == example["code"].hex(" ")
    np.testing.assert_array_equal(support, integers(example["decoded"]))


def code_of(policy: str, hashes: int = 3, words: int = 1, indices: np.ndarray = INDICES) -> bytes:
    return write_bloom_filter(policy, hashes, words, indices, KEY)


@functools.cache  # both decoders are tried on the same
def encoded(policy: str) -> list[tuple]:
    """Supports of many sizes under many rates, and what the reference makes of them: size, indices, rate, code and support."""
    draw = np.random.default_rng(POLICIES.index(policy))
    cases = []
    for step in range(60):
        size = int(draw.integers(1, 600))
        given = np.sort(draw.choice(size, int(draw.integers(0, size + 1)), replace=False))
        fpr = float(np.float32(np.exp(draw.uniform(np.log(1e-8), np.log(0.99)))))
        cases.append((size, given, fpr, *encode_bloom_filter(size, given, fpr, policy, 5, step)))
    return cases


@pytest.mark.parametrize("policy", POLICIES)
def test_the_encoders_write_the_same_code_and_know_the_same_support(decoder, policy):
    for step, (size, given, fpr, code, support) in enumerate(encoded(policy)):
        other_code, other_support = encode_with_ops(size, given, fpr, policy, 5, step)
        assert code == other_code
        np.testing.assert_array_equal(support, other_support)
        np.testing.assert_array_equal(decoder.decode_index(BLOOM_FILTER, size, len(support), code, seed=5, step=step), support)
        assert len(support) == len(given) or policy == "p0"
        assert set(given) <= set(support) or policy != "p0"


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"p0"}))
def test_a_filter_of_any_content_gives_both_decoders_one_support(policy):
    draw = np.random.default_rng(7)
    for _ in range(40):
        hashes, count = int(draw.integers(1, 33)), int(draw.integers(1, 200))
        words = int(draw.integers(1, max(2, 3 * hashes * count // 64)))
        filled = np.packbits(draw.random(64 * words) < draw.choice([0.5, 0.9, 1.0])).tobytes()
        code = bytes([POLICIES.index(policy), hashes]) + filled
        results = []
        for each in (REFERENCE, OPS):
            try:
                results.append(each.decode_index(BLOOM_FILTER, SIZE, count, code).tolist())
            except Exception as error:
                assert type(error).__name__ in ("FormatError", "DataLossError")
                results.append(None)
        assert results[0] == results[1]


@pytest.mark.parametrize("length", [1, 2, 9, 11, 17])
def test_refuses_a_code_that_is_not_whole_words(decoder, length):
    code = code_of("p0") + bytes(8)
    with decoder.refuses("whole words"):
        decoder.decode_index(BLOOM_FILTER, SIZE, 10, code[:length])


def test_refuses_an_unknown_policy(decoder):
    with decoder.refuses("policy"):
        decoder.decode_index(BLOOM_FILTER, SIZE, 10, b"\7" + code_of("p0")[1:])


@pytest.mark.parametrize("hashes", [0, 33, 255])
def test_refuses_another_number_of_hash_functions(decoder, hashes):
    with decoder.refuses("number of hash functions"):
        decoder.decode_index(BLOOM_FILTER, SIZE, 10, bytes([4, hashes]) + code_of("leftmost")[2:])


def test_refuses_more_words_than_any_rate_asks_for(decoder):
    code = code_of("leftmost", hashes=3, words=2)
    assert len(decoder.decode_index(BLOOM_FILTER, SIZE, 8, code)) == 8  # 64 < 3 * 3 * 8
    with decoder.refuses("words for the count"):
        decoder.decode_index(BLOOM_FILTER, SIZE, 7, code)


@pytest.mark.parametrize("policy", POLICIES)
def test_refuses_a_filter_that_accepts_fewer_indices_than_the_count(decoder, policy):
    code = code_of(policy)
    with decoder.refuses("indices accepted"):
        decoder.decode_index(BLOOM_FILTER, SIZE, len(accepted(SIZE, code, KEY)) + 1, code)


def test_refuses_under_p0_a_filter_that_accepts_more_indices_than_the_count(decoder):
    code = code_of("p0")
    count = len(accepted(SIZE, code, KEY))
    np.testing.assert_array_equal(decoder.decode_index(BLOOM_FILTER, SIZE, count, code), accepted(SIZE, code, KEY))
    with decoder.refuses("indices accepted"):
        decoder.decode_index(BLOOM_FILTER, SIZE, count - 1, code)


def test_refuses_under_p2_more_indices_with_a_bit_of_their_own_than_the_count(decoder):
    code = code_of("p2", hashes=6, words=2)
    bits = bits_of(accepted(SIZE, code, KEY), 6, 2, KEY)
    bit, times = np.unique([b for row in bits for b in set(row.tolist())], return_counts=True)
    single = int(np.isin(bits, bit[times == 1]).any(axis=1).sum())
    assert single >= 5
    assert len(decoder.decode_index(BLOOM_FILTER, SIZE, single, code)) == single
    with decoder.refuses("sets of one"):
        decoder.decode_index(BLOOM_FILTER, SIZE, single - 1, code)


def test_refuses_under_p2_a_filter_that_accepts_far_more_indices_than_any_rate_asks_for(decoder):
    everything = bytes([POLICIES.index("p2"), 32]) + b"\xff" * 8
    assert len(decoder.decode_index(BLOOM_FILTER, 30_000, 1, everything)) == 1
    with decoder.refuses("bits of p2"):
        decoder.decode_index(BLOOM_FILTER, 40_000, 1, everything)


def test_an_index_may_have_a_bit_twice_and_is_once_in_its_set():
    """One word and many hash functions: rotations repeat, and still no set counts an index twice."""
    code = write_bloom_filter("p2", 32, 1, INDICES[:3], KEY)
    assert len(set(bits_of(INDICES[:1], 32, 1, KEY)[0].tolist())) < 32
    mine, theirs = (each.decode_index(BLOOM_FILTER, SIZE, 3, code) for each in (REFERENCE, OPS))
    np.testing.assert_array_equal(mine, theirs)
