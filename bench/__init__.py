"""Benchmarks of tinytorch beside PyTorch and NumPy.

    python -m bench                     list the suites
    python -m bench overhead            run one; see ``python -m bench overhead --help``

A row is written once, against PyTorch's names, and handed the module to run on (`bench.suite`). How the
sides take turns is `bench.timing`'s business, and what is printed is `bench.report`'s. A new suite is one
file that fills a `Suite`, and one line in `bench.__main__.SUITES`.
"""
