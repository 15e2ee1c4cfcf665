"""Backward: gradients flow through Nodes in the reverse order of their making.

A Node's parents are always older than it, so taking the youngest pending Node first (a heap on ``key``) is a
topological order: no pass to count dependencies, no recursion, no state in the Nodes themselves, so that threads may
run backward through shared parts of a graph.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from _thread import get_ident
from heapq import heappop, heappush
from sys import getrefcount

from ..backends.cpu import lib
from ..backends.native import last_write, nodes_on_path, with_history
from ..dtypes import float32
from ..layouts import strided
from ..tensor import Tensor, attempted, owned
from .modes import DEFAULT, PARTIAL, QUIET, current, modes
from .node import FREED, AccumulateGrad, Extra, Node, Port, describe, need_extra, new_alias, unpack

_CONTIGUOUS = lib.TT_FLAG_CONTIGUOUS


def run(
    roots: list[tuple[Node, Tensor]],
    keep_graph: bool,
    create_graph: bool,
    captures: dict[Node, list[int]] | None = None,
    num_captures: int = 0,
) -> list[Tensor | None]:
    """Runs backward from ``roots``. With ``captures``, returns the gradients that reach those Nodes, at the given
    places of the result, and computes only the gradients on a path to them; without, accumulates into the leaves.
    Captures without results: accumulates into the leaves among them alone."""
    thread = get_ident()
    if nested and nested.get(thread, 0) >= MOST_NESTED:
        return call_in_thread(run, roots, keep_graph, create_graph, captures, num_captures)
    watching = begin_watching(roots, captures, num_captures) if observers else ()
    results: list[Tensor | None] = [None] * num_captures
    useful = None if captures is None else path_to(captures, roots, num_captures)
    pending: dict[Node, Tensor] = {}
    heap: list[tuple[int, Node]] = []
    outside = modes.get(thread)  # None: the default
    if outside is not None:
        within = (outside.with_grad(create_graph) or DEFAULT).without_autocast()
    else:
        within = None if create_graph else QUIET if captures is None else PARTIAL
    node = None
    try:  # Note [Interrupts] in kernels/python/contexts.c
        if within is not outside:
            modes[thread] = within or DEFAULT
        for node, g in roots:
            if node in pending:
                pending[node] = pending[node] + g
            else:
                pending[node] = g
                heappush(heap, (node.key, node))
        node = None
        while True:
            if node is None:  # else the next Node, with its gradient g, has skipped the heap
                if not heap:
                    break
                node = heappop(heap)[1]
                g = pending.pop(node)
            extra = node.extra
            if useful is not None:
                edges = useful.get(node)
                if edges is None and extra is not None and extra.hooked:
                    g = run_tensor_hooks(node, extra, g)
                for place in captures.get(node, ()):
                    results[place] = g  # where a gradient goes on from here, as it was before the hooks
                if edges is None:
                    node = None
                    continue
            else:
                edges = node.edges
            if extra is not None and extra.hooked:
                g = run_pre_hooks(node, extra, run_tensor_hooks(node, extra, g))
            saved = node.saved
            if not edges:
                if type(node) is AccumulateGrad:
                    accumulate(node, g, create_graph)
                    if extra is not None and extra.post_hooks:
                        run_post_hooks(node, extra, (), g)
                    node = None
                    continue
            elif type(node) is Port:
                route_to_parent(node, g, pending, heap)
                node = None
                continue
            if saved is FREED:
                raise RuntimeError(
                    "Trying to backward through the graph a second time (or directly access saved tensors after they "
                    f"have already been freed): {node.name()} freed what it had saved when backward ran before. "
                    f"Specify "
                    "retain_graph=True if you need to backward through the graph a second time."
                )
            written = last_write[0] > -node.key
            if written or (extra is not None and extra.packed):
                saved = unpack(node, create_graph, written)
            elif create_graph:
                saved = with_history(node, new_alias)
                if saved is None:
                    saved = unpack(node, True, False)
            grads = node.backward(g, saved, edges) if create_graph else node.first_order(g, saved, edges)
            if extra is not None:
                grads = post_process(node, extra, grads, g)
            if node.holds and not keep_graph and (node.holds == 1 or any(isinstance(s, Tensor) for s in saved)):
                node.saved = FREED
            saved = node = None
            for edge, gi in zip(edges, grads):
                if gi is None or edge is None:
                    continue
                if edge is node:
                    g = g + gi
                elif edge in pending:
                    pending[edge] = pending[edge] + gi
                elif node is None:
                    node, g = edge, gi
                else:
                    pending[edge] = gi
                    heappush(heap, (edge.key, edge))
            if node is not None and heap and heap[0][0] < node.key:  # a younger one is waiting
                pending[node] = g
                heappush(heap, (node.key, node))
                node = None
            grads = gi = None
    except Exception:
        explain(node)
        raise
    finally:
        if outside is None:
            modes.pop(thread, None)
        else:
            modes[thread] = outside
        for observer in watching:
            observer.end()
    if afterwards:
        for callback in afterwards.pop(thread, ()):
            callback()
    return results


def route_to_parent(port: Port, g, pending: dict, heap: list) -> None:
    """Stores the gradient of one of several outputs for the Node that computed them, which runs when all are in."""
    index, num_outputs = port.saved
    parent = port.edges[0]
    if parent not in pending:
        pending[parent] = [None] * num_outputs
        heappush(heap, (parent.key, parent))
    pending[parent][index] = g


def run_tensor_hooks(node: Node, extra: Extra, g):
    """Runs tensors' hooks on the complete gradient of ``node``, and gives it to the tensors that retain it."""
    if extra.output_hooks:
        for index, hooks in extra.output_hooks.items():
            if g[index] is None:  # no gradient came, and so the output's Port has not run its hooks
                for hook in list(hooks.values()):
                    if hook(None) is not None:
                        raise RuntimeError(f"{node.name()}: can't replace a None gradient with a non-None value")
    if extra.tensor_hooks:
        for hook in list(extra.tensor_hooks.values()):
            changed = hook(g)
            if changed is not None:
                check_replacement(node, g, changed)
                g = changed
    if extra.retains:
        for ref in extra.retains:
            t = ref()
            if t is not None and t._node is node:
                t._grad = g if getattr(t, "_grad", None) is None else t._grad + g
    return g


