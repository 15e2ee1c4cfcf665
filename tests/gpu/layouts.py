"""Tensors on the device, laid out as on the CPU."""


def to_device(x):
    """``x`` on the device in the same layout: ``cuda()`` alone closes the gaps between its elements."""
    return (x if x._base is None else x._base).cuda().as_strided(x.shape, x.stride(), x.storage_offset())
