"""What all tests of the format share."""

import pytest
from hypothesis import settings

from format.decoders import OPS, REFERENCE
from format.reference import IndexCode, ValueCode

settings.register_profile("format", deadline=None)  # a busy machine is no error of the format
settings.load_profile("format")


@pytest.fixture(params=[REFERENCE, OPS], ids=["reference", "ops"])
def decoder(request):
    """Each of the two decoders of the format."""
    return request.param


def pytest_make_parametrize_id(config, val, argname):
    return val.name if isinstance(val, IndexCode | ValueCode) else None
