"""Further names of modules of ``torch.nn.utils``."""

__all__: list[str] = []
