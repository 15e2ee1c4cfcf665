"""``torch.distributed.optim`` in a group of one process, which holds the whole state."""

from __future__ import annotations

from tinytorch.optim import Optimizer

from ..group import the_group

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer of ``optimizer_class`` with ``defaults``; ``optim`` is the one that steps."""

    def __init__(
        self,
        params,
        optimizer_class: type[Optimizer],
        process_group=None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults,
    ):
        the_group()
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: one process overlaps with no other")
        super().__init__(params, defaults)
        self.optim = optimizer_class(self.param_groups, **defaults)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
        self._consolidated = False

    def add_param_group(self, param_group: dict) -> None:
        """Adds parameters."""
        if "optim" in self.__dict__:
            self.optim.add_param_group(param_group)
        else:
            super().add_param_group(param_group)

    def step(self, closure=None, **kwargs):
        """A step of the optimizer."""
        return self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Lets ``state_dict`` be asked for."""
        self._consolidated = True

    def state_dict(self) -> dict:
        """The state. RuntimeError before ``consolidate_state_dict``."""
        if not self._consolidated:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=0)` "
                "on all ranks beforehand if you meant to save the global state."
            )
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes a state."""
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
