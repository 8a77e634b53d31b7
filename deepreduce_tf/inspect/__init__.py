"""What pairs of codecs make of saved gradients: `python -m deepreduce_tf inspect`. Stages only: nothing here exchanges or needs Horovod."""
