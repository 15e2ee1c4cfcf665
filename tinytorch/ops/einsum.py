"""Einstein summation: sums of products of tensors, named by their indices.

Every term becomes a diagonal (an index repeated within a term), a sum (an index of one term alone), and for each two
terms a product of stacks of matrices: indices are sorted into shared and kept (the stack), shared and summed (the inner
dimension), and those of the left or right alone. Terms are taken from left to right.

What an equation says, and how two terms of given shapes become a product, is found once and kept: programs evaluate few
equations often, and a small product takes a tenth of what reading its equation does (``einsum("ij,jk->ik", a, b)`` of
four numbers: 8 us with it kept, 40 without).
"""

from __future__ import annotations

import functools
import math

from ..tensor import Tensor
from .declare import function
from .matmul import _matmul

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _sublists(args):
    """einsum(x, [0, 1], y, [1, 2], [0, 2]) as an equation of tuples, and its operands."""
    operands, terms = list(args[0::2]), [tuple(t) for t in args[1::2]]
    output = None
    if len(args) % 2:
        output = tuple(operands.pop())
    for label in (c for t in (*terms, output or ()) for c in t):
        if label is not Ellipsis and not 0 <= label < len(_LETTERS):
            raise ValueError(
                f"einsum(): subscript in subscript list is not within the valid range [0, {len(_LETTERS)})"
            )
    return terms, output, operands


def _split(text: str, where: str) -> tuple:
    """A term's letters, with Ellipsis for "..."."""
    text = text.replace(" ", "")
    labels, k = [], 0
    while k < len(text):
        if text[k : k + 3] == "...":
            if Ellipsis in labels:
                raise RuntimeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
            labels.append(Ellipsis)
            k += 3
            continue
        if text[k] == ".":
            raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
        if text[k] not in _LETTERS:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {k} in the equation string, subscripts "
                f"must be in [a-zA-Z], got '{text[k]}'"
            )
        labels.append(text[k])
        k += 1
    return tuple(labels)


def _parse(equation: str):
    if isinstance(equation, bytes):
        equation = equation.decode("latin1")
    if not isinstance(equation, str):
        raise TypeError(f"einsum(): argument 'equation' must be str, not {type(equation).__name__}")
    return _parse_text(equation)


@functools.lru_cache(1024)
def _parse_text(equation: str) -> tuple:
    left, arrow, right = equation.partition("->")
    terms = tuple([_split(t, f"operand {k}") for k, t in enumerate(left.split(","))])
    return terms, _split(right, "the output") if arrow else None


def _expand_ellipsis(terms, ndims):
    """Numbers in place of Ellipsis: the k-th dimension from the right is -k. Returns the terms and the most of them."""
    most, out = 0, []
    for k, (term, ndim) in enumerate(zip(terms, ndims)):
        n = ndim - len(term) + (Ellipsis in term)
        if n < 0 or (n and Ellipsis not in term):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term) - (Ellipsis in term)}) "
                f"{'does not match' if Ellipsis not in term else 'is more than'} the number of "
                f"dimensions ({ndim}) for operand {k}" + (" and no ellipsis was given" if Ellipsis not in term else "")
            )
        most = max(most, n if Ellipsis in term else 0)
        labels = []
        for c in term:
            labels.extend([("...", d) for d in range(-n, 0)] if c is Ellipsis else [c])
        out.append(tuple(labels))
    return tuple(out), most


def _diagonals(x: Tensor, labels: list) -> tuple[Tensor, list]:
    """Takes the diagonal wherever a label is repeated."""
    if len(set(labels)) == len(labels):
        return x, labels
    labels = list(labels)
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {c} is repeated for an operand but the sizes don't match, "
                    f"{x.shape[second]} != {x.shape[first]}"
                )
            x = x.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(c)
    return x, labels


@functools.lru_cache(1024)
def _plan(a, shape_a, b, shape_b, large, keep, result) -> tuple:
    """How terms with labels ``a`` and ``b`` are multiplied and summed over what is not in ``keep``, in the order of
    ``result`` as far as one product gives it so. ``large``: the labels with another size than 1. Gives what is done to
    the first and to the second factor, methods with an argument; whether they change places; whether they are
    multiplied element by element, not as matrices; the product's shape, and its labels."""
    labels, shapes, steps = [list(a), list(b)], [list(shape_a), list(shape_b)], [[], []]
    for how in ("sum", "squeeze", "sum"):
        for k in (0, 1):
            own, others = labels[k], labels[1 - k]
            if how == "sum":
                gone = [d for d, c in enumerate(own) if c not in others and c not in keep]
            else:  # a dimension of size 1 against a larger one broadcasts: it takes no part
                gone = [d for d, c in enumerate(own) if c in others and shapes[k][d] == 1 and c in large]
            if gone:
                steps[k].append((how, tuple(gone)))
                labels[k] = [c for d, c in enumerate(own) if d not in gone]
                shapes[k] = [n for d, n in enumerate(shapes[k]) if d not in gone]
    a, b = labels
    place = {c: k for k, c in enumerate(result)}.get
    joint = sorted({*a, *b}, key=lambda c: (place(c, len(result)), (*a, *b).index(c)))
    if all(c in keep for c in a if c in b):
        for own, todo in zip(labels, steps):
            todo.append(("permute", [own.index(c) for c in joint if c in own]))
            todo.extend([("unsqueeze", d) for d, c in enumerate(joint) if c not in own])
        return *steps, False, True, None, joint
    stack, left, right, summed = [], [], [], []
    for c in joint:
        kind = right if c not in a else left if c not in b else stack if c in keep else summed
        kind.append(c)
    swapped = bool(left and right and joint.index(right[-1]) < joint.index(left[0]))
    if swapped:
        left, right = right, left
        labels.reverse(), shapes.reverse(), steps.reverse()
    stacks = [stack] if stack else []
    for own, shape, todo, groups in zip(labels, shapes, steps, ((*stacks, left, summed), (*stacks, summed, right))):
        order = [own.index(c) for group in groups for c in group]
        if order != sorted(order):
            todo.append(("permute", order))
        if any(len(group) != 1 for group in groups):
            todo.append(("reshape", [math.prod([shape[own.index(c)] for c in group]) for group in groups]))
    shape = [shapes[0][labels[0].index(c)] for c in stack + left] + [shapes[1][labels[1].index(c)] for c in right]
    whole = len(left) == len(right) == 1 and len(stack) <= 1
    return *steps, swapped, False, None if whole else shape, stack + left + right


