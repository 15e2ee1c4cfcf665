"""Benchmarks of tinytorch beside PyTorch and NumPy, and of its fused mode beside the libraries that fuse.

    python -m bench                     list the suites
    python -m bench overhead            run one; see ``python -m bench overhead --help``

A row is written once, against PyTorch's names, and handed the module to run on (`bench.suite`); the rows of the
fused suite are handed a library instead (`bench.libraries`), since its peers have other names. How the
sides take turns is `bench.timing`'s business, and what is printed is `bench.report`'s. A new suite is one
file that fills a `Suite`, and one line in `bench.__main__.SUITES`.
"""
