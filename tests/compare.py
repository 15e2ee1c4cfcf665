"""Comparing tinytorch with its oracles, PyTorch and NumPy, by way of NumPy arrays."""

import numpy as np
import pytest

import tinytorch

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("uint8", "int8", "int16", "int32", "int64")
DTYPES = (*FLOATS, *INTS, "bool")
HALVES = ("float16", "bfloat16")
COMPLEX = ("complex64", "complex128")

# One unit in the last place for the halves (their results are float32 results, rounded);
# a few for the others, whose sums may be taken in another order.
TOLERANCE = {
    "float16": {"rtol": 2**-10, "atol": 2**-14},
    "bfloat16": {"rtol": 2**-7, "atol": 2**-14},
    "float32": {"rtol": 1e-5, "atol": 2e-6},
    "float64": {"rtol": 1e-11, "atol": 1e-13},
    "complex64": {"rtol": 2e-5, "atol": 1e-5},
    "complex128": {"rtol": 1e-9, "atol": 1e-11},
}


def dtype_name(tensor):
    """'float32' for tinytorch.float32 and for torch.float32."""
    return str(tensor.dtype).rpartition(".")[2]


def to_numpy(tensor):
    """The values as an array; bfloat16, which NumPy lacks, as float32."""
    tensor = tensor.detach()
    if dtype_name(tensor) == "bfloat16":
        tensor = tensor.float()
    if getattr(tensor, "_is_zerotensor", bool)():  # torch's gradient of a constant function has no memory
        tensor = tensor.clone()
    if tensor.is_conj():  # torch's
        tensor = tensor.resolve_conj()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    return tensor.numpy()


def is_tensor(value):
    """Whether value is a tensor of either library."""
    return hasattr(value, "requires_grad") and hasattr(value, "dtype")


def outputs(result):
    """The tensors of an op's result, in order: one tensor, or a (named) tuple or list of them."""
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in outputs(part)]
    return [result] if is_tensor(result) else []


def assert_values(actual, expected, dtype, message="", **tolerance):
    """Arrays are equal: exactly for integers and bool, within TOLERANCE for floating point."""
    if dtype in COMPLEX:
        for part in (np.real, np.imag):
            tolerance = TOLERANCE[dtype] | tolerance
            np.testing.assert_allclose(part(actual), part(expected), err_msg=message, **tolerance)
    elif dtype in FLOATS:
        tolerance = TOLERANCE[dtype] | tolerance
        actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
        np.testing.assert_allclose(actual, expected, err_msg=message, **tolerance)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=message)


def assert_same(actual, expected, message="", **tolerance):
    """Two tensors (or two results of several tensors) have equal dtypes, shapes and values."""
    actual, expected = outputs(actual), outputs(expected)
    assert len(actual) == len(expected), f"{len(actual)} outputs, wanted {len(expected)} {message}"
    for a, e in zip(actual, expected):
        assert dtype_name(a) == dtype_name(e), message
        assert tuple(a.shape) == tuple(e.shape), message
        assert_values(to_numpy(a), to_numpy(e), dtype_name(a), message, **tolerance)


def pair(torch, array, requires_grad=False, dtype=None):
    """The same values as a tinytorch tensor and as a torch tensor, sharing memory with nothing."""
    made = []
    for m in (tinytorch, torch):
        tensor = m.tensor(np.array(array).tolist(), dtype=getattr(m, dtype or str(np.asarray(array).dtype)))
        made.append(tensor.reshape(np.shape(array)).requires_grad_(requires_grad))
    return made


def allocated():
    """Bytes that live tensors hold on the CPU."""
    return tinytorch.cpu.memory_stats()["allocated_bytes.all.current"]


def plain(value):
    """A program's result as Python values, tensors with their dtypes."""
    if is_tensor(value):
        return dtype_name(value), value.detach().tolist()
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return value


def outcome(program, m):
    """What program(m) returns, or "refused"."""
    try:
        return plain(program(m))
    except RuntimeError:
        return "refused"


def doubles(m, *values, requires_grad=True):
    """A vector of library m in float64."""
    return m.tensor(list(values), dtype=m.float64, requires_grad=requires_grad)


def table(*programs):
    """The programs, one test each."""
    return pytest.mark.parametrize("program", programs, ids=lambda p: p.__name__)
