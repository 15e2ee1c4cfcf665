"""Views and writes in place.

Note [Views in the graph]
A view knows its base (``_view``, never a view itself) and, in its descriptor's flags, how it was made. A write in place
through any of them

- bumps the storage's version, so every other view of the base is *stale*: the C kernels decline it, and ``refresh``
  gives it a new history, the base's followed by ``as_strided``;
- if it is recorded and went through a view, rewrites the base's history: ``CopySlices``, whose derivative replaces the
  written part of the base's gradient.
"""

from __future__ import annotations

import itertools

from ..backends.cpu import lib
from ..backends.native import last_write
from ..tensor import FUNCTIONS, Tensor
from .engine import post_process, retain
from .modes import current, modes
from .node import AccumulateGrad, Node, Port, address, count, describe, link, overwrites, unpack, writers

FLAG_VIEW, FLAG_DEVICE, FLAG_INFERENCE = lib.TT_FLAG_VIEW, lib.TT_FLAG_DEVICE, lib.TT_FLAG_INFERENCE
DEFAULT, NO_GRAD, MULTI_OUTPUT, CUSTOM, INFERENCE = range(5)  # how a view was made
CREATION_BITS, CREATION = lib.TT_FLAG_CREATION, lib.TT_CREATION_SHIFT  # where that stands in its flags

