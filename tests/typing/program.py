"""A program as users write it, for a type checker: every annotation must hold, and every error that is marked must be
found (warn_unused_ignores)."""

from collections.abc import Sequence

import numpy

import tinytorch
from tinytorch import Tensor, nn
from tinytorch.nn import functional as F
from tinytorch.types import Number


class Net(nn.Module):
    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])))

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(F.relu(self.layers(x)), -1)


def creation() -> list[Tensor]:
    x: Tensor = tinytorch.zeros(2, 3)
    y: Tensor = tinytorch.zeros((2, 3), dtype=tinytorch.float64, device="cpu", requires_grad=True)
    tinytorch.zeros("two")  # type: ignore[arg-type]
    tinytorch.ones(2, dtype="float32")  # type: ignore[call-overload]
    return [x, y, tinytorch.tensor([1.0, 2.0]), tinytorch.arange(3), tinytorch.randn(2, 2), x.new_zeros(3)]


def arithmetic(x: Tensor, y: Tensor) -> Tensor:
    z: Tensor = (x + y * 2 - 1) / (2**x) @ y.T
    z += 1
    mask: Tensor = (x > 0) & (x == y) | ~(x < 1)
    z = tinytorch.where(mask, x, 0.0) + tinytorch.add(x, y, alpha=2)
    tinytorch.exp("x")  # type: ignore[arg-type]
    tinytorch.exp()  # type: ignore[call-arg]
    x.nonsense()  # type: ignore[attr-defined]
    return -abs(z).exp_().clamp(min=0)[0, ..., None, 1:2]


def shapes(x: Tensor) -> tuple[int, ...]:
    rows, columns = x.shape
    size: int = x.size(0) + x.numel() + x.dim() + x.ndim + rows + columns
    y: Tensor = x.view(-1, 2).reshape((2, -1)).permute(1, 0).unsqueeze(0).squeeze().expand(3, -1).flatten()
    parts: tuple[Tensor, ...] = y.split(2) + x.unbind()
    z: Tensor = tinytorch.cat([*parts], dim=0).sum(dim=(0, 1), keepdim=True).mean()
    z = tinytorch.stack(parts).sum(axis=0)
    x.reshape("two")  # type: ignore[arg-type]
    return (size, *x.size(), *z.stride())


def several(x: Tensor) -> Tensor:
    top = x.max(1)
    values: Tensor = top.values + x.max()
    order, indices = x.sort(dim=0, descending=True)
    U, S, Vh = tinytorch.linalg.svd(x, full_matrices=False)
    wrong: int = x.max()  # type: ignore[assignment]
    return values + order + indices + U * S @ Vh + x.topk(2).indices + x.nonzero(as_tuple=True)[0] + wrong


def conversions(x: Tensor) -> Number:
    array: numpy.ndarray = x.detach().cpu().numpy()
    y: Tensor = tinytorch.from_numpy(array).to(tinytorch.float32).to("cpu", tinytorch.int64).float()
    kind: tinytorch.dtype = y.dtype
    where: tinytorch.device = y.to(x).device
    name: str = y.type()
    print(kind, where, name, bool(y.any()), int(y.sum()), float(y.mean()), len(y), [row.sum() for row in y])
    return y.item()


def training(model: Net, data: Sequence[tuple[Tensor, Tensor]]) -> float:
    optimizer = tinytorch.optim.SGD(model.parameters(), lr=0.1)
    loss = tinytorch.zeros(())
    for x, target in data:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
    with tinytorch.no_grad(), tinytorch.fuse():
        gradient: Tensor | None = loss.grad
        F.cross_entropy(loss)  # type: ignore[call-arg]
        print(gradient)
    return float(loss)
