"""Here the mode is off until a test enters it, under --fuse and TINYTORCH_FUSE=1 too: eager mode is the oracle."""

import pytest


@pytest.fixture(scope="session")
def library():
    """tinytorch, which this file must not import while pytest has not read --fuse yet."""
    return pytest.importorskip("tinytorch")


@pytest.fixture(autouse=True)
def eager(library):
    with library.config(fuse=0, fuse_worth=0):  # small tensors are recorded, however often
        assert library.backends.cpu.lib.tt_fuse_depth() == 0
        yield


@pytest.fixture
def interpreted(library):
    """No kernel is compiled, however often it runs."""
    with library.config(fuse_hot=-1):
        yield
