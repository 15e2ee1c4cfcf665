"""Hostile arguments for everything public: nothing dies or hangs, and what is raised is what PyTorch raises."""

import os

import pytest

import tinytorch
from fuzz import callables, run_callables
from fuzz.run_callables import wrong
from fuzz.sweep import Sweep

#: Of a thousand calls so many may raise another class than PyTorch's: orders of checks that are not PyTorch's.
PER_THOUSAND = 0.2


def check(numbers, torch, jobs=1):
    run_callables.import_modules()
    found, counts = run_callables.fuzz(numbers, torch, jobs)
    grave = [(callables.call(n), why, ours) for n, why, ours, _ in found if " for " not in why]
    assert not grave
    assert len(found) <= len(numbers) * PER_THOUSAND / 1000, [(callables.call(n), why) for n, why, *_ in found]
    assert counts["answer"] > len(numbers) / 5 and counts["raised"] > len(numbers) / 3
    assert counts["absent"] < len(numbers) / 100


def test_hostile_calls(torch):
    check(list(range(3000)), torch)


@pytest.mark.slow
def test_many_hostile_calls(torch):
    check(list(range(10_000, 210_000)), torch, jobs=os.cpu_count())


def test_each_argument_in_turn(torch):
    """Of the sweep, which ``python tests/fuzz callables --sweep float32`` runs whole, every 50th call."""
    run_callables.import_modules()
    sweep = Sweep()
    assert len(sweep.calls) > 80_000
    found, counts = run_callables.fuzz(list(range(0, len(sweep.calls), 50)), torch, calls=sweep)
    assert not [(sweep.call(n), why, ours) for n, why, ours, _ in found]
    assert counts["raised"] > 1000


def test_everything_is_called():
    """A few thousand calls name nearly all functions and methods."""
    calls = "\n".join(callables.call(number) for number in range(25_000))
    functions, methods = callables.functions(), callables.methods()
    assert len(functions) > 550 and len(methods) > 450
    assert sum(f"{name}(" in calls for name in functions) > 0.99 * len(functions)
    assert sum(f".{name}(" in calls for name in methods) > 0.99 * len(methods)


def raised(*classes, words=""):
    return "raised", (*classes, "Exception"), words, ""


MUTATED = next(n for n in range(1000) if callables.is_mutated(n) and not run_callables.OPEN.search(callables.call(n)))
OTHER = next(n for n in range(1000) if not callables.is_mutated(n))
VERDICTS = [
    (MUTATED, ("died", "SIGSEGV"), None, "died: SIGSEGV"),
    (MUTATED, ("left behind", "no_grad"), None, "left behind: no_grad"),
    (MUTATED, ("died", "hangs for 100 seconds"), ("answer",), "died: hangs"),
    (MUTATED, ("died", "hangs for 100 seconds"), ("died", "hangs for 100 seconds"), ""),
    (MUTATED, ("died", "SIGSEGV"), ("died", "SIGSEGV"), "died: SIGSEGV"),
    (MUTATED, raised("AttributeError"), raised("TypeError"), "AttributeError from inside"),
    (MUTATED, raised("AttributeError"), None, "AttributeError from inside"),
    (MUTATED, raised("AttributeError"), raised("AttributeError"), ""),
    (MUTATED, raised("IndexError"), raised("RuntimeError"), "IndexError for RuntimeError"),
    (MUTATED, raised("NotImplementedError", "RuntimeError"), raised("RuntimeError"), ""),
    (MUTATED, raised("RuntimeError"), raised("NotImplementedError", "RuntimeError"), "RuntimeError for NotImpl"),
    (MUTATED, raised("TypeError"), raised("RuntimeError", words="Boolean value of Tensor ..."), ""),
    (MUTATED, raised("Fault"), raised("TypeError"), ""),
    (MUTATED, ("answer",), raised("TypeError"), ""),
    (MUTATED, raised("TypeError"), ("answer",), ""),
    (OTHER, raised("IndexError"), raised("RuntimeError"), ""),
    (OTHER, raised("KeyError"), raised("RuntimeError"), "KeyError from inside"),
    (OTHER, raised("error"), raised("RuntimeError"), "error"),
]


@pytest.mark.parametrize("number,ours,theirs,why", VERDICTS)
def test_verdicts(number, ours, theirs, why):
    assert wrong(number, ours, theirs).startswith(why) and (why or not wrong(number, ours, theirs))


PLANTED = {
    "kill": ("died", "SIGSEGV"),
    "hang": ("died", "hangs for {:g} seconds"),
    "raise": ("raised", ("KeyError", "LookupError", "Exception", "BaseException", "object"), "'x'", ""),
    "mode": ("left behind", "(False, False, 0)"),
    "memory": "OutOfMemoryError",
    "absent": ("absent",),
}


def planted(what):
    return {
        "kill": "__import__('os').kill(__import__('os').getpid(), 11)",
        "hang": "__import__('time').sleep(600)",
        "raise": "{}['x']",
        "mode": "getattr(torch.autograd, 'set_grad_enabled')(False)",
        "memory": "torch.zeros(2**33)",
        "absent": "torch.nonsense",
    }[what]


@pytest.mark.parametrize("what", PLANTED)
def test_faults_are_noticed(monkeypatch, what):
    monkeypatch.setattr(callables, "call", lambda number: planted(what) if number == 1 else "torch.ones(2)")
    wanted = PLANTED[what]
    for seconds in (1.0, 50.0) if what == "hang" else (100.0,):
        found = run_callables.run(tinytorch, [0, 1, 2], jobs=1, seconds=seconds)
        if found[0] == found[2] == ("answer",):  # the others took less than a second: no other work was in their way
            break
    if what == "hang":
        wanted = "died", wanted[1].format(seconds)
    assert found[0] == ("answer",)
    assert (found[1] == wanted) if isinstance(wanted, tuple) else (found[1][1][0] == wanted)
    assert found[2] == ("answer",) or what == "mode"
