"""What can be seen of a program's results, down to the bits; and where two of them differ."""

import numpy as np

import tinytorch


def canonical(array):
    """The bytes of an array, every NaN alike: its sign and payload are not promised, in eager mode either."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return np.ascontiguousarray(array).tobytes()


def bits(t):
    """The bytes of a tensor's elements."""
    t = t.detach().cpu()
    if t.dtype is tinytorch.bfloat16:
        pattern = t.clone(memory_format=tinytorch.contiguous_format).view(tinytorch.int16).numpy()
        return np.where((pattern & 0x7FFF) > 0x7F80, np.int16(0x7FC0), pattern).tobytes()
    return canonical(t.numpy())


def history(t):
    """The name of its Node; the error of a view whose history is refused, since its base was written."""
    try:
        return t.grad_fn and t.grad_fn.name()
    except RuntimeError as exc:
        return str(exc)


def facts(value):
    """What a user can see of a value: a dict of plain objects."""
    if isinstance(value, tinytorch.Tensor):
        seen = {
            "dtype": value.dtype,
            "shape": tuple(value.shape),
            "stride": value.stride(),
            "storage_offset": value.storage_offset(),
            "_version": value._version,
            "is_leaf": value.is_leaf,
            "requires_grad": value.requires_grad,
            "grad_fn": history(value),
            "bits": bits(value),
        }
        if value.is_leaf or value.retains_grad:
            seen["grad"] = value.grad if value.grad is None else facts(value.grad)
        return seen
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype, "shape": value.shape, "bits": canonical(value)}
    return {"value": repr(value)}


def snapshot(names):
    """The facts of every name; what is computed later does not change them."""
    return {name: facts(value) for name, value in names.items()}


def differences(wanted, got):
    """Lines that tell how two snapshots differ; none if they do not."""
    told = [f"{name} is there on one side alone" for name in sorted(wanted.keys() ^ got.keys())]
    for name in wanted:
        told += [f"{name}.{line}" for line in _compared(wanted[name], got.get(name, wanted[name]))]
    return told


def _compared(wanted, got):
    for key in wanted.keys() | got.keys():
        w, g = wanted.get(key), got.get(key)
        if w == g:
            continue
        if key == "grad" and w and g:
            yield from (f"grad.{line}" for line in _compared(w, g))
        elif key == "bits":
            yield _where(wanted, got)
        else:
            yield f"{key}: {w} eagerly, {g} fused"


def _where(wanted, got):
    if str(wanted["dtype"]) != str(got["dtype"]) or wanted["shape"] != got["shape"]:
        return "bits differ"
    name = str(wanted["dtype"]).rpartition(".")[2]
    dtype = np.dtype("int16" if name == "bfloat16" else name)
    w, g = (np.frombuffer(s["bits"], dtype) for s in (wanted, got))
    width = np.dtype(f"u{dtype.itemsize}")
    at = np.flatnonzero(w.view(width) != g.view(width))
    first = tuple(int(i) for i in np.unravel_index(at[0], wanted["shape"]))
    return (
        f"bits: {len(at)} of {w.size} elements differ, the first at {first}: {w[at[0]]!r} eagerly, {g[at[0]]!r} fused"
    )
