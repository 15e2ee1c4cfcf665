"""Teach a small GPT to add numbers of three digits, from generated text to a picture of the learning curves.

    python examples/gpt.py                             # half a minute
    python examples/gpt.py --fuse                      # the same losses, from fused kernels
    python examples/gpt.py --device cuda               # the same to float32 accuracy

A sum is a line of text such as ``123+456=9750``: operands of three digits, and the result of four with its last digit
first, because that is the order in which carries travel (Lee et al. 2023, arXiv:2307.03381). The network reads it
character by character and predicts the next one; only the result's digits count in the loss. The lines of the test set
never occur in training, and a line is right if all digits of its result are. The exit code is 1 if under 99 % are.
"""

import contextlib
import math
import random
import sys

import common

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

REQUIRED_ACCURACY = 0.99
ALPHABET = "0123456789+="
#: Characters up to and including the equals sign, and of the result.
QUESTION, ANSWER = 8, 4
#: The characters a line has before its last one, which needs no successor.
CONTEXT = QUESTION + ANSWER - 1


class CausalSelfAttention(nn.Module):
    """Every position gathers values from itself and the positions before it, in several heads."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("future", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        weights = self.dropout(F.softmax(scores, dim=-1))
        return self.project((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalised first and added to what came in."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    """A decoder-only transformer: from (batch, length) of characters to scores for the character after each."""

    def __init__(self, width=64, heads=4, layers=2, dropout=0.0):
        super().__init__()
        self.characters = nn.Embedding(len(ALPHABET), width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(ALPHABET), bias=False)
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        """Weights that keep the size of what passes through them (GPT-2's 0.02, for wide layers, learns later)."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.characters(tokens) + self.positions(positions))
        return self.head(self.norm(self.blocks(x)))


def write(a, b):
    """The line of text for a + b, the result's last digit first."""
    return f"{a:03}+{b:03}={f'{a + b:04}'[::-1]}"


def encode(lines):
    """Lines of equal length as an int64 tensor of one row each."""
    return torch.tensor([[ALPHABET.index(c) for c in line] for line in lines])


def load(seed, train_size=50_000, test_size=1000):
    """Different sums for training and for testing, drawn from the million there are."""
    pairs = random.Random(seed).sample(range(1_000_000), train_size + test_size)
    tokens = encode(write(*divmod(pair, 1000)) for pair in pairs)
    return tokens[test_size:], tokens[:test_size]


def loss_of(model, tokens):
    """Cross-entropy of the result's digits, each predicted from all that stands before it."""
    scores = model(tokens[:, :-1])[:, QUESTION - 1 :]
    return F.cross_entropy(scores.flatten(0, 1), tokens[:, QUESTION:].flatten())


def train_step(model, optimizer, schedule, tokens, autocast=contextlib.nullcontext):
    """One update; return the loss before it."""
    optimizer.zero_grad()
    with autocast():
        loss = loss_of(model, tokens)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    return loss.item()


@torch.no_grad()
def complete(model, questions):
    """Append the most likely result to each question, character by character."""
    tokens = questions
    for _ in range(ANSWER):
        choice = model(tokens)[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, choice], dim=1)
    return tokens


def accuracy(model, tokens):
    """The share of sums that the model gets right, digit by digit."""
    model.eval()
    right = (complete(model, tokens[:, :QUESTION]) == tokens).all(dim=1)
    model.train()
    return right.float().mean().item()


def print_samples(model, tokens):
    """A few sums of the test set as the model completes them, in the usual order of digits."""
    model.eval()
    for row, truth in zip(complete(model, tokens[:, :QUESTION]).tolist(), tokens.tolist()):
        text = "".join(ALPHABET[t] for t in row)
        print(f"    {text[:QUESTION]}{text[QUESTION:][::-1]}  {'right' if row == truth else 'wrong'}")


def main(arguments=None):
    parser = common.parser(
        __doc__, steps=1000, batch_size=128, lr=3e-3, width=64, heads=4, layers=2, dropout=0.0, weight_decay=0.01
    )
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    train, test = (tokens.to(options.device) for tokens in load(options.seed))
    model = GPT(options.width, options.heads, options.layers, options.dropout).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=options.weight_decay)
    schedule = common.warmup_and_cosine(optimizer, options.total)
    print(f"{common.parameters_of(model)}, {len(train):,} sums to learn from")

    run = common.Run(options, model=model, optimizer=optimizer, schedule=schedule)
    for step in run:
        tokens = train[torch.randint(len(train), (options.batch_size,)).to(options.device)]
        with run.fused():
            run.log(loss=train_step(model, optimizer, schedule, tokens, run.autocast))
        if (step + 1) % 100 == 0 or step + 1 == options.total:
            run.log(accuracy=accuracy(model, test))

    print("sums it had never seen:")
    print_samples(model, test[:8])
    common.save_curves(
        options.out,
        {"training loss": run.history["loss"], "right sums of the test set, every 100 steps": run.history["accuracy"]},
        logarithmic=("training loss",),
    )
    reached = run.history["accuracy"][-1]
    return run.finish(f"test accuracy {reached:.1%}", reached >= REQUIRED_ACCURACY)


if __name__ == "__main__":
    sys.exit(main().exit_code)
