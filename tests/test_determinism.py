"""The switches for deterministic algorithms: they remember what PyTorch's would."""

import pytest

import tinytorch as tt

torch = pytest.importorskip("torch")

CALLS = [
    "m.use_deterministic_algorithms(True)",
    "m.use_deterministic_algorithms(True, warn_only=True)",
    "m.use_deterministic_algorithms(False, warn_only=True)",
    "m.use_deterministic_algorithms(3)",
    "m.use_deterministic_algorithms()",
    "m.set_deterministic_debug_mode('error')",
    "m.set_deterministic_debug_mode('warn')",
    "m.set_deterministic_debug_mode(2)",
    "m.set_deterministic_debug_mode(1)",
    "m.set_deterministic_debug_mode(0)",
    "m.set_deterministic_debug_mode(3)",
    "m.set_deterministic_debug_mode('no')",
    "m.set_deterministic_debug_mode(None)",
    "m.set_deterministic_debug_mode('default')",
]


def after(m, call):
    try:
        said = eval(call, {"m": m})
    except Exception as e:
        said = type(e)
    return (
        said,
        m.are_deterministic_algorithms_enabled(),
        m.is_deterministic_algorithms_warn_only_enabled(),
        m.get_deterministic_debug_mode(),
    )


def test_switches():
    try:
        for call in CALLS:
            assert after(tt, call) == after(torch, call), call
    finally:
        for m in (tt, torch):
            m.use_deterministic_algorithms(False)
