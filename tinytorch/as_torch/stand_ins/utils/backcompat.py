"""``torch.utils.backcompat``: warnings of old behaviour, of which tinytorch has none."""

import types

__all__ = ["broadcast_warning", "keepdim_warning"]

broadcast_warning = types.SimpleNamespace(enabled=False)
keepdim_warning = types.SimpleNamespace(enabled=False)
