"""Nodes of the graph: what an operation's derivative needs, and where the gradients go.

Note [Graph ownership]
A tensor holds the Node that made it; a Node holds its parents' Nodes (``edges``) and the values its derivative needs
(``saved``). No parent knows its children and nothing is global, so a part of the graph that no tensor reaches is freed
at once by reference counting. A Node that saves its own output saves an alias without history: no cycle.

Note [Version counters]
Every write in place adds one to the storage's ``version``, which all views share; ``x.data`` and its views count by
themselves (``counter`` in the descriptor), so that writing there is never noticed. A Node remembers the versions of
what it saved. Whether to compare them is decided by time alone: ``count()`` numbers Nodes and writes alike, and only
if the last write anywhere came after the Node was made does backward look at the versions one by one.
"""

from __future__ import annotations

import itertools
import weakref

from ..backends.cpu import error, ffi, lib
from ..backends.native import NodeBase, count, new_node
from ..dtypes import DIFFERENTIABLE
from ..tensor import Tensor, gives_tensor
from .complex_nodes import conjugating
from .modes import current, modes, no_grad

writers: dict[int, str] = {}  # the names of operators that write in place, by the number the storage keeps
overwrites: dict[int, tuple[int, str]] = {}  # anomaly mode: storage -> version and traceback of its last write

FREED = ("freed",)  # replaces ``saved`` once backward has run and released it


class Extra:
    """Rare state of a Node (hooks, gradient post-processing, anomaly trace), allocated on demand."""

    __slots__ = (
        "unbroadcast_to",
        "tensor_hooks",
        "output_hooks",
        "pre_hooks",
        "post_hooks",
        "retains",
        "hooked",
        "trace",
        "packed",
        "metadata",
    )

    def __init__(self):
        self.unbroadcast_to = None  # per input: None, or the (shape, dtype, device) of a broadcast or cast one
        self.tensor_hooks = self.pre_hooks = self.post_hooks = None
        self.output_hooks = None  # of several outputs: tensors' hooks, by the output's number
        self.retains = None  # weak references to the tensors that keep this gradient
        self.trace = None  # anomaly mode: the forward stack
        self.hooked = False  # is there anything to do before backward?
        self.packed = False  # saved values went through saved_tensors_hooks
        self.metadata = None


class Node(NodeBase):
    """One recorded operation. Each operator has a subclass, named as PyTorch's (``MulBackward0``)."""

    __slots__ = ("__weakref__",)

    op = "?"  # the operator's name
    conjugates = False  # is its derivative by complex numbers the formula's, conjugated? Note [Complex gradients]
    holds = 0  # does ``saved`` hold tensors, to be let go once backward has run? 0: no, 1: yes, 2: perhaps
    tensors = ()  # positions in ``saved`` that hold tensors: (position, name, index of the edge, -1 - k for output k,
    # or None where the tensor is not differentiable)
    num_outputs = 1  # differentiable ones; 0: any number. With several, each has a Port

    backward = None  # (g, saved, edges) -> gradients, in differentiable operations
    first_order = None  # the same without history: for first derivatives only

    choose = None  # (*arguments) -> this class, or that of its variants which has the name for them: Note [Names]
    choice, variants = "Node", {}  # the same as an expression, and what it names

    @classmethod
    def of_complex(cls) -> type:
        """The class of these Nodes for a complex result. The C side calls it, too."""
        return conjugating(cls) if cls.conjugates else cls

    def name(self) -> str:
        """The class's name, such as ``MulBackward0``."""
        return type(self).__name__

    @property
    def next_functions(self):
        """The Nodes the gradients go to, each with the number of the output they are the gradient of."""
        return tuple((e.edges[0], e.saved[0]) if isinstance(e, Port) else (e, 0) for e in self.edges)

    @property
    def metadata(self) -> dict:
        """A dictionary for the user's own notes."""
        extra = need_extra(self)
        if extra.metadata is None:
            extra.metadata = {}
        return extra.metadata

    def _sequence_nr(self) -> int:
        """A number that grows with the time at which Nodes were made."""
        return -self.key

    def register_hook(self, hook):
        """Calls ``hook(grad_inputs, grad_outputs)`` after this Node's backward; it may return other grad_inputs."""
        extra = need_extra(self)
        extra.post_hooks = extra.post_hooks if extra.post_hooks is not None else {}
        return Handle(extra.post_hooks, hook)

    def register_prehook(self, hook):
        """Calls ``hook(grad_outputs)`` before this Node's backward; it may return other grad_outputs."""
        extra = need_extra(self)
        extra.hooked = True
        extra.pre_hooks = extra.pre_hooks if extra.pre_hooks is not None else {}
        return Handle(extra.pre_hooks, hook)

    def __call__(self, *grads):
        """Applies the derivative to output gradients."""
        grads = self.backward(grads[0] if len(grads) == 1 else list(grads), unpack(self, True), self.edges)
        return grads[0] if len(grads) == 1 else tuple(grads)

    def __repr__(self):
        return f"<{type(self).__name__} object at {id(self):#x}>"


class Port(Node):
    """One output of a Node that has several: hands its gradient to ``edges[0]``, as number ``saved[0]`` of
    ``saved[1]``."""

    __slots__ = ()
    op = "output"


class AccumulateGrad(Node):
    """A leaf's end of the graph: adds what arrives to ``tensor.grad``."""

    __slots__ = ("ref", "post_accumulate")
    op = "accumulate"

    def __init__(self, tensor: Tensor):
        self.edges = self.saved = ()
        self.key, self.versions, self.extra = -count(), 0, None
        self.ref = weakref.ref(tensor)
        self.post_accumulate = None

    @property
    def variable(self) -> Tensor | None:
        """The leaf, while anything else holds it."""
        return self.ref()


class Handle:
    """What registering a hook returns: ``remove()`` takes the hook out again. Also a context manager."""

    _next_id = itertools.count().__next__

    def __init__(self, hooks: dict, *hook, extra_dict=None):
        """A number in ``hooks`` for ``hook``, or for what the caller puts there; it is taken out of ``extra_dict``, a
        dictionary or a list of them, too."""
        self.id, self._hooks = Handle._next_id(), hooks
        while self.id in hooks:  # it was unpickled
            self.id = Handle._next_id()
        self._extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        if hook:
            hooks[self.id] = hook[0]

    def hooks_dict_ref(self) -> dict:
        """The dictionary that holds the hook by its number, ``id``."""
        return self._hooks

    def remove(self):
        """Takes the hook out; a second call does nothing."""
        for hooks in (self._hooks, *self._extra):
            hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.remove()


def need_extra(node: Node) -> Extra:
    """The Node's Extra, made if it has none."""
    if node.extra is None:
        node.extra = Extra()
    return node.extra


new_alias = gives_tensor(lib.tt_alias)  # of a descriptor: another tensor of the same elements, without history


def alias(t: Tensor, node: Node | None = None) -> Tensor:
    """Another tensor of the same elements, with the history ``node``."""
    out = new_alias(t._h)
    if out is None:
        raise error()
    out._node = node
    return out


class Packed:
    """A saved value as ``saved_tensors_hooks`` packed it."""

    __slots__ = ("value", "hook")

    def __init__(self, value, hook):
        self.value, self.hook = value, hook


def describe(t: Tensor) -> str:
    """``float32 tensor of shape (4, 4)``, for messages."""
    return f"{t.dtype.name} tensor of shape {tuple(t.shape)}"


def unpack(node: Node, with_history: bool, check: bool = True) -> tuple:
    """The saved values, with the history that higher derivatives need; ``check``ed against their versions."""
    saved = node.saved
    if not node.tensors or saved is FREED:
        return saved
    values = list(saved)
    for k, (position, name, edge) in enumerate(node.tensors):
        t = values[position]
        if type(t) is Packed:
            t = t.hook(t.value)
            if not isinstance(t, Tensor):
                raise TypeError(f"saved_tensors_hooks: the unpack hook must return a Tensor, got {type(t).__name__}")
        elif not isinstance(t, Tensor):
            continue
        elif check:
            expected = saved_version(node, k, edge)
            if lib.tt_version_of(t._h) != expected:
                raise overwritten(node, t, name, edge, expected)
            if edge is not None and edge >= 0:
                refuse_detached(t, node.edges[edge])
        if with_history and edge is not None:
            owner = node.edges[edge] if edge >= 0 else node if node.num_outputs == 1 else port(node, -1 - edge)
            if t._node is not owner:
                t = alias(t, owner)
        values[position] = t
    return tuple(values)


def refuse_detached(t: Tensor, owner: Node | None) -> None:
    """RuntimeError if the saved tensor ``t`` was cut from its history since, which was ``owner``."""
    if t._node is None and owner is not None and type(owner) is not AccumulateGrad:
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not "
            "supported, please use out-of-place `.detach()` instead"
        )


def saved_value(node: Node, position: int):
    """A saved value, with its history; RuntimeError once it was freed, or overwritten."""
    if node.saved is FREED:
        raise RuntimeError(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            f"already been freed): what {node.name()} saved is gone. Specify retain_graph=True if you need to backward "
            "through the graph a second time."
        )
    return unpack(node, True)[position]


