"""Checkpointing: memory for time. A checkpointed part keeps none of its intermediate values and computes them again
when backward asks (Chen et al. 2016, arXiv:1604.06174)."""

from __future__ import annotations

from ..autograd.graph import saved_tensors_hooks
from ..autograd.modes import enable_grad, is_grad_enabled
from ..tensor import FUNCTIONS

__all__ = ["checkpoint", "checkpoint_sequential"]


class _Part:
    """One checkpointed call: hands out numbers for what would have been saved, and the values on demand."""

    def __init__(self, function, args, kwargs, preserve_rng_state):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.state = FUNCTIONS["get_rng_state"]() if preserve_rng_state else None
        self.saved = 0
        self.values: dict = {}

    def number(self, tensor):
        self.saved += 1
        return self.saved - 1

    def value(self, number):
        if number not in self.values:
            self.recompute()
        return self.values.pop(number)

    def recompute(self):
        collected: list = []
        after = None
        if self.state is not None:
            after = FUNCTIONS["get_rng_state"]()
        try:
            if self.state is not None:
                FUNCTIONS["set_rng_state"](self.state)
            with enable_grad(), saved_tensors_hooks(lambda t: collected.append(t.detach()), lambda nothing: nothing):
                self.function(*self.args, **self.kwargs)
        finally:
            if after is not None:
                FUNCTIONS["set_rng_state"](after)
        if len(collected) != self.saved:
            raise RuntimeError(
                f"checkpoint: the recomputation saved {len(collected)} tensors and the forward pass "
                f"{self.saved}; the function must do the same each time it is called"
            )
        self.values = dict(enumerate(collected))


def checkpoint(
    function, *args, use_reentrant=False, preserve_rng_state=True, determinism_check="default", debug=False, **kwargs
):
    """``function(*args, **kwargs)``, whose saved values are computed again in backward instead of kept. Random numbers
    are drawn alike both times unless ``preserve_rng_state`` is False. Any order of derivative works. Follows
    ``torch.utils.checkpoint.checkpoint(use_reentrant=False)``; the other arguments change nothing."""
    if not is_grad_enabled():
        return function(*args, **kwargs)
    part = _Part(function, args, kwargs, preserve_rng_state)
    with saved_tensors_hooks(part.number, part.value):
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=False, **kwargs):
    """Runs a sequence of functions in ``segments`` checkpointed parts; the last part is not checkpointed."""
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = max(len(functions) // segments, 1)

    def run(part):
        def forward(x):
            for f in part:
                x = f(x)
            return x

        return forward

    cut = size * (segments - 1)
    for start in range(0, cut, size):
        input = checkpoint(run(functions[start : start + size]), input, **kwargs)
    return run(functions[cut:])(input)
