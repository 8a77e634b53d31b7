"""Tests for two ranks run only where test_two_ranks.py has started two ranks."""

import os

collect_ignore = [] if "HOROVOD_RANK" in os.environ else ["two_ranks", "two_ranks_keras2"]
