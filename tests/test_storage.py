"""Storages: programs that must say the same with PyTorch and with tinytorch."""

import copy
import io
import os
import pickle
import tempfile
import warnings

import pytest
from autograd.rules import agree, outcome, programs

import tinytorch
from tinytorch import warn_once

PROGRAMS, program = programs()

# x is arange(6.), u its storage of bytes, v that of x[2:], s its storage of elements.
EXPRESSIONS = """
u is v; u == v; hash(u) == hash(v); u._cdata == v._cdata; u.data_ptr() == x.data_ptr(); x.clone().untyped_storage() is u
len(u); u.nbytes(); u.size(); u[4]; u[-1]; u[3:8].tolist(); type(u[3:6]).__name__; list(u); u.tolist(); u.is_cuda
bool(u); u.element_size(); u.is_shared(); u.clone().tolist(); u.clone().data_ptr() == u.data_ptr(); u.cpu() is u
u.untyped() is u; str(u.device); u.to(device="cpu") is u; u.copy_(y.untyped_storage()) is u
x.fill_(1).tolist() and u.tolist(); u.fill_(0) is u; u.float().tolist()[:3]; u.int().tolist()[:3]; u.bool().tolist()[:8]
u[100]; u[-25]; u[0.5]; u["a"]; u[::2]; u.new().size(); u.__setitem__(0, 300); u.__setitem__(0, 1.5)
torch.UntypedStorage().size(); len(torch.UntypedStorage(5)); u.is_pinned(); torch.UntypedStorage([1, 2, 300]).tolist()
torch.UntypedStorage("a"); torch.UntypedStorage(3, device="cpu").nbytes(); u.copy_(torch.UntypedStorage(3)); s.size()
len(s); s[0]; s[-1]; s[1:3]; s[9]; s.tolist(); list(s); s.nbytes(); s.is_cuda; s.data_ptr() == x.data_ptr()
s.element_size(); s.copy_(y.storage()).tolist(); s.fill_(3).tolist(); s.clone().tolist(); s == s; s._cdata == u._cdata
s.untyped() is u; s.double().tolist(); s.int().tolist(); s.is_shared(); s.cpu().tolist(); hash(s) == 0
s.dtype is torch.float32; s.double().dtype is torch.float64
torch.TypedStorage([1.0, 2.0], dtype=torch.float64).tolist(); torch.TypedStorage(3).size()
torch.TypedStorage(wrap_storage=u, dtype=torch.int32).tolist(); torch.TypedStorage(wrap_storage=x); torch.is_storage(u)
torch.is_storage(s); torch.is_storage(x); len(u.resize_(8)); u.resize_(8).tolist(); len(u.resize_(8).resize_(24))
len(torch.UntypedStorage(3).resize_(5000)); s.resize_(2); torch.UntypedStorage([1, 2, 3]).resize_(5000).tolist()[:3]
u.resize_(-1); x[2:].storage().size(); x[2:].storage_offset(); e.set_(u).tolist(); e.set_(u, 1, (2, 2)).tolist()
e.set_(u, 1, (2, 2), (1, 2)).tolist(); e.set_(s).tolist(); e.set_(3); e.set_(s, 2, (3,)).tolist()
e.set_(u, storage_offset=1, size=(2,), stride=(2,)).tolist(); e.set_(u, -1, (2,))
e.set_(source=u, storage_offset=1, size=torch.Size([2]), stride=(1,)).tolist(); e.set_().shape
e.set_(torch.arange(3).storage()); e.set_(u).untyped_storage() is u; e.set_(u, 2, (2,)).data_ptr() == x.data_ptr() + 8
torch.tensor([], dtype=torch.uint8).set_(torch.UntypedStorage([1, 2, 3])).tolist(); x.is_shared(); repr(u).count("\\n")
torch.empty(0, dtype=torch.int32).set_(u).shape; copy.copy(u).tolist(); x.share_memory_() is x
torch.FloatStorage(3).size(); torch.FloatStorage([1, 2.5]).tolist(); torch.ByteStorage.from_buffer(b"abc").tolist()
type(torch.FloatStorage([1])).__name__; isinstance(s, torch.FloatStorage); isinstance(s, torch.DoubleStorage)
torch.UntypedStorage.from_buffer(b"abcd", dtype=torch.uint8).tolist(); torch.FloatStorage.from_buffer(b"abcd", "lit")
torch.HalfStorage.dtype is torch.float16; torch.FloatStorage.from_buffer(b"abcdefgh", "big").tolist()
s._new_shared(3).tolist()
torch.ShortStorage.from_buffer(b"abcdefgh", "little", 2, 2).tolist(); torch.FloatStorage.from_buffer(b"abc", "big")
torch.FloatStorage.from_buffer(b"abcd"); torch.ByteStorage.from_buffer(b"abc", offset=3); s.pickle_storage_type()
torch.ByteTensor(torch.ByteStorage.from_buffer(b"abc")).tolist(); torch.FloatTensor(torch.ByteStorage(3))
torch.FloatStorage._new_shared(3).is_shared(); u._new_shared(8).is_shared(); x._typed_storage()._new_shared(2).tolist()
x.new(s).data_ptr() == x.data_ptr(); x.new(u).tolist()
x.new(x._typed_storage()._new_shared(6)).resize_(2, 3).is_shared()
x.new(torch.LongStorage([1])); x.storage_type().__name__; torch.UntypedStorage.from_buffer(b"abcd").tolist()
torch.FloatStorage(wrap_storage=u).tolist(); torch.FloatStorage(3, 4); e.set_(torch.FloatStorage([3, 1])).tolist()
x.share_memory_().tolist(); x.share_memory_().is_shared(); torch.UntypedStorage(8).share_memory_().is_shared()
torch.empty(0).share_memory_().tolist(); u.byteswap(torch.float32)
"""
CASES = [case.strip() for line in EXPRESSIONS.strip().splitlines() for case in line.split(";")]


