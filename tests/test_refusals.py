"""Calls that PyTorch refuses, or nearly does, as text: both libraries answer, or raise the same class of exception."""

import warnings

import numpy as np
import pytest

import tinytorch


class Index:
    """An integer that is none of Python's own."""

    def __init__(self, n):
        self.n = n

    def __index__(self):
        return self.n


CALLS = """
    # a tensor by place is the other one, by name a dimension
    torch.max(Z(2, 3), dim=Z(3))
    torch.max(Z(2, 3), dim=Z(2, 3, 4))
    torch.min(Z(2, 3), dim=Z(dtype="int64"))
    torch.min(Z(2, 3), dim=Z(dtype="float64"))
    torch.max(Z(2, 3), Z(dtype="int64"))
    torch.max(Z(2, 3), Z(3), True)
    torch.max(Z(2, 3), Z(3), other=Z(3))
    torch.max(Z(2, 3), 0, True)
    torch.max(Z(2, 3), 0, True, False)
    torch.max(Z(2, 3), 0, dim=1)
    torch.max(Z(2, 3), axis=Z(3))
    torch.max(Z(2, 3), True)
    Z(2, 3).max(dim=Z(3), keepdim=True)
    torch.max("reflect", 0)
    torch.max(Z(2, 3).numpy(), 0)
    torch.min(Z(2, 3), Index(-9))
    torch.min(Z(2, 3), 1, keepdim=2**31)
    torch.max(Z(2, 3), "x")
    torch.rsub(Z(2, 3, dtype="int16"), Z(2, 3, dtype="int16"), 1e-300)
    torch.rsub(Z(2, 3, dtype="int16"), Z(2, 3, dtype="int16"), False)
    torch.rsub(Z(2, 3), Z(2, 3), 2)
    torch.rsub(Z(2, 3), Z(2, 3), alpha=2)
    torch.rsub(Z(2, 3), Z(), 2)
    torch.rsub(Z(2, 3), 2, 2)
    torch.rsub(Z(2, 3, dtype="int16"), 2, 1.5)
    torch.nn.functional.gelu(Z(2, 3), "none")
    torch.nn.functional.gelu(Z(2, 3), "mean")
    # PyTorch's deprecated overloads have numbers between tensors, and not behind them
    torch.add(Z(3), 2, Z(3))
    torch.add(Z(3), Z(3), 2)
    torch.add(Z(3), 2, 3)
    torch.sub(Z(3), 2, 3)
    Z(3).add_(Z(3), 2)
    torch.addmm(Z(2, 2), Z(2, 2), Z(2, 2), 2)
    torch.addmv(Z(2), Z(2, 2), Z(2), 2)
    torch.addcmul(Z(2), Z(2), Z(2), 2)
    torch.addcdiv(Z(2), Z(2), Z(2), 2)
    # several integers are a method's
    torch.squeeze(Z(2, 1, 1), 1, 2)
    torch.squeeze(Z(2, 3), 0, -99)
    torch.squeeze(Z(2, 1, 1), (1, 2))
    torch.squeeze(Z(2, 1, 1), [1, 2])
    torch.squeeze(Z(2, 1, 1), (1, 1))
    Z(2, 3).shape * 2
    2 * Z(2, 3).shape
    (1,) + Z(2, 3).shape
    Z(2, 3).shape + (1,)
    Z(2, 3).shape * 1.5
    Z(2, 1, 1).squeeze((1, -2))
    Z(1).squeeze_((0, 0))
    Z().squeeze((0, -1))
    torch.squeeze(Z(2, 1, 1), dim=1)
    torch.squeeze(Z(2, 1, 1), 7)
    torch.squeeze(Z(2, 1, 1), "x")
    Z(2, 1, 1).squeeze(1, 2)
    Z(2, 1, 1).squeeze_(1, 2)
    Z(2, 1, 1).squeeze(Index(-9))
    Z(2, 1, 1).squeeze(Index(1))
    # other integers than Python's; a bool is none
    torch.unflatten(Z(6, 2), 0, (Index(2), Index(3)))
    torch.unflatten(Z(6, 2), 0, (Index(2),))
    torch.unflatten(Z(6, 2), 0, (2.0, 3))
    Z(6, 2).unflatten(0, {})
    torch.chunk(Z(5), Z(1, dtype="int64") - 1)
    torch.count_nonzero(Z(2, 3), Index(-9))
    torch.unsafe_split(Z(2, 6), np.int8(2), 1)
    torch.unsafe_split(Z(2, 6), np.int8(-1), 1)
    torch.unsafe_split(Z(2, 6), Index(2), 1)
    torch.unsafe_split(Z(2, 6), [2, 4], 1)
    torch.split(Z(2, 6), np.int8(2), 1)
    torch.split(Z(2, 6), False, 1)
    torch.split(Z(2, 6), True, 1)
    torch.split(Z(2, 6), (True, 5), 1)
    Z(2, 6).split(True, 1)
    Z(2, 3).flip(True)
    Z(2, 3).tile(True)
    Z(2, 3).roll(True, 0)
    torch.kthvalue(torch.arange(5), Index(2))
    torch.kthvalue(Z(5), Index(-9))
    torch.roll(Z(2, 3), (1, -2), None)
    torch.roll(Z(2, 3), 1, None)
    torch.nn.functional.group_norm(Z(2, 4, 3), True)
    torch.nn.functional.group_norm(Z(2, 4, 3), Z(1, dtype="uint8") + 2)
    # of stacks of matrices the first one's dtype comes before whether both have the same
    torch.bmm(Z(1, 2, 3, dtype="bool"), Z(1, 3, 2))
    torch.bmm(Z(1, 2, 3, dtype="bool"), Z(1, 3, 2, dtype="bool"))
    torch.bmm(Z(1, 2, 3), Z(1, 3, 2, dtype="bool"))
    torch.matmul(Z(2, 2, 3, dtype="bool"), Z(2, 3, 2, dtype="int32"))
    torch.matmul(Z(2, 2, 3, dtype="bool"), Z(3, 2))
    torch.mm(Z(2, 3, dtype="bool"), Z(3, 2))
    torch.mv(Z(2, 3, dtype="bool"), Z(3))
    torch.baddbmm(Z(1, 2, 2, dtype="bool"), Z(1, 2, 3, dtype="bool"), Z(1, 3, 2))
    torch.einsum("ij,ij->i", Z(2, 3, dtype="bool"), Z(2, 3, dtype="float16"))
    # a source of fewer dimensions than the index
    torch.scatter(Z(3, 4), 0, Z(2, 4, dtype="int64"), Z(3))
    torch.scatter(Z(3, 4), 0, Z(2, 4, dtype="int64"), Z())
    torch.scatter(Z(3, 4), 0, Z(2, 4, dtype="int64"), Z(1))
    torch.scatter(Z(3, 4), 0, Z(2, 4, dtype="int64"), Z(3, 4, 5))
    torch.scatter(Z(3, 4), 0, Z(2, 4, dtype="int64"), Z(3), reduce="add")
    torch.scatter_add(Z(3, 4), 1, Z(2, 4, dtype="int64"), Z(3))
    torch.scatter_reduce(Z(3, 4), 0, Z(2, 4, dtype="int64"), Z(3), "sum")
    # nn.functional's flags are any object, its values are looked at first
    torch.nn.functional.selu(Z(2, 3).expand(4, 2, 3), 99)
    torch.nn.functional.selu(Z(2, 3, dtype="int32"), "x")
    torch.nn.functional.celu(Z(2, 3, dtype="int32"), 1.0, "x")
    torch.nn.functional.dropout(Z(2, 3).expand(4, 2, 3), 0.1, True, "x")
    torch.nn.functional.dropout(Z(2, 3), Z(1) - 1)
    torch.nn.functional.dropout(Z(2, 3), "a")
    torch.nn.functional.dropout(Z(2, 3), 0.0, np.zeros(3))
    torch.nn.functional.elu(Z(0), np.zeros((2, 3)))
    torch.nn.functional.bilinear(Z(), Z(3), Z(2, 2, 3))
    torch.nn.functional.bilinear(Z(), Z(), Z(2, 2, 3))
    torch.nn.functional.bilinear(Z(2), Z(3), Z(2, 3))
    torch.nn.functional.bilinear(Z(2), Z(3), Z(2, 2))
    torch.nn.functional.bilinear(Z(2), Z(3), Z())
    torch.nn.functional.interpolate(Z(2, 2, 5), size=(7,), mode=Z(), align_corners=False)
    torch.nn.functional.lp_pool1d(Z(1, 2, 5), Z(3), 2)
    torch.signal.windows.general_hamming(1, sym=False, dtype=(1, 2, 3))
    # an index of tensors alone
    torch.index_put(Z(3, 4), (Z(3, dtype="int64"), None), Z(3, 1, 4))
    torch.index_put(Z(3, 4), (None, None), Z(2, 4))
    torch.index_put(Z(3, 4), ([0],), Z(4))
    Z(3, 4).index_put_((Z(3, dtype="int64"), None), Z(2, 4))
    # a leaf is not written to, whatever else is wrong
    Z().requires_grad_().cumprod_(1)
    Z(2, 3).requires_grad_().cumsum_(5)
    Z(2, 3).requires_grad_().index_fill_(5, Z(2, dtype="int64"), 1)
    Z(2, 3).requires_grad_().scatter_(5, Z(2, 2, dtype="int64"), 1.0)
    Z(2, 3).requires_grad_().index_copy_(5, Z(2, dtype="int64"), Z(2, 3))
    Z(2, 3).requires_grad_().scatter_("x", Z(2, 2, dtype="int64"), 1.0)
    Z(2, 3).requires_grad_().squeeze_(5)
    # Python's types of numbers are dtypes
    torch.sum(Z(2, 3), dtype=float)
    torch.mean(Z(2, 3), dtype=complex)
    torch.mean(Z(2, 3), dtype=int)
    torch.prod(Z(2, 3), dtype=int)
    torch.nansum(Z(2, 3), dtype=float)
    torch.cumsum(Z(2, 3), 0, dtype=bool)
    torch.cumprod(Z(2, 3), 0, dtype=int)
    torch.sum(Z(2, 3), dtype=str)
    torch.cumsum(Z(2, 3), 0, dtype="float32")
    Z(2).view(int)
    Z(2).view(float)
    Z(2).view(str)
    torch.can_cast(float, int)
    torch.can_cast(float, str)
    torch.promote_types(float, int)
    torch.finfo(float)
    torch.finfo(int)
    torch.iinfo(int)
    torch.iinfo(bool)
    torch.iinfo("int")
"""
CALLS = [line.strip() for line in CALLS.splitlines() if line.strip() and not line.strip().startswith("#")]


def described(value):
    """What both libraries should agree on."""
    if type(value).__name__ == "Size":
        return "Size", list(value)
    if isinstance(value, (tuple, list)):
        return [described(v) for v in value]
    if hasattr(value, "tolist"):
        return str(value.dtype).rpartition(".")[2], value.tolist()
    return str(value).rpartition(".")[2] if type(value).__name__ == "dtype" else type(value).__name__


def outcome(library, call):
    names = {"torch": library, "np": np, "Index": Index}
    names["Z"] = lambda *shape, dtype="float32": library.zeros(shape, dtype=getattr(library, dtype))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return described(eval(call, names))
    except Exception as error:
        return error


@pytest.mark.parametrize("call", CALLS)
def test_as_torch(torch, call):
    wanted, found = outcome(torch, call), outcome(tinytorch, call)
    if isinstance(wanted, Exception):
        assert isinstance(found, type(wanted)), f"{found!r}\ntorch: {wanted!r}"
        assert "tuple)" not in str(found) and "'_h'" not in str(found)
    elif isinstance(found, Exception):
        raise found
    else:
        assert found == wanted
