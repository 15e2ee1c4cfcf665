"""Products with sparse matrices: on a device they have the CPU's bits, in whatever order places come."""

import numpy as np
import pytest
import tinytorch as tt

SHAPE = (7, 9)


def product(device, places, values, dense, dtype):
    values = tt.from_numpy(values).to(device, dtype).requires_grad_()
    dense = tt.from_numpy(dense).to(device, dtype).requires_grad_()
    out = tt.sparse_coo_tensor(tt.from_numpy(places).to(device), values, SHAPE) @ dense
    return [t.detach().cpu().numpy() for t in (out, *tt.autograd.grad(out, [values, dense], out.detach() + 1))]


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
@pytest.mark.parametrize("count, columns", [(0, 3), (1, 1), (40, 5), (40, 100), (5000, 3)])
def test_products_have_the_bits_of_the_cpu(gpu, dtype, count, columns):
    random = np.random.default_rng(0)
    places = np.stack([random.integers(0, n, count) for n in SHAPE])
    values, dense = random.standard_normal(count), random.standard_normal((SHAPE[1], columns))
    expected, found = (product(device, places, values, dense, dtype) for device in ("cpu", "cuda"))
    for a, b in zip(expected, found, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dim, place", [(0, -1), (0, 7), (1, -1), (1, 9)])
def test_places_outside_are_reported(gpu, dim, place):
    places = tt.zeros(2, 3, dtype=tt.int64, device="cuda")
    values, dense = tt.ones(3, device="cuda"), tt.ones(*SHAPE[::-1], device="cuda")
    sparse = tt.sparse_coo_tensor(places, values, SHAPE)
    sparse._indices()[dim, 1] = place
    with pytest.raises(IndexError, match=f"index {place} is out of bounds for dimension {dim} with size"):
        (sparse @ dense).cpu()
