"""Writes in place: one path for all of them.

Note [In place]
A write refuses what PyTorch refuses, keeps a copy of the old values only if a formula needs them, writes, raises the
storage's version (the C function does), and makes its Node the history of the tensor and of its base. Everything is
checked before anything is written: an operator that raises has changed nothing.
"""

from __future__ import annotations

from ...autograd.modes import current, inference_used, modes
from ...autograd.node import alias, count, link, saved_versions
from ...autograd.views import check_inplace, outrun, rebase, refresh, refuse_saved, wrote
from ...backends.cpu import error, lib
from ...dtypes import COMPLEX, DIFFERENTIABLE
from ...tensor import Tensor, wrap
from .op import Op


def in_place(op: Op, out: Tensor, args: tuple, write, *values, name: str, broadcasts: bool = False) -> Tensor:
    """Runs ``write(*values)``, a C function that writes into ``out`` and gives a negative status where it refused, and
    records it as ``op`` of ``args``, of which ``out`` is one. ``name``: for messages. ``broadcasts``: gradients of
    arguments whose shape or dtype differs from the result's are brought back to these. Returns ``out``."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(out).__name__}")
    edges = None
    for a in args:
        if isinstance(a, Tensor):
            refresh(a)
    if op.node is not None and DIFFERENTIABLE[out._h.dtype] and (not modes or current().grad):
        edges = op.edges(args)
        if not any(edge is not None for edge in edges):
            edges = None
    check_inplace(out, name, edges is not None)
    if edges is None:
        if write(*values) < 0:
            if outrun(*args):
                return in_place(op, out, args, write, *values, name=name, broadcasts=broadcasts)
            raise error(name)
        wrote(out)
        return out
    old = alias(out)  # never ``out`` itself: a Node must not hold the tensor whose history it becomes
    saved = op.node.save(edges, out, *[old if a is out else a for a in args])
    if any(s is old for s in saved):
        copy = wrap(lib.tt_clone(old._h))
        saved = tuple([copy if s is old else s for s in saved])
    if inference_used[0]:
        refuse_saved(name, saved)
    before, key = saved_versions(op.node, saved), -count()
    if write(*values) < 0:
        if outrun(*args):
            return in_place(op, out, args, write, *values, name=name, broadcasts=broadcasts)
        raise error(name)
    wrote(out)
    storage, overwritten, versions = out._h.storage, False, []
    for version, (position, _, edge) in zip(before, op.node.tensors):
        if edge is not None and edge < 0:
            version = lib.tt_version_of(out._h)
        elif isinstance(saved[position], Tensor) and saved[position]._h.storage == storage:
            overwritten = True
        versions.append(version)
    # Backward compares versions only where a write came after the Node's key: the key of a Node that saved what it has
    # overwritten itself must be older than the write.
    cls = op.node.of_complex() if COMPLEX[out._h.dtype] else op.node
    node = link(cls, edges, saved, tuple(versions), key if overwritten else None)
    if broadcasts and any(
        isinstance(a, Tensor) and (a._h.dtype != out._h.dtype or a.shape != out.shape or a.device is not out.device)
        for a in args
    ):
        op.note_unbroadcast(node, args, -1)
    rebase(out, node)
    return out
