"""A step of training that Ctrl-C strikes, once at each bytecode.

    python tests/fuzz interrupts train [--every 7]

KeyboardInterrupt must come out of the step, nothing be printed and swallowed, no mode stay behind, no memory be lost
("lost" counts how often), and the next run compute the same. A trace function notes the signal down before the
bytecode; Python runs its handler where it next looks, as it would for a key that is pressed then.
"""

import _thread
import argparse
import gc
import json
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TRACED = "tinytorch", "steps.py", "weakref"  # files


class Arriving(dict):
    """To ask it for a signal is to get that signal, in C: Python does not look for any on the way back."""

    __missing__ = staticmethod(_thread.interrupt_main)


ARRIVING = Arriving()


def run(step, every=1, timeout=900) -> dict:
    """What came of a step in a process of its own. ``every``: one of so many bytecodes is struck."""
    command = [sys.executable, HERE, "interrupts", step, "--child", "--every", str(every)]
    environment = {**os.environ, "TINYTORCH_FUSE": "0", "TINYTORCH_FUSE_WORTH": "0"}  # each step the same bytecodes
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    lines = done.stdout.splitlines()
    if done.returncode:
        return {"died": done.returncode, "at": lines[-1:], "error": done.stderr[-1500:]}
    return json.loads(lines[-1])


class Striker:
    """Traces the bytecodes of the library, and strikes at one of them."""

    def __init__(self, strike=-1):
        self.strike, self.count, self.fired, self.place = strike, 0, False, ""

    def __enter__(self):
        signal.signal(signal.SIGALRM, self.handler)
        sys._getframe().f_trace_opcodes = True  # Python 3.12 traces bytecodes if a frame wanted it before settrace()
        sys.settrace(self.tracer)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def tracer(self, frame, event, argument):
        name = frame.f_code.co_filename
        if event == "call" and name[0] != "<" and not any(part in name for part in TRACED):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.count += 1
            if self.count == self.strike:
                sys.settrace(None)
                self.place = f"{os.path.basename(name)}:{frame.f_lineno} in {frame.f_code.co_name}"
                ARRIVING[signal.SIGALRM]
        return self.tracer

    def handler(self, _, frame):
        assert frame.f_code is not Striker.tracer.__code__, "too early"
        self.fired = True
        raise KeyboardInterrupt


def child(name, every):
    """Strikes at one bytecode after the other; prints what came of it."""
    import tinytorch as tt
    from fuzz.steps import STEPS

    step, unraisable, told, strikes = STEPS[name], [], [], 0
    sys.unraisablehook = lambda error: unraisable.append(f"{error.exc_value!r} in {error.object!r}")

    def modes():
        return tt.is_grad_enabled(), tt.is_inference_mode_enabled(), tt.backends.cpu.lib.tt_fuse_depth()

    def struck(at):
        """Did the interrupt come out, and where did the signal come?"""
        seen = False
        try:
            with Striker(at) as striker:
                step()
            while striker.place and not striker.fired:
                pass
        except KeyboardInterrupt:
            seen = True
        return seen, striker.place

    for _ in range(3):  # what is made once is made
        wanted = step()
    with Striker() as counting:
        step()
    gc.collect()
    clean, before, lost = modes(), tt.cpu.memory_allocated(), []
    gc.disable()
    for at in range(1, counting.count + 1, every):
        seen, place = struck(at)
        strikes += 1
        if not place:
            told.append(f"{at}: not reached")
            break
        if not seen:
            told.append(f"{at} ({place}): swallowed")
        if modes() != clean:
            told.append(f"{at} ({place}): modes {modes()}")
            break
        if tt.cpu.memory_allocated() != before:
            gc.collect()
            lost += [f"{at} ({place})"] if tt.cpu.memory_allocated() != before else []
            before = tt.cpu.memory_allocated()
        if strikes % 20 == 0 and step() != wanted:
            told.append(f"{at} ({place}): the next run gives another result")
    if step() != wanted:
        told.append("the last run gives another result")
    summary = {"bytecodes": counting.count, "strikes": strikes, "lost": len(lost)}
    print(json.dumps(summary | {"wrong": told, "places": lost, "unraisable": unraisable}))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="interrupts", description=__doc__.partition("\n")[0])
    parser.add_argument("step")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return child(options.step, options.every)
    print(json.dumps(run(options.step, options.every, timeout=None), indent=1))
