"""Runs a script under the profiler: ``python -m tinytorch.profile [--out DIR] [--compare] script.py [args]``.

DIR gets ``trace.json`` (for chrome://tracing and Perfetto), ``summary.json`` and ``report.html``, which any browser
opens. The script is run as ``__main__``, with its arguments; its exit code and its exceptions are passed on, and what
was seen until then is written all the same. With ``--compare`` it runs twice, each time in a process of its own: once
eagerly, where fused mode is ignored even if the script asks for it, and once in fused mode.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import types

import tinytorch
from tinytorch.fuse.describe import bytes_text
from tinytorch.fuse.mode import Fused
from tinytorch.profiler import digest, profile
from tinytorch.profiler.chrome import chrome_trace, export_chrome_trace
from tinytorch.profiler.events import Trace
from tinytorch.profiler.report import Comparison, limits_of, page, time_text
from tinytorch.profiler.store import load, save

_FILES = ("trace.json", "summary.json", "report.html")
_MODES = {"eager": "0", "fused": "1"}
_APART = 1 << 24  # between the processes' numbers of two modes: more than a system gives


def main(argv: list[str] | None = None) -> int:
    """The command. Returns the exit code; what the script raises to end the process is raised."""
    options = _parse(argv)
    script = pathlib.Path(options.script)
    try:
        code = _read(script)
        out = pathlib.Path(options.out)
        _writable(out)
    except (OSError, SyntaxError, ValueError) as error:
        print(f"tinytorch.profile: {error}", file=sys.stderr)
        return 2
    if options.compare:
        return _compare(out, script, options.args)
    if options.only == "eager":
        _ignore_fuse()
    ended, trace = _run(code, script, options.args)
    try:
        if options.only:
            save(trace, out / options.only)
        else:
            _write(out, {"fused" if _fused(trace) else "eager": trace}, script, options.args)
    except OSError as error:
        print(f"tinytorch.profile: the profile could not be written: {error}", file=sys.stderr)
        return _end(ended) or 1
    return _end(ended)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tinytorch.profile", description="Run a script under the profiler.")
    parser.add_argument("--out", metavar="DIR", default="profile", help=f"gets {', '.join(_FILES)}; default: profile")
    parser.add_argument("--compare", action="store_true", help="run it twice, eagerly and in fused mode")
    parser.add_argument("--only", choices=list(_MODES), help=argparse.SUPPRESS)  # a process of --compare's
    parser.add_argument("script", help="the script")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return parser.parse_args(argv)


def _read(script: pathlib.Path) -> types.CodeType:
    """The script, compiled."""
    if not script.is_file():
        raise OSError(f"there is no script '{script}'")
    with io.open_code(str(script.resolve())) as file:
        return compile(file.read(), str(script), "exec")


def _writable(out: pathlib.Path) -> None:
    """Makes the folder; OSError if files cannot be written there, before anything has run."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
        for name in _FILES:
            if (out / name).exists() and not os.access(out / name, os.W_OK):
                raise PermissionError(13, "Permission denied", str(out / name))
    except OSError as error:
        raise OSError(
            f"nothing can be written to '{out}' ({error.strerror or error}): give another folder with --out DIR"
        ) from None


def _ignore_fuse() -> None:
    """From now on ``with fuse():`` does nothing, in this process."""
    Fused.__enter__ = lambda self: self
    Fused.__exit__ = lambda self, *exc_info: None


def _run(code: types.CodeType, script: pathlib.Path, args: list[str]) -> tuple[BaseException | None, Trace]:
    """Runs the script; returns what it ended with, and what was seen."""
    module = types.ModuleType("__main__")
    module.__file__, module.__builtins__, module.__spec__ = str(script), __builtins__, None
    ours = sys.modules["__main__"]
    sys.modules["__main__"] = module
    sys.argv[:] = [str(script), *args]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(script.resolve().parent)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # ended from outside, what was seen is still to be written
        signal.signal(signal.SIGTERM, _terminated)
    ended = None
    profiler = profile(record_shapes=True, with_stack=True, with_flops=True, profile_memory=True)
    try:
        with profiler:
            try:
                exec(code, module.__dict__)
            except BaseException as error:  # noqa: B036 (it is raised again when the files are written)
                ended = error
            names = {thread.native_id: thread.name for thread in threading.enumerate()}
            for thread in threading.enumerate():  # as at the end of any program
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()
    finally:
        module.__dict__["__tinytorch_profile__"] = ours  # what the script left behind may need its module, and we ours
    trace = profiler.trace
    trace.threads |= {number: name for number, name in names.items() if number in trace.threads}
    return ended, trace


def _terminated(number, frame):
    raise SystemExit(128 + number)


