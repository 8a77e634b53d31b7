"""A second implementation of docs/format.md and docs/format/, in NumPy, written from those pages alone.

It is slow and plain on purpose: it is what the C++ codecs are held against. Every rule of the pages is checked, and bytes that no encoder
writes raise a FormatError that names the rule. Each module of a codec registers it in INDEX_CODES or VALUE_CODES.
"""

import importlib
import pkgutil

from format.reference.bits import FormatError
from format.reference.frame import decode_frame, encode_frame, split_frames, write_frame
from format.reference.index_codes import INDEX_CODES, IndexCode, decode_index, encode_index
from format.reference.value_codes import VALUE_CODES, ValueCode, decode_value, encode_value

__all__ = [
    "INDEX_CODES",
    "VALUE_CODES",
    "FormatError",
    "IndexCode",
    "ValueCode",
    "decode_frame",
    "decode_index",
    "decode_value",
    "encode_frame",
    "encode_index",
    "encode_value",
    "split_frames",
    "write_frame",
]

for module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{module.name}")
