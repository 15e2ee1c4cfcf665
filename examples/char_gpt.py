"""A small GPT writes Python, character by character, after reading Python's own standard library.

    python examples/char_gpt.py
    python examples/char_gpt.py --device cuda --amp --fuse --steps 5000 --width 384 --layers 6 --heads 6

The text is that of the library's top-level modules in ASCII, the last tenth kept for testing; the loss is given in
bits for a character (a compressor such as gzip needs about 2). At the end the network goes on from ``def ``.
"""

import math
import sys

import common

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

#: What the test set may take, in bits for a character. Guessing by the characters' frequencies takes 4.6.
REQUIRED_BITS = 2.5


class Attention(nn.Module):
    """Every position gathers values from itself and the positions before it, in several heads."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.project = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.project(x.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a two-layer perceptron, each normalised first and added to what came in."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    """Characters in, scores of the next character out, for each position."""

    def __init__(self, characters, context, width, heads, layers, dropout):
        super().__init__()
        self.context = context
        self.embed = nn.Embedding(characters, width)
        self.positions = nn.Embedding(context, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        self.head.weight = self.embed.weight  # one matrix for both

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.embed(tokens) + self.positions(positions))
        return self.head(self.norm(self.blocks(x)))


def loss_of(model, windows):
    """Cross-entropy of each character of the windows but the first, in nats."""
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def windows_of(text, count, length):
    """``count`` random windows of the text, (count, length)."""
    starts = torch.randint(len(text) - length, (count, 1), device=text.device)
    return text[starts + torch.arange(length, device=text.device)]


@torch.no_grad()
def evaluate(model, text, count=64):
    """Bits for a character, on windows that lie evenly in the text."""
    model.eval()
    windows = text.unfold(0, model.context + 1, max(1, (len(text) - model.context) // count))
    loss = sum(loss_of(model, batch).item() * len(batch) for batch in windows.split(16)) / len(windows)
    model.train()
    return loss / math.log(2)


@torch.no_grad()
def write(model, tokens, count, temperature=0.8):
    """Append ``count`` characters, each drawn from what the model expects after the ones before."""
    model.eval()
    for _ in range(count):
        scores = model(tokens[:, -model.context :])[:, -1]
        choice = torch.multinomial(F.softmax(scores / temperature, dim=-1), 1)
        tokens = torch.cat([tokens, choice], dim=1)
    model.train()
    return tokens


def main(arguments=None):
    parser = common.parser(
        __doc__, steps=800, batch_size=16, lr=4e-3, context=128, width=128, heads=4, layers=4, dropout=0.0
    )
    parser.add_argument("--characters", type=int, default=2_000_000, help="how much of the library to read")
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    text = common.library_text(options.characters)
    alphabet = sorted(set(text))
    index = {character: i for i, character in enumerate(alphabet)}
    tokens = torch.tensor([index[character] for character in text]).to(options.device)
    train, test = tokens.split([len(tokens) * 9 // 10, len(tokens) - len(tokens) * 9 // 10])
    model = GPT(len(alphabet), options.context, options.width, options.heads, options.layers, options.dropout).to(
        options.device
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = common.warmup_and_cosine(optimizer, options.total)
    print(f"{common.parameters_of(model)}, {len(train):,} characters to learn from, {len(alphabet)} different ones")

    run = common.Run(options, model=model, optimizer=optimizer, schedule=schedule)
    for _ in run:
        windows = windows_of(train, options.batch_size, options.context + 1)
        with run.fused():
            with run.autocast():
                loss = loss_of(model, windows)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        schedule.step()
        run.log(bits=loss.item() / math.log(2))

    start = torch.tensor([[index[character] for character in "\ndef "]], device=options.device)
    print("".join(alphabet[i] for i in write(model, start, 400)[0].tolist()))
    common.save_curves(options.out, {"training loss, bits for a character": run.history["bits"]})
    bits = evaluate(model, test)
    return run.finish(f"{bits:.2f} bits for a character of the test set", bits <= REQUIRED_BITS)


if __name__ == "__main__":
    sys.exit(main().exit_code)
