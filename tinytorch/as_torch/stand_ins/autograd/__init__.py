"""Further names of ``torch.autograd``'s modules."""

__all__: list[str] = []
