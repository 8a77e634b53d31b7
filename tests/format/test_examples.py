"""The worked examples: each is read, and is what the decoders read and the encoders write."""

from __future__ import annotations

import numpy as np
import pytest

from format import reference
from format.arrays import same_bits
from format.decoders import encode_index_with_ops, encode_value_with_ops
from format.example_files import EXAMPLES, FOLDER, floats, integers, integers_of, options_of, parametrize


def holds(key: str, text: str | None):
    return lambda example: example.get(key) == text


def test_each_codec_has_examples_in_a_file_of_its_name():
    for kind, codes in (("index", reference.INDEX_CODES), ("value", reference.VALUE_CODES)):
        shown = {(int(example["codec"]), example["file"].replace("_", "")) for example in EXAMPLES[kind]}
        assert shown == {(code.id, code.name.lower()) for code in codes.values()}, f"codecs without an example: {kind}"
    assert EXAMPLES["frame"]


def test_each_file_is_read_and_each_of_its_blocks_is_named():
    read = {path for kind in EXAMPLES for path in FOLDER.glob(f"{kind}/*.txt")}
    assert read == {path for path in FOLDER.rglob("*") if path.is_file()}
    for kind, examples in EXAMPLES.items():
        files = [example["file"] for example in examples]
        assert {path.stem for path in FOLDER.glob(f"{kind}/*")} == set(files)
        names = [example["name"] for example in examples]
        assert len(set(names)) == len(names)


@parametrize("index")
def test_index_example_decodes_to_its_support(decoder, example):
    indices = integers(example.get("decoded", example["indices"]))
    codec, stream = reference.INDEX_CODES[int(example["codec"])], integers_of(example, "seed", "step", "segment")
    decoded = decoder.decode_index(codec, int(example["size"]), len(indices), example["code"], **stream)
    np.testing.assert_array_equal(decoded, indices)


@parametrize("index", holds("decoded", None))
@pytest.mark.parametrize("encode", [reference.encode_index, encode_index_with_ops])
def test_index_example_is_what_the_encoder_writes(encode, example):
    codec, indices = reference.INDEX_CODES[int(example["codec"])], integers(example["indices"])
    options = integers_of(example, "seed", "step", "segment", "rows", "columns")
    assert encode(codec, int(example["size"]), indices, **options).hex(" ") == example["code"].hex(" ")


@parametrize("value")
def test_value_example_decodes_to_its_values(decoder, example):
    expected = floats(example.get("decoded", example["values"]))
    assert same_bits(decoder.decode_value(reference.VALUE_CODES[int(example["codec"])], len(expected), example["code"]), expected)


@parametrize("value", lambda example: "encoder" not in example and "rounding" not in example)
@pytest.mark.parametrize("encode", [reference.encode_value, encode_value_with_ops])
def test_value_example_is_what_the_encoder_writes(encode, example):
    codec, values = reference.VALUE_CODES[int(example["codec"])], floats(example["values"])
    assert encode(codec, values, **options_of(example)).hex(" ") == example["code"].hex(" ")


@parametrize("value", holds("rounding", "nearest"))
def test_an_example_of_random_rounding_is_what_an_encoder_writes_that_rounds_to_nearest(example):
    codec, values = reference.VALUE_CODES[int(example["codec"])], floats(example["values"])
    assert reference.encode_value(codec, values, **options_of(example), noise=0.5).hex(" ") == example["code"].hex(" ")
