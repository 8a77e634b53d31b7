"""Presets: what docs/presets.md prints is what they are."""

import re
from pathlib import Path

import numpy as np
import pytest

import deepreduce_tf
from deepreduce_tf import DeepReduce, TopK
from deepreduce_tf.presets import PRESETS

PAGE = (Path(__file__).parent.parent / "docs" / "presets.md").read_text()
ROWS = dict(re.findall(r"^\| `([^`]+)` \| [^|]+ \| `([^`]+)` \|$", PAGE, re.MULTILINE))
GRADIENT = np.random.default_rng(0).standard_t(3, (40, 50)).astype("float32")


def test_the_page_has_all_presets():
    assert list(ROWS) == list(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_the_configuration_that_the_page_prints(name):
    preset, plain = DeepReduce.preset(name), eval(ROWS[name], vars(deepreduce_tf))
    assert preset.get_config() == plain.get_config()
    np.testing.assert_array_equal(preset(GRADIENT), plain(GRADIENT))


def test_arguments_replace_those_of_the_preset():
    compression = DeepReduce.preset("bf-p2", sparsifier=TopK(0.01), error_feedback=False, seed=3)
    config = DeepReduce.preset("bf-p2").get_config()
    assert compression.get_config() == config | {"sparsifier": DeepReduce(TopK(0.01)).get_config()["sparsifier"]} | {
        "error_feedback": False,
        "seed": 3,
    }


def test_a_preset_that_is_changed_leaves_the_next_one_as_it_was():
    DeepReduce.preset("topk").sparsifier.ratio = 0.5
    assert DeepReduce.preset("topk").sparsifier == TopK()


@pytest.mark.parametrize("name", ["bf-p3", "", None, 3, TopK()])
def test_another_name_is_an_error_that_lists_the_presets(name):
    with pytest.raises(ValueError, match=r"`name` must be one of topk, rle, .*skcompress, 3lc. Received: name="):
        DeepReduce.preset(name)


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "3lc"])
def test_a_preset_sends_what_is_large_and_little_else(name):
    received = DeepReduce.preset(name)(GRADIENT).numpy()
    kept = np.abs(GRADIENT) >= np.sort(np.abs(GRADIENT).ravel())[-200]
    right = np.linalg.norm((received - GRADIENT)[kept]) / np.linalg.norm(GRADIENT[kept])
    assert right < 0.35 and 200 <= np.count_nonzero(received) < 220
