"""The pytest plugin of a session that two ranks run together: one Horovod, and the same tests in the same order on both."""

import horovod.tensorflow as hvd
import numpy as np
import pytest

# Taken before horovod_ext is imported, as a program may do.
STOCK_ALLREDUCE = hvd.allreduce

import horovod.keras as hvd_keras  # noqa: E402
import horovod.tensorflow.keras as hvd_tensorflow_keras  # noqa: E402
import tensorflow as tf  # noqa: E402
from whole_compressor import Whole  # noqa: E402

from deepreduce_tf import DeepReduce, TopK  # noqa: E402

ONLY_RANK_0 = hvd.ProcessSet([0])
hvd.init(process_sets=[ONLY_RANK_0])


@pytest.fixture(params=["horovod.tensorflow", "horovod.keras", "horovod.tensorflow.keras"])
def path(request):
    """The module that users import."""
    return {"horovod.tensorflow": hvd, "horovod.keras": hvd_keras, "horovod.tensorflow.keras": hvd_tensorflow_keras}[request.param]


COMPRESSIONS = {
    "none": lambda: hvd.Compression.none,
    "fp16": lambda: hvd.Compression.fp16,
    "gathered": Whole,
    "deepreduce": lambda: DeepReduce(TopK(ratio=1.0), value="float32", min_size=0),
}


@pytest.fixture(params=["none", "gathered", "deepreduce"])
def compression(request):
    """One that stock Horovod has, one that gathers, and DeepReduce without loss; `fp16` too where a test asks for it."""
    return COMPRESSIONS[request.param]()


@pytest.fixture
def tolerance(compression):
    return 5e-3 if compression is hvd.Compression.fp16 else 1e-5


@pytest.fixture
def only_rank_0():
    return ONLY_RANK_0


@pytest.fixture
def stock_allreduce():
    return STOCK_ALLREDUCE


@pytest.fixture
def assert_equal_on_both_ranks():
    def check(*arrays):
        for array in arrays:
            both = hvd.allgather_object(np.asarray(array).tobytes())
            assert both[0] == both[1], "the ranks hold different bits"

    return check


@pytest.fixture(autouse=True)
def same_seed_on_both_ranks():
    tf.random.set_seed(1)
    np.random.seed(1)


@pytest.fixture(autouse=True)
def begin_together(request):
    """A rank that is ahead would look like a stall to the other, and its exit would take Horovod down while the other still runs."""
    names = hvd.allgather_object(request.node.nodeid)
    assert names[0] == names[1], f"the ranks run different tests: {names}"
    yield


def pytest_sessionfinish():
    hvd.allgather_object("the end")
