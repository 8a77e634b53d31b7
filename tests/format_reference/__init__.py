"""A second implementation of docs/format.md, in NumPy, written from that page alone.

It is slow and plain on purpose: it is what the C++ codecs are held against. Every rule of the page is checked, and bytes that no
encoder writes raise a FormatError that names the rule.
"""

from format_reference.adaptive import encode_tree  # noqa: F401
from format_reference.bits import *  # noqa: F403
from format_reference.bloom_filter import *  # noqa: F403
from format_reference.canonical_code import *  # noqa: F403
from format_reference.frame import *  # noqa: F403
from format_reference.huffman_gaps import *  # noqa: F403
from format_reference.index_codes import *  # noqa: F403
from format_reference.natural import *  # noqa: F403
from format_reference.sketch_ml import *  # noqa: F403
from format_reference.sorted_curve import *  # noqa: F403
from format_reference.tern_grad import *  # noqa: F403
from format_reference.three_lc import *  # noqa: F403
from format_reference.trits import *  # noqa: F403
from format_reference.value_codes import *  # noqa: F403
