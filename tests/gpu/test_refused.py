"""What has no kernels for a device refuses, and names operator and device."""

import pytest
import tinytorch as tt


def test_blocks_of_images_on_a_device_are_refused(gpu):
    with pytest.raises(NotImplementedError, match="unfold: not implemented on cuda:0"):
        tt.nn.functional.unfold(tt.ones(1, 2, 3, 3, device="cuda"), 2)
    with pytest.raises(NotImplementedError, match="fold: not implemented on cuda:0"):
        tt.nn.functional.fold(tt.ones(1, 8, 4, device="cuda"), 3, 2)


def test_convolutions_of_two_devices_are_refused(gpu):
    x, w = tt.ones(1, 2, 5, device="cuda"), tt.ones(3, 2, 2, device="cuda")
    with pytest.raises(RuntimeError, match="convolution: .*on the same device"):
        tt.conv1d(x, w.cpu())
