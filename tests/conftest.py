"""Tests for two ranks run only where test_two_ranks.py has started two ranks."""

import os

collect_ignore = [] if "HOROVOD_RANK" in os.environ else ["two_ranks", "two_ranks_keras2"]


def pytest_collection_modifyitems(items):
    """Puts first the files that wait for programs of their own, so that all other tests run beside them."""
    files = ["test_two_ranks.py", "test_install.py", "test_models.py", "test_export.py"]
    items.sort(key=lambda item: files.index(item.path.name) if item.path.name in files else len(files))
