"""The table, the Chrome trace, stacks and TensorBoard's file: what they say, and that they agree."""

import collections
import gzip
import json
import re

import pytest

import tinytorch as torch
from tinytorch import nn
from tinytorch.profiler import (
    Allocation,
    Event,
    EventList,
    Trace,
    nest,
    profile,
    record_function,
    tensorboard_trace_handler,
)


@pytest.fixture(scope="module")
def recorded():
    """A profile of three steps with everything in it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(5, 8), torch.randint(4, (5,))
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as p:
        for _ in range(3):
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.fuse():
                (x.exp() + 1).sum().item()
            p.step()
    return p


@pytest.fixture(scope="module")
def trace(recorded, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json.gz"
    recorded.export_chrome_trace(str(path))
    return json.loads(gzip.decompress(path.read_bytes()))


def made(*spans):
    """A profile of these spans (name, kind, start, end), in microseconds."""
    events = nest([Event(name, kind, start * 1000, end * 1000) for name, kind, start, end in spans])
    return EventList(events, Trace(events, start=0, end=10**9))


def test_exclusive_and_total_times():
    rows = {
        r.key: r
        for r in made(
            ("a", "op", 0, 10),
            ("b", "op", 2, 6),
            ("c", "op", 3, 4),
            ("b", "op", 20, 23),
            ("a", "op", 30, 40),
            ("a", "op", 31, 35),
        ).key_averages()
    }
    assert [rows[k].count for k in "abc"] == [3, 2, 1]
    assert [rows[k].self_cpu_time_total for k in "abc"] == [6 + 6 + 4, 3 + 3, 1]
    assert [rows[k].cpu_time_total for k in "abc"] == [20, 7, 1]  # what is within its own kind counts once
    assert rows["b"].cpu_time == 3.5


def test_device_time_is_counted_for_the_launcher_and_all_around_it():
    """For an operator within one of its own name once; for what is beside it not at all."""
    us = 1000
    calls = [
        Event("module", "module", 0, 100 * us),
        Event("op", "op", 10 * us, 50 * us),
        Event("op", "op", 11 * us, 40 * us),
        Event("launch", "runtime", 12 * us, 13 * us, correlation=1),
        Event("launch", "runtime", 20 * us, 21 * us, correlation=2),
        Event("other", "op", 60 * us, 70 * us),
        Event("launch", "runtime", 61 * us, 62 * us, correlation=3),
        Event("beside", "op", 110 * us, 120 * us),
        Event("lost", "op", 120 * us, 130 * us, correlation=9),
    ]
    kernels = [
        Event("k", "kernel", 30 * us, 37 * us, device="cuda:0", stream=0, correlation=1),
        Event("k", "kernel", 40 * us, 51 * us, device="cuda:0", stream=0, correlation=2),
        Event("copied", "copy", 200 * us, 213 * us, device="cuda:0", stream=0, correlation=3),
        Event("alone", "kernel", 300 * us, 317 * us, device="cuda:0", stream=0),
        Event("stray", "kernel", 320 * us, 339 * us, device="cuda:0", stream=0, correlation=77),
    ]
    nest(calls)
    events = EventList(calls + kernels, Trace(calls + kernels, start=0, end=10**9))
    rows = {r.key: r for r in events.key_averages()}
    total = {key: r.device_time_total for key, r in rows.items()}
    assert (total["module"], total["op"], total["other"]) == (7 + 11 + 13, 7 + 11, 13)
    assert (total["launch"], total["beside"], total["lost"]) == (7 + 11 + 13, 0, 0)
    assert (total["k"], total["copied"], total["alone"], total["stray"]) == (18, 13, 17, 19)
    own = {key: r.self_device_time_total for key, r in rows.items()}
    assert own == {**dict.fromkeys(total, 0), "k": 18, "copied": 13, "alone": 17, "stray": 19}
    assert events.self_device_time_total == 18 + 13 + 17 + 19
    assert rows["op"].device_time == 18 / 2 and rows["op"].cuda_time_total == 18
    assert events.self_cpu_time_total == 100 + 10 + 10 and rows["k"].self_cpu_time_total == 0
    lines = events.table().splitlines()
    assert "CUDA total" in lines[1] and lines[-1] == "Self CUDA time total: 67.000us"


def test_memory_of_an_event_and_of_what_is_inside():
    us = 1000
    spans = [("module", 0, 100), ("op", 10, 50), ("inner", 20, 30), ("later", 60, 70)]
    events = nest([Event(name, "op", start * us, end * us) for name, start, end in spans])
    events += [Event("op", "op", 10 * us, 50 * us, thread=1)]
    records = [
        Allocation(5 * us, 1, 1000, 0),
        Allocation(15 * us, 2, 200, 0),
        Allocation(25 * us, 3, 30, 0),
        Allocation(29 * us, 3, -30, 0),
        Allocation(28 * us, 4, 4, 0),
        Allocation(40 * us, 2, -200, 0),
        Allocation(55 * us, 5, 7000, 0),
        Allocation(65 * us, 1, -1000, 0),
        Allocation(25 * us, 6, 10**6, 0, thread=1),
        Allocation(25 * us, 7, 10**9, 0, device="cuda:0"),
        Allocation(25 * us, 8, 10**9, 0, thread=2),
        Allocation(500 * us, 9, 10**9, 0),
    ]
    rows = {r.key: r for r in EventList(events, Trace(events, records, start=0, end=10**9)).key_averages()}
    found = {key: (r.self_cpu_memory_usage, r.cpu_memory_usage) for key, r in rows.items()}
    assert found == {
        "module": (8000, 7004),
        "op": (0 + 10**6, 4 + 10**6),
        "inner": (4, 4),
        "later": (-1000, -1000),
    }


def test_memory_of_operators(recorded):
    """What an operator's result takes is its own; a module around it took it too, but not by itself."""
    with profile(profile_memory=True) as p:
        x = torch.ones(1000)
        with record_function("around"):
            y = x.exp()
        del y
    rows = {r.key: r for r in p.key_averages()}
    taken = 4 * 1000
    assert rows["exp"].self_cpu_memory_usage == rows["exp"].cpu_memory_usage >= taken
    assert rows["around"].self_cpu_memory_usage == 0 and rows["around"].cpu_memory_usage >= taken
    assert "Self CPU Mem" in p.key_averages().table(sort_by="self_cpu_memory_usage").splitlines()[1]


