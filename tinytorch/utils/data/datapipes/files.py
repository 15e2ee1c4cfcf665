"""Pipes of files. Follows ``torch.utils.data.datapipes.iter``."""

from __future__ import annotations

import fnmatch
import os

from .datapipe import IterDataPipe, functional_datapipe


def _raise(error: OSError) -> None:
    raise error


class _WithLength(IterDataPipe):
    """A pipe whose length was told, or is not known."""

    def __init__(self, length: int):
        self.length = length

    def __len__(self):
        if self.length < 0:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileLister(_WithLength):
    """The paths of the files in folders whose names match one of ``masks``: in order, unless ``non_deterministic``, and
    with ``recursive`` those of the folders within. OSError for a folder that cannot be read."""

    def __init__(
        self,
        root=".",
        masks="",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ):
        super().__init__(length)
        self.datapipe = [root] if isinstance(root, (str, os.PathLike)) else root
        self.masks = [masks] if isinstance(masks, str) else masks
        self.recursive, self.abspath, self.non_deterministic = recursive, abspath, non_deterministic

    def __iter__(self):
        for root in self.datapipe:
            yield from self._within(root)

    def _matches(self, name: str) -> bool:
        masks = [mask for mask in self.masks if mask]
        return not masks or any(fnmatch.fnmatch(name, mask) for mask in masks)

    def _within(self, root):
        if os.path.isfile(root):
            if self._matches(os.path.basename(root)):
                yield os.path.abspath(root) if self.abspath else root
            return
        for path, folders, files in os.walk(root, onerror=_raise):
            if not self.non_deterministic:
                folders.sort()
                files.sort()
            for name in files:
                if self._matches(name):
                    yield os.path.join(os.path.abspath(path) if self.abspath else path, name)
            if not self.recursive:
                return


@functional_datapipe("open_files")
class FileOpener(_WithLength):
    """(path, opened file) of each path. ValueError for another mode than of reading."""

    def __init__(self, datapipe, mode: str = "r", encoding: str | None = None, length: int = -1):
        super().__init__(length)
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        self.datapipe, self.mode, self.encoding = datapipe, mode if "r" in mode else f"r{mode}", encoding

    def __iter__(self):
        for path in self.datapipe:
            yield path, open(path, self.mode, encoding=self.encoding)  # noqa: SIM115 (who takes it closes it)


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe):
    """(path, content) of each opened file; with ``chunk`` as many bytes or characters at a time."""

    def __init__(self, datapipe, chunk: int | None = None):
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self):
        for path, stream in self.datapipe:
            with stream:
                while content := stream.read(-1 if self.chunk is None else self.chunk):
                    yield path, content
