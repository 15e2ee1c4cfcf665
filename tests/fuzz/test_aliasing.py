"""Aliasing programs leave the same behind eagerly, interpreted and compiled; and the fuzzer would notice if not."""

import contextlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import pytest

import tinytorch
from fuse.snapshot import differences, snapshot
from fuzz import run_aliasing
from fuzz.aliasing import Program, Statement, overlaps, program
from gpu import emulator
from tinytorch.backends.cpu import lib

DEVICES = ["cpu", "cuda"]


def elsewhere(function, *args, **kwargs):
    """What the function gives in a new process. Its forked children can use a GPU; those of this one cannot, since it
    has looked for GPUs."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def here(function, *args, **kwargs):
    return function(*args, **kwargs)


def check(count, device, tier, seed=0, **how):
    """``count`` programs, of which every one ends the same."""
    if device == "cuda" and not tinytorch.cuda.is_available() and not emulator.available():
        pytest.skip("no GPU, and no C++ compiler to emulate one")
    do = elsewhere if device == "cuda" else here
    wrong, counts = do(run_aliasing.fuzz, list(range(seed, seed + count)), device, tier, **how)
    for at, told in wrong.items():
        print(f"seed {at}: {told}\n{do(run_aliasing.shrunk, program(at), device, tier)}")
    assert not wrong
    assert counts["recorded"] > 2 * count and counts["interpreted"] > count // 2
    return counts


def test_interpreted():
    check(600, "cpu", "interpreter")


def test_compiled():
    assert check(100, "cpu", "compiler")["compiled"] > 100


def test_on_a_device():
    check(12, "cuda", "interpreter")


@pytest.mark.slow
def test_thousands():
    check(20_000, "cpu", "both", seed=10_000, jobs=os.cpu_count())


@pytest.mark.slow
def test_hundreds_on_a_device():
    check(400, "cuda", "both", seed=10_000, batch=50, jobs=os.cpu_count())


def written(*texts):
    return Program(tuple(Statement(text) for text in texts))


def test_a_program_is_its_seeds():
    assert str(program(7)) == str(program(7)) != str(program(8))
    scope = {}
    exec(str(program(7)), scope)
    wanted = program(7).run(contextlib.nullcontext)
    assert not differences(snapshot(wanted), snapshot({n: scope[n] for n in wanted if n in scope} | {"raised": {}}))


def test_programs_alias():
    """Most programs have views that are written, half have gradients, and some raise."""
    texts = [str(program(seed)) for seed in range(200)]
    for part, least in {"] = ": 60, "del ": 100, "grad": 40, "as_strided": 20, "copy_": 40, "no_grad()": 10}.items():
        assert sum(part in text for text in texts) >= least, part
    assert sum(bool(program(seed).run(contextlib.nullcontext)["raised"]) for seed in range(200)) > 3


def test_overlaps():
    x = tinytorch.arange(3000)
    assert overlaps(x.unfold(0, 3, 2)) and overlaps(x.expand(2, 3000)) and overlaps(x.as_strided((2, 2), (1, 1)))
    assert not overlaps(x.as_strided((2, 2), (2, 1))) and not overlaps(x[::3]) and not overlaps(x[:0].expand(2, 0))


@pytest.mark.parametrize("fault", ["difference", "signal", "hang"])
def test_faults_are_noticed(monkeypatch, fault):
    """A program that ends otherwise in fused mode is found, told and shrunk; so is one that kills its process."""
    planted = {
        "difference": "v0.add_(torch.is_fused())",
        "signal": "torch.is_fused() and __import__('os').kill(__import__('os').getpid(), 11)",
        "hang": "torch.is_fused() and __import__('time').sleep(600)",
    }[fault]
    monkeypatch.setattr(tinytorch, "is_fused", lambda: lib.tt_fuse_depth() > 0, raising=False)
    wrong = written("v0 = torch.zeros(5)", "v1 = v0[1:]", "v2 = v1 * 2", planted, "del v1")
    told = run_aliasing.failure(wrong, "cpu", "interpreter", seconds=2 if fault == "hang" else 100)
    assert told.startswith({"difference": "interpreter: v0.", "signal": "SIGSEGV", "hang": "hangs"}[fault]), told
    if fault == "difference":
        assert str(run_aliasing.shrunk(wrong, "cpu", "interpreter")).splitlines()[2:] == [
            "with torch.fuse():",
            "    v0 = torch.zeros(5)",
            "    v0.add_(torch.is_fused())",
        ]
