"""Devices, streams and events by torch's names, and what is said where there is no GPU."""

import subprocess
import sys
import threading

import pytest
import tinytorch as tt
from tinytorch import cuda


def run(code):
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_touches_no_gpu():
    code = "import sys, tinytorch; print('pycuda' in sys.modules, tinytorch.cuda.is_initialized(), "
    code += "tinytorch.cuda.memory_allocated(), tinytorch.cuda.memory_stats(), tinytorch.cuda.memory_snapshot())"
    assert run(code) == "False False 0 {} []"


def test_without_pycuda_it_says_what_to_install():
    code = """
import sys
sys.modules["pycuda"] = None
import tinytorch as tt
assert not tt.cuda.is_available() and tt.cuda.device_count() == 0
for use in (lambda: tt.ones(2, device="cuda"), tt.cuda.init, tt.cuda.Stream, lambda: tt.ones(2).cuda()):
    try:
        use()
    except RuntimeError as exc:
        print(exc)
"""
    lines = run(code).splitlines()
    assert len(lines) == 4 and all("PyCUDA" in line and "pip install 'tinytorch[cuda]'" in line for line in lines)


def test_a_wrong_index_is_refused(gpu):
    n = cuda.device_count()
    for use in (
        lambda: cuda.set_device(n),
        lambda: cuda.get_device_name(n),
        lambda: cuda.Stream(n),
        lambda: tt.ones(2, device=f"cuda:{n}"),
        lambda: cuda.synchronize(n),
        lambda: cuda.memory_allocated(n),
        lambda: cuda.memory_stats(f"cuda:{n}"),
        lambda: cuda.reset_peak_memory_stats(n),
    ):
        with pytest.raises(RuntimeError, match=f"invalid device ordinal {n}"):
            use()
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.set_device("cpu")


def test_what_is_no_cuda_device_is_refused(gpu):
    for use in (lambda: tt.ones(2).cuda("cpu"), lambda: tt.nn.Linear(2, 2).cuda(tt.device("cpu"))):
        with pytest.raises(RuntimeError, match="must be cuda device, but got cpu"):
            use()


def test_what_is_no_stream_is_refused(gpu):
    s, event, t = cuda.Stream(0), cuda.Event(), tt.ones(2, device="cuda:0")
    event.record(s)
    for name, use in {
        "stream": cuda.stream,
        "record": event.record,
        "wait": event.wait,
        "wait_stream": s.wait_stream,
        "record_stream": t.record_stream,
    }.items():
        with pytest.raises(TypeError, match=rf"{name}\(\): argument 'stream' must be Stream, not int"):
            use(3)


@pytest.mark.filterwarnings("error")
def test_events_for_several_processes():
    with pytest.raises(NotImplementedError, match="events for several processes"):
        cuda.Event(interprocess=True)


def test_types_by_name(gpu):
    t = tt.ones(2, device="cuda:0")
    assert t.type() == "tinytorch.cuda.FloatTensor" and t.cpu().type() == "tinytorch.FloatTensor"
    assert t.cpu().type("torch.cuda.LongTensor").type() == "tinytorch.cuda.LongTensor"
    assert t.type("torch.HalfTensor").device == tt.device("cpu") and t.type(tt.int64).is_cuda
    assert t.cpu().type_as(t).is_cuda and t.type_as(tt.ones(1, dtype=tt.int64)).type() == "tinytorch.LongTensor"


def test_the_current_device(gpu):
    if cuda.device_count() < 2:
        pytest.skip("one device")
    assert cuda.current_device() == 0
    with cuda.device(1):
        assert cuda.current_device() == 1 and tt.ones(2, device="cuda").device == tt.device("cuda:1")
        with cuda.device(None), cuda.device(-1):
            assert cuda.current_device() == 1
        with cuda.device_of(tt.ones(2, device="cuda:0")):
            assert cuda.current_device() == 0
        with cuda.device_of(tt.ones(2)):
            assert cuda.current_device() == 1
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.current_device()))
        thread.start()
        thread.join()
        assert seen == [0]
    assert cuda.current_device() == 0


def test_properties(gpu):
    p = cuda.get_device_properties(0)
    assert p.name == cuda.get_device_name("cuda:0") and (p.major, p.minor) == cuda.get_device_capability()
    assert p.total_memory > 0 and p.multi_processor_count > 0 and p.warp_size == 32 and p.name in repr(p)
    free, total = cuda.mem_get_info()
    assert 0 < free <= total