_REFUSALS = {
    NO_GRAD: ("A view was created in no_grad mode", " with grad mode enabled."),
    INFERENCE: ("A view was created in inference mode", " in normal mode."),
    MULTI_OUTPUT: (
        "is a view",
        ". This view is the output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    ),
    CUSTOM: (
        "is a view",
        ". This view was created inside a custom Function (or because an input was returned as-is), whose derivative "
        "the write would override. Please clone() the result inside the Function.",
    ),
}


def refusal(t: Tensor, what: str) -> str:
    """Why the view ``t`` may not be written (``what`` says how), or used after its base was."""
    start, end = _REFUSALS[creation_of(t)]
    if start.startswith("is"):
        node = t._node
        of = "a function" if node is None else (node.edges[0] if type(node) is Port else node).name()
        start = f"Output {node.saved[0] if type(node) is Port else 0} of {of.partition('Backward')[0]} {start}"
    return f"{start} and {what}{end}"


def base_of(t: Tensor) -> Tensor | None:
    """The base of ``t``, or None if it is not a differentiable view."""
    return t._view if t._h.flags & FLAG_VIEW else None


def creation_of(t: Tensor) -> int:
    """How a view was made."""
    return t._h.flags >> CREATION & 7


def track(source: Tensor, out: Tensor, creation: int = DEFAULT) -> Tensor:
    """Makes ``out``, which shows elements of ``source``, a differentiable view."""
    if source._h.flags & FLAG_INFERENCE:
        return out
    if source._h.flags & FLAG_VIEW:
        out._view, creation = source._view, creation or creation_of(source)
    else:
        out._view = source
    if modes and not creation:
        mode = current()
        creation = DEFAULT if mode.grad else INFERENCE if mode.inference else NO_GRAD
        if creation == INFERENCE and source._node is not None:
            out._grad, out._node = None, AccumulateGrad(out)
    h = out._h
    h.seen_version = lib.tt_version_of(h)
    h.flags = h.flags & ~CREATION_BITS | FLAG_VIEW | creation << CREATION
    return out


def refresh(*tensors: Tensor | None) -> None:
    """Brings the histories of views among ``tensors`` up to date with writes to their bases."""
    for t in tensors:
        if t is None or not t._h.flags & FLAG_VIEW:
            continue
        h = t._h
        version = lib.tt_version_of(h)
        if h.seen_version == version:
            continue
        h.seen_version = version
        base = t._view
        if base._node is None:
            continue
        if creation_of(t) != DEFAULT:
            why = refusal(t, "its base or another view of its base has been modified inplace")
            t._node = link(Invalid, (base._node,), (why,), ())
            continue
        if isinstance(base._node, AccumulateGrad) and t._node is not None:
            continue  # written under no_grad: the history is as it was
        t._node = strided_history(t, base)


def _invalid(g, saved, edges):
    raise RuntimeError(saved[0])


class Invalid(Node):
    """The history of a view that may not outlive a write to its base. ``saved[0]`` says why."""

    __slots__ = ()
    op = "view"
    backward = first_order = staticmethod(_invalid)


def outrun(*tensors) -> bool:
    """Has another thread written, since ``refresh``, to memory that a view among ``tensors`` shows? A C call that
    declined is made again then."""
    if lib.tt_error_kind() != lib.TT_DECLINED:
        return False
    handles = [t._h for t in tensors if isinstance(t, Tensor)]
    return any(h.flags & FLAG_VIEW and h.seen_version != lib.tt_version_of(h) for h in handles)


def strided_history(t: Tensor, base: Tensor) -> Node:
    """The Node that derives the view ``t`` from its base's present history."""
    return link(AsStridedBackward0, (base._node,), geometry(base, t), ())


def geometry(base: Tensor, t: Tensor) -> tuple:
    """Base's shape and strides; the view's shape, strides and start relative to the base's; which of the two are of
    complex numbers. Where one is, and the other shows their parts, all is counted in parts."""
    complex_base, complex_view = base.is_complex(), t.is_complex()
    if complex_base is complex_view:
        return (
            base.shape,
            base.stride(),
            t.shape,
            t.stride(),
            t.storage_offset() - base.storage_offset(),
            False,
            False,
        )
    layouts = [_in_parts(x) if x.is_complex() else (x.shape, x.stride(), x.storage_offset()) for x in (base, t)]
    (shape, stride, first), (size, steps, start) = layouts
    return (shape, stride, size, steps, start - first, complex_base, complex_view)


def _in_parts(t: Tensor) -> tuple:
    """The shape, strides and start of complex numbers as pairs of parts."""
    return (*t.shape, 2), (*[2 * s for s in t.stride()], 1), 2 * t.storage_offset()


def _parts(g, are_complex: bool):
    return FUNCTIONS["view_as_real"](g) if are_complex else g


def _joined(g, are_complex: bool):
    return FUNCTIONS["view_as_complex"](g.contiguous()) if are_complex else g


def _as_strided_backward(g, saved, edges):
    shape, stride, size, steps, start, complex_base, complex_view = saved
    g = _parts(g, complex_view)
    zeros = g.new_zeros(()).expand(shape).with_layout(shape, stride)
    return (_joined(zeros.as_strided_scatter(g, size, steps, start), complex_base),)


class AsStridedBackward0(Node):
    """The history of a view of a base that was written in place."""

    __slots__ = ()
    op = "as_strided"
    backward = first_order = staticmethod(_as_strided_backward)


def _copy_slices_backward(g, saved, edges):
    inner, (shape, stride, size, steps, start, complex_base, complex_view) = saved
    g = _parts(g, complex_base).with_layout(shape, stride)
    part = _joined(g.as_strided(size, steps, start), complex_view)
    grads = inner.backward(part, unpack(inner, current().grad), inner.edges)
    if inner.extra is not None and inner.extra.unbroadcast_to is not None:
        grads = post_process(inner, inner.extra, grads, part)
    rest = None
    if edges[0] is not None:
        kept = part.new_zeros(()).expand(part.shape) if grads[0] is None else grads[0]
        rest = _joined(g.as_strided_scatter(_parts(kept, complex_view), size, steps, start), complex_base)
    return (rest, *grads[1:])


class CopySlices(Node):
    """The history of a base that was written through a view: ``saved`` holds the write's own Node."""

    __slots__ = ()
    op = "copy_slices"
    holds = 1
    backward = first_order = staticmethod(_copy_slices_backward)


_writer_numbers: dict[str, int] = {}
_numbers = itertools.count()


def writer_number(name: str) -> int:
    """The number under which a storage remembers that ``name`` wrote it."""
    number = _writer_numbers.get(name)
    if number is None:
        number = _writer_numbers.setdefault(name, next(_numbers))  # of two threads that come at once, the first's
        writers[number] = name
    return number


def check_inplace(t: Tensor, name: str, recording: bool = False) -> None:
    """Refuses a write in place as PyTorch does: to leaves, to views of leaves, and, where it matters to the graph, to
    views of several outputs and views from no_grad. Nothing has been written yet."""
    if modes:
        mode = current()
        if mode.on_write is not None:
            mode.on_write(t)
        if not mode.grad:
            return
    refresh(t)
    base = base_of(t)
    if base is None:
        if isinstance(t._node, AccumulateGrad):
            raise RuntimeError(
                f"{name}: a leaf Variable that requires grad is being used in an in-place operation ({describe(t)})."
            )
        return
    history = base._node
    if isinstance(history, AccumulateGrad) or (history is None and t._node is not None):
        raise RuntimeError(
            f"{name}: a view of a leaf Variable that requires grad is being used in an in-place "
            f"operation ({describe(t)})."
        )
    creation = creation_of(t)
    if creation != DEFAULT and (recording or history is not None):
        raise RuntimeError(f"{name}: {refusal(t, 'is being modified inplace')}")


def refuse_saved(name: str, saved: tuple) -> None:
    """Refuses to save inference tensors."""
    for s in saved:
        if isinstance(s, Tensor) and s._h.flags & FLAG_INFERENCE:
            raise RuntimeError(
                f"{name}: Inference tensors cannot be saved for backward. Please do not use Tensors created in "
                "inference mode in computation tracked by autograd. To work around this, you can make a clone to get "
                "a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )


def refuse_inference(t: Tensor, name: str) -> None:
    """Refuses to write an inference tensor outside of inference mode."""
    if t._h.flags & FLAG_INFERENCE and not current().inference:
        raise RuntimeError(
            f"{name}: Inplace update to inference tensor outside InferenceMode is not allowed. Make a clone() of it"
        )


def wrote(t: Tensor) -> None:
    """Notes that ``t`` was written just now. The C side has bumped the version already."""
    last_write[0] = count()
    if modes:
        mode = current()
        if mode.anomaly:
            overwrites[address(t)] = (t._version, mode.anomaly())


def rebase(t: Tensor, node: Node) -> None:
    """Makes ``node`` the history of ``t``, which was just written in place, and of its base if it is a view."""
    base = base_of(t)
    old = t._node
    if base is None:
        t._node = node
    else:
        base._node = link(CopySlices, (base._node, *node.edges[1:]), (node, geometry(base, t)), ())
        t._h.seen_version = lib.tt_version_of(t._h)
        t._node = strided_history(t, base)
    if old is not None and old.extra is not None and old.extra.retains and any(r() is t for r in old.extra.retains):
        retain(t)  # a retained gradient is that of the tensor's present value