def run_pre_hooks(node: Node, extra: Extra, g):
    """Runs the hooks that want all gradients of ``node`` at once."""
    for hook in list(extra.pre_hooks.values()) if extra.pre_hooks else ():
        given = tuple(g) if type(g) is list else (g,)
        changed = hook(given)
        if changed is not None:
            changed = _replaced(node, given, changed)
            g = changed if type(g) is list else changed[0]
    return g


def run_post_hooks(node: Node, extra: Extra, grads, g):
    """Runs the hooks that see what a Node has made of its gradients, and may replace it."""
    for hook in list(extra.post_hooks.values()):
        changed = hook(tuple(grads), tuple(g) if type(g) is list else (g,))
        if changed is not None:
            grads = _replaced(node, grads, changed)
    return grads


def _replaced(node: Node, grads, changed) -> list:
    """The gradients that a hook gives instead of ``grads``: as many."""
    changed = list(changed) if isinstance(changed, (tuple, list)) else [changed]
    if len(changed) != len(grads):
        raise RuntimeError(
            f"{node.name()}: hook has returned an incorrect number of values: got {len(changed)}, but "
            f"expected {len(grads)}"
        )
    return changed


def check_replacement(node, g, changed):
    if not isinstance(changed, Tensor):
        raise TypeError(f"{node.name()}: a tensor hook must return None or a Tensor, got {type(changed).__name__}")
    if changed.shape != g.shape:
        raise RuntimeError(
            f"{node.name()}: hook has changed the size of value: given {describe(g)}, returned {describe(changed)}"
        )
    if changed.dtype is not g.dtype or changed._h.storage.device != g._h.storage.device:
        raise RuntimeError(
            f"{node.name()}: hook has changed the type of value: given a {describe(g)} on {g.device}, "
            f"returned a {describe(changed)} on {changed.device}"
        )