def test_events_that_cross_are_not_nested():
    events = list(made(("whole", "step", 0, 100), ("a", "user", 0, 10), ("b", "user", 5, 15), ("c", "op", 6, 8)))
    by_name = {e.name: e for e in events}
    assert by_name["b"].parent.name == "whole" and by_name["c"].parent.name == "b"


def test_rows_sum_to_the_total(recorded):
    rows = recorded.key_averages()
    cpu = [r for r in rows if not r.is_device]
    assert sum(r.self_cpu_time_total for r in cpu) == pytest.approx(rows.self_cpu_time_total)
    assert rows.total_average().count == len(recorded.events())
    assert rows.total_average().self_cpu_time_total == pytest.approx(rows.self_cpu_time_total)


def test_the_table_has_pytorchs_columns(recorded):
    text = recorded.key_averages().table(sort_by="self_cpu_time_total", row_limit=5)
    lines = text.splitlines()
    titles = re.split(r" {2,}", lines[1].strip())
    assert titles[:6] == ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    assert {"CPU Mem", "Self CPU Mem", "# of Calls", "Bytes", "GB/s", "GFLOP/s"} <= set(titles)
    assert len(lines) == 3 + 5 + 2 and lines[-1].startswith("Self CPU time total: ")
    assert max(len(line) for line in lines) == len(lines[0])
    selfs = [r.self_cpu_time_total for r in recorded.key_averages()]
    first = sorted(recorded.key_averages(), key=lambda r: -r.self_cpu_time_total)[0]
    assert first.self_cpu_time_total == max(selfs) and first.key in lines[3]


