"""Models that were trained with compression load where nothing of ours can be imported."""

import os
import subprocess
import sys
import textwrap

import pytest

TRAIN = """
    import keras, numpy as np, tensorflow as tf
    import horovod.tensorflow.keras as hvd
    from deepreduce_tf import DeepReduce

    hvd.init()
    keras.utils.set_random_seed(hvd.rank())
    model = keras.Sequential([keras.Input([8]), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01), compression=DeepReduce(min_size=16))
    model.compile(optimizer, loss="mse", jit_compile=False)
    rng = np.random.default_rng(hvd.rank())
    x = rng.standard_normal([64, 8]).astype("f")
    first = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    model.fit(x, x.sum(1), batch_size=16, epochs=2, verbose=0, callbacks=[first])
    if hvd.rank() == 0:
        model.save(f"{folder}/model.keras")
        model.export(f"{folder}/exported", verbose=False)
        tf.saved_model.save(model, f"{folder}/saved")
        x = np.ones([4, 8], "f")
        slots = {f"slot{i}": v.numpy() for i, v in enumerate(model.optimizer.variables)}
        np.savez(f"{folder}/expected.npz", x=x, y=model.predict(x, verbose=0), **slots)
"""

LOAD = """
    import sys

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in ("horovod", "horovod_ext", "deepreduce_tf"):
                raise ImportError(f"{name} cannot be imported here")

    sys.meta_path.insert(0, Blocked())
    import keras, numpy as np, tensorflow as tf

    expected = np.load(f"{folder}/expected.npz")
    x, y = expected["x"], expected["y"]
    model = keras.models.load_model(f"{folder}/model.keras")
    assert type(model.optimizer) is keras.optimizers.Adam, type(model.optimizer)
    slots = model.optimizer.variables
    assert len(slots) == sum(name.startswith("slot") for name in expected.files)
    for i, slot in enumerate(slots):
        np.testing.assert_array_equal(slot.numpy(), expected[f"slot{i}"])
    assert int(model.optimizer.iterations.numpy()) == 8
    np.testing.assert_allclose(model.predict(x, verbose=0), y, rtol=1e-5)
    exported = tf.saved_model.load(f"{folder}/exported")
    np.testing.assert_allclose(exported.serve(x), y, rtol=1e-5)
    saved = tf.saved_model.load(f"{folder}/saved")
    serve = saved.signatures["serving_default"]
    (argument,) = serve.structured_input_signature[1]
    (output,) = serve(**{argument: tf.constant(x)}).values()
    np.testing.assert_allclose(output, y, rtol=1e-5)
    model.fit(x, y, verbose=0)  # the plain optimizer goes on training
    assert not any(name.split(".")[0] in ("horovod", "horovod_ext", "deepreduce_tf") for name in sys.modules)
"""


def run(command, program, folder, **environment):
    source = f"folder = {str(folder)!r}\n" + textwrap.dedent(program)
    script = folder / "program.py"
    script.write_text(source)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "HOROVOD_STALL_CHECK_TIME_SECONDS": "5", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "20"}
    done = subprocess.run(
        [*command, str(script)],
        env={**os.environ, **quiet, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(500)
def test_saved_models_load_without_our_packages_and_keep_the_plain_optimizer_with_its_slots(tmp_path):
    horovodrun = os.path.join(os.path.dirname(sys.executable), "horovodrun")
    run([horovodrun, "-np", "2", "--gloo", sys.executable], TRAIN, tmp_path)
    run([sys.executable], LOAD, tmp_path)