def _end(ended: BaseException | None) -> int:
    """Passes on what the script ended with."""
    if ended is None:
        return 0
    if not isinstance(ended, Exception):
        raise ended.with_traceback(None) if isinstance(ended, SystemExit) else ended
    ended.__traceback__ = ended.__traceback__.tb_next  # without the line of ours
    sys.excepthook(type(ended), ended, ended.__traceback__)
    return 1


def _fused(trace: Trace) -> bool:
    return any(True for _ in trace.of_kind("program"))


def _compare(out: pathlib.Path, script: pathlib.Path, args: list[str]) -> int:
    """Runs the script in both modes, and writes what both have shown."""
    traces, codes = {}, []
    with tempfile.TemporaryDirectory(dir=out) as folder:
        for mode, value in _MODES.items():
            print(f"tinytorch.profile: {mode}", file=sys.stderr, flush=True)
            command = [sys.executable, "-m", "tinytorch.profile", "--only", mode, "--out", folder, str(script), *args]
            done = subprocess.run(command, env={**os.environ, "TINYTORCH_FUSE": value}, check=False)
            codes.append(done.returncode)
            with contextlib.suppress(FileNotFoundError):  # it was killed
                traces[mode] = load(os.path.join(folder, mode))
    if traces:
        table = comparison(traces, codes)
        _write(out, traces, script, args, table)
        print(table, file=sys.stderr)
    failed = next((code for code in codes if code), 0)
    return 128 - failed if failed < 0 else failed


def comparison(traces: dict[str, Trace], codes: list[int]) -> Comparison:
    """The figures of the modes' runs."""
    figures = [digest.summary(trace) for trace in traces.values()]
    made = Comparison(
        list(traces),
        "Each mode ran the whole script in a process of its own. Fused programs are "
        "interpreted at first, and compiled when they have run often. Kernels and traffic are those of "
        "operators; an optimizer's step that is one call is not among them.",
    )
    made.add("whole run", [f["nanoseconds"] for f in figures], time_text, less=True)
    made.add("first operator to last", [f["events_ns"] for f in figures], time_text, less=True)
    made.add("in operators", [f["in_operators_ns"] for f in figures], time_text, less=True)
    made.add("a step", [f["steps"]["median_ns"] for f in figures], time_text, less=True)
    made.add("kernels launched", [f["kernels"] for f in figures], "{:,}".format, less=True)
    made.add("runs of fused programs", [sum(b["count"] for b in f["breaks"]) for f in figures], "{:,}".format)
    made.add("read and written", [f["bytes"] for f in figures], bytes_text, less=True)
    peaks = [max((m["peak"] for m in f["memory"].values()), default=None) for f in figures]
    made.add("peak memory", peaks, bytes_text, less=True)
    made.add("exit code", codes[: len(figures)])
    made.rows = [row for row in made.rows if any(v is not None for v in row[1])]
    return made


def _write(
    out: pathlib.Path, traces: dict[str, Trace], script: pathlib.Path, args: list[str], table: Comparison | None = None
) -> None:
    """The three files."""
    command = " ".join([str(script), *args])
    _export(traces, out / "trace.json")
    limits = limits_of(traces)
    figures = {
        "tinytorch": tinytorch.__version__,
        "python": sys.version.split()[0],
        "command": command,
        "ceilings": limits,
        "modes": {mode: digest.summary(trace) for mode, trace in traces.items()},
    }
    (out / "summary.json").write_text(json.dumps(figures, indent=1, default=str), encoding="utf-8")
    (out / "report.html").write_text(
        page(traces, title=script.name, subtitle=command, comparison=table, limits=limits), encoding="utf-8"
    )
    events = ", ".join(
        f"{len(trace.events):,} events{f' ({mode})' if len(traces) > 1 else ''}" for mode, trace in traces.items()
    )
    print(f"tinytorch.profile: {events}; see {out / 'report.html'}", file=sys.stderr)


def _export(traces: dict[str, Trace], path: pathlib.Path) -> None:
    """One Chrome trace, in which each mode is a process, begun at the same time."""
    if len(traces) == 1:
        export_chrome_trace(next(iter(traces.values())), str(path))
        return
    whole: dict = {}
    for number, (mode, trace) in enumerate(traces.items()):
        made = chrome_trace(trace, str(path))
        for event in made["traceEvents"]:
            if isinstance(event.get("pid"), int):
                event["pid"] += number * _APART
            if isinstance(event.get("id"), int):
                event["id"] += number * _APART
            if event.get("name") == "process_name":
                event["args"]["name"] = mode
        events = [*whole.get("traceEvents", ()), *made["traceEvents"]]
        whole = {**made, **whole, "traceEvents": events}
    path.write_text(json.dumps(whole, separators=(",", ":")), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
