"""When a profiler collects, and what becomes of a trace when something goes wrong."""

import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest

import tinytorch as torch
from tinytorch.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def work():
    return torch.ones(3).exp()


def named(p, kind="op"):
    return [e.name for e in p.events() if e.kind == kind]


ARGUMENTS = [
    {"wait": 1, "warmup": 1, "active": 2},
    {"wait": 0, "warmup": 0, "active": 1, "repeat": 2},
    {"wait": 2, "warmup": 0, "active": 3, "repeat": 1, "skip_first": 3},
    {"wait": 3, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1},
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_schedules_are_pytorchs(arguments):
    peer = pytest.importorskip("torch.profiler").schedule(**arguments)
    ours = schedule(**arguments)
    assert [ours(k).name for k in range(30)] == [peer(k).name for k in range(30)]


def test_bad_schedules_are_refused():
    for bad in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}):
        with pytest.raises(ValueError, match="schedule"):
            schedule(**bad)
    with pytest.raises(ValueError, match="step"):
        schedule(wait=0, warmup=0, active=1)(-1)


def test_a_schedule_decides_what_is_recorded():
    traces = []

    def ready(p):
        traces.append([e.name for e in p.events() if e.kind in ("step", "user")])

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as p:
        for k in range(10):
            with record_function(f"iteration {k}"):
                work()
            p.step()
    assert traces == [
        ["ProfilerStep#2", "iteration 2", "ProfilerStep#3", "iteration 3"],
        ["ProfilerStep#6", "iteration 6", "ProfilerStep#7", "iteration 7"],
    ]


def test_between_cycles_nothing_is_wrapped():
    code = torch.exp.__code__
    method = torch.Tensor.exp.__code__
    seen = []
    with profile(schedule=schedule(wait=1, warmup=0, active=1)) as p:
        for _ in range(4):
            seen.append(torch.Tensor.exp.__code__ is method)
            work()
            p.step()
    assert seen == [True, False, True, False]
    assert torch.exp.__code__ is code


def test_events_of_cycles_accumulate_if_asked():
    def run(acc_events):
        with profile(schedule=schedule(wait=0, warmup=0, active=1), acc_events=acc_events) as p:
            for _ in range(3):
                work()
                p.step()
        return named(p, "step")

    assert run(True) == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    assert run(False) == ["ProfilerStep#2"]


def test_steps_without_a_schedule():
    with profile() as p:
        for _ in range(3):
            work()
            p.step()
    assert named(p, "step") == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    steps = [e for e in p.events() if e.kind == "step"]
    assert all([c.name for c in s.children] == ["ones", "exp"] for s in steps)


def test_a_schedule_that_breaks_off_is_told_of():
    actions = iter([ProfilerAction.RECORD, *[ProfilerAction.NONE] * 5])
    with profile(schedule=lambda step: next(actions)) as p:
        work()
        with pytest.warns(RuntimeWarning, match="Incorrect schedule"):
            p.step()
        work()
    assert named(p) == ["ones", "exp"]


def test_nested_profilers_are_refused_and_the_outer_one_goes_on():
    with profile() as outer:
        torch.ones(3)
        with (
            pytest.raises(RuntimeError, match=r"another profiler is open.*test_session.py:\d+.*record_function"),
            profile(),
        ):
            pass
        with pytest.raises(RuntimeError, match="open already"):
            outer.start()
        torch.zeros(3)
    assert named(outer) == ["ones", "zeros"]


def test_a_second_profiler_in_another_thread_is_refused():
    errors = []

    def try_it():
        try:
            profile().start()
        except RuntimeError as exc:
            errors.append(str(exc))

    with profile():
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert len(errors) == 1 and "MainThread" in errors[0]


def test_the_same_profiler_may_be_opened_again():
    p = profile()
    for name in ("ones", "zeros"):
        with p:
            getattr(torch, name)(3)
        assert named(p) == [name]
    p.stop()  # it is not open: nothing happens


def test_step_of_a_closed_profiler():
    with pytest.raises(RuntimeError, match="not open"):
        profile().step()


def test_bad_arguments():
    with pytest.raises(TypeError, match="activities"):
        profile(activities=["cpu"])
    with pytest.raises(ValueError, match="activities"):
        profile(activities=[])
    with pytest.raises(TypeError, match="name"):
        record_function(3)


def test_an_exception_ends_the_trace_and_keeps_it():
    ready = []
    with pytest.raises(KeyError), profile(on_trace_ready=ready.append) as p, record_function("broken"):
        work()
        raise KeyError("x")
    assert ready == [p] and named(p) == ["ones", "exp"] and named(p, "user") == ["broken"]


def test_a_handler_that_fails_loses_nothing():
    def fails(p):
        raise OSError("no")

    with pytest.raises(OSError, match="no"), profile(on_trace_ready=fails) as p:
        work()
    assert named(p) == ["ones", "exp"]
    with profile():
        pass  # the first one is closed


