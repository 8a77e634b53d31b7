"""RunLength: bytes that no encoder writes."""

from __future__ import annotations

import pytest

from format.decoders import check_refuses_raw
from format.reference.bits import write_gamma
from format.reference.run_length import RUN_LENGTH

RUNS = [6, 8, 17, 4, 6, 1]  # of 64 indices 13 are kept
CODE = write_gamma(RUNS)


def test_refuses_unused_bits_that_are_set(decoder):
    with decoder.refuses("unused bits"):
        decoder.decode_index(RUN_LENGTH, 20, 17, b"\x91\x0e")


def test_refuses_raw_indices_where_the_runs_are_shorter(decoder):
    check_refuses_raw(decoder, RUN_LENGTH, 20, [0, 1, 2, 3, 4])


def test_refuses_runs_that_end_early(decoder):
    for length in range(len(CODE)):
        with decoder.refuses("runs end early"):
            decoder.decode_index(RUN_LENGTH, 64, 13, CODE[:length])


@pytest.mark.parametrize("runs", [[53], [6, 14], [6, 8, 47], [6, 8, 17, 6], [2**31 - 1], [2**31], [2**35]])
def test_refuses_runs_of_more_indices_than_there_are(decoder, runs):
    assert len(decoder.decode_index(RUN_LENGTH, 64, 13, CODE)) == 13
    with decoder.refuses("runs within the size and the count"):
        decoder.decode_index(RUN_LENGTH, 64, 13, write_gamma(runs))


@pytest.mark.parametrize("runs", [[*RUNS, 23], [52, 13]])
def test_refuses_the_last_run_and_bytes_after_the_runs(decoder, runs):
    with decoder.refuses("bytes after the runs"):
        decoder.decode_index(RUN_LENGTH, 64, 13, write_gamma(runs))
    with decoder.refuses("bytes after the runs"):
        decoder.decode_index(RUN_LENGTH, 64, 13, CODE + b"\0")
