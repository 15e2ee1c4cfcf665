"""Batches from a DataLoader with 2 workers: what an item costs. A call is an epoch, workers started and ended."""

import functools

WORKERS = 2


def _images(torch, n, shape):
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


def _table(torch, n):
    """A table of images, of which batches are rows."""
    return torch.utils.data.TensorDataset(torch.rand(n, 28, 28), torch.arange(n))


def _epoch(make, items, batch_size, options, side):
    """A call that goes through all batches, looks at each, and tells how many there were."""
    torch = side.torch
    loader = torch.utils.data.DataLoader(make(torch, items), batch_size, num_workers=WORKERS, **options)

    def epoch():
        seen = 0
        for batch in loader:
            for part in batch.values() if isinstance(batch, dict) else batch:
                part[0]
            seen += 1
        return torch.tensor(float(seen))

    return epoch


def add_rows(suite):
    """Adds the rows to a suite of training steps on the CPU."""

    def row(name, make, items, batch_size, **options):
        details = {"device": "cpu", "sides": ("eager", "torch"), "target": 1.0, "per": items, "forks": True}
        epoch = functools.partial(_epoch, make, items, batch_size, options)
        suite.row(f"DataLoader, 2 workers, {name}, an item", **details)(epoch)

    small = functools.partial(_images, shape=(3, 32, 32))
    row("3 x 32 x 32, batch 64", small, 6400, 64, shuffle=True)
    row("3 x 32 x 32, batch 64, persistent", small, 6400, 64, shuffle=True, persistent_workers=True)
    row("3 x 224 x 224, batch 32", functools.partial(_images, shape=(3, 224, 224)), 320, 32)
    row("dictionaries, batch 16", _texts, 1600, 16)
    row("table of 28 x 28, batch 64", _table, 6400, 64, shuffle=True)
