"""Out of memory at every allocation of the library: OutOfMemoryError, nothing is lost, and the next run is right."""

import platform
import shutil

import pytest

from fuzz import allocations
from fuzz.steps import STEPS

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not shutil.which("cc"), reason="wants glibc and a C compiler"
)


def check(step, **how):
    """One allocation after the other fails; how often each exception came."""
    told = allocations.run(step, **how)
    assert "died" not in told, told
    assert told["wrong"] == told["unraisable"] == []
    assert told["raised"].keys() <= {"", "OutOfMemoryError", "MemoryError"}
    return told


@pytest.mark.parametrize("step", STEPS)
def test_an_allocation_fails(step):
    """It is asked for again, once the cache is empty; where it is not, the step fails."""
    told = check(step, every=9)
    assert told["allocations"] > 40 and told["raised"].keys() >= {"OutOfMemoryError", ""}


def test_no_more_memory():
    assert check("train", every=12, times=0)["raised"].keys() == {"OutOfMemoryError"}


def test_no_other_way():
    """An operator that has no memory for its result, asked for twice, does not compute it in another way: that would
    round otherwise."""
    assert check("plain", times=2)["raised"].keys() == {"OutOfMemoryError"}


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 0])
@pytest.mark.parametrize("step", STEPS)
def test_every_allocation_fails(step, times):
    check(step, times=times)
