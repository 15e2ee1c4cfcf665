"""Parameters have PyTorch's names: every overload of its type stubs can be called with them."""

import ast
import inspect
import pathlib

import pytest

import tinytorch

# Parameters of everything that makes a tensor; what the stubs say, but PyTorch itself refuses; and overloads that are
# missing: products of another dtype, the raw kernels of dropout and embedding, which differ from those of
# nn.functional, numbers as operands of result_type and isin by keyword.
COMMON = {"self", "out", "dtype", "layout", "device", "requires_grad", "pin_memory", "generator", "memory_format"}
REFUSED = {("requires_grad_", "mode"), ("to", "other"), ("new", "cls"), ("new", "other"), ("new", "storage")}
MISSING = {(name, "out_dtype") for name in ("mm", "bmm", "addmm", "baddbmm")}
MISSING |= {(f"{kind}dropout", "train") for kind in ("", "alpha_", "feature_alpha_")}
MISSING |= {("embedding", "sparse"), ("full", "names"), ("dequantize", "tensors")}
MISSING |= {("result_type", p) for p in ("other", "scalar", "scalar1", "scalar2", "tensor")}
MISSING |= {("detach", "input"), ("isin", "element"), ("isin", "test_element"), ("set_num_threads", "num")}


def overloads(torch, file, owner):
    """(name, the names of parameters that may be given by keyword) of each overload."""
    tree = ast.parse((pathlib.Path(torch.__file__).parent / "_C" / file).read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
    for node in (classes or [tree])[0].body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, {a.arg for a in node.args.args + node.args.kwonlyargs}


@pytest.mark.parametrize(
    "file, owner, namespace",
    [
        ("__init__.pyi", "TensorBase", tinytorch.Tensor),
        ("_VariableFunctions.pyi", None, tinytorch),
    ],
    ids=["methods", "functions"],
)
def test_names_are_pytorchs(torch, file, owner, namespace):
    lacking, compared = [], 0
    for name, wanted in overloads(torch, file, owner):
        ours = getattr(namespace, name, None)
        if ours is None:
            continue
        try:
            parameters = inspect.signature(ours).parameters.values()
        except ValueError:  # of a class, or written in C
            continue
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            continue
        compared += 1
        have = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        lacking += [
            (name, p) for p in wanted - have - COMMON if not p.startswith("_") and (name, p) not in REFUSED | MISSING
        ]
    assert compared > 300
    print(sorted(set(lacking)))
    assert sorted(set(lacking)) == []


X = tinytorch.arange(6.0).reshape(2, 3)
CALLS = {
    "view": (lambda: X.view(size=(3, 2)), lambda: X.view(3, 2)),
    "view dtype": (lambda: X.view(dtype=tinytorch.int32), lambda: X.view(tinytorch.int32)),
    "reshape": (lambda: X.reshape(shape=(3, -1)), lambda: X.reshape(3, 2)),
    "expand": (lambda: X.expand(size=(4, 2, 3)), lambda: X.expand(4, 2, 3)),
    "permute": (lambda: X.permute(dims=(1, 0)), lambda: X.permute(1, 0)),
    "flip": (lambda: X.flip(dims=(0,)), lambda: X.flip(0)),
    "squeeze": (lambda: X[:1].squeeze(dim=0), lambda: X[0]),
    "repeat": (lambda: X.repeat(repeats=(2, 1)), lambda: X.repeat(2, 1)),
    "tile": (lambda: X.tile(dims=(2,)), lambda: X.tile(2)),
    "sum_to_size": (lambda: X.sum_to_size(size=(1, 3)), lambda: X.sum(0, keepdim=True)),
    "swapaxes": (lambda: X.swapaxes(axis0=0, axis1=1), lambda: X.t()),
    "swapaxes_": (lambda: X.clone().swapaxes_(axis0=0, axis1=1), lambda: X.t()),
    "split": (lambda: X.split(split_size=2, dim=1)[1], lambda: X[:, 2:]),
    "tensor_split sections": (lambda: X.tensor_split(sections=2)[1], lambda: X[1:]),
    "tensor_split indices": (lambda: X.tensor_split(indices=[1], dim=1)[1], lambda: X[:, 1:]),
    "hsplit": (lambda: X.hsplit(sections=3)[0], lambda: X[:, :1]),
    "pow_": (lambda: X.clone().pow_(exponent=2), lambda: X**2),
    "heaviside": (lambda: X.heaviside(values=X), lambda: (X > 0).float()),
    "heaviside_": (lambda: X.clone().heaviside_(values=X), lambda: (X > 0).float()),
    "round_": (lambda: (X / 7).round_(decimals=1), lambda: (X / 7).round(decimals=1)),
    "resize_": (lambda: X.clone().resize_(size=(3, 2)), lambda: X.reshape(3, 2)),
    "copy_": (lambda: tinytorch.zeros(2, 3).copy_(other=X), lambda: X),
    "new": (lambda: X.new(size=(2, 3)).zero_(), lambda: X * 0),
    "broadcast_to": (lambda: X.broadcast_to(size=(1, 2, 3)), lambda: X[None]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_by_keyword(name):
    call, wanted = CALLS[name]
    got, wanted = call(), wanted()
    assert got.shape == wanted.shape and tinytorch.equal(got, wanted)


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.tensor_split(2, sections=2),
        lambda: X.tensor_split(),
        lambda: X.view(),
        lambda: X.view(3, 2, dtype=tinytorch.int32),
        lambda: X.expand(2, size=(2, 3)),
        lambda: X.permute(),
    ],
    ids=["sections twice", "no sections", "view of nothing", "view of both", "size twice", "permute of nothing"],
)
def test_arguments_that_are_missing_or_given_twice(call):
    with pytest.raises(TypeError):
        call()


A, V, B = tinytorch.arange(4.0).reshape(2, 2), tinytorch.arange(2.0) + 1, tinytorch.arange(8.0).reshape(2, 2, 2)
OLD_ORDERS = {
    "add": (lambda: A.add(2, A), lambda: A.add(A, alpha=2)),
    "torch.add": (lambda: tinytorch.add(A, 2, A), lambda: A.add(A, alpha=2)),
    "add_": (lambda: A.clone().add_(2, A), lambda: A.add(A, alpha=2)),
    "sub": (lambda: tinytorch.sub(A, 2, A), lambda: A.sub(A, alpha=2)),
    "sub_": (lambda: A.clone().sub_(2, A), lambda: A.sub(A, alpha=2)),
    "addmm": (lambda: tinytorch.addmm(2, A, 3, A, A), lambda: A.addmm(A, A, beta=2, alpha=3)),
    "addmm beta": (lambda: tinytorch.addmm(2, A, A, A), lambda: A.addmm(A, A, beta=2)),
    "Tensor.addmm": (lambda: A.addmm(2, 3, A, A), lambda: A.addmm(A, A, beta=2, alpha=3)),
    "addmm_": (lambda: A.clone().addmm_(2, 3, A, A), lambda: A.addmm(A, A, beta=2, alpha=3)),
    "addmv": (lambda: V.addmv(2, 3, A, V), lambda: V.addmv(A, V, beta=2, alpha=3)),
    "addr": (lambda: A.addr(2, V, V), lambda: A.addr(V, V, beta=2)),
    "baddbmm": (lambda: tinytorch.baddbmm(2, B, 3, B, B), lambda: B.baddbmm(B, B, beta=2, alpha=3)),
    "addbmm": (lambda: tinytorch.addbmm(2, A, 3, B, B), lambda: A.addbmm(B, B, beta=2, alpha=3)),
    "addcmul": (lambda: tinytorch.addcmul(A, 2, A, A), lambda: A.addcmul(A, A, value=2)),
    "addcmul_": (lambda: A.clone().addcmul_(2, A, A), lambda: A.addcmul(A, A, value=2)),
    "addcdiv": (lambda: A.addcdiv(2, A, A + 1), lambda: A.addcdiv(A, A + 1, value=2)),
    "addcdiv_": (lambda: A.clone().addcdiv_(2, A, A + 1), lambda: A.addcdiv(A, A + 1, value=2)),
}


@pytest.mark.parametrize("name", OLD_ORDERS)
@pytest.mark.filterwarnings("ignore:.*numbers between the tensors")
def test_deprecated_orders(name):
    call, wanted = OLD_ORDERS[name]
    assert tinytorch.equal(call(), wanted())


@pytest.mark.parametrize("call", [lambda: A.add(A, A), lambda: A.addmm(A, A, A), lambda: A.addmm(1, 2, 3, A, A)])
def test_too_many_arguments(call):
    with pytest.raises(TypeError):
        call()
