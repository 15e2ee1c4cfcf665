"""Numerical checks of derivatives."""

from __future__ import annotations

import itertools

from ..tensor import FUNCTIONS, Tensor
from .api import grad
from .modes import enable_grad, no_grad


class GradcheckError(RuntimeError):
    """gradcheck or gradgradcheck found a derivative that is wrong."""


def _differentiable(values) -> list[Tensor]:
    return [t for t in values if isinstance(t, Tensor) and t.requires_grad]


def _outputs(fn, inputs) -> tuple:
    out = fn(*inputs)
    out = out if isinstance(out, (tuple, list)) else (out,)
    return tuple(o for o in out if isinstance(o, Tensor) and o.dtype.is_floating_point)


def _numerical(fn, inputs, t, eps):
    """d outputs / d t by central differences: for each output a matrix (elements of t, elements of output)."""
    rows: list[list] = []
    with no_grad():
        flat = t.detach()
        for index in itertools.product(*(range(n) for n in t.shape)):
            old = flat[index].item()
            flat[index] = old + eps
            plus = [o.clone() for o in _outputs(fn, inputs)]
            flat[index] = old - eps
            minus = [o.clone() for o in _outputs(fn, inputs)]
            flat[index] = old
            rows.append([((p - m) / (2 * eps)).reshape(-1) for p, m in zip(plus, minus)])
    columns = zip(*rows) if rows else [[] for _ in _outputs(fn, inputs)]
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
    fast_mode=False,
    masked=False,
):
    """Compares the derivatives of ``func`` at ``inputs`` (float64 tensors that require grad) with central differences.
    True if they agree within ``atol + rtol |numerical|``; else GradcheckError, or False. Also run backward twice for
    the same bits within ``nondet_tol``. Follows ``torch.autograd.gradcheck``.

    ``check_batched_grad``, ``fast_mode`` and ``masked`` are accepted for compatibility and change nothing.
    """
    try:
        _check(
            func,
            inputs if isinstance(inputs, (tuple, list)) else (inputs,),
            eps,
            atol,
            rtol,
            nondet_tol,
            check_undefined_grad,
            check_grad_dtypes,
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, eps, atol, rtol, nondet_tol, check_undefined, check_dtypes):
    targets = _differentiable(inputs)
    if not targets:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for k, t in enumerate(targets):
        if t.dtype.itemsize < 8:
            raise ValueError(
                f"gradcheck: input {k} requires gradient and is {t.dtype.name}; central differences need float64"
            )
        if not all(n <= 1 or s > 0 for n, s in zip(t.shape, t.stride())):
            raise RuntimeError(f"gradcheck: the {k}th input has a dimension with stride 0; use a contiguous copy")
    # The numerical derivatives come first: they write the inputs in place, which outputs made before would notice.
    numerical = [_numerical(func, inputs, t, eps) for t in targets]
    with enable_grad():
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
    )