def post_process(node: Node, extra: Extra, grads, g):
    """Unbroadcasts gradients; NaN checks; hooks on the Node."""
    if extra.unbroadcast_to is not None:
        grads = [
            gi if gi is None or meta is None else unbroadcast(gi, *meta)
            for gi, meta in zip(grads, extra.unbroadcast_to)
        ]
    if extra.trace is not None and current().check_nan:
        for k, gi in enumerate(grads):
            if isinstance(gi, Tensor) and gi.dtype.is_floating_point and bool(gi.isnan().any()):
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {k}th output.")
    if extra.post_hooks:
        grads = run_post_hooks(node, extra, grads, g)
    return grads


def unbroadcast(g: Tensor, shape, dtype, device) -> Tensor:
    """The gradient of a broadcast or cast input: summed to its shape, in its dtype, on its device."""
    if g.shape != shape:
        g = g.sum_to_size(shape)
    if g.dtype is not dtype and g.dtype.is_complex and not dtype.is_complex:
        g = g.real  # of a real number's gradient, the real part counts
    return g if g.dtype is dtype and g.device is device else g.to(device, dtype)


_accumulating = threading.RLock()  # C adds without the GIL: two threads would lose a sum


def _after_fork():
    """A thread that held the lock is not in the child."""
    global _accumulating
    _accumulating = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def accumulate(node: AccumulateGrad, g: Tensor, create_graph: bool) -> None:
    """Adds ``g`` to the leaf's gradient. A fresh ``g`` in the leaf's layout becomes it; one that others may see, or
    in another layout, is copied."""
    t = node.ref()
    if t is None:
        return
    with _accumulating:
        old = t._grad
        if old is None:
            fresh = create_graph or getrefcount(g) <= owned_refcount and g._h.storage.refs == 1
            if fresh and g._h.flags & t._h.flags & _CONTIGUOUS:
                t._grad = g
            else:
                t._grad = in_layout_of(t, g, fresh)
        elif create_graph:
            t._grad = old + g
        else:
            try:
                old.add_(g)
            except RuntimeError:
                if old.layout is g.layout:
                    raise
                t._grad = old + g if old.layout is strided else g + old  # one of them is sparse
    if node.post_accumulate:
        for hook in list(node.post_accumulate.values()):
            given = hook(t)
            if given is not None and given is not t:
                kind = RuntimeError if isinstance(given, Tensor) else TypeError
                raise kind(f"a post accumulate grad hook is to return None, got {type(given).__name__}")


def in_layout_of(t: Tensor, g: Tensor, fresh: bool) -> Tensor:
    """``g`` in the layout of the leaf ``t``: its strides where it is dense, else row-major. A copy unless ``fresh``."""
    if g.layout is not strided:
        return g if fresh else g.clone()
    if not t._h.flags & _CONTIGUOUS:
        steps = sorted([(step, n) for step, n in zip(t.stride(), t.shape) if n != 1])
        numel = 1
        for step, n in steps:
            if step != numel:
                break  # it has gaps, or overlaps
            numel *= n
        else:
            made = g.with_layout(t.shape, t.stride())
            return made if fresh or made is not g else g.detach().clone()
    if fresh:
        return g.contiguous()
    out = attempted.tt_contiguous(g._h)
    return g.detach().contiguous().clone() if out is None else out


