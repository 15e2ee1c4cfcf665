"""``torch.jit.annotations``: names for annotations."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple, Union  # programs import them from here

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple"]


class BroadcastingListCls:
    """``BroadcastingList2[int]``: a number, or a list of them."""

    def __getitem__(self, types):
        return Union[types, list[types], tuple[types, ...]]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
