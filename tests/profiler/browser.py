"""A page in headless Chromium: the document that its script makes, and what it looks like."""

import html.parser
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")


def run(path, profile, *options):
    """Opens the page at ``path`` with its data in the folder ``profile``; what Chromium writes to stdout."""
    command = [
        PROGRAM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--disable-background-networking",
        f"--user-data-dir={profile}",
        "--window-size=1280,2400",
        "--virtual-time-budget=5000",
        *options,
        path.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, timeout=600, check=True, text=True).stdout


class Element:
    """An element of the document."""

    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children = tag, attributes, []

    def all(self, tag=None, **attributes):
        """The elements inside with this tag and these attributes (``data_mode`` for data-mode); None: any value."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if (tag is None or child.tag == tag) and all(
                    key.replace("_", "-") in child.attributes
                    and value in (None, child.attributes[key.replace("_", "-")])
                    for key, value in attributes.items()
                ):
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    @property
    def text(self):
        """All text inside."""
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    @property
    def hidden(self):
        """Is it not shown?"""
        return "hidden" in self.attributes


class _Builder(html.parser.HTMLParser):
    """Makes Elements of markup as Chromium writes it: well nested."""

    EMPTY = {"meta", "input", "br", "img", "link", "hr"}

    def __init__(self):
        super().__init__()
        self.open = [Element("document", {})]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in self.EMPTY:
            self.open.append(element)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open[-1].tag == tag
            self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def document(path, folder):
    """The document once the page's script has run."""
    builder = _Builder()
    builder.feed(run(path, folder / "chromium", "--dump-dom"))
    root = builder.open[0]
    assert root.all("body")[0].attributes.get("data-ready") == "yes", "the page's script has failed"
    return root


def screenshot(path, folder):
    """The page as an array (height, width, 3), at half its size."""
    target = folder / "page.png"
    run(path, folder / "chromium", f"--screenshot={target}", "--force-device-scale-factor=0.5")
    return pixels(target.read_bytes())


def pixels(png):
    """A PNG of 8 bits as an array (height, width, 3)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack_from(">IIBB", png, at + 8)
            assert depth == 8 and color in (2, 6)
        if kind == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += size + 12
    n = 3 if color == 2 else 4
    lines = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * n)
    image = np.zeros((height, width, n), np.uint8)
    above = np.zeros((width, n), np.uint8)
    for y in range(height):
        line, how = lines[y, 1:].reshape(width, n), lines[y, 0]
        if how == 0:
            image[y] = line
        elif how == 1:
            image[y] = np.cumsum(line, axis=0, dtype=np.uint8)
        elif how == 2:
            image[y] = line + above
        else:
            image[y] = _by_pixel(line, above, how)
        above = image[y]
    return image[:, :, :3]


def _by_pixel(line, above, how):
    """A line that is told by differences from left and above together."""
    width, n = line.shape
    done, upper, raw = [[0] * n], above.tolist(), line.tolist()
    corner = [0] * n
    for x in range(width):
        left, up, pixel = done[-1], upper[x], []
        for c in range(n):
            a, b, d = left[c], up[c], corner[c]
            if how == 3:
                guess = (a + b) >> 1
            else:
                p = a + b - d
                guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - d), 2, d))[2]
            pixel.append((raw[x][c] + guess) & 255)
        done.append(pixel)
        corner = up
    return np.array(done[1:], np.uint8)
