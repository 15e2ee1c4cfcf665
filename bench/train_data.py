"""DataLoader with 2 workers: what an item costs. A call is an epoch, workers started and ended."""

from .suite import Row, Suite
from .timing import apart

WORKERS = 2


def _images(torch, n, *shape):
    """A dataset whose samples are an image, with a little arithmetic, and a number."""

    class Images(torch.utils.data.Dataset):
        def __init__(self):
            self.images = torch.rand(64, *shape)

        def __len__(self):
            return n

        def __getitem__(self, i):
            return self.images[i % 64] * 2 - 1, i % 10

    return Images()


def _texts(torch, n):
    """A dataset whose samples are dictionaries of texts and numbers."""

    class Texts(torch.utils.data.Dataset):
        def __len__(self):
            return n

        def __getitem__(self, i):
            return {"text": "word " * (i % 20), "length": i % 20, "weight": 0.5}

    return Texts()


def _epoch(torch, dataset, batch_size, **options):
    """A call that goes through all batches, and looks at each."""
    loader = torch.utils.data.DataLoader(dataset, batch_size, num_workers=WORKERS, **options)

    def epoch():
        for batch in loader:
            for part in batch.values() if isinstance(batch, dict) else batch:
                part[0]

    return epoch


def _row(name, items, dataset, batch_size, **options):
    def make(torch):
        return _epoch(torch, dataset(torch), batch_size, **options)

    return Row(f"DataLoader, {name}, an item", make, target=1.0, per=items, forks=True)


ROWS = [
    _row("3 x 32 x 32, batch 64", 6400, lambda torch: _images(torch, 6400, 3, 32, 32), 64, shuffle=True),
    _row("the same, persistent", 6400, lambda torch: _images(torch, 6400, 3, 32, 32), 64, persistent_workers=True),
    _row("3 x 224 x 224, batch 32", 320, lambda torch: _images(torch, 320, 3, 224, 224), 32),
    _row("dictionaries, batch 16", 1600, lambda torch: _texts(torch, 1600), 16),
    _row(
        "table of 28 x 28, batch 64",
        6400,
        lambda torch: torch.utils.data.TensorDataset(torch.rand(6400, 28, 28), torch.arange(6400)),
        64,
        shuffle=True,
    ),
]

SUITE = Suite("DataLoader with 2 workers, seconds an item", measure=apart, rounds=8, rows=ROWS)