def _pair(x, a, y, b, sizes, keep, result) -> tuple[Tensor, list]:
    """The product of two terms: ``_plan``."""
    large = frozenset([c for c, n in sizes.items() if n != 1])
    to_left, to_right, swapped, elementwise, shape, labels = _plan(
        tuple(a), tuple(x.shape), tuple(b), tuple(y.shape), large, keep, result
    )
    if swapped:
        x, y = y, x
    for how, what in to_left:
        x = getattr(x, how)(what)
    for how, what in to_right:
        y = getattr(y, how)(what)
    if elementwise:
        return x * y, labels
    if x.dtype is not y.dtype and not (x.dtype.is_differentiable or y.dtype.is_differentiable):
        x, y = x.long(), y.long()  # one is a sum
    if x.dtype is not y.dtype and x.dtype.name == "bool":
        raise NotImplementedError("einsum: not implemented for 'bool'")
    product = _matmul(x, y)
    return product if shape is None else product.reshape(shape), labels


def _measure(terms, operands):
    """The size of every label; sizes of 1 broadcast."""
    sizes = {}
    for k, (labels, x) in enumerate(zip(terms, operands)):
        for c, n in zip(labels, x.shape):
            if sizes.setdefault(c, n) == 1:
                sizes[c] = n
            elif n not in (1, sizes[c]):
                raise RuntimeError(
                    f"einsum(): subscript {c if isinstance(c, str) else '...'} has size {n} for operand "
                    f"{k} which does not broadcast with previously seen size {sizes[c]}"
                )
    return sizes


def _implicit(terms, most):
    """The output when none is given: the ellipsis, then every letter that occurs once, in alphabetical order."""
    labels = [c for t in terms for c in t if not isinstance(c, tuple)]
    return [("...", d) for d in range(-most, 0)] + sorted(c for c in set(labels) if labels.count(c) == 1)


@functools.lru_cache(1024)
def _labelled(terms, output, ndims) -> tuple[tuple, tuple]:
    """The labels of the operands' dimensions, and of the result's."""
    terms, most = _expand_ellipsis(terms, ndims)
    if output is None:
        return terms, tuple(_implicit(terms, most))
    result = []
    for c in output:
        result.extend([("...", d) for d in range(-most, 0)] if c is Ellipsis else [c])
    seen = {c for t in terms for c in t}
    for c in result:
        if c not in seen:
            raise RuntimeError(f"einsum(): output subscript {c} does not appear in the equation for any input operand")
        if result.count(c) > 1:
            raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
    return terms, tuple(result)


@function
def einsum(equation=None, *operands):
    """Sums of products: ``einsum("ij,jk->ik", a, b)``, or ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. Indices that are
    not in the output are summed over; an index repeated in one term takes its diagonal; ``...`` stands for dimensions
    that broadcast. Without ``->`` the output has the indices that occur once, sorted. Follows ``torch.einsum``.

    Args:
        equation: the indices of each operand, separated by commas, then perhaps ``->`` and those of the result
        operands: the tensors, one for each term
    Returns:
        A tensor with a dimension for each index of the output.
    Raises:
        RuntimeError: sizes of one index differ, or the equation does not fit the operands
    """
    args = (equation, *operands)
    if equation is None and not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand "
            "and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        terms, output, operands = _sublists(args)
    else:
        terms, output = _parse(args[0])
        operands = list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
    for k, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise TypeError(f"einsum(): expected Tensor as operand {k}, but got {type(x).__name__}")
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    if len(terms) != len(operands):
        raise RuntimeError(
            f"einsum(): {'more' if len(operands) > len(terms) else 'fewer'} operands were provided than "
            f"specified in the equation: {len(operands)} for {len(terms)} terms"
        )
    terms, result = _labelled(tuple(terms), output, tuple([x._h.ndim for x in operands]))
    return _contract(terms, operands, result)


def _contract(terms, operands, result) -> Tensor:
    pairs = [_diagonals(x, labels) for x, labels in zip(operands, terms)]
    sizes = _measure([labels for _, labels in pairs], [x for x, _ in pairs])
    x, labels = pairs[0]
    if len(pairs) == 1 and set(labels) != set(result):  # a sum: integers become int64
        x = x.sum([d for d, c in enumerate(labels) if c not in result])
        labels = [c for c in labels if c in result]
    for k, (y, b) in enumerate(pairs[1:], 1):
        keep = frozenset(result).union(*[t for _, t in pairs[k + 1 :]])
        x, labels = _pair(x, labels, y, b, sizes, keep, result)
    return x if tuple(labels) == result else x.permute([labels.index(c) for c in result])
