"""An LSTM language model of Python source, token by token.

    python examples/lstm.py
    python examples/lstm.py --device cuda --fuse

The text of Python's standard library is cut into names, numbers, signs and line ends, and read in parallel columns from
top to bottom. The network's state goes from one piece of the text to the next, but the gradient does not (truncated
backpropagation through time; Zaremba et al. 2014, arXiv:1409.2329). At the end the network writes some lines itself.
"""

import collections
import math
import re
import sys

import common

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

#: Of a token of the test set: among how many equally likely ones the network has to choose, so to speak.
REQUIRED_PERPLEXITY = 40
UNKNOWN = "<?>"


class Model(nn.Module):
    """Tokens in, scores of the next token out, with two layers of LSTM between."""

    def __init__(self, tokens, width, layers, dropout):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, tokens)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)
        self.head.weight = self.embed.weight  # one matrix for both

    def forward(self, tokens, state=None):
        """Scores for (time, columns) tokens, and the state after them."""
        x, state = self.lstm(self.dropout(self.embed(tokens)), state)
        return self.head(self.dropout(x)), state


def read(characters, vocabulary):
    """The standard library as numbers of its most frequent tokens, and these tokens."""
    tokens = re.findall(r"\w+|\n|[^\w\s]", re.sub(r"\n\s*\n", "\n", common.library_text(characters)))
    frequent = [UNKNOWN, *(token for token, _ in collections.Counter(tokens).most_common(vocabulary - 1))]
    index = {token: i for i, token in enumerate(frequent)}
    return torch.tensor([index.get(token, 0) for token in tokens]), frequent


def in_columns(tokens, columns):
    """The text as (time, columns): each column is a part of it, from top to bottom."""
    return tokens[: len(tokens) // columns * columns].view(columns, -1).t().contiguous()


def pieces(text, length):
    """Inputs and targets, ``length`` tokens of every column at a time."""
    for start in range(0, len(text) - 1, length):
        stop = min(start + length, len(text) - 1)
        yield text[start:stop], text[start + 1 : stop + 1]


def loss_of(model, inputs, targets, state):
    scores, state = model(inputs, state)
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten()), state


def train_epoch(run, model, optimizer, text, length):
    """From top to bottom once; return the mean loss."""
    losses, state = [], None
    for inputs, targets in pieces(text, length):
        with run.fused():
            with run.autocast():
                loss, state = loss_of(model, inputs, targets, state)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        state = tuple(s.detach() for s in state)
    return sum(losses) / len(losses)


@torch.no_grad()
def evaluate(model, text, length):
    """The perplexity of a text."""
    model.eval()
    total, state = 0.0, None
    for inputs, targets in pieces(text, length):
        loss, state = loss_of(model, inputs, targets, state)
        total += loss.item() * len(inputs)
    model.train()
    return math.exp(total / (len(text) - 1))


@torch.no_grad()
def write(model, token, count, temperature=0.8):
    """``count`` tokens after a first one; the state remembers what was written. UNKNOWN is never chosen."""
    model.eval()
    written, state = [token], None
    for _ in range(count):
        scores, state = model(written[-1].view(1, 1), state)
        scores[..., 0] = float("-inf")
        written.append(torch.multinomial(F.softmax(scores.view(-1) / temperature, dim=0), 1))
    model.train()
    return [token.item() for token in written]


def main(arguments=None):
    parser = common.parser(
        __doc__, epochs=3, batch_size=32, lr=3e-3, length=32, width=256, layers=2, dropout=0.2, vocabulary=2000
    )
    parser.add_argument("--characters", type=int, default=1_000_000, help="how much of the library to read")
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    tokens, vocabulary = read(options.characters, options.vocabulary)
    text = in_columns(tokens.to(options.device), options.batch_size)
    train, test = text.split([len(text) * 9 // 10, len(text) - len(text) * 9 // 10])
    model = Model(len(vocabulary), options.width, options.layers, options.dropout).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.total)
    print(f"{common.parameters_of(model)}, {train.numel():,} tokens to learn from")

    run = common.Run(options, model=model, optimizer=optimizer, schedule=schedule)
    for _ in run:
        loss = train_epoch(run, model, optimizer, train, options.length)
        schedule.step()
        run.log(loss=loss, perplexity=evaluate(model, test, options.length))

    first = torch.tensor(vocabulary.index("def"), device=options.device)
    print(" ".join(vocabulary[i] for i in write(model, first, 120)))
    common.save_curves(options.out, {"training loss": run.history["loss"], "test": run.history["perplexity"]})
    perplexity = run.history["perplexity"][-1]
    return run.finish(f"test perplexity {perplexity:.1f}", perplexity <= REQUIRED_PERPLEXITY)


if __name__ == "__main__":
    sys.exit(main().exit_code)
