"""The timeline of CUDA devices, through CUPTI: a fake one, where there is no GPU."""

import pathlib
import re
import shutil
import subprocess
import threading
import time

import pytest
import tinytorch as tt
from gpu.conftest import emulated, gpu  # noqa: F401
from tinytorch import profiler
from tinytorch.backends.cuda import runtime
from tinytorch.profiler import cupti, launches
from tinytorch.profiler.events import nest

FAKE = pathlib.Path(__file__).with_name("fake_cupti.cpp")
CONTROLS = """
    void fake_refuse(int); void fake_incomplete(int); void fake_copies(int); void fake_waits(int);
    void fake_name(const char *); uint64_t fake_enabled(void); extern uint64_t fake_origin;
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not shutil.which("g++"):
        pytest.skip("no C++ compiler for the fake CUPTI")
    path = tmp_path_factory.mktemp("cupti") / "libcupti.so"
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", str(FAKE), "-o", str(path)], check=True
    )
    found = cupti._Library()
    found.ffi.cdef(CONTROLS)
    found._lib = found.ffi.dlopen(str(path))
    return found


@pytest.fixture
def fake(library, emulated):  # noqa: F811
    yield library
    library.lib.fake_refuse(-1)
    for control in (library.lib.fake_incomplete, library.lib.fake_copies, library.lib.fake_waits):
        control(0)


def collect(fake, work):
    found = cupti.Cupti(fake)
    start = time.perf_counter_ns()
    found.start()
    work()
    events, figures = found.stop()
    return nest(events), figures, (start, time.perf_counter_ns())


def add_some():
    a = tt.ones(8, device="cuda")
    return (a + a).exp()


def test_kernels_have_the_launchs_name_stream_and_correlation(fake):
    events, figures, (start, end) = collect(fake, add_some)
    kernels = [e for e in events if e.kind == "kernel"]
    assert [k.name for k in kernels][-2:] == ["add_f32", "exp_f32"]
    calls = {e.correlation: e for e in events if e.kind == "runtime"}
    for kernel in kernels:
        assert kernel.device == "cuda:0" and kernel.stream == 0
        assert kernel.extra == {"grid": (11, 2, 1), "block": (128, 1, 1), "shared memory": 1040}
        call = calls[kernel.correlation]
        assert call.name == "cuLaunchKernel" and call.thread == threading.get_native_id() and call.device == "cpu"
        assert start < call.start < call.end < kernel.start < kernel.end < end + 1e6
        assert 4000 < kernel.duration < 6000
    assert figures["timeline"] == "cupti 130000" and figures["dropped"] == 0
    assert figures["overhead"] == {"buffer flush": 70 * len(kernels)}
    assert fake.lib.fake_enabled() == 0


def test_correlations_of_threads_do_not_mix(fake):
    seen = []

    def work():
        def run():
            seen.append(threading.get_native_id())
            add_some()

        for _ in range(2):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()

    events, _, _ = collect(fake, work)
    assert {e.thread for e in events if e.kind == "runtime"} == set(seen)
    assert len({e.correlation for e in events if e.kind == "kernel"}) == len([e for e in events if e.kind == "kernel"])


def test_copies(fake):
    fake.lib.fake_copies(1)
    events, _, _ = collect(fake, lambda: tt.ones(8).cuda())
    copies = [e for e in events if e.kind == "copy"]
    assert copies and {(c.name, c.bytes, c.stream) for c in copies} == {("Memcpy HtoD", 4096, 0)}


def test_calls_that_wait_are_shown_without_work_of_a_device(fake):
    fake.lib.fake_waits(1)
    events, _, _ = collect(fake, add_some)
    waits = [e for e in events if e.correlation is None]
    assert {(w.kind, w.name) for w in waits} == {("runtime", "cuStreamSynchronize")}


def test_the_profilers_own_wait_is_no_event(fake, emulated, monkeypatch):  # noqa: F811
    enabled = []
    monkeypatch.setattr(emulated, "synchronize", lambda device: enabled.append(fake.lib.fake_enabled()))
    collect(fake, add_some)
    for kinds in enabled:
        assert kinds >> cupti.KERNEL & 1 and not kinds >> cupti.DRIVER & 1 and not kinds >> cupti.RUNTIME & 1
    assert enabled and fake.lib.fake_enabled() == 0


def test_records_without_times_are_counted(fake):
    fake.lib.fake_incomplete(1)
    events, figures, _ = collect(fake, add_some)
    assert not [e for e in events if e.kind == "kernel"] and figures["dropped"] > 0


def test_many_records_fill_many_buffers(fake):
    def work():
        for _ in range(16000):  # 350 bytes each
            push(3, 7)
            pop(3, fake.ffi.NULL)

    push, pop = fake.lib.cuptiActivityPushExternalCorrelationId, fake.lib.cuptiActivityPopExternalCorrelationId
    events, figures, _ = collect(fake, work)
    assert len([e for e in events if e.kind == "kernel"]) == 16000 and figures["dropped"] == 0


def test_names_of_others_are_kept_and_demangled(fake):
    name = fake.ffi.new("char[]", b"_ZN3foo3barEi")
    fake.lib.fake_name(name)
    try:
        events, _, _ = collect(fake, add_some)
    finally:
        own = fake.ffi.new("char[]", b"tt_kernel")
        fake.lib.fake_name(own)
        fake._kept = own
    assert {e.name for e in events if e.kind == "kernel"} <= {"foo::bar(int)", "_ZN3foo3barEi"}
    assert cupti.demangled("tt_kernel") == "tt_kernel" and cupti.demangled("_Z!") == "_Z!"


def test_a_refusal_leaves_nothing_enabled_and_is_told(fake, monkeypatch):
    fake.lib.fake_refuse(cupti.OVERHEAD)
    with pytest.raises(cupti.Failure, match=r"not allowed when calling `cuptiActivityEnable`"):
        cupti.Cupti(fake).start()
    assert fake.lib.fake_enabled() == 0
    monkeypatch.setattr(cupti, "_library", fake)
    profile_without_devices("CUPTI error: .*not allowed when calling `cuptiActivityEnable`")


def test_without_cupti_a_profile_has_the_rest(emulated, monkeypatch):  # noqa: F811
    missing = cupti._Library()
    missing.name = "no_such_cupti"
    monkeypatch.setattr(cupti, "_library", missing)
    profile_without_devices(r"libno_such_cupti\.so was not found\. Install its wheel \(pip install 'tinytorch\[cuda\]'")


def profile_without_devices(why):
    match = f"the profile will not show what CUDA devices do: .*{why}"
    with pytest.warns(RuntimeWarning, match=match) as told, profiler.profile() as p:
        add_some()
    assert told[0].filename == __file__
    assert "exp" in {e.name for e in p.events()} and {e.device for e in p.events()} == {"cpu"}
    assert re.search(why, p.trace.metadata["devices"]["error"])


def test_nothing_is_recorded_before_and_after(fake):
    before = runtime.WORK["tt_cuda_launch"]
    run = runtime.Capture.run
    noted = []
    with launches.recording(noted, lambda *_: None, lambda _: None):
        add_some()
        assert runtime.Capture.run is not run
    count = len(noted)
    add_some()
    assert count and len(noted) == count
    assert runtime.WORK["tt_cuda_launch"] is before and runtime.Capture.run is run


def test_a_launch_that_fails_is_still_noted_and_raises(emulated, monkeypatch):  # noqa: F811
    noted = []
    a = tt.ones(8, device="cuda")

    def fail(*_):
        raise RuntimeError("CUDA error: no such kernel")

    monkeypatch.setitem(runtime._devices[0].loaded[False].functions, _key_of(lambda: a * 3), fail)
    with (
        launches.recording(noted, lambda *_: None, lambda _: None),
        pytest.raises(RuntimeError, match="no such kernel"),
    ):
        a * 3
    assert noted[-1].name == "mul_f32"


def _key_of(work):
    noted = []
    with launches.recording(noted, lambda *_: None, lambda _: None):
        work()
    return noted[-1].what


def test_the_clock_is_mapped_by_two_points():
    clock = cupti.Clock((1000, 50), (3000, 2050 + 20))
    assert clock(1000) == 50 and clock(3000) == 2070 and clock(2000) == 1060
    assert cupti.Clock((1000, 50), (1000, 50))(1010) == 60


def test_without_devices_nothing_is_asked_or_told(monkeypatch):
    monkeypatch.setattr(runtime, "device_count", lambda: 0)
    with profiler.profile() as p:
        tt.ones(3).exp()
    assert "devices" not in p.trace.metadata


def test_in_a_forked_process_nothing_is_asked_or_told(fake, emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(cupti, "_library", fake)
    monkeypatch.setattr(emulated, "is_inherited", lambda: True)
    with profiler.profile() as p:
        assert fake.lib.fake_enabled() == 0
    assert "devices" not in p.trace.metadata


def test_a_device_that_fails_at_the_end_loses_only_its_own_events(fake, emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(cupti, "_library", fake)
    with profiler.profile() as p:
        tt.ones(3).exp()
        add_some()
        monkeypatch.setattr(emulated, "synchronize", _raise)
    monkeypatch.undo()
    assert "exp" in {e.name for e in p.events()} and not [e for e in p.events() if e.device != "cpu"]
    assert p.trace.metadata["devices"]["error"] == "CUDA error: it broke"


def _raise(*_):
    raise RuntimeError("CUDA error: it broke")


def test_kernels_in_a_profile_belong_to_their_operators(fake, monkeypatch):
    monkeypatch.setattr(cupti, "_library", fake)
    a = tt.ones(8, device="cuda")
    with profiler.profile() as p:
        (a + a).exp()
    events = p.events()
    kernels = {e.name: e for e in events if e.device == "cuda:0"}
    assert set(kernels) == {"add_f32", "exp_f32"}
    for name, kernel in kernels.items():
        [call] = [e for e in events if e.kind == "runtime" and e.correlation == kernel.correlation]
        assert call.parent.kind == "op" and call.parent.name == name.partition("_")[0]
        assert (kernel.bytes, kernel.flops) == (call.parent.bytes, call.parent.flops) != (None, None)
    assert p.trace.metadata["devices"]["timeline"].startswith("cupti")
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as p:
        a + a
    assert not [e for e in p.events() if e.device != "cpu"]
