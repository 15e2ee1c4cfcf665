"""Proximal policy optimisation learns to balance a pole on a cart: thousands of calls of tiny networks.

    python examples/ppo.py
    python examples/ppo.py --fuse

The environment is in this file: some carts at once, as rows of a tensor (the equations are those of Barto, Sutton and
Anderson 1983). An update plays for some steps, estimates how much better than expected each action was, and then
makes the better ones likelier, but not by too much at a time (Schulman et al. 2017, arXiv:1707.06347).
The picture shows how long the poles stay up. The exit code is 1 if that is less than 400 of at most 500 steps.
"""

import math
import sys

import common

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

REQUIRED_LENGTH, LONGEST = 400, 500
#: Of rewards to come; of the estimate of advantages; how far a ratio of probabilities may be from 1.
DISCOUNT, SMOOTHING, CLIP = 0.99, 0.95, 0.2


class CartPole:
    """Carts on a track, each with a pole: push them left or right every 0.02 s, so that the pole does not fall."""

    def __init__(self, count, device):
        self.state = torch.zeros(count, 4, device=device)  # place, speed, the pole's angle, and its speed
        self.age = torch.zeros(count, device=device)
        self.state.copy_(self.fresh())

    def fresh(self):
        """Random states near the middle, the pole nearly upright."""
        return 0.1 * torch.rand_like(self.state) - 0.05

    def step(self, action):
        """Push; return whether an episode has ended, for each cart. Those begin a new one."""
        x, speed, angle, turn = self.state.unbind(1)
        force = 20.0 * action - 10.0
        cos, sin = angle.cos(), angle.sin()
        push = (force + 0.05 * turn**2 * sin) / 1.1
        turning = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        acceleration = push - 0.05 * turning * cos / 1.1
        slopes = torch.stack([speed, acceleration, turn, turning], dim=1)
        self.state = self.state + 0.02 * slopes
        self.age = self.age + 1
        fallen = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > math.radians(12))
        ended = fallen | (self.age >= LONGEST)
        lengths = self.age
        self.state = torch.where(ended.unsqueeze(1), self.fresh(), self.state)
        self.age = torch.where(ended, 0.0, self.age)
        return ended.float(), lengths

    def state_dict(self):
        return {"state": self.state, "age": self.age}

    def load_state_dict(self, state):
        self.state.copy_(state["state"])
        self.age.copy_(state["age"])


class Agent(nn.Module):
    """What to do (logits of both actions), and what it expects (the discounted rewards to come)."""

    def __init__(self, width):
        super().__init__()
        self.policy = self.network(width, 2, 0.01)
        self.value = self.network(width, 1, 1.0)

    @staticmethod
    def network(width, outputs, gain):
        layers = [nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)]
        for layer, size in zip(layers[::2], (math.sqrt(2), math.sqrt(2), gain)):
            nn.init.orthogonal_(layer.weight, size)
            nn.init.zeros_(layer.bias)
        return nn.Sequential(*layers)

    def forward(self, states):
        return F.log_softmax(self.policy(states), dim=-1), self.value(states).squeeze(-1)


@torch.no_grad()
def play(agent, carts, steps):
    """Play; return states, actions, their log-probabilities, values, ends, and the lengths of ended episodes."""
    rows = []
    for _ in range(steps):
        states = carts.state
        logits, values = agent(states)
        actions = torch.multinomial(logits.float().exp(), 1)
        ended, lengths = carts.step(actions.squeeze(1))
        rows.append((states, actions, logits.gather(1, actions).squeeze(1), values, ended, lengths))
    states, actions, chosen, values, ended, lengths = map(torch.stack, zip(*rows))
    _, last = agent(carts.state)
    return states, actions, chosen, torch.cat([values, last.unsqueeze(0)]).float(), ended, lengths[ended.bool()]


def advantages_of(values, ended):
    """How much better than expected things went after each action; every step without an end is a reward of 1."""
    advantage, advantages = torch.zeros_like(values[0]), []
    for step in range(len(ended) - 1, -1, -1):
        goes_on = 1 - ended[step]
        surprise = 1 + DISCOUNT * values[step + 1] * goes_on - values[step]
        advantage = surprise + DISCOUNT * SMOOTHING * goes_on * advantage
        advantages.append(advantage)
    return torch.stack(advantages[::-1])


def loss_of(agent, states, actions, chosen, advantages, returns):
    """The clipped objective, the values' error, and a little for not being sure too early."""
    logits, values = agent(states)
    ratio = (logits.gather(1, actions).squeeze(1) - chosen).exp()
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    gain = torch.minimum(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages).mean()
    entropy = -(logits.exp() * logits).sum(dim=1).mean()
    return 0.5 * F.mse_loss(values.float(), returns) - gain - 0.01 * entropy


def update(run, agent, optimizer, carts):
    """Play, then learn from it in some passes; return the last loss, and the lengths of the episodes that ended."""
    options = run.options
    with run.fused(), run.autocast():
        states, actions, chosen, values, ended, lengths = play(agent, carts, options.length)
        advantages = advantages_of(values, ended)
    data = [x.flatten(0, 1) for x in (states, actions, chosen, advantages, advantages + values[:-1])]
    for _ in range(options.passes):
        order = torch.randperm(len(data[0]), device=options.device)
        for batch in order.split(options.batch_size):
            with run.fused():
                with run.autocast():
                    loss = loss_of(agent, *(x[batch] for x in data))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    return loss.item(), lengths


def main(arguments=None):
    parser = common.parser(__doc__, steps=80, batch_size=256, lr=2.5e-3, width=64, carts=16, length=128, passes=4)
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    carts = CartPole(options.carts, options.device)
    agent = Agent(options.width).to(options.device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=options.lr, eps=1e-5)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=options.total)
    print(common.parameters_of(agent))

    run = common.Run(options, agent=agent, optimizer=optimizer, schedule=schedule, carts=carts)
    length = 0.0
    for _ in run:
        loss, lengths = update(run, agent, optimizer, carts)
        schedule.step()
        length = lengths.mean().item() if len(lengths) else length
        run.log(loss=loss, length=length)

    recent = run.history["length"][-10:]
    length = sum(recent) / len(recent)
    common.save_curves(options.out, {"steps until the pole falls": run.history["length"]})
    return run.finish(f"poles stay up for {length:.0f} steps", length >= REQUIRED_LENGTH)


if __name__ == "__main__":
    sys.exit(main().exit_code)
