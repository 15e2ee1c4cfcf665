"""``torch._VF``: functions of ``torch`` by another way."""

import tinytorch

__all__: list[str] = []


def __getattr__(name: str):
    return getattr(tinytorch, name)