def path_to(captures: dict, roots: list, num_captures: int) -> dict:
    """The Nodes that a backward to ``captures`` runs, each with its edges."""
    useful = nodes_on_path(captures, roots)
    if not num_captures:
        useful.update([(node, node.edges) for node in captures if type(node) is AccumulateGrad])
    return useful


afterwards: dict[int, list] = {}  # by thread: what is to be called when its backward has ended
observers: list = []  # hooks of several tensors, which want to know what a backward will reach


def begin_watching(roots: list, captures: dict | None, num_captures: int) -> list:
    """Tells the observers which Nodes a backward will reach, or that there is one; returns them."""
    watching = list(observers)
    reached: object = ()
    if all(not observer.looks for observer in watching):
        pass
    elif captures is None:
        reached = {node for node, _ in roots}
        todo = list(reached)
        for node in todo:  # which grows meanwhile
            new = [edge for edge in node.edges if edge is not None and edge not in reached]
            reached.update(new)
            todo += new
    else:
        reached = {*path_to(captures, roots, num_captures), *captures}
    for observer in watching:
        observer.begin(reached)
    return watching


MOST_NESTED = 60  # backwards within backwards on one stack; what goes deeper takes another thread's
nested: dict[int, int] = {}  # the threads in a user's derivative, and in how many
carried: list = []  # functions that give a function which gives another thread the present one's state


def call_in_thread(function, *args):
    """What the function gives, on the stack of a new thread in this one's modes."""
    outcome = []
    mode, takers = modes.get(get_ident()), [give() for give in carried]

    def work():
        if mode is not None:
            modes[get_ident()] = mode
        try:
            for take in takers:
                take()
            outcome.append((function(*args), None))
        except BaseException as exc:
            outcome.append((None, exc))
        finally:
            modes.pop(get_ident(), None)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    result, exc = outcome[0]
    if exc is not None:
        raise exc
    return result


owned_refcount = 0  # references to a gradient without other owner, seen in accumulate(): Note [Owned gradients]


class _Source:
    """Stand-in Node whose gradient has no other owner; calibrates ``owned_refcount``."""

    extra, saved, holds, key = None, (), 0, -(1 << 62)

    def __init__(self, leaf: AccumulateGrad):
        self.edges = (leaf,)

    def first_order(self, g, saved, edges):
        """The derivative. ``made`` does not keep it."""
        g = owned.tt_empty(float32.code, 1, (1,))
        self.made = weakref.ref(g)
        return (g,)


def measure_owned_refcount() -> None:
    """Sets ``owned_refcount``.

    Note [Owned gradients]
    How many references the names and calls between a derivative and accumulate() hold is the interpreter's affair: 3 in
    CPython 3.11 to 3.13, 4 in 3.10, and one more where a profiler's wrapper calls accumulate(). So it is tried: the
    least number with which a leaf takes a gradient over that is surely new. Too small a number costs a copy; it is too
    small at any time while it is tried, never too large.
    """
    global owned_refcount
    leaf = owned.tt_empty(float32.code, 1, (1,))
    leaf._node = AccumulateGrad(leaf)
    source = _Source(leaf._node)
    owned_refcount = 0
    while owned_refcount < 16:
        owned_refcount += 1
        leaf._grad = None
        run([(source, leaf)], keep_graph=True, create_graph=False)
        if source.made() is not None:
            return
    owned_refcount = 0  # never


measure_owned_refcount()


def retain(t: Tensor) -> None:
    """Makes backward keep the gradient of the non-leaf ``t`` in ``t.grad``."""
    extra = need_extra(t._node)
    extra.hooked = True
    if extra.retains is None:
        extra.retains = []
    if not any(ref() is t for ref in extra.retains):
        extra.retains.append(weakref.ref(t))


def explain(node: Node | None) -> None:
    """In anomaly mode, shows the forward call of the Node whose backward failed."""
    if node is not None and node.extra is not None and node.extra.trace:
        warnings.warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{node.extra.trace}",
            stacklevel=2,
        )
