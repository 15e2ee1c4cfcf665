"""Here the mode is off until a test enters it, under --fuse and TINYTORCH_FUSE=1 too: eager mode is the oracle."""

import pytest

import tinytorch
from tinytorch.backends.cpu import lib


@pytest.fixture(autouse=True)
def eager():
    with tinytorch.config(fuse=0):
        while lib.tt_fuse_depth():
            assert lib.tt_fuse_leave() >= 0
        yield


@pytest.fixture
def interpreted():
    """No kernel is compiled, however often it runs."""
    with tinytorch.config(fuse_hot=-1):
        yield
