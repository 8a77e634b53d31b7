"""Every preset between two ranks, over 200 steps."""

import tensorflow as tf
from noise import SHAPES, assert_nothing_is_lost, run_noise

from deepreduce_tf import DeepReduce
from deepreduce_tf.presets import PRESETS


def test_with_every_preset_weights_agree_to_the_bit_and_residuals_stay_bounded_in_200_steps(assert_equal_on_both_ranks):
    compressions = [DeepReduce.preset(name, min_size=0) for name in PRESETS]
    variables = [tf.Variable(tf.zeros(shape)) for shape in SHAPES[:4]]
    bits, weights, *gradients = run_noise(compressions, variables)  # the sum of what came is what descent with rate -1 makes of zeros
    assert_equal_on_both_ranks(bits, weights)
    for compression, ratio in assert_nothing_is_lost(compressions, weights, *gradients):
        assert ratio < 10, compression
