"""What replaces functions of Horovod and Keras: one file for each, named after what it replaces.

Patches import the modules of `horovod_ext`; these never import a patch.
"""

from horovod_ext.patches import (
    allreduce,
    broadcast_global_variables_hook,
    broadcast_variables,
    create_distributed_optimizer,
    distributed_optimizer,
    gradient_tape,
    keras_callbacks,
    load_model,
    loss_scale_optimizer,
    make_allreduce_grads_fn,
    resolve_auto_jit_compile,
)


def install() -> None:
    """Replaces all of it, once.

    Raises:
        ImportError: if the installed Horovod or Keras lacks what is to be replaced.
    """
    for patch in (
        make_allreduce_grads_fn,  # what optimizers and tapes reduce their gradients with
        gradient_tape,
        create_distributed_optimizer,
        distributed_optimizer,
        load_model,
        loss_scale_optimizer,
        resolve_auto_jit_compile,
        allreduce,  # and grouped_allreduce, reducescatter, grouped_reducescatter
        broadcast_variables,
        broadcast_global_variables_hook,
        keras_callbacks,
    ):
        patch.install()
