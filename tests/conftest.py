"""Options, fixtures and pytest settings shared by every test."""

import atexit
import gc
import importlib
import os
import random
import shutil
import sys
import tempfile

import pytest
from hypothesis import settings

# NumPy's threads wait for one another by spinning: tests/linalg by two processes on two cores took 22 to 120 s, now 15.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy has not been imported yet; tinytorch has threads of its own

# Helpers (compare.py, optable/) are imported by their plain names from every folder below.
sys.path.insert(0, os.path.dirname(__file__))

EMULATED = pytest.StashKey[bool]()
# What a test may be skipped for where everything is installed (--complete): parts of reasons.
EXPECTED = (
    "needs a GPU",
    "needs two GPUs",
    "of a GPU's memory",
    "one device",
    "the device is emulated",
    "this test looks into the emulated device",
    "runs on the CPU alone",
    "does not do all of",
    "not an op of",
    "on this machine",
    "this machine has no",
    "half types differ",
    "a size",
    "could not import 'cupy'",
    "could not import 'timm'",
    "the page describes eager mode",
    "fused mode writes later",
    "only root can",
)


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="the device that runs the operator table (default: cpu)")
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")
    parser.addoption("--shuffle", metavar="SEED", type=int, help="run the tests in a random order, that of SEED")
    parser.addoption("--complete", action="store_true", help="fail what would be skipped since something is missing")
    parser.addoption("--fuse", action="store_true", help="run all tests in fused mode, as TINYTORCH_FUSE=1 does")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than ten seconds; runs only with --slow")
    if config.getoption("--fuse"):
        os.environ["TINYTORCH_FUSE"] = "1"  # tinytorch has not been imported yet
        os.environ["TINYTORCH_FUSE_WORTH"] = "0"  # small tensors are recorded, however often
    for name in ("TINYTORCH_CACHE_DIR", "TINYTORCH_EMULATOR_DIR"):  # the user's own kernels are left alone
        if not os.environ.get(name):  # one folder for all processes of pytest-xdist
            os.environ[name] = folder = tempfile.mkdtemp(prefix="tinytorch-tests-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after tinytorch's compiler has stopped
    if config.getoption("--device").startswith("cuda"):
        config.stash[EMULATED] = emulate_without_gpu()
    # Random programs are the same in every run, unless a seed is given; not hypothesis's own choice, made by $CI.
    settings.register_profile("tests", derandomize=config.getoption("hypothesis_seed", None) is None, database=None)
    settings.load_profile("tests")


def emulate_without_gpu() -> bool:
    """Puts the emulated device in the place of a GPU where there is none."""
    from gpu.emulator import machine
    from tinytorch.backends.cuda import runtime

    if runtime.device_count():
        return False
    machine().plug_in()
    return True


@pytest.fixture
def real_device(request):
    """The device of ``--device``, but no emulated one, for what would take minutes there."""
    if request.config.stash.get(EMULATED, False):
        pytest.skip("needs a GPU")
    return request.config.getoption("--device")


def pytest_report_header(config):
    device = config.getoption("--device")
    return [
        f"device: {device}" + (", emulated" if config.stash.get(EMULATED, False) else ""),
        "fused mode: " + ("off" if os.environ.get("TINYTORCH_FUSE", "0") in ("", "0") else "on"),
    ]


def demand(report, config) -> None:
    """Makes a skip a failure, if everything is to be there."""
    if report.outcome != "skipped" or not config.getoption("--complete") or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(part in reason for part in EXPECTED):
        report.outcome, report.longrepr = "failed", f"--complete: nothing may be missing. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    demand(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    demand(report, collector.config)
    return report


def pytest_collection_modifyitems(config, items):
    seed = config.getoption("--shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)  # the same order in every process of pytest-xdist
    if config.getoption("--slow") or "slow" in config.getoption("-m"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(scope="session")
def the_state():
    """state.py. It imports tinytorch, which must not be before pytest has read --fuse."""
    importlib.import_module("tinytorch").backends.cudnn.allow_tf32 = False  # results are compared with the CPU's
    return importlib.import_module("state")


@pytest.fixture(autouse=True)
def as_found(the_state):
    """Makes a test independent of those that ran before it, and fails it if it leaves the process changed.

    Cyclic garbage of theirs is freed here, and not while the test counts what is allocated. What is alive now is put
    aside, since it takes the collector a tenth of a second to look through PyTorch's objects."""
    gc.collect()
    gc.freeze()
    before = the_state.snapshot()
    the_state.seed()
    yield
    if changed := the_state.left_behind(before):
        pytest.fail(f"this test has left the process changed\n{changed}", pytrace=False)


@pytest.fixture(scope="session")
def device(request):
    """The device on which tinytorch's side of a comparison runs."""
    return request.config.getoption("--device")


@pytest.fixture(scope="session")
def torch():
    """PyTorch, the oracle; a test that asks for it is skipped where it is not installed."""
    return pytest.importorskip("torch")


@pytest.fixture
def no_gc():
    """The garbage collector is off during the test: only reference counting frees memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def nothing_overridden():
    """No class that an earlier test (or a test file) defined makes functions look at their arguments' types, and no
    autocast at modes."""
    from tinytorch.amp import autocast_mode
    from tinytorch.overrides import overridable

    overridable.remove()
    autocast_mode.remove()


@pytest.fixture
def idle(the_state):
    """No kernel of an earlier test is being compiled, or waits for that."""
    assert the_state.worker.wait(200)
