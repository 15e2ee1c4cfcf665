"""The rules fail with what was compared."""

import pytest

pytest.register_assert_rewrite("rules")