def evaluate(case, torch):
    """The value of an expression of the table, and the elements afterwards."""
    x = torch.arange(6.0)
    names = {
        "torch": torch, "copy": copy, "x": x, "y": torch.ones(6), "e": torch.empty(0), "u": x.untyped_storage(),
        "v": x[2:].untyped_storage(), "s": x.storage(),
    }  # fmt: skip
    value = outcome(lambda: eval(case, names))
    return value, None if "resize" in case else x.tolist()


@pytest.mark.parametrize("case", CASES)
def test_expression(case, torch):
    agree(lambda library: evaluate(case, library), torch)


@program
def writes_are_seen(torch):
    x = torch.zeros(4, dtype=torch.uint8)
    u, typed = x.untyped_storage(), torch.zeros(3)
    u[1], u[2:4] = 7, 9
    s = typed.storage()
    s[0] = 2.5
    return x.tolist(), typed.tolist(), x._version, typed._version


@program
def writes_go_unnoticed_by_backward(torch):
    w = torch.ones(3, requires_grad=True)
    out = (w * w).sum()
    w.untyped_storage().fill_(0)
    out.backward()
    return w.grad.tolist(), w.tolist()


@program
def copies_share_what_was_shared(torch):
    x = torch.arange(4.0)
    d = copy.deepcopy({"a": x, "b": x[1:], "s": x.untyped_storage()})
    d["a"][1] = 50
    return (
        d["b"].tolist(), x.tolist(), d["s"].data_ptr() == d["a"].data_ptr(), d["s"].tolist()[4:8],
        d["a"].untyped_storage() is d["s"],
    )  # fmt: skip


@program
def pickles_share_what_was_shared(torch):
    x = torch.arange(4.0)
    file = io.BytesIO()
    torch.save([x, x[1:]], file)
    file.seek(0)
    a, b = torch.load(file, weights_only=False)
    a[1] = 50
    return b.tolist(), b.untyped_storage() is a.untyped_storage()


@program
def shared_in_place(torch):
    x = torch.arange(6.0).reshape(2, 3).t()
    x.share_memory_()
    y = x[1:]
    p = torch.nn.Parameter(torch.ones(2))
    before = p._version
    q = p.share_memory_()
    (p * 2).sum().backward()
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    return (
        x.is_shared(), y.is_shared(), y.untyped_storage().is_shared(), x.tolist(), x.stride(), q is p, p.grad.tolist(),
        p._version == before, model.share_memory() is model, [t.is_shared() for t in model.parameters()],
        p.requires_grad, p.grad.is_shared(), x.clone().is_shared(),
    )  # fmt: skip


@program
def files_are_mapped(torch):
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "numbers")
        with open(path, "wb") as file:
            file.write(bytes(range(8)))
        private = torch.from_file(path, size=8, dtype=torch.uint8)
        private += 1
        shared = torch.from_file(path, True, 4, dtype=torch.int16)
        shared[0] = 1000
        results += [private.tolist(), shared.tolist(), torch.from_file(path, dtype=torch.uint8).shape]
        longer = torch.from_file(os.path.join(folder, "made"), shared=True, size=3, dtype=torch.float64)
        longer.fill_(2.5)
        results += [longer.tolist(), torch.DoubleStorage.from_file(os.path.join(folder, "made"), False, 2).tolist()]
        results += [torch.UntypedStorage.from_file(path, True, 3).tolist(), os.path.getsize(path)]
        for name, size in (("numbers", 100), ("absent", 1)):
            results.append(outcome(lambda name=name, size=size: torch.from_file(os.path.join(folder, name), size=size)))
    return results


