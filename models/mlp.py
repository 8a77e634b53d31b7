"""A multilayer perceptron: gradients unlike a convolutional network's, with whole rows and units that hardly learn."""

import keras
from keras import layers

UNITS = 512
HIDDEN_LAYERS = 2


def mlp(input_shape: tuple[int, int, int] = (32, 32, 3), classes: int = 10) -> keras.Model:
    """Two hidden layers of 512 ReLU units that return logits: 792,586 trainable parameters at the default shape.

    Sees the first channel alone, since all channels of a grey image are equal.

    Args:
        input_shape: height, width and channels of an image.
        classes: number of logits.

    Returns:
        A model from float32[batch, height, width, channels] to float32[batch, classes].
    """
    inputs = keras.Input(input_shape)
    x = layers.Flatten()(inputs[..., 0])
    for _ in range(HIDDEN_LAYERS):
        x = layers.Dense(UNITS, activation="relu", kernel_initializer="he_normal")(x)
    return keras.Model(inputs, layers.Dense(classes, kernel_initializer="he_normal")(x), name="mlp")