def test_a_handler_that_fails_between_cycles_leaves_the_profiler_usable():
    calls = []

    def fails_once(p):
        calls.append(named(p))
        if len(calls) == 1:
            raise OSError("no")

    with profile(schedule=schedule(wait=0, warmup=0, active=1), on_trace_ready=fails_once) as p:
        work()
        with pytest.raises(OSError):
            p.step()
        torch.zeros(3)
        p.step()
    assert calls == [["ones", "exp"], ["zeros"]]


def test_a_scope_that_ends_after_the_profiler_is_in_the_trace():
    p = profile()
    p.start()
    scope = record_function("long")
    with scope:
        work()
        p.stop()
    (event,) = [e for e in p.events() if e.kind == "user"]
    assert event.name == "long" and [c.name for c in event.children] == ["ones", "exp"]


def test_a_scope_that_began_before_the_profiler_begins_with_it():
    with record_function("long"):
        p = profile()
        p.start()
        work()
    p.stop()
    (event,) = [e for e in p.events() if e.kind == "user"]
    assert event.start == p.trace.start


def test_record_function_as_a_decorator_and_with_arguments():
    @record_function("twice", "of 3")
    def fn():
        return work()

    with profile() as p:
        fn()
        fn()
    assert [e.extra for e in p.events() if e.name == "twice"] == [{"args": "of 3"}] * 2


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_path_that_cannot_be_written(tmp_path, name):
    with profile(with_stack=True) as p:
        work()
    (tmp_path / "file").write_text("")
    where = tmp_path / "file" / name  # below a file: not even the superuser can
    with pytest.raises(OSError, match="the trace is still there") as error:
        p.export_chrome_trace(str(where))
    assert error.value.filename == str(where)
    with pytest.raises(OSError, match="the trace is still there"):
        p.export_stacks(str(where))
    p.export_chrome_trace(str(tmp_path / name))
    assert (tmp_path / name).stat().st_size > 100


def test_tensorboards_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "file" / "logs"))
    with pytest.raises(RuntimeError, match="Can't create directory"), profile(on_trace_ready=handler) as p:
        work()
    assert named(p) == ["ones", "exp"]


def run(code, tmp_path, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), **environment},
        timeout=600,
    )


def test_a_profiler_left_open_at_exit_writes_a_file(tmp_path):
    done = run(
        """
        import tinytorch as torch
        p = torch.profiler.profile()
        p.start()
        torch.ones(3).exp()
    """,
        tmp_path,
    )
    assert done.returncode == 0 and "left open at exit" in done.stderr, done.stderr
    (path,) = tmp_path.glob("tinytorch-profile-*.json")
    assert str(path) in done.stderr
    names = [e["name"] for e in json.loads(path.read_text())["traceEvents"]]
    assert "ones" in names and "exp" in names


def test_a_profiler_left_open_at_exit_calls_its_handler(tmp_path):
    done = run(
        """
        import sys, tinytorch as torch
        def ready(p):
            p.export_chrome_trace(sys.argv[1] if len(sys.argv) > 1 else "/proc/nowhere/x")
        p = torch.profiler.profile(on_trace_ready=ready)
        p.start()
        torch.ones(3).exp()
        raise SystemExit(3)
    """,
        tmp_path,
    )
    assert done.returncode == 3 and "cannot write" in done.stderr, done.stderr
    assert len(list(tmp_path.glob("tinytorch-profile-*.json"))) == 1  # the handler failed: the trace is kept


def test_a_forked_child_has_no_profiler(tmp_path):
    done = run(
        """
        import os, tinytorch as torch
        code = torch.Tensor.exp.__code__
        with torch.profiler.profile() as p:
            torch.ones(3)
            pid = os.fork()
            if pid == 0:
                torch.zeros(3)
                ok = torch.Tensor.exp.__code__ is code
                with torch.profiler.profile() as own:
                    torch.full((3,), 1.0)
                os._exit(0 if ok and [e.name for e in own.events()] == ["full"] else 1)
            status = os.waitpid(pid, 0)[1]
            torch.empty(3)
        print(status, [e.name for e in p.events()])
    """,
        tmp_path,
    )
    assert done.stdout.strip() == "0 ['ones', 'empty']", done.stderr


def test_importing_tinytorch_does_not_import_the_profiler(tmp_path):
    done = run(
        "import sys, tinytorch; print('tinytorch.profiler' in sys.modules); tinytorch.profiler.profile", tmp_path
    )
    assert done.stdout.strip() == "False" and done.returncode == 0, done.stderr


def test_cuda_alone_or_with_the_cpu_is_an_activity():
    assert ProfilerActivity.CPU in torch.profiler.supported_activities()
    with profile(activities=[ProfilerActivity.CPU]) as p:
        work()
    assert named(p) == ["ones", "exp"]