@program
def files_as_memory(torch):
    """Both ways of mapping, what is written, and what is refused."""
    from_file = torch.UntypedStorage.from_file
    with tempfile.TemporaryDirectory() as folder:
        path, absent = os.path.join(folder, "a"), os.path.join(folder, "b")
        with open(path, "wb") as f:
            f.write(bytes(range(16)))
        own, whole = from_file(path, nbytes=8), from_file(path, False, 16)
        own[0] = 77
        with open(path, "rb") as f:
            told = [own.tolist(), f.read()[0], from_file(path).tolist(), from_file(path, False, 16).nbytes()]
        told += [torch.asarray(whole[4:8], dtype=torch.uint8).view(torch.float32).tolist(), whole.device.type]
        x = torch.empty(0, dtype=torch.int16).set_(own, 1, (2,), (1,)).clone()
        joint = from_file(path, True, 20)
        joint[1] = 99
        with open(path, "rb") as f:
            told += [x.tolist(), list(f.read()), joint.tolist()]
        made = from_file(absent, shared=True, nbytes=3)
        made.fill_(5)
        with open(absent, "rb") as f:
            told.append(list(f.read()))
        for call in (
            lambda: from_file(path, False, 21),
            lambda: from_file(os.path.join(folder, "c"), False, 1),
            lambda: from_file(os.path.join(folder, "d", "e"), True, 1),
            lambda: from_file(path, False, -1),
        ):
            told.append(outcome(call))
        return told


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)


def test_typed_storage_warns_once():
    warn_once.told.pop("TypedStorage", None)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated") as seen:
        tinytorch.ones(2).storage()
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tinytorch.ones(2).storage()


def test_what_tensors_show_does_not_move():
    x = tinytorch.arange(6.0)
    view = x[1:]
    with pytest.raises(RuntimeError, match="other tensors show the same memory"):
        x.share_memory_()
    with pytest.raises(RuntimeError, match="tensors show it"):
        x.untyped_storage().share_memory_()
    with pytest.raises(RuntimeError, match="tensors show it"):
        x.untyped_storage().resize_(1 << 20)
    assert view.tolist() == x.tolist()[1:] and not x.is_shared()


def test_a_held_storage_moves_with_its_tensor():
    x = tinytorch.arange(3.0)
    u = x.untyped_storage()
    x.share_memory_()
    u[3] = 64
    assert u.is_shared() and x.untyped_storage() is u and u.data_ptr() == x.data_ptr() and x[0].item() == 2.0


def test_shared_memory_is_freed():
    from tinytorch.shared_memory import _blocks

    before = len(_blocks)
    x = tinytorch.ones(1000).share_memory_()
    y = x[1:]
    del x
    assert len(_blocks) == before + 1 and y.sum().item() == 999
    del y
    assert len(_blocks) == before


def test_a_parameter_in_shared_memory_trains():
    model = tinytorch.nn.Linear(2, 1).share_memory()
    optimizer = tinytorch.optim.Adam(model.parameters(), lr=0.1)
    x = tinytorch.ones(4, 2)
    first = model(x).square().mean()
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < first.item() and all(p.is_shared() for p in model.parameters())


@pytest.mark.parametrize("pack", ["pickle", "save"])
def test_storages_are_kept_beside_tensors(pack):
    x = tinytorch.arange(4.0)
    given = [x, x.untyped_storage(), x.storage()]
    if pack == "pickle":
        y, u, s = pickle.loads(pickle.dumps(given))
    else:
        file = io.BytesIO()
        tinytorch.save(given, file)
        file.seek(0)
        y, u, s = tinytorch.load(file, weights_only=False)
    y[0] = 2.0
    assert u is y.untyped_storage() is s.untyped() and u[3] == 64 and s.tolist() == y.tolist()


def test_a_view_moves_with_its_base():
    base = tinytorch.zeros(6)
    view = base.view(2, 3)
    view.share_memory_()
    base[0], view[1, 2] = 1.0, 2.0
    assert base.tolist() == [1.0, 0, 0, 0, 0, 2.0] == view.flatten().tolist() and base.is_shared()
    assert view._base is base and view._is_view()
