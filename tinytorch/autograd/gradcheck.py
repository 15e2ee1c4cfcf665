"""Numerical checks of derivatives."""

from __future__ import annotations

import itertools
import warnings

from ..tensor import FUNCTIONS, Tensor
from .api import grad
from .modes import enable_grad


class GradcheckError(RuntimeError):
    """gradcheck or gradgradcheck found a derivative that is wrong."""


def _differentiable(values) -> list[Tensor]:
    return [t for t in values if isinstance(t, Tensor) and t.requires_grad]


def _outputs(fn, inputs) -> tuple:
    out = fn(*inputs)
    out = out if isinstance(out, (tuple, list)) else (out,)
    return tuple(o for o in out if isinstance(o, Tensor) and o.dtype.is_differentiable)


def _in_parts(fn, inputs: tuple) -> tuple:
    """The function with the parts of complex numbers in their place, as inputs and as outputs, and those inputs: its
    derivatives are what a gradient of complex numbers is made of."""
    if not any(isinstance(t, Tensor) and t.is_complex() for t in (*inputs, *_outputs(fn, inputs))):
        return fn, inputs
    as_real, as_complex = FUNCTIONS["view_as_real"], FUNCTIONS["view_as_complex"]
    taken = [isinstance(t, Tensor) and t.is_complex() for t in inputs]

    def of_parts(*given):
        outs = _outputs(fn, tuple([as_complex(t) if parts else t for t, parts in zip(given, taken)]))
        return tuple([as_real(o) if o.is_complex() else o for o in outs])

    given = [
        as_real(t.detach()).clone().requires_grad_(t.requires_grad) if parts else t for t, parts in zip(inputs, taken)
    ]
    return of_parts, tuple(given)


def _numerical(fn, inputs, t, eps):
    """d outputs / d t by central differences: for each output a matrix (elements of t, elements of output). The
    function sees inputs that require grad, and is recorded, as when it is derived."""
    rows: list[list] = []
    flat, shapes = t.data, [o.shape for o in _outputs(fn, inputs)]
    for index in itertools.product(*(range(n) for n in t.shape)):
        old, sides = flat[index].item(), []
        for step in (eps, -eps):
            flat[index] = old + step
            sides.append([o.detach().clone() for o in _outputs(fn, inputs)])
            flat[index] = old
            if [o.shape for o in sides[-1]] != shapes:
                raise AssertionError(
                    "Expected `func` to return outputs with the same shape when inputs are perturbed on index "
                    f"{index} by {step}, but got {[tuple(o.shape) for o in sides[-1]]} instead of "
                    f"{[tuple(s) for s in shapes]}."
                )
        rows.append([((p - m) / (2 * eps)).reshape(-1) for p, m in zip(*sides)])
    columns = zip(*rows) if rows else [[] for _ in shapes]
    return [FUNCTIONS["stack"](list(c)) if c else None for c in columns]