class SavedTensor:
    """A place where a Node keeps a value, ``_raw_saved_self`` for example: hooks may be put there."""

    __slots__ = ("node", "position")

    def __init__(self, node: Node, position: int):
        self.node, self.position = node, position

    @property
    def data(self):
        """The saved value."""
        return saved_value(self.node, self.position)

    def register_hooks(self, pack_hook, unpack_hook) -> None:
        """Puts the value through ``pack_hook`` now, and through ``unpack_hook`` when it is wanted. RuntimeError if it
        was freed, or has hooks."""
        t = None if self.node.saved is FREED else self.node.saved[self.position]
        if type(t) is Packed:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set.")
        if not isinstance(t, Tensor):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed, or with value None, is forbidden"
            )
        values = list(self.node.saved)
        values[self.position] = Packed(pack_with((pack_hook, unpack_hook), t), unpack_hook)
        self.node.saved = tuple(values)
        need_extra(self.node).packed = True


def saved_version(node: Node, k: int, edge: int) -> int:
    """The version at which the k-th saved tensor was saved. A C call packs those of its first two operands into one
    number, its result's stamp."""
    if type(node.versions) is tuple:
        return node.versions[k]
    return node.versions >> (4 + 30 * edge) & 0x3FFFFFFF if edge >= 0 else 0


def overwritten(node: Node, t: Tensor, name: str, edge: int | None, expected: int) -> RuntimeError:
    """The error for a saved tensor that was written in place since: who saved it, who wrote it, both versions."""
    storage = t._h.counter or t._h.storage
    writer = writers.get(storage.writer, "an operation outside tinytorch")
    what = f"its argument '{name}'"
    if edge is not None and edge < 0:
        what = "its result" if node.num_outputs == 1 else f"its result '{name}'"
    text = (
        f"one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"{node.name()} (of '{node.op}') saved {what}, a {describe(t)}, at version {expected}; '{writer}' has "
        f"overwritten it and it is at version {t._version} now. "
    )
    trace = node.extra.trace if node.extra is not None else None
    written = overwrites.get(address(t))
    if trace:
        text += f"\nForward call that saved it:\n{trace}"
    if written and written[0] == t._version:
        text += f"\nIn-place call that overwrote it:\n{written[1]}"
    if not trace:
        text += "Hint: autograd.set_detect_anomaly(True) shows the lines of both."
    return RuntimeError(text)


def address(t: Tensor) -> int:
    """The storage's address: the same for all views."""
    return int(ffi.cast("intptr_t", t._h.storage))


def link(cls: type, edges: tuple, saved: tuple, versions, key: int | None = None) -> Node:
    """A new Node of class ``cls``; traces and packs as the thread's mode asks."""
    node = new_node(cls, edges, saved, versions)
    if key is not None:
        node.key = key
    if modes:
        mode = current()
        if mode.anomaly:
            need_extra(node).trace = mode.anomaly()
        if mode.saved_hooks and cls.tensors:
            pack_saved(node, mode.saved_hooks[-1])
    return node


def pack_with(hooks: tuple, t: Tensor):
    """What the pack hook of ``hooks`` makes of a saved tensor. It gets no history, records none, and may not write."""
    given = alias(t)
    version = lib.tt_version_of(given._h)
    with no_grad():
        packed = hooks[0](given)
    if lib.tt_version_of(given._h) != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
            "be modified by in-place operations as this can lead to unexpected side-effects."
        )
    return packed


def pack_saved(node: Node, hooks: tuple) -> None:
    """Puts the Node's saved tensors through a pack hook."""
    values = list(node.saved)
    for position, _, _ in node.tensors:
        if isinstance(values[position], Tensor):
            values[position] = Packed(pack_with(hooks, values[position]), hooks[1])
    node.saved = tuple(values)
    need_extra(node).packed = True


def make_ports(node: Node, outputs) -> None:
    """Gives each differentiable one of several outputs its place in the graph. A Node that saves outputs keeps weak
    references to their Ports, so that ``port`` finds them again."""
    edges, n = (node,), len(outputs)
    refs = [None] * n
    for index, t in enumerate(outputs):
        if isinstance(t, Tensor) and DIFFERENTIABLE[t._h.dtype]:
            t._node = made = new_port(edges, index, n)
            refs[index] = weakref.ref(made)
    node.ports = refs


def new_port(edges: tuple[Node], index: int, n: int) -> Port:
    """The Port of output ``index`` of the ``n`` outputs of ``edges[0]``."""
    return new_node(Port, edges, (index, n), 0)


def port(node: Node, index: int) -> Port:
    """The Port of one output: the output's own while that lives, since hooks are registered there; else a new one."""
    ref = node.ports[index]
    made = ref and ref()
    if made is None:
        made = new_port((node,), index, len(node.ports))
        node.ports[index] = weakref.ref(made)
    return made
