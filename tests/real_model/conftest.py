"""A real model needs a program that takes minutes to build: `make test-model` builds it and says
where it is. Only that target collects these tests."""

import os

PYTHON_VARIABLE = "SPAWNLOG_TEST_MODEL_PYTHON"
collect_ignore_glob = [] if os.environ.get(PYTHON_VARIABLE) else ["test_*.py"]
