"""A training run that keeps checkpoints and goes on from the last one: a program that test_killed.py kills.

    python tests/killed_training.py FOLDER STEPS

It prints a line after each step, and at the end a digest of all bits of the state.
"""

import hashlib
import os
import random
import sys

import tinytorch as tt
from tinytorch import nn
from tinytorch.utils.data import DataLoader, TensorDataset

EVERY = 3  # steps from one checkpoint to the next


class Run:
    """What a run consists of."""

    def __init__(self):
        tt.manual_seed(1)
        random.seed(2)
        self.net = nn.Sequential(
            nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 32), nn.GELU(),
            nn.Linear(32, 1),
        )  # fmt: skip
        self.average = tt.optim.swa_utils.AveragedModel(self.net)
        self.optimizer = tt.optim.AdamW(self.net.parameters(), lr=0.01, amsgrad=True)
        self.schedule = tt.optim.lr_scheduler.CosineAnnealingWarmRestarts(self.optimizer, 50)
        self.scaler = tt.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=7)
        x = tt.randn(200, 8)
        self.shuffle = tt.Generator().manual_seed(3)
        self.loader = DataLoader(
            TensorDataset(x, x.square().sum(1, keepdim=True)), batch_size=16, shuffle=True, generator=self.shuffle
        )
        self.parts = {name: getattr(self, name) for name in ("net", "average", "optimizer", "schedule", "scaler")}
        self.step = 0
        self.losses = []
        self.epoch = self.shuffle.get_state()  # where the shuffling stood when the epoch began

    def state(self) -> dict:
        return {
            **{name: part.state_dict() for name, part in self.parts.items()},
            "step": self.step, "losses": self.losses, "epoch": self.epoch, "rng": tt.get_rng_state(),
            "python": random.getstate(),
        }  # fmt: skip

    def restore(self, state: dict) -> None:
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.step, self.losses, self.epoch = state["step"], state["losses"], state["epoch"]
        self.random = state["rng"], state["python"]

    def batches(self, steps: int):
        """Batches from where the run stands, to the last step."""
        while self.step < steps:
            self.shuffle.set_state(self.epoch)
            for k, batch in enumerate(self.loader):
                if k < self.step % len(self.loader):
                    continue  # they were trained on before the checkpoint
                if k == self.step % len(self.loader) and hasattr(self, "random"):
                    tt.set_rng_state(self.random[0])
                    random.setstate(self.random[1])
                    del self.random
                yield batch
                if self.step == steps:
                    return

    def train(self, x, y) -> None:
        x = x + 0.01 * random.random()
        loss = (self.net(x) - y).square().mean()
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.average.update_parameters(self.net)
        self.losses.append(loss.item())
        self.step += 1
        if self.step % len(self.loader) == 0:
            self.epoch = self.shuffle.get_state()


def digest(obj, into=None) -> str:
    """Of all bits of a nest of tensors and plain values."""
    into = into or hashlib.sha256()
    if isinstance(obj, tt.Tensor):
        into.update(repr((obj.dtype, obj.shape)).encode() + obj.detach().numpy().tobytes())
    elif isinstance(obj, dict):
        for key, value in obj.items():
            into.update(repr(key).encode())
            digest(value, into)
    elif isinstance(obj, (list, tuple)):
        into.update(b"[")
        for value in obj:
            digest(value, into)
    else:
        into.update(repr(obj).encode())
    return into.hexdigest()


def main(folder: str, steps: int) -> None:
    run, path = Run(), os.path.join(folder, "checkpoint.pt")
    if os.path.exists(path):
        run.restore(tt.load(path))
    for batch in run.batches(steps):
        run.train(*batch)
        if run.step % EVERY == 0:
            tt.save(run.state(), path)
        print("stepped", flush=True)
    print(digest(run.state()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
