"""What index codecs and value codecs share."""

from __future__ import annotations

from typing import ClassVar, TypeVar

import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.stage import Stage, arguments_of

APPLICATION_CODEC = 255


class Codec(Stage):
    """Turns one half of a bucket, its indices or its values, into a code for each segment, and back.

    Attributes:
        codec_id: the id in the frame (docs/format.md); 255 for codecs that an application defines.
    """

    codec_id: int = APPLICATION_CODEC

    def contraction(self) -> Codec:
        """The codec that encodes under error feedback, of the same class: what is sent must shrink what is left. By default itself.

        Raises:
            ValueError: if there is none, and how to configure the codec so that there is.
        """
        return self


AnyCodec = TypeVar("AnyCodec", bound=Codec)


def contraction_of(codec: AnyCodec) -> AnyCodec:
    """The codec that encodes with error feedback. Receivers decode by `codec` itself, so both must write the same code.

    Raises:
        ValueError: if there is none, or it is of another class.
    """
    contraction = codec.contraction()
    if type(contraction) is not type(codec):
        raise ValueError(
            f"`contraction()` must return a {type(codec).__name__}, whose `decode` receivers call. Received: {contraction!r}. Return a "
            "copy that encodes otherwise, or raise a ValueError that says how to configure the codec."
        )
    return contraction


class OpCodec(Codec):
    """A codec whose two directions are C++ ops, named by the class: RiceEncode and RiceDecode.

    Attributes:
        op_class: the class that the ops are named by: where an application extends a built-in codec, that one.
    """

    op_class: ClassVar[type[OpCodec]]

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if vars(cls).get("codec_id", APPLICATION_CODEC) != APPLICATION_CODEC:
            cls.op_class = cls

    def attributes(self) -> dict[str, object]:
        """The attributes of the encoding op: by default the arguments of the codec."""
        return {name: getattr(self, name) for name in arguments_of(self.op_class)}

    def run_encoder(self, *inputs: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """What the encoding op returns."""
        encode, _ = ops.codec(self.op_class.__name__)
        return encode(*inputs, **self.attributes())

    def run_decoder(self, *inputs: tf.Tensor) -> tf.Tensor | tuple[tf.Tensor, ...]:
        """What the decoding op returns."""
        _, decode = ops.codec(self.op_class.__name__)
        return decode(*inputs)
