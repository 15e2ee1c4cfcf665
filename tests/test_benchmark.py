"""utils.benchmark: what is measured, and how it is shown."""

import math

import pytest

import tinytorch
from tinytorch.utils import benchmark

try:  # here, as it changes sys.path
    from torch.utils import benchmark as theirs
except ImportError:
    theirs = None


def ticking(step):
    """A clock that goes on by ``step`` seconds each time."""
    now = [0.0]

    def timer():
        now[0] += step
        return now[0]

    return timer


def test_timeit_counts_runs():
    runs = []
    m = benchmark.Timer("runs.append(1)", globals={"runs": runs}, timer=ticking(0.5)).timeit(10)
    assert len(runs) == 12 and m.times == [0.05] and m.number_per_run == 10 and m.mean == m.median == 0.05
    assert "50.00 ms" in repr(m) and "1 measurement, 10 runs" in repr(m)


def test_setup_and_threads():
    threads, seen = tinytorch.get_num_threads(), []
    timer = benchmark.Timer(
        "seen.append((y, threads()))",
        "y = 3",
        globals={"seen": seen, "threads": tinytorch.get_num_threads},
        num_threads=1,
        label="label",
        sub_label="below",
    )
    m = timer.timeit(1)
    assert set(seen) == {(3, 1)} and tinytorch.get_num_threads() == threads and m.title == "label: below"
    with pytest.raises(ZeroDivisionError):
        benchmark.Timer("1 / 0").timeit(1)
    assert tinytorch.get_num_threads() == threads


def test_the_library_has_its_name():
    m = benchmark.Timer("tinytorch.ones(2)", description="by its name").timeit(1)
    assert "by its name" in repr(m) and m.as_row_name == "tinytorch.ones(2)"


def test_autorange():
    blocks = []
    timer = benchmark.Timer("pass", timer=ticking(0.01))
    m = timer.blocked_autorange(lambda number, seconds: blocks.append((number, seconds)), min_run_time=0.1)
    assert len(m.times) in (10, 11) and m.iqr == pytest.approx(0, abs=1e-9) and len(blocks) == len(m.times)
    assert m.meets_confidence() and not m.has_warnings
    assert 4 <= len(timer.adaptive_autorange(max_run_time=1.0).times) < 10


def test_compare():
    def of(seconds, **how):
        return benchmark.Measurement(1, [seconds], benchmark.TaskSpec("x", label="mul", **how))

    table = benchmark.Compare([of(2e-6, sub_label="a", description="one"), of(4e-6, sub_label="a", description="two")])
    table.extend_results([of(8e-6, sub_label="a", description="one", num_threads=2), of(6e-6, sub_label="b")])
    lines = str(table).splitlines()
    assert "mul" in lines[0] and lines[1].split() == ["|", "one", "|", "two", "|"]
    assert lines[2].startswith("1 threads: --") and lines[3].split("|")[:3] == ["  a  ", "  2.0  ", "  4.0  "]
    assert lines[4].split("|")[-1].strip() == "6.0" and lines[5].startswith("2 threads: ")
    assert lines[-1] == "Times are in microseconds (us)."
    with pytest.raises(ValueError, match="Measurement"):
        table.extend_results([1.0])


def test_merge():
    task = benchmark.TaskSpec("x")
    (m,) = benchmark.Measurement.merge([benchmark.Measurement(2, [1.0], task), benchmark.Measurement(1, [3.0], task)])
    assert m.times == [0.5, 3.0] and m.mean == 1.75 and m.median == 1.75 and m.iqr == 1.25 and m.has_warnings


def test_other_languages():
    with pytest.raises(NotImplementedError):
        benchmark.Timer("x;", language="c++")
    for wrong in ({"language": "cobol"}, {"global_setup": "x"}):
        with pytest.raises(ValueError):
            benchmark.Timer("x", **wrong)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize("spread", [0, 1e-4, 0.01, 0.3])
def test_significant_figures(n, spread):
    if theirs is None:
        pytest.skip("PyTorch is not installed")
    for seconds in (3e-8, 4e-6, 0.02, 5.0):
        times = [seconds * (1 + spread * math.sin(7 * k)) * 10 for k in range(n)]
        ours = benchmark.Measurement(10, times, benchmark.TaskSpec("x", ""))
        assert ours.significant_figures == theirs.Measurement(10, times, theirs.TaskSpec("x", "")).significant_figures
