"""``torch.utils._pytree``: trees of tuples, lists, dictionaries and registered containers."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

__all__ = [
    "Context",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SUPPORTED_NODES",
    "SequenceKey",
    "TreeSpec",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "_broadcast_to_and_flatten",
    "_dict_flatten",
    "_dict_flatten_with_keys",
    "_dict_unflatten",
    "_get_node_type",
    "_is_leaf",
    "_register_pytree_node",
]

Context = PyTree = Any


class SequenceKey(NamedTuple):
    """A step of a path: into a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"


class MappingKey(NamedTuple):
    """A step of a path: into a dictionary."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"


class GetAttrKey(NamedTuple):
    """A step of a path: to an attribute."""

    name: str

    def __str__(self):
        return f".{self.name}"


class NodeDef(NamedTuple):
    """How containers of a type are taken apart and made again."""

    type: type
    flatten_fn: Callable
    unflatten_fn: Callable
    keys_fn: Callable


class TreeSpec:
    """The structure of a tree: the type and context of its root, and the specs below. A leaf has type None."""

    def __init__(self, type, context, children_specs):
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_leaves = sum(c.num_leaves for c in self.children_specs) if type is not None else 1
        self.num_nodes = 1 + sum(c.num_nodes for c in self.children_specs)
        self.num_children = len(self.children_specs)

    def is_leaf(self) -> bool:
        """Is it a leaf?"""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The specs below."""
        return self.children_specs

    def child(self, index: int) -> TreeSpec:
        """One of these."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable) -> PyTree:
        """The tree with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: PyTree) -> list:
        """The parts of a tree that stand where this one has leaves. ValueError where its structure is another."""
        if self.is_leaf():
            return [tree]
        node = _get_node_type(tree)
        if node is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {node!r}.")
        children, context = SUPPORTED_NODES[node].flatten_fn(tree)
        if len(children) != self.num_children or context != self.context:
            raise ValueError(f"Node mismatch; expected {self.context!r}, but got {context!r}.")
        return [part for spec, child in zip(self.children_specs, children) for part in spec.flatten_up_to(child)]

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and (self.type, self.context, self.children_specs) == (
            other.type,
            other.context,
            other.children_specs,
        )

    def __hash__(self):
        return hash((self.type, self.num_leaves, self.num_nodes))

    def __repr__(self):
        if self.is_leaf():
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, [{', '.join(map(repr, self.children_specs))}])"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self):
        super().__init__(None, None, ())


_LEAF = LeafSpec()
SUPPORTED_NODES: dict[type, NodeDef] = {}


def register_pytree_node(
    cls: type,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:
    """Makes ``cls`` a container: ``flatten_fn(x)`` gives children and context, ``unflatten_fn(children,
    context)`` makes it again. ValueError where it is one."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")

    def keys(tree):
        if flatten_with_keys_fn is not None:
            return flatten_with_keys_fn(tree)[0]
        return [(SequenceKey(k), child) for k, child in enumerate(flatten_fn(tree)[0])]

    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, keys)


_register_pytree_node = register_pytree_node


def register_dataclass(cls: type, **kwargs) -> None:
    """Makes a dataclass a container of its fields."""
    names = list(cls.__dataclass_fields__)
    register_pytree_node(
        cls,
        lambda x: ([getattr(x, name) for name in names], names),
        lambda children, _: cls(**dict(zip(names, children))),
        flatten_with_keys_fn=lambda x: ([(GetAttrKey(name), getattr(x, name)) for name in names], names),
    )


def register_constant(cls: type) -> None:
    """Makes instances of ``cls`` containers of nothing."""
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x)


def _dict_flatten(d: dict) -> tuple[list, Context]:
    return list(d.values()), list(d.keys())


def _dict_unflatten(values: Iterable, context: Context) -> dict:
    return dict(zip(context, values))


def _dict_flatten_with_keys(d: dict) -> tuple[list, Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d.keys())


register_pytree_node(tuple, lambda x: (list(x), None), lambda children, _: tuple(children))
register_pytree_node(list, lambda x: (x, None), lambda children, _: list(children))
register_pytree_node(dict, _dict_flatten, _dict_unflatten, flatten_with_keys_fn=_dict_flatten_with_keys)
register_pytree_node(
    OrderedDict,
    _dict_flatten,
    lambda values, keys: OrderedDict(zip(keys, values)),
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
register_pytree_node(
    defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d)]),
    lambda values, context: defaultdict(context[0], zip(context[1], values)),
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda children, context: deque(children, maxlen=context))


def _named(tree) -> NodeDef:
    cls = type(tree)
    return NodeDef(
        cls,
        lambda x: (list(x), cls),
        lambda children, made: made(*children),
        lambda x: [(GetAttrKey(name), getattr(x, name)) for name in cls._fields],
    )


def _node_of(tree) -> NodeDef | None:
    """How the tree's root is taken apart; None for a leaf."""
    found = SUPPORTED_NODES.get(type(tree))
    if found is None and isinstance(tree, tuple) and hasattr(type(tree), "_fields"):
        return _named(tree)
    return found


def _get_node_type(tree) -> Any:
    """The type of the tree's root."""
    return type(tree)


def _is_leaf(tree: PyTree, is_leaf=None) -> bool:
    """Is it a leaf?"""
    return (is_leaf is not None and is_leaf(tree)) or _node_of(tree) is None


def tree_flatten(tree: PyTree, is_leaf=None) -> tuple[list, TreeSpec]:
    """The leaves, and the structure."""
    if _is_leaf(tree, is_leaf):
        return [tree], _LEAF
    children, context = _node_of(tree).flatten_fn(tree)
    parts = [tree_flatten(child, is_leaf) for child in children]
    return [leaf for leaves, _ in parts for leaf in leaves], TreeSpec(type(tree), context, [spec for _, spec in parts])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The tree of that structure. ValueError where the number of leaves is another."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
            f"holds {treespec.num_leaves} items ({treespec})."
        )
    if treespec.is_leaf():
        return leaves[0]
    node = SUPPORTED_NODES.get(treespec.type)
    at, children = 0, []
    for spec in treespec.children_specs:
        children.append(tree_unflatten(leaves[at : at + spec.num_leaves], spec))
        at += spec.num_leaves
    return node.unflatten_fn(children, treespec.context) if node else treespec.type(*children)