def test_streams_are_current_where_they_are_chosen(gpu):
    default = cuda.default_stream()
    assert cuda.current_stream() == default and default.cuda_stream == 0
    s, other = cuda.Stream(), cuda.Stream()
    assert len({s, other, default}) == 3 and s != other
    with cuda.stream(s):
        assert cuda.current_stream() == s
        with other:
            assert cuda.current_stream() == other
            with cuda.stream(None):
                assert cuda.current_stream() == other
        assert cuda.current_stream() == s
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.current_stream()))
        thread.start()
        thread.join()
        assert seen == [default]
    cuda.set_stream(s)
    assert cuda.current_stream() == s
    cuda.set_stream(default)
    assert cuda.current_stream() == default


def test_backwards_that_go_on_in_other_threads_take_the_stream_along(gpu):
    seen = set()

    class F(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, g):
            seen.add((cuda.current_stream().stream_id, threading.get_ident()))
            if ctx.depth:
                with tt.enable_grad():
                    F.apply(tt.ones((), device="cuda", requires_grad=True), ctx.depth - 1).backward()
            return g, None

    s = cuda.Stream()
    with cuda.stream(s):
        x = tt.ones((), device="cuda", requires_grad=True)
        F.apply(x, 130).backward()
    assert {stream for stream, _ in seen} == {s.stream_id} and len(seen) == 3
    assert x.grad.item() == 1


def test_streams_are_given_out_in_turn(gpu):
    assert len({cuda.Stream() for _ in range(100)}) == 32
    assert cuda.default_stream() not in {cuda.Stream() for _ in range(40)}


def test_priorities(gpu):
    least, greatest = cuda.Stream.priority_range()
    assert least == 0 > greatest  # as on all GPUs there are
    urgent, plain = cuda.Stream(priority=-1), cuda.Stream()
    assert (urgent.priority, plain.priority, cuda.default_stream().priority) == (-1, 0, 0)
    assert cuda.Stream(priority=5).priority == 0 and cuda.Stream(priority=-99).priority == max(greatest, -5)
    assert len({cuda.Stream(priority=-1) for _ in range(20)}) == 6 and plain not in {cuda.Stream(priority=-2)}
    with cuda.stream(urgent):
        a = tt.ones(1000, device="cuda") * 2
    urgent.synchronize()
    assert a.sum().item() == 2000


def test_work_on_streams_that_wait_for_each_other(gpu):
    s = cuda.Stream()
    a = tt.ones(1 << 20, device="cuda")
    s.wait_stream(cuda.current_stream())
    with cuda.stream(s):
        b = a * 2
        done = s.record_event()
    cuda.current_stream().wait_event(done)
    c = b + 1
    b.record_stream(cuda.current_stream())
    cuda.synchronize()
    assert s.query() and done.query() and bool((c.cpu() == 3).all())


def test_who_waits_for_whom(emulated):
    s = cuda.Stream()
    emulated.order.clear()
    s.wait_stream(cuda.default_stream())
    with s:
        event = cuda.Event()
        event.record()
    event.wait(cuda.default_stream())
    assert emulated.order == [(s._stream, None), (None, s._stream)]
    emulated.held.add(s.cuda_stream)
    assert not s.query() and not event.query() and cuda.default_stream().query()
    event.synchronize()
    assert s.query() and event.query()


def test_events(gpu):
    start, end, plain = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True), cuda.Event()
    assert start.query() and start.device is None and "uninitialized" in repr(start)
    start.synchronize()
    with pytest.raises(RuntimeError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    tt.ones(1 << 20, device="cuda") + 1
    end.record()
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        start.elapsed_time(plain)
    end.synchronize()
    assert end.query() and 0 < start.elapsed_time(end) < 60_000
    assert start.device == tt.device("cuda:0") and start.cuda_event != 0


def test_random_streams_are_the_cpus(gpu):
    tt.manual_seed(5)
    assert cuda.initial_seed() == tt.initial_seed() == 5
    assert bool((cuda.get_rng_state() == tt.get_rng_state()).all())
    cuda.manual_seed(7)
    assert (cuda.initial_seed(), tt.initial_seed()) == (7, 5)
    state = cuda.get_rng_state()
    cuda.manual_seed_all(9)
    assert cuda.initial_seed() == 9
    cuda.set_rng_state(state)
    assert cuda.initial_seed() == 7
    assert cuda.seed() == cuda.initial_seed()
    g = tt.Generator("cuda").manual_seed(3)
    assert g.device.type == "cuda"
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        tt.zeros(3).uniform_(generator=g)
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        tt.zeros(3, device="cuda").uniform_(generator=tt.Generator())
    tt.manual_seed(0)
