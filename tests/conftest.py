"""Tests for two ranks run only where test_two_ranks.py has started two ranks."""

import os

import pytest

collect_ignore = [] if "HOROVOD_RANK" in os.environ else ["two_ranks", "two_ranks_keras2"]


@pytest.fixture(params=["reference", "ops"])
def decoder(request):
    """Each of the two decoders of docs/format.md."""
    import format_decoders

    return {"reference": format_decoders.REFERENCE, "ops": format_decoders.OPS}[request.param]
