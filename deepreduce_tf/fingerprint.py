"""Whether ranks agree on what they exchange: a number in each frame that a receiver compares with its own."""

from __future__ import annotations

import hashlib
import json


def fingerprint_of(configuration: object, gradients: object) -> int:
    """The fingerprint of a frame (docs/format.md), which fits int64.

    Args:
        configuration: what all ranks must share of the compressor, as values that JSON can hold.
        gradients: what all ranks must share of the bucket's gradients, likewise. A half of the number each, so that an error can tell which
            of the two differs.
    """
    texts = (json.dumps(part, sort_keys=True).encode() for part in (configuration, gradients))
    digest = b"".join(hashlib.blake2b(text, digest_size=4).digest() for text in texts)
    return int.from_bytes(digest, "little", signed=True)
