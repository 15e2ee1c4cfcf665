"""Strides, offsets, shared memory and view-ness of results are PyTorch's; and lists as indices, and what is refused."""

import warnings

import numpy as np
import pytest

import tinytorch


def facts(t):
    return tuple(t.shape), t.stride(), t._is_view(), t.flatten().tolist()


def a(m, *shape):
    return m.arange(float(np.prod(shape))).reshape(shape)


def last(m):
    return a(m, 2, 3, 2, 2).contiguous(memory_format=m.channels_last)


def spread(m):
    return a(m, 2, 3, 1, 1).expand(2, 3, 2, 2)


def derived(m, f):
    x = last(m).requires_grad_()
    return m.autograd.grad(f(x).sum(), x)[0]


LAYOUTS = {
    "expand to the same": lambda m: a(m, 2, 1).t().expand(1, 2),
    "expand of one": lambda m: a(m, 3, 1, 4)[..., ::2].expand(3, 1, 2),
    "expand in front": lambda m: a(m, 3, 2).expand(1, 1, 3, 2),
    "expand in front of a transposed one": lambda m: a(m, 3, 2).t().expand(1, 2, 3),
    "expand in front, both": lambda m: a(m, 3, 2).expand(4, 1, 3, 2),
    "clone of one with gaps": lambda m: a(m, 2, 3, 2, 4).permute(2, 0, 3, 1)[0].clone(),
    "clone of an expanded one": lambda m: a(m, 2, 3, 1).expand(2, 3, 4).permute(2, 1, 0).clone(),
    "clone of an expanded one with gaps": lambda m: (
        a(m, 2, 3, 1, 4).expand(2, 3, 2, 4)[..., ::2].permute(3, 1, 2, 0).clone()
    ),
    "sum of one with gaps": lambda m: a(m, 2, 3, 2, 4).permute(2, 0, 3, 1)[0] + 1,
    "zeros like one with gaps": lambda m: m.zeros_like(a(m, 4, 5, 3).permute(2, 1, 0)[:, ::2]),
    "cast of one with gaps": lambda m: a(m, 4, 5, 3).permute(2, 1, 0)[:, ::2].to(m.float64),
    "expand a number": lambda m: m.ones(()).expand(1, 1),
    "expand a number to more": lambda m: m.ones(()).expand(1, 3),
    "expand with -1": lambda m: a(m, 3, 1).expand(-1, -1),
    "expand of nothing": lambda m: m.ones(0, 1).expand(1, 0, 3),
    "broadcast_to": lambda m: m.broadcast_to(a(m, 1, 3), (1, 1, 3)),
    "sort": lambda m: m.sort(a(m, 3, 4).t(), 0).values,
    "sort's indices": lambda m: m.sort(a(m, 3, 4).t(), 1, descending=True).indices,
    "sort in three dimensions": lambda m: m.sort(a(m, 3, 4, 5).permute(2, 0, 1), 1, descending=True).values,
    "sort the middle": lambda m: m.sort(-a(m, 2, 3, 4).permute(1, 2, 0), 2).indices,
    "sort with gaps": lambda m: m.sort(-a(m, 3, 8)[:, ::2], 1).values,
    "sort of an expanded one": lambda m: m.sort(a(m, 3, 1).expand(3, 4), 0, descending=True).values,
    "argsort": lambda m: m.argsort(-a(m, 3, 4).t(), 0),
    "msort": lambda m: m.msort(-a(m, 3, 4).t()),
    "topk": lambda m: m.topk(a(m, 3, 4).t(), 2, 0).values,
    "kthvalue": lambda m: m.kthvalue(a(m, 3, 4).t(), 2, 0).values,
    "kthvalue, keepdim": lambda m: m.kthvalue(a(m, 2, 3, 4).permute(2, 0, 1), 2, 1, True).indices,
    "median": lambda m: m.median(a(m, 2, 3, 4).permute(2, 0, 1), 1).values,
    "mode": lambda m: m.mode(a(m, 2, 3, 4).permute(2, 0, 1), 0).values,
    "flatten": lambda m: a(m, 3, 4).flatten(),
    "flatten that copies": lambda m: a(m, 3, 4).t().flatten(),
    "flatten that copies some": lambda m: a(m, 2, 3, 4).permute(0, 2, 1).flatten(1),
    "flatten of a recorded one": lambda m: (a(m, 3, 4).requires_grad_() * 1).t().flatten(),
    "reshape that copies": lambda m: a(m, 3, 4).t().reshape(2, 6),
    "reshape": lambda m: a(m, 3, 4).reshape(2, 6),
    "ravel": lambda m: a(m, 3, 4).t().ravel(),
    "unflatten": lambda m: a(m, 2, 6).unflatten(1, (2, 3)),
    "resize_ to the same": lambda m: a(m, 2, 3).clone().t().resize_(3, 2),
    "resize_ to fewer": lambda m: a(m, 2, 3).clone().t().resize_(2, 2),
    "resize_ to another": lambda m: a(m, 2, 3).clone().t().resize_(6),
    "resize_ of a part": lambda m: a(m, 6)[2:].resize_(2, 2),
    "resize_ to what the memory holds": lambda m: a(m, 6)[1:3].resize_(4),
    "resize_ to more": lambda m: a(m, 2, 3).clone().t().resize_(8)[:6],
    "row-major and channels last": lambda m: a(m, 2, 3, 2, 2) + last(m),
    "channels last and row-major": lambda m: last(m) + a(m, 2, 3, 2, 2),
    "expanded and channels last": lambda m: spread(m) * last(m),
    "channels last and expanded": lambda m: last(m) * spread(m),
    "a condition's layout": lambda m: m.where(last(m) > 3, a(m, 2, 3, 2, 2), spread(m)),
    "a mixture of expanded and channels last": lambda m: m.lerp(spread(m), last(m), 0.5),
    "cat of channels": lambda m: m.cat([last(m), last(m) + 30.0], 1),
    "cat of images": lambda m: m.cat([last(m), last(m) + 30.0]),
    "cat of columns": lambda m: m.cat([last(m), last(m) + 30.0], -1),
    "cat of two layouts": lambda m: m.cat([last(m), a(m, 2, 3, 2, 2)], 1),
    "two transposed": lambda m: a(m, 3, 4).t() + a(m, 4, 3),
    "gradient through the pool of all": lambda m: derived(
        m, lambda x: m.nn.functional.adaptive_avg_pool2d(x.relu(), 1)
    ),
    "resize_as_": lambda m: a(m, 2, 3).clone().t().resize_as_(m.ones(3, 2)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(torch, name):
    assert facts(LAYOUTS[name](tinytorch)) == facts(LAYOUTS[name](torch))


def test_resizing_stays_in_the_memory_that_is_there():
    x = a(tinytorch, 2, 3).clone()
    at, version = x.data_ptr(), x._version
    view = x[0]
    x.resize_(2, 2)
    assert x.data_ptr() == at and x._version > version
    x.fill_(7)
    assert view.tolist() == [7, 7, 7]
    x.resize_(100)
    assert x.data_ptr() != at and x[:4].tolist() == [7, 7, 7, 7]


def test_gradient_of_a_reshape_that_copies():
    x = a(tinytorch, 3, 4).requires_grad_()
    y = x.t().reshape(12)
    assert y.grad_fn.name() == "UnsafeViewBackward0"
    weights = a(tinytorch, 12)
    (y * y * weights).sum().backward()
    assert x.grad.tolist() == (2 * x * weights.view(4, 3).t()).tolist()


INDICES = {
    "lists": [[0, 1], [1, 2]],
    "one list": [[0, 1]],
    "three lists": [[0], [1], [1]],
    "four lists": [[0], [1], [1], [0]],
    "nested lists": [[[0, 1]], [[1, 0]]],
    "tuples": [(0, 1), (1, 2)],
    "ranges": [range(2), range(2)],
    "empty lists": [[], []],
    "empty": [],
    "numbers": [0, 1],
    "truth values": [True, False],
    "a slice": [slice(0, 1), 0],
    "None": [None, 0],
    "Ellipsis": [..., 0],
    "an array": [np.array([0, 1]), 0],
    "many": [[0]] * 40,
    "in a tuple": ([[0, 1], [1, 0]],),
    "text": ["a"],
}


@pytest.mark.parametrize("name", INDICES)
def test_lists_as_indices(torch, name):
    index = INDICES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = a(torch, 2, 3, 4)[index]
        except (IndexError, TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                a(tinytorch, 2, 3, 4)[index]
            with pytest.raises(type(error)):
                a(tinytorch, 2, 3, 4)[index] = 1.0
            return
        found = a(tinytorch, 2, 3, 4)[index]
        assert (tuple(found.shape), found.tolist()) == (tuple(wanted.shape), wanted.tolist())
        x, y = a(torch, 2, 3, 4), a(tinytorch, 2, 3, 4)
        x[index], y[index] = -1.0, -1.0
        assert x.tolist() == y.tolist()


def test_a_list_as_a_tuple_warns():
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        a(tinytorch, 2, 3, 4)[[[0, 1], [1, 2]]]


@pytest.mark.parametrize("name, shape", [("T", ()), ("T", (3,)), ("T", (2, 3, 4)), ("H", ()), ("mT", ()), ("mH", ())])
def test_transposes_of_what_is_no_matrix_warn(name, shape):
    with pytest.warns(UserWarning, match="deprecated"):
        getattr(tinytorch.ones(shape), name)


def test_a_mask_of_bytes_warns():
    mask = tinytorch.tensor([1, 0], dtype=tinytorch.uint8)
    with pytest.warns(UserWarning, match="uint8 is now deprecated"):
        assert a(tinytorch, 2, 3)[mask].tolist() == [[0, 1, 2]]


def delete(x):
    del x[0]


REFUSED = {
    "deleting an item": lambda m, x: delete(x),
    "alpha of bool": lambda m, x: m.add(x, x, alpha=True),
    "alpha of bool, ints": lambda m, x: m.sub(x.int(), x.int(), alpha=True),
    "alpha of bool in place": lambda m, x: x.clone().add_(x, alpha=True),
    "lerp of two dtypes": lambda m, x: m.lerp(x, x.double(), 0.5),
    "lerp's weight": lambda m, x: m.lerp(x, x, x.double()),
    "lerp in place": lambda m, x: x.clone().lerp_(x.double(), 0.5),
    "heaviside of two dtypes": lambda m, x: m.heaviside(x, x.double()),
    "heaviside_ of two dtypes": lambda m, x: x.clone().heaviside_(m.tensor(1)),
    "take_along_dim by int32": lambda m, x: m.take_along_dim(x, m.zeros(2, 1, dtype=m.int32), 1),
    "nonzero into floats": lambda m, x: m.nonzero(x, out=m.empty(0)),
    "nonzero as a tuple into a tensor": lambda m, x: m.nonzero(x, as_tuple=True, out=m.empty(0, dtype=m.int64)),
    "a dimension of bool": lambda m, x: x.sum(True),
    "a keyword of bool": lambda m, x: x.mean(dim=True),
    "sort along a bool": lambda m, x: m.sort(x, True),
    "topk of bool": lambda m, x: m.topk(x, True),
    "topk along a bool": lambda m, x: m.topk(x, 1, True),
    "negative sizes": lambda m, x: m.broadcast_shapes((2, -1), (2, 1)),
    "isposinf into floats": lambda m, x: m.isposinf(x, out=m.empty(2, 3)),
    "sort into integers": lambda m, x: m.sort(x, 0, out=(m.empty(0), m.empty(0))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(torch, name):
    with pytest.raises((RuntimeError, TypeError, ValueError)) as wanted:
        REFUSED[name](torch, a(torch, 2, 3))
    with pytest.raises(wanted.type):
        REFUSED[name](tinytorch, a(tinytorch, 2, 3))


def test_small_things(torch):
    for m in (torch, tinytorch):
        assert tuple(m.block_diag().shape) == (1, 0)
        F, half = m.nn.functional, m.tensor([-1.0, 2.0], dtype=m.float16)
        assert F.celu(half, alpha=2.0**31).tolist() == [-1, 2]
        assert F.celu(half, alpha=1e-8).tolist() == [0, 2]
        assert m.isposinf(half / 0, out=m.empty(0, dtype=m.bool)).tolist() == [False, True]
        assert repr(m.ones(1).expand(2**40)) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


@pytest.mark.parametrize(
    "equation",
    """
    ij,kl->ikjl ij,kl->ijkl ij,jk->ik ij,jk->ki ij,kj->ki i,j->ij i,j->ji bi,bj->bij ij,k->kij ij,k->ikj abc,cd->dab
    abc,cd->abd bhid,bhjd->bhij bhij,bhjd->bihd ij,ik->jk ij,jk,kl->il ai,bi,ci->abc bij,bij->b ijk->kji ij,ij->ji
    """.split(),  # noqa: SIM905 (a list of words)
)
def test_einsum_lies_as_pytorchs(torch, equation):
    """Programs take views of the result: Kronecker products, heads of attention."""
    sizes = {c: 2 + k % 3 for k, c in enumerate("abcdhijkl")}
    results = [
        m.einsum(equation, *(a(m, *(sizes[c] for c in term)) for term in equation.partition("->")[0].split(",")))
        for m in (tinytorch, torch)
    ]
    assert results[0].stride() == results[1].stride() and results[0].tolist() == results[1].tolist()
