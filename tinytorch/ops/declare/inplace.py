"""Writes in place: one path for all of them.

Note [In place]
A write refuses what PyTorch refuses, keeps a copy of the old values only if a formula needs them, writes, raises the
storage's version (the C function does), and makes its Node the history of the tensor and of its base. Everything is
checked before anything is written: an operator that raises has changed nothing.
"""

from __future__ import annotations

from ...autograd.modes import current, inference_used, modes
from ...autograd.node import alias, count, link
from ...autograd.views import check_inplace, outrun, rebase, refresh, refuse_saved, wrote
from ...backends.cpu import error, lib
from ...backends.native import is_quiet, last_write, versions_of
from ...dtypes import COMPLEX, DIFFERENTIABLE
from ...tensor import Tensor, owned
from .op import Op


def in_place(op: Op, out: Tensor, args: tuple, name: str, broadcasts: bool, write, *values) -> Tensor:
    """Runs ``write(*values)``, a C function that writes into ``out`` and gives a negative status where it refused, and
    records it as ``op`` of ``args``, of which ``out`` is one. ``name``: for messages. ``broadcasts``: gradients of
    arguments whose shape or dtype differs from the result's are brought back to these. Returns ``out``."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(out).__name__}")
    edges = None
    if not is_quiet(args):
        refresh(*[a for a in args if isinstance(a, Tensor)])
        if op.node is not None and DIFFERENTIABLE[out._h.dtype] and (not modes or current().grad):
            edges = op.edges(args)
        check_inplace(out, name, edges is not None)
    if edges is not None:
        old = alias(out)  # never ``out`` itself: a Node must not hold the tensor whose history it becomes
        saved = op.node.save(edges, out, *[old if a is out else a for a in args])
        if any(s is old for s in saved):
            copy = owned.tt_clone(old._h)
            copy._node = out._node
            saved = tuple([copy if s is old else s for s in saved])
        if inference_used[0]:
            refuse_saved(name, saved)
        before, key = versions_of(op.node.tensors, saved), -count()
    if write(*values) < 0:
        if outrun(*args):
            return in_place(op, out, args, name, broadcasts, write, *values)
        raise error(name)
    last_write[0] = count()
    if modes:
        wrote(out)
    if edges is None:
        return out
    storage, overwritten, versions = out._h.storage, False, []
    for version, (position, _, edge) in zip(before, op.node.tensors):
        if edge is not None and edge < 0:
            version = lib.tt_version_of(out._h)
        elif isinstance(saved[position], Tensor) and saved[position]._h.storage == storage:
            overwritten = True
        versions.append(version)
    # Backward compares versions only where a write came after the Node's key: the key of a Node that saved what it has
    # overwritten itself must be older than the write.
    cls = op.node if op.node.choose is None else op.node.choose(*args)
    if COMPLEX[out._h.dtype]:
        cls = cls.of_complex()
    node = link(cls, edges, saved, tuple(versions), key if overwritten else None)
    if broadcasts and any(
        isinstance(a, Tensor) and (a._h.dtype != out._h.dtype or a.shape != out.shape or a.device is not out.device)
        for a in args
    ):
        op.note_unbroadcast(node, args, -1)
    rebase(out, node)
    return out
