"""The shapes of ResNet-50's 161 trainable variables, in order: 25,557,032 elements (He et al. 2016; convolutions without bias)."""

BLOCKS = ((64, 256, 3), (128, 512, 4), (256, 1024, 6), (512, 2048, 3))  # inner filters, outer filters, blocks of each stage


def convolution(size, inputs, filters):
    """Kernel, and the scale and offset of the batch normalisation behind it."""
    return [(size, size, inputs, filters), (filters,), (filters,)]


def shapes():
    all_shapes = convolution(7, 3, 64)
    inputs = 64
    for inner, outer, blocks in BLOCKS:
        for block in range(blocks):
            all_shapes += convolution(1, inputs, inner) + convolution(3, inner, inner) + convolution(1, inner, outer)
            if block == 0:
                all_shapes += convolution(1, inputs, outer)
            inputs = outer
    return [*all_shapes, (inputs, 1000), (1000,)]


SHAPES = shapes()
