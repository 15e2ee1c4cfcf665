"""A device's values as Python and NumPy see them."""

import numpy as np
import pytest
import tinytorch as tt

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_views_of_what_was_overwritten(fused, grad):
    with tt.fuse() if fused else tt.enable_grad():
        for write in (lambda base, view: base.add_(1), lambda base, view: view.fill_(1)):
            base = tt.zeros(2, 3, device="cuda:0", requires_grad=grad) * 1
            view, number = base[:, 1:], base[0, 1]
            write(base, view)
            assert number.item() == 1.0 and view.tolist() == [[1.0, 1.0]] * 2
            assert repr(view).startswith("tensor([[1., 1.]") and tt.tensor(view.detach()).tolist() == view.tolist()
            np.testing.assert_array_equal(view.numpy(force=True), np.ones((2, 2)))
            assert view.cpu().tolist() == view.tolist() and (view.grad_fn is not None) == grad


def test_what_numpy_cannot_take():
    a = tt.ones(2, device="cuda:0")
    for use in (np.asarray, np.sin, tt.Tensor.numpy):
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()"):
            use(a)
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(a)