def _analytical(output, t):
    """d output / d t by backward: a matrix (elements of t, elements of output)."""
    columns = []
    for index in itertools.product(*(range(n) for n in output.shape)):
        seed = output.new_zeros(output.shape)
        seed[index] = 1.0
        (g,) = grad(output, t, seed, retain_graph=True, allow_unused=True)
        columns.append((g if g is not None else t.new_zeros(t.shape)).detach().reshape(-1))
    return FUNCTIONS["stack"](columns, 1) if columns else None


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compares the derivatives of ``func`` at ``inputs`` (float64 or complex128 tensors that require grad) with central
    differences. True if they agree within ``atol + rtol |numerical|``; else GradcheckError, or False. Follows
    ``torch.autograd.gradcheck``.

    Args:
        eps: the step of the differences
        nondet_tol: by how much a second backward may differ from the first
        check_undefined_grad: also with gradients of some outputs only
        check_grad_dtypes: whether a gradient of another dtype than its input is an error
        check_batched_grad: also with a batch of gradients
        check_forward_ad: not implemented, like ``check_batched_forward_grad``
        fast_mode: taken as in PyTorch, like ``masked``; all elements are compared in any case
    Raises:
        GradcheckError: a derivative is wrong
        ValueError: no input requires grad
        RuntimeError: an input has a stride of 0
        AssertionError: the shapes of outputs depend on the inputs' values, or nothing is to be checked
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_forward_ad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck: there are no forward-mode derivatives")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    options = (check_undefined_grad, check_grad_dtypes, check_batched_grad)
    try:
        with enable_grad():
            _check(func, inputs, eps, atol, rtol, nondet_tol, *options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, eps, atol, rtol, nondet_tol, check_undefined, check_dtypes, check_batched):
    func, inputs = _in_parts(func, inputs)
    targets = _differentiable(inputs)
    if not targets:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for k, t in enumerate(targets):
        if t.dtype.itemsize < 8:
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=3,
            )
        if not all(n <= 1 or s > 0 for n, s in zip(t.shape, t.stride())):
            raise RuntimeError(f"gradcheck: the {k}th input has a dimension with stride 0; use a contiguous copy")
    # The numerical derivatives come first: they write the inputs in place, which outputs made before would notice.
    numerical = [_numerical(func, inputs, t, eps) for t in targets]
    outputs = _outputs(func, inputs)
    recorded = [o for o in outputs if o.requires_grad]
    for i, t in enumerate(targets):
        for j, (o, expected) in enumerate(zip(outputs, numerical[i])):
            if expected is None:
                continue
            if not o.requires_grad:
                if bool((expected.abs() > atol).any()):
                    raise GradcheckError(
                        f"Numerical gradient for function expected to be zero: output {j} has no "
                        f"history "
                        f"but depends on input {i}"
                    )
                continue
            found = _analytical(o, t)
            if found is None:
                continue
            if not bool(FUNCTIONS["isfinite"](found).all()) or bool(
                ((found - expected).abs() > atol + rtol * expected.abs()).any()
            ):
                raise GradcheckError(
                    f"Jacobian mismatch for output {j} with respect to input {i},\n"
                    f"numerical:{expected!r}\nanalytical:{found!r}\n"
                )
            again = _analytical(o, t)
            if bool(((found - again).abs() > nondet_tol).any()):
                raise GradcheckError(
                    f"Backward is not reentrant, i.e., running backward with same input and "
                    f"grad_output "
                    f"multiple times gives different values: output {j}, input {i}"
                )
    for t in targets:
        for o in recorded:
            (g,) = grad(o, t, o.new_ones(o.shape), retain_graph=True, allow_unused=True)
            if g is not None and (g.shape != t.shape or (check_dtypes and g.dtype is not t.dtype)):
                raise GradcheckError(f"grad is incorrect size or dtype: {tuple(g.shape)} for input {tuple(t.shape)}")
    if check_undefined and len(recorded) > 1:
        _check_undefined(recorded, targets)
    if check_batched:
        _check_batched(recorded, targets, atol, rtol)


def _check_undefined(outputs, targets):
    """An output that is left out counts as one with a gradient of zeros."""
    seeds = [o.new_ones(o.shape) for o in outputs]
    for k in range(len(outputs)):
        zeros = [s if i == k else s.new_zeros(s.shape) for i, s in enumerate(seeds)]
        expected = grad(outputs, targets, zeros, retain_graph=True, allow_unused=True)
        try:
            found = grad(outputs[k], targets, seeds[k], retain_graph=True, allow_unused=True)
        except Exception as exc:
            raise GradcheckError("Expected backward function to handle undefined output grads.") from exc
        for e, f in zip(expected, found):
            if e is not None and not e.allclose(e.new_zeros(e.shape) if f is None else f, equal_nan=True):
                raise GradcheckError("Expected backward function to handle undefined output grads.")


def _check_batched(outputs, targets, atol, rtol):
    """A batch of gradients gives what each of them gives."""
    for o in outputs:
        seeds = FUNCTIONS["randn"]((2, *o.shape), dtype=o.dtype, device=o.device)
        batch = grad(o, targets, seeds, retain_graph=True, allow_unused=True, is_grads_batched=True)
        rows = [grad(o, targets, s, retain_graph=True, allow_unused=True) for s in seeds.unbind()]
        for b, *each in zip(batch, *rows):
            if b is not None and not b.allclose(FUNCTIONS["stack"](each), rtol=rtol, atol=atol):
                raise GradcheckError("Batched gradients differ from those computed one by one")


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """``gradcheck`` of the first derivatives of ``func``, as functions of its inputs and of the outputs' gradients
    (random unless given). Follows ``torch.autograd.gradgradcheck``."""
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    with enable_grad():
        outputs = [o for o in _outputs(func, inputs) if o.requires_grad]
    if grad_outputs is None:
        seeds = [FUNCTIONS["randn"](tuple(o.shape), dtype=o.dtype, device=o.device) for o in outputs]
        if gen_non_contig_grad_outputs:
            seeds = [FUNCTIONS["stack"]([s, s], -1).select(-1, 0) for s in seeds]
        grad_outputs = [s.detach().requires_grad_() for s in seeds]
    elif isinstance(grad_outputs, Tensor):
        grad_outputs = [grad_outputs]
    n = len(inputs)

    def first(*args):
        given, seeds = args[:n], args[n:]
        with enable_grad():
            made = [o for o in _outputs(func, given) if o.requires_grad]
            return tuple(
                g
                for g in grad(made, _differentiable(given), seeds, create_graph=True, allow_unused=True)
                if g is not None
            )

    return gradcheck(
        first,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )
