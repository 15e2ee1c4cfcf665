"""Further names of modules of ``torch.nn.modules``."""

__all__: list[str] = []
