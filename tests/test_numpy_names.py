"""``axis=`` and ``keepdims=``, NumPy's names of ``dim`` and ``keepdim``, wherever PyTorch takes them."""

import numpy as np
import pytest

import tinytorch

X = [[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]
REDUCTIONS = [
    "sum",
    "mean",
    "nansum",
    "nanmean",
    "prod",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "any",
    "all",
    "max",
    "min",
    "median",
    "nanmedian",
    "mode",
    "var",
    "std",
    "logsumexp",
]
OTHERS = [
    "softmax",
    "log_softmax",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "logcumsumexp",
    "sort",
    "argsort",
    "diff",
    "count_nonzero",
    "unbind",
]


def lists(result):
    return [r.tolist() for r in result] if isinstance(result, (tuple, list)) else result.tolist()


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("keep", [{}, {"keepdims": True}, {"keepdim": True}], ids=str)
def test_reductions(torch, name, keep):
    wanted = lists(getattr(torch.tensor(X), name)(axis=1, **keep))
    x = tinytorch.tensor(X)
    got = getattr(x, name)(axis=1, **keep), getattr(tinytorch, name)(x, axis=-1, **keep)
    assert lists(got[0]) == lists(got[1]) == lists(getattr(x, name)(dim=1, keepdim=bool(keep)))
    np.testing.assert_allclose(lists(got[0]), wanted, rtol=1e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_others(torch, name):
    getattr(torch.tensor(X), name)(axis=0)  # PyTorch takes it
    x = tinytorch.tensor(X)
    wanted = lists(getattr(x, name)(dim=0))
    assert lists(getattr(x, name)(axis=0)) == lists(getattr(tinytorch, name)(x, axis=0)) == wanted


def test_where_calls_are_overridden():
    """A mode gives public functions other code, from which defaults cannot be read."""
    x = tinytorch.tensor(X)
    with tinytorch.overrides.BaseTorchFunctionMode():
        for name in ("cumsum", "sort", "argsort", "unsqueeze_copy", "var", "prod", "logsumexp"):
            function = getattr(tinytorch, name)
            assert lists(function(x, axis=0)) == lists(function(x, 0))
            with pytest.raises(TypeError, match="axis"):
                function(x, 1, axis=0)


def test_joins_and_splits():
    x = tinytorch.tensor(X)
    assert tinytorch.cat([x, x], axis=1).shape == (2, 6) and tinytorch.stack([x, x], axis=2).shape == (2, 3, 2)
    assert [p.shape for p in x.split(2, axis=1)] == [(2, 2), (2, 1)] and len(x.chunk(3, axis=1)) == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(1, axis=1),
        lambda x: x.max(1, axis=0),
        lambda x: x.sort(0, axis=0),
        lambda x: x.amax(0, axis=0),
        lambda x: x.softmax(0, axis=0),
        lambda x: x.softmax(),
        lambda x: x.cumsum(),
    ],
)
def test_neither_or_both(call):
    with pytest.raises(TypeError, match="axis|missing 1 required positional argument: 'dim'"):
        call(tinytorch.tensor(X))
