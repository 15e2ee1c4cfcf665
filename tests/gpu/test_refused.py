"""Decompositions have no kernels for a device yet: they refuse, and name operator and device."""

import pytest
import tinytorch as tt


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eigvalsh", "qr", "cholesky", "inv"])
def test_a_device_is_refused(gpu, name):
    with pytest.raises(NotImplementedError, match=f"linalg.{name}: not implemented for tensors on cuda:0"):
        getattr(tt.linalg, name)(tt.eye(3, device="cuda"))


def test_systems_on_a_device_are_refused(gpu):
    a = tt.eye(3, device="cuda")
    for A, B in ((a, a), (tt.eye(3), a), (a, tt.eye(3))):
        with pytest.raises(NotImplementedError, match="linalg.solve: not implemented for tensors on cuda:0"):
            tt.linalg.solve(A, B)
        with pytest.raises(NotImplementedError, match="linalg.solve_triangular: not implemented for tensors on cuda:0"):
            tt.linalg.solve_triangular(A, B, upper=True)


def test_convolutions_of_two_devices_are_refused(gpu):
    x, w = tt.ones(1, 2, 5, device="cuda"), tt.ones(3, 2, 2, device="cuda")
    with pytest.raises(RuntimeError, match="convolution: .*on the same device"):
        tt.conv1d(x, w.cpu())