def test_the_tables_columns_are_those_of_pytorch_itself(recorded):
    peer = pytest.importorskip("torch.profiler")
    tensor = pytest.importorskip("torch").ones(3)
    with peer.profile(activities=[peer.ProfilerActivity.CPU], profile_memory=True) as p:
        tensor.exp()
    theirs = re.split(r" {2,}", p.key_averages().table().splitlines()[1].strip())
    ours = re.split(r" {2,}", recorded.key_averages().table().splitlines()[1].strip())
    assert [t for t in ours if t in theirs] == theirs


def test_grouping(recorded):
    plain = {r.key: r for r in recorded.key_averages()}
    shaped = [r for r in recorded.key_averages(group_by_input_shape=True) if r.key == "linear"]
    assert plain["linear"].count == 6 and len(shaped) == 2 and all(r.count == 3 for r in shaped)
    assert {r.input_shapes[0] for r in shaped} == {(5, 8), (5, 16)}
    stacks = [r for r in recorded.key_averages(group_by_stack_n=1) if r.key == "linear"]
    assert all(len(r.stack) == 1 and __file__ in r.stack[0] for r in stacks)
    assert "Input Shapes" in recorded.key_averages(group_by_input_shape=True).table()
    assert "Source Location" in recorded.key_averages(group_by_stack_n=2).table()


def test_bad_tables_are_refused(recorded):
    with pytest.raises(AttributeError, match="cannot sort by 'speed'"):
        recorded.key_averages().table(sort_by="speed")
    with pytest.raises(ValueError, match="time_unit"):
        recorded.key_averages().table(time_unit="h")
    assert EventList().table() == ""
    assert "0.0" in recorded.key_averages().table(time_unit="s")
    assert recorded.events().table(top_level_events_only=True, header="Top")


def test_the_trace_obeys_its_format(trace):
    assert trace["schemaVersion"] == 1 and trace["record_shapes"] == 1
    allowed = {
        "M": {"name", "args"},
        "X": {"name", "cat", "ts", "dur"},
        "s": {"id", "cat", "ts"},
        "f": {"id", "cat", "ts", "bp"},
        "i": {"name", "s", "ts"},
        "C": {"name", "ts", "args"},
    }
    for e in trace["traceEvents"]:
        assert allowed[e["ph"]] <= set(e) and {"pid", "tid"} <= set(e)
        assert e.get("dur", 0) >= 0
        if e["ph"] == "C":
            assert all(isinstance(v, (int, float)) for v in e["args"].values())


def test_spans_of_a_thread_nest(trace):
    by_thread = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "X" and e["cat"] != "Trace":
            by_thread[e["pid"], e["tid"]].append((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)))
    for spans in by_thread.values():
        ends = []
        for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or end <= ends[-1]
            ends.append(end)


def test_flows_go_from_operators_to_derivatives(trace):
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    at = {(e["tid"], e["ts"]): e for e in reversed(spans)}
    starts = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    pairs = [
        (at[s["tid"], s["ts"]]["name"], at[ends[k]["tid"], ends[k]["ts"]]["name"])
        for k, s in starts.items()
        if s["cat"] == "fwdbwd"
    ]
    assert collections.Counter(pairs) == {
        ("linear", "LinearBackward0"): 6,
        ("relu", "ReluBackward0"): 3,
        ("cross_entropy", "CrossEntropyBackward0"): 3,
    }
    assert all(ends[k]["ts"] >= s["ts"] and ends[k]["bp"] == "e" for k, s in starts.items())


