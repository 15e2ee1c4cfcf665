"""Further modules of ``torch.nn.attention``."""

__all__: list[str] = []