def tree_iter(tree: PyTree, is_leaf=None):
    """The leaves, one after the other."""
    yield from tree_flatten(tree, is_leaf)[0]


def tree_leaves(tree: PyTree, is_leaf=None) -> list:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf=None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree: PyTree, *rests: PyTree, is_leaf=None) -> PyTree:
    """The tree of what ``func`` makes of each leaf, and of those of ``rests`` at its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(func, leaves, *[spec.flatten_up_to(r) for r in rests]), spec)


def tree_map_(func, tree: PyTree, *rests: PyTree, is_leaf=None) -> PyTree:
    """Calls ``func`` as ``tree_map`` does, and gives the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _is_of(kinds, leaf) -> bool:
    if isinstance(kinds, (type, tuple)) or not callable(kinds):
        return isinstance(leaf, kinds)
    return kinds(leaf)


def tree_map_only(kinds, func=None, tree: PyTree = None, is_leaf=None) -> PyTree:
    """``tree_map`` of the leaves of a type, of one of several types, or of which a function says so."""
    return tree_map(lambda leaf: func(leaf) if _is_of(kinds, leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(kinds, func, tree: PyTree, is_leaf=None) -> PyTree:
    """Calls ``func`` as ``tree_map_only`` does, and gives the tree itself."""
    tree_map_only(kinds, func, tree, is_leaf)
    return tree


def tree_all(pred, tree: PyTree, is_leaf=None) -> bool:
    """Does it hold for all leaves?"""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree: PyTree, is_leaf=None) -> bool:
    """Does it hold for a leaf?"""
    return any(map(pred, tree_iter(tree, is_leaf)))


def _paths(tree: PyTree, is_leaf, path: tuple):
    if _is_leaf(tree, is_leaf):
        yield path, tree
        return
    for key, child in _node_of(tree).keys_fn(tree):
        yield from _paths(child, is_leaf, (*path, key))


def tree_flatten_with_path(tree: PyTree, is_leaf=None) -> tuple[list, TreeSpec]:
    """The leaves with their paths, and the structure."""
    return list(_paths(tree, is_leaf, ())), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree: PyTree, *rests: PyTree, is_leaf=None) -> PyTree:
    """``tree_map`` of a function that is given each leaf's path first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    return tree_unflatten(
        [func(*args) for args in zip(*zip(*pairs), *[spec.flatten_up_to(r) for r in rests])] if pairs else [], spec
    )


def keystr(path: Iterable) -> str:
    """A path as text."""
    return "".join(map(str, path))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf=None) -> list | None:
    """The leaves of a tree as those of ``treespec``, a leaf as often as what stands there has; None if it does not
    fit."""
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or type(tree) is not treespec.type:
        return None
    children, context = _node_of(tree).flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(c, s, is_leaf) for c, s in zip(children, treespec.children_specs)]
    return None if None in parts else [leaf for part in parts for leaf in part]
