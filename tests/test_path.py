"""The path of ``a * b`` and of ``backward`` is the one that tinytorch/ops/README.md describes."""

import os
import pathlib
import re
import sys

import pytest

import tinytorch

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = pathlib.Path(tinytorch.__file__).resolve().parent
PAGE = ROOT / "tinytorch" / "ops" / "README.md"
STEP = re.compile(r"^(?:\d+\.|( +)-) `([^`:]+): (\w+)`", re.M)


def described(title):
    """The steps of a section, as (place, function, is it a step inside a C call?)."""
    section = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGE.read_text(), re.M | re.S)[1]
    return [(place, name, bool(inner)) for inner, place, name in STEP.findall(section)]


def place_of(code):
    """The file of a frame as the page names it; "" if it is none of ours."""
    file = code.co_filename
    if file.startswith(("<eager", "<derivative")):
        return re.match(r"<\w+", file)[0] + ">"
    file = pathlib.Path(file)
    return f"tinytorch/{file.relative_to(SOURCE).as_posix()}" if file.is_relative_to(SOURCE) else ""


def taken(call):
    """The functions that a call runs, Python's with their files and C's without, each where it came first."""
    steps = []

    def listen(frame, event, function):
        if event == "call" and (place := place_of(frame.f_code)):
            steps.append((place, frame.f_code.co_name))
        elif event == "c_call" and place_of(frame.f_code):
            module, name = getattr(function, "__module__", None) or "", function.__name__
            if module.startswith("tinytorch.") or name.startswith("call_and_own"):
                steps.append(("C", name))

    before = sys.getprofile()
    sys.setprofile(listen)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(dict.fromkeys(steps))


def defines(text, name):
    return re.search(rf"^[\w ]+[ *]{name}\([^;{{]*\{{", text, re.M)


def example(title):
    """A call of the page's title, on fresh tensors."""
    a, b = tinytorch.randn(4, 4, requires_grad=True), tinytorch.randn(4, 4, requires_grad=True)
    c, g = a * b, tinytorch.ones(4, 4)
    return {"`a * b`": lambda: a * b, "`c.backward(g)`": lambda: c.backward(g)}[title]


@pytest.mark.skipif(bool(os.environ.get("TINYTORCH_FUSE")), reason="the page describes eager mode")
@pytest.mark.parametrize("title", ["`a * b`", "`c.backward(g)`"])
def test_the_page_is_the_path(title):
    example(title)()  # fills caches
    outside = [step for step in described(title) if not step[2]]
    page = [("C" if place.startswith("kernels") else place, name) for place, name, _ in outside]
    assert page == taken(example(title))


@pytest.mark.skipif(not (ROOT / "kernels").is_dir(), reason="the C sources are not here")
@pytest.mark.parametrize("title", ["`a * b`", "`c.backward(g)`"])
def test_c_functions_are_where_the_page_says(title):
    steps = [step for step in described(title) if step[0].startswith("kernels")]
    assert steps
    for place, name, _ in steps:
        assert defines((ROOT / place).read_text(), name), (place, name)
