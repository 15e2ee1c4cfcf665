"""Fused mode beside streams, events, graphs and other libraries: Note [Fused mode and streams] in
backends/cuda/runtime.py."""

import pytest
import tinytorch as tt
from tinytorch import cuda


@pytest.fixture
def x(gpu):
    return tt.arange(6.0, device="cuda:0")


@pytest.fixture
def told(emulated, x, monkeypatch):
    """What streams were told, in order: the names of kernels, and "event"."""
    seen = []
    tell, record = emulated._tell, emulated.record

    def telling(stream, name, work):
        if name and not name.startswith("copy"):
            seen.append((stream, name))
        tell(stream, name, work)

    def recording(event, stream):
        seen.append((stream, "event"))
        record(event, stream)

    monkeypatch.setattr(emulated, "_tell", telling)
    monkeypatch.setattr(emulated, "record", recording)
    with tt.config(fuse_hot=-1), cuda.device(0):
        yield seen


def test_what_was_put_off_runs_on_the_stream_where_it_was_recorded(told, x):
    s = cuda.Stream()
    with tt.fuse():
        a = x * 2
        with s:
            b = x + 1
        c = x.exp()
    assert told == [(None, "mul_f32"), (s.cuda_stream, "add_f32"), (None, "exp_f32")]
    assert a.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0] and b.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert c.tolist() == x.cpu().exp().tolist()


def test_a_stream_may_be_left_by_an_exception(told, x):
    s = cuda.Stream()
    with tt.fuse(), pytest.raises(ZeroDivisionError), s:
        a = x + 1
        raise ZeroDivisionError
    assert told == [(s.cuda_stream, "add_f32")] and cuda.current_stream() != s and a.sum().item() == 21.0


@pytest.mark.parametrize(
    "look",
    [lambda: cuda.synchronize(0), lambda: cuda.current_stream(0).synchronize(), lambda: cuda.current_stream(0).query()],
)
def test_waiting_runs_what_was_put_off(told, x, look):
    with tt.fuse():
        a = x * 2
        look()
        assert told == [(None, "mul_f32")]
    assert a.sum().item() == 30.0


def test_events_come_after_what_was_put_off(told, x):
    s = cuda.Stream()
    with tt.fuse():
        a = x * 2
        cuda.Event().record()
        b = a + 1
        s.wait_stream(cuda.current_stream())
        assert told == [(None, "mul_f32"), (None, "event"), (None, "add_f32"), (None, "event")]
    assert b.sum().item() == 36.0


@pytest.mark.parametrize("give", [lambda t, s: t.__dlpack__(stream=s), lambda t, s: t.__cuda_array_interface__])
def test_other_libraries_get_what_was_put_off(told, x, give):
    s = cuda.Stream()
    with tt.fuse():
        a = x * 2
        taken = give(a, s.cuda_stream)  # noqa: F841
        assert told[0] == (None, "mul_f32") and len(told) <= 2  # the event, if any, comes later
        told.clear()
        a += 1  # they see it, too
        assert told == [(None, "add_f32")]
    assert a.sum().item() == 36.0


def test_a_replay_comes_after_what_was_put_off(gpu):
    given = tt.zeros(4, device="cuda:0")
    recorded = cuda.CUDAGraph()
    with cuda.graph(recorded):
        result = given * 2
    with tt.fuse():
        given.copy_(given + 1)
        recorded.replay()
        first = result + 0
        given.copy_(given + 1)
        recorded.replay()
        assert (first.tolist(), result.tolist()) == ([2.0] * 4, [4.0] * 4)
