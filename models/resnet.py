"""ResNet-20, the CIFAR network of He et al., "Deep Residual Learning for Image Recognition" (2016), section 4.2."""

import keras
from keras import layers

STAGE_FILTERS = (16, 32, 64)
BLOCKS_PER_STAGE = 3


def resnet20(input_shape: tuple[int, int, int] = (32, 32, 3), classes: int = 10) -> keras.Model:
    """ResNet-20 that returns logits: 269,722 trainable parameters at the default shape.

    Shortcuts between stages are the paper's option A: every second pixel, new channels filled with zeros, no parameters.

    Args:
        input_shape: height, width and channels of an image.
        classes: number of logits.

    Returns:
        A model from float32[batch, height, width, channels] to float32[batch, classes].
    """
    inputs = keras.Input(input_shape)
    x = layers.ReLU()(_convolution(inputs, STAGE_FILTERS[0]))
    for filters in STAGE_FILTERS:
        for _ in range(BLOCKS_PER_STAGE):
            x = _block(x, filters)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(classes, kernel_initializer="he_normal")(x), name="resnet20")


def _block(x: keras.KerasTensor, filters: int) -> keras.KerasTensor:
    channels = x.shape[-1]
    strides = 1 if channels == filters else 2
    y = layers.ReLU()(_convolution(x, filters, strides))
    y = _convolution(y, filters)
    if strides > 1:
        x = layers.MaxPooling2D(pool_size=1, strides=strides)(x)
        before = (filters - channels) // 2
        x = keras.ops.pad(x, ((0, 0), (0, 0), (0, 0), (before, filters - channels - before)))
    return layers.ReLU()(layers.Add()([x, y]))


def _convolution(x: keras.KerasTensor, filters: int, strides: int = 1) -> keras.KerasTensor:
    x = layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False, kernel_initializer="he_normal")(x)
    # Keras' default momentum of 0.99 averages over more steps than a run of one pass has.
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