def test_threads_have_names(trace):
    named = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {e["tid"] for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"} <= set(named)
    assert any(n.startswith("MainThread") for n in named.values())


def test_memory_is_a_counter(trace, recorded):
    counts = [e["args"]["bytes"] for e in trace["traceEvents"] if e["ph"] == "C" and e["name"] == "memory of cpu"]
    assert counts == [a.total for a in recorded.trace.allocations if a.device == "cpu"] and counts


def test_the_traces_totals_agree_with_the_table(trace, recorded):
    spans = collections.defaultdict(lambda: [0, 0.0])
    for e in trace["traceEvents"]:
        if e["ph"] == "X" and e["cat"] == "cpu_op":
            spans[e["name"]][0] += 1
            spans[e["name"]][1] += e["dur"]
    rows = {r.key: r for r in recorded.key_averages() if r.kind in ("op", "backward", "program")}
    assert len(rows) > 10
    for name, row in rows.items():
        assert spans[name][0] == row.count
        assert spans[name][1] == pytest.approx(row.cpu_time_total, rel=1e-6)


def test_shapes_stacks_and_sequences_are_in_the_trace(trace):
    linear = next(e for e in trace["traceEvents"] if e["name"] == "linear")
    assert linear["args"]["Input Dims"] == [[5, 8], [16, 8], [16]]
    assert linear["args"]["Input type"] == ["float"] * 3
    assert __file__ in linear["args"]["Call stack"] and linear["args"]["Sequence number"] > 0


def test_without_record_shapes_there_are_none(tmp_path):
    with profile() as p:
        torch.ones(3).exp()
    p.export_chrome_trace(str(tmp_path / "t.json"))
    assert "Input Dims" not in (tmp_path / "t.json").read_text()


def test_metadata(tmp_path):
    with profile() as p:
        torch.ones(3)
        p.add_metadata("model", "small")
        p.add_metadata_json("layers", "[1, 2]")
    p.export_chrome_trace(str(tmp_path / "t.json"))
    trace = json.loads((tmp_path / "t.json").read_text())
    assert trace["model"] == "small" and trace["layers"] == [1, 2]


def test_stacks(recorded, tmp_path):
    recorded.export_stacks(str(tmp_path / "stacks.txt"))
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines and all(re.fullmatch(r"\S+ \d+", line) for line in lines)
    assert any(line.rpartition(" ")[0].endswith(";linear") for line in lines)
    with pytest.raises(ValueError, match="metric"):
        recorded.export_stacks(str(tmp_path / "stacks.txt"), "self_xpu_time_total")
    with profile() as p:
        pass
    with pytest.raises(ValueError, match="with_stack"):
        p.export_stacks(str(tmp_path / "stacks.txt"))


@pytest.mark.parametrize("gzipped", [False, True])
def test_tensorboards_reader_reads_it(tmp_path, gzipped):
    data = pytest.importorskip("torch_tb_profiler.profiler.data")
    pattern = pytest.importorskip("torch_tb_profiler.consts").WORKER_PATTERN
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    x = torch.randn(32, 64)
    handler = tensorboard_trace_handler(str(tmp_path / "log"), "me", use_gzip=gzipped)
    with profile(
        on_trace_ready=handler,
        record_shapes=True,
        with_stack=True,
        profile_memory=True,
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=3),
    ) as p:
        for _ in range(4):
            model(x).sum().backward()
            with torch.fuse():
                (x.exp() + 1).sum().item()
            p.step()
    (path,) = (tmp_path / "log").iterdir()
    match = pattern.match(path.name)
    assert match.group(1) == "me" and match.group(2)
    run = data.RunProfileData.parse("me", match.group(2)[1:], str(path), str(tmp_path))
    assert run.steps_names == ["1", "2", "3"]
    ours = [e.duration / 1000 for e in p.events() if e.kind == "step"]
    theirs = [cost.costs[-1] for cost in run.steps_costs]
    assert theirs == pytest.approx(ours, rel=0.01, abs=2)
    counts = {op.name: op.calls for op in run.op_list_groupby_name}
    rows = {r.key: r.count for r in p.key_averages() if r.kind in ("op", "backward", "program", "kernel")}
    assert {"linear", "relu", "sum", "LinearBackward0", "exp_add_sum"} <= set(rows)
    for name in rows:
        assert counts[name] == rows[name]
    shaped = {(op.name, op.input_shape) for op in run.op_list_groupby_name_input}
    assert ("linear", "[[32, 64], [64, 64], [64]]") in shaped
    assert run.memory_snapshot is not None
