"""Tries an installed tinytorch, where neither its sources nor a compiler are: some training, eager and fused, to the
same bits. (The table of operators is pytest's part: see `wheel`.)"""

import pathlib
import shutil

import tinytorch as torch
from tinytorch import nn

assert not shutil.which("cc") and not shutil.which("gcc")
folder = pathlib.Path(torch.__file__).parent
assert "site-packages" in folder.parts, folder
assert all((folder / name).exists() for name in ("py.typed", "__init__.pyi", "tensor.pyi", "nn/functional.pyi"))


def train(fused):
    """The losses and the parameters of a small network's first steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
    losses = []
    with torch.config(fuse=int(fused)):
        for _ in range(50):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, [p.tolist() for p in model.parameters()]


eager = train(False)
assert eager[0][-1] < eager[0][0] / 2, eager[0]
assert train(True) == eager
print("tinytorch", torch.__version__, "works:", torch.__file__)
