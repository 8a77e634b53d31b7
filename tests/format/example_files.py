"""The worked examples of the format: the files of `examples/`, one for each codec.

A file holds blocks, separated by empty lines. A line of a block is `key: text`; what follows a `#` is a remark, and a key that comes again
adds to what it held. `code` is hexadecimal. `indices` or `values` is what an encoder is given, `decoded` what a decoder returns where that
differs. Keys of value codes: `rounding: nearest` where an encoder rounds at random and the code is the one of rounding to nearest;
`encoder: free` where the format leaves the code to the encoder, so that only decoding is held.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent / "examples"


def read_block(block: str) -> dict:
    example: dict = {"code": b"", "segment": []}
    for line in block.splitlines():
        key, colon, text = line.split("#")[0].partition(":")
        text = text.strip()
        if not colon:
            assert not key.strip(), f"{line!r} is neither a remark nor a key and its text"
        elif key == "code":
            example["code"] += bytes.fromhex(text)
        elif key == "segment" and "," in text:
            example["segment"].append(dict(part.strip().split(" ", 1) for part in text.split(",")))
        else:
            example[key] = f"{example[key]} {text}" if example.get(key) else text
    return example


def read_file(path: Path) -> list[dict]:
    return [read_block(block) | {"file": path.stem} for block in path.read_text().strip().split("\n\n")]


EXAMPLES = {
    kind: [example for path in sorted(FOLDER.glob(f"{kind}/*.txt")) for example in read_file(path)] for kind in ("index", "value", "frame")
}


def parametrize(kind: str, chosen=lambda example: True):
    """Runs a test on each example of a kind that is chosen."""
    examples = [example for example in EXAMPLES[kind] if chosen(example)]
    return pytest.mark.parametrize("example", examples, ids=[example["name"] for example in examples])


def integers(text: str) -> np.ndarray:
    return np.array(text.split(), np.int64)


def floats(text: str) -> np.ndarray:
    return np.array(text.split(), np.float32)


def options_of(example: dict) -> dict:
    return {"bits": int(example["bits"])} if "bits" in example else {}


def integers_of(example: dict, *names: str) -> dict:
    return {name: int(example[name]) for name in names if example.get(name)}
