"""``torch.nn.grad``: gradients of convolutions by themselves."""

from __future__ import annotations

import tinytorch
from tinytorch.nn import functional as F

__all__ = [f"conv{n}d_{of}" for n in (1, 2, 3) for of in ("input", "weight")]


def _of(n: int, which: str):
    conv = getattr(F, f"conv{n}d")

    def gradient(input, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        sizes = input if which == "input" else weight
        like = weight if which == "input" else input
        with tinytorch.enable_grad():
            wanted = tinytorch.zeros(tuple(sizes), dtype=like.dtype, device=like.device, requires_grad=True)
            pair = (wanted, weight) if which == "input" else (input, wanted)
            out = conv(*pair, None, stride, padding, dilation, groups)
        return tinytorch.autograd.grad(out, wanted, grad_output)[0]

    gradient.__name__ = gradient.__qualname__ = f"conv{n}d_{which}"
    argument = "input_size, weight" if which == "input" else "input, weight_size"
    gradient.__doc__ = f"The gradient of ``F.conv{n}d``'s {which}: ({argument}, grad_output, ...)."
    return gradient


globals().update({f"conv{n}d_{of}": _of(n, of) for n in (1, 2, 3) for of in ("input", "weight")})
