"""The HTML page, as Chromium shows it."""

import json
import re

import numpy as np
import pytest

import tinytorch as torch
from load_example import load_example
from profiler.browser import document, needs_browser, screenshot
from tinytorch.profiler import compare, profile
from tinytorch.profiler.events import Allocation, Event, Trace, nest
from tinytorch.profiler.report import page

HOSTILE = "</script><script>document.title='broken'</script><!-- {{data}} & \"'"


def figures(text):
    """The figures in a page."""
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))


def section(root, name):
    """A section of the page by its id."""
    return root.all("section", id=name)[0]


def digits_step(batch=32):
    """A training step of examples/digits.py on random images."""
    example = load_example("digits")
    torch.manual_seed(0)
    model = example.MLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    batches = [(torch.rand(batch, 64), torch.randint(10, (batch,)))] * 2

    def step():
        return example.train_epoch(model, optimizer, batches, "cpu")

    return step


def gpt_step():
    """A training step of examples/gpt.py."""
    example = load_example("gpt")
    torch.manual_seed(0)
    train, _ = example.load(0, 500, 10)
    model = example.GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)

    def step():
        return example.train_step(model, optimizer, schedule, train[:64])

    return step


@needs_browser
@pytest.mark.parametrize("make", [digits_step, gpt_step])
def test_the_page_of_an_example(make, tmp_path):
    step = make()
    compared = compare(step, rounds=3)
    assert compared.agree, str(compared)
    compared.to_html(tmp_path / "report.html")
    root = document(tmp_path / "report.html", tmp_path)

    # The timeline, with each mode.
    modes = ["eager", "interpreted", "compiled"]
    panels = section(root, "timeline").all("div", data_mode=None)
    assert [p.attributes["data-mode"] for p in panels] == modes
    for name, panel in zip(modes, panels):
        (canvas,) = panel.all("canvas")
        assert int(canvas.attributes["data-drawn"]) > 20
        assert f"{len(compared.modes[name].trace.events):,} events" in panel.text
    # The figures of both, and the operators.
    assert not section(root, "comparison").hidden
    table = section(root, "comparison").all("table")[0]
    assert [h.text for h in table.all("th")] == ["", *modes]
    assert "equal bits" in table.text
    shown = section(root, "operators").all("div", data_operator=None)
    assert "linear" in [e.attributes["data-operator"] for e in shown]
    assert "kernel" in [e.all("small")[0].text for e in shown]  # of a fused program
    # Why programs ended: each reason with its line, which is the example's or the library's caller.
    rows = section(root, "breaks").all("tr", data_reason=None)
    reasons = {row.attributes["data-reason"] for row in rows}
    assert reasons == {reason for _, _, reason, _ in compared.breaks} and "linear is not fused" in reasons
    example = make.__name__.split("_")[0]
    assert all(re.fullmatch(rf".*examples/{example}\.py:\d+", row.all("td")[1].text) for row in rows)
    # Figures per operator, and memory.
    assert section(root, "efficiency").all("tr") and section(root, "memory").all("polygon")

    image = screenshot(tmp_path / "report.html", tmp_path).astype(float)
    height = image.shape[0]
    assert image.std() > 8
    for band in range(5):  # something stands in every part of the page, and in its middle, not just at an edge
        part = image[height * band // 5 : height * (band + 1) // 5, 50:450]
        assert part.std() > 2, band
        assert len(np.unique(part.reshape(-1, 3), axis=0)) > 8, band
    for kind in ((0x6F, 0x9B, 0xD1), (0xE3, 0x9A, 0x54), (0x9B, 0x83, 0xD0)):  # operator, backward, program
        assert (np.abs(image - kind).sum(2) < 6).sum() > 30, kind


def hostile_trace():
    """Names of the user's that would end a script element, or be taken for markup or for a place in the template."""
    events = [
        Event(HOSTILE, "user", 0, 4000, 1, stack=(f"{HOSTILE}.py:3 <lambda>",), extra={HOSTILE: HOSTILE}),
        Event("fused", "program", 1000, 3000, 1, extra={"operators": [HOSTILE], "reason": HOSTILE, "place": HOSTILE}),
    ]
    return Trace(nest(events), threads={1: HOSTILE}, end=5000)


@needs_browser
def test_what_the_user_wrote_is_text(tmp_path):
    target = tmp_path / "report.html"
    target.write_text(page({HOSTILE: hostile_trace()}, title=HOSTILE, subtitle=HOSTILE))
    root = document(target, tmp_path)
    assert root.all("title")[0].text == HOSTILE and root.all("h1")[0].text == HOSTILE
    assert len(root.all("script")) == 2
    assert HOSTILE in section(root, "breaks").text
    assert section(root, "operators").all("div", data_operator="fused")
    assert figures(target.read_text())["modes"][0]["lanes"][0]["name"] == HOSTILE


#: What a reader does: zooms with the keyboard, the wheel and the pointer, looks at an event, picks it, searches, hides
#: a kind, changes the theme. What came of it is left on the body.
READER = """<script>
const told = {}, panel = panels[0], c = panel.canvas, box = c.getBoundingClientRect();
const send = (kind, type, more) => c.dispatchEvent(new kind(type, {bubbles: true, clientX: box.left + box.width / 2,
  clientY: box.top + panel.rows[0].y + 5, pointerId: 1, ...more}));
c.setPointerCapture = () => {};
const width = () => panel.to - panel.from;
const whole_width = width();
c.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
told.keyed = width() / whole_width;
told.linked = panels[1].to - panels[1].from === width();
send(WheelEvent, "wheel", {deltaY: -300, ctrlKey: true});
told.wheeled = width() / whole_width;
const from = panel.from;
send(PointerEvent, "pointerdown");
send(PointerEvent, "pointermove", {clientX: box.left + box.width / 4});
send(PointerEvent, "pointerup", {clientX: box.left + box.width / 4});
told.dragged = panel.from > from;
send(MouseEvent, "dblclick");
told.all = width() === whole_width;
panel.hover({clientX: box.left + box.width / 2, clientY: box.top + panel.rows[0].y + 5});
told.tip = document.getElementById("tip").textContent;
send(PointerEvent, "pointerdown");
send(PointerEvent, "pointerup");
told.picked = document.getElementById("picked").textContent;
document.getElementById("find").value = "no such name";
document.getElementById("find").dispatchEvent(new Event("input"));
const drawn = Number(c.dataset.drawn);
document.querySelector("#kinds button").click();
told.hidden = drawn - Number(c.dataset.drawn);
const before = document.documentElement.dataset.theme;
document.getElementById("theme").click();
told.theme = document.documentElement.dataset.theme !== before;
document.body.dataset.told = JSON.stringify(told);
</script>"""


@needs_browser
def test_a_reader_can_zoom_look_and_pick(tmp_path):
    ops = [
        Event(
            "outer",
            "op",
            0,
            10_000,
            1,
            sequence=7,
            shapes=((2, 3),),
            dtypes=("float32",),
            bytes=500,
            stack=("net.py:3 forward",),
        ),
        Event("inner", "kernel", 2000, 4000, 1),
    ]
    traces = {"eager": Trace(nest(ops), threads={1: "main"}, end=10_000), "fused": hostile_trace()}
    text = page(traces, title="a reader")
    (tmp_path / "report.html").write_text(text.replace("</body>", READER + "</body>"))
    told = json.loads(document(tmp_path / "report.html", tmp_path).all("body")[0].attributes["data-told"])
    assert told["keyed"] == pytest.approx(0.6) and told["wheeled"] < 0.4
    assert told["linked"] and told["dragged"] and told["all"] and told["theme"]
    for part in ("outer", "operator", "float32 (2, 3)", "500 B, 50.0 MB/s", "net.py:3 forward", "sequence", "in main"):
        assert part in told["tip"] and part in told["picked"]
    assert told["hidden"] == 1


def test_a_page_asks_for_nothing_from_elsewhere():
    text = page({"eager": hostile_trace()}, title="a page")
    assert "default-src 'none'" in text
    assert not re.search(
        r"""(src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)""", text.replace('name="viewport"', "")
    )


def long_trace(count):
    """``count`` events, in steps of a hundred, on two threads."""
    events, t = [], 0
    for k in range(count // 100):
        start = t
        for n in range(99):
            events.append(Event(f"op{n % 7}", "op", t, t + 400 + n, 1 + n % 2, sequence=k * 100 + n))
            t += 600
        events.append(Event(f"ProfilerStep#{k}", "step", start, t, 1))
        t += 50
    return Trace(
        nest(events), [Allocation(k * 500, k, 64, 64 * (k + 1)) for k in range(5000)], {1: "main", 2: "other"}, end=t
    )


def counts(mode):
    """Events drawn one by one, and those in blocks."""
    rows = [row for lane in mode["lanes"] for row in lane["rows"]]
    merged = sum(sum(row.get("c", ())) for row in rows)
    return sum(len(row["t"]) - sum(1 for c in row.get("c", ()) if c) for row in rows), merged


@needs_browser
def test_a_hundred_thousand_events_are_drawn(tmp_path):
    text = page({"eager": long_trace(100_000)}, title="long")
    (tmp_path / "report.html").write_text(text)
    assert counts(figures(text)["modes"][0]) == (100_000, 0) and len(text) < 5_000_000
    root = document(tmp_path / "report.html", tmp_path)
    assert "100,000 events" in section(root, "timeline").text
    assert int(root.all("canvas")[0].attributes["data-drawn"]) > 1000


def test_of_more_events_the_earlier_are_merged():
    trace = long_trace(100_000)
    mode = figures(page({"eager": trace}, title="longer", most=20_000))["modes"][0]
    alone, merged = counts(mode)
    assert mode["merged"] and mode["count"] == 100_000
    assert alone + merged == 100_000
    blocks = sum(1 for lane in mode["lanes"] for row in lane["rows"] for c in row.get("c", ()) if c)
    assert 10_000 <= alone + blocks <= 20_000
    last = max(sum(row["t"]) for lane in mode["lanes"] for row in lane["rows"])
    assert last == trace.events[-1].start - trace.events[0].start  # the latest are there as they were
    (memory,) = mode["memory"]
    assert len(memory["times"]) <= 1500 and memory["peak"] == max(memory["totals"]) == 64 * 5000


def test_an_empty_profile_makes_a_page():
    with profile() as profiler:
        pass
    (mode,) = figures(page({"eager": profiler.trace}, title="empty"))["modes"]
    assert mode["count"] == 0 and mode["lanes"] == []


@needs_browser
def test_rates_are_set_against_the_ceilings(tmp_path):
    events = [
        Event("linear", "op", 0, 1_000_000, 1, bytes=5_000_000, flops=50_000_000),
        Event("outer", "op", 2_000_000, 3_000_000, 1, bytes=8_000, flops=8_000),
        Event("exp", "op", 2_100_000, 2_900_000, 1, bytes=8_000, flops=8_000),
    ]
    limits = [{"device": "cpu", "bandwidth": 10e9, "flops": 100e9}]
    target = tmp_path / "report.html"
    target.write_text(page({"eager": Trace(nest(events), end=3_000_000)}, title="limits", limits=limits))
    root = section(document(target, tmp_path), "efficiency")
    rows = {row.all("td")[0].text: [cell.text for cell in row.all("td")] for row in root.all("tr")[1:]}
    assert set(rows) == {"linear", "exp"}  # what is made of others is not counted again
    assert rows["linear"][6:] == ["5.0 GB/s", "50.0 GFLOP/s", "50 %", "50 %"]
    assert "copies 10.0 GB/s, matrix products 100 GFLOP/s" in root.text and "busy" not in root.text
    target.write_text(
        page({"eager": Trace(nest(events), end=3_000_000)}, title="limits", limits=[{**limits[0], "flops": 20e9}])
    )
    assert "busy" in section(document(target, tmp_path), "efficiency").text


def test_time_begins_with_the_first_event():
    trace = Trace(
        nest([Event("exp", "op", 9000, 9500, 1)]),
        [Allocation(9100, 1, 64, 64), Allocation(9200, 1, -64, 0)],
        start=1000,
        end=20_000,
    )
    (mode,) = figures(page({"eager": trace}, title="late"))["modes"]
    assert (mode["span"], mode["before"], mode["lanes"][0]["rows"][0]["t"]) == (500, 8000, [0])
    assert mode["memory"][0]["times"] == [0, 100, 200] and mode["memory"][0]["peak_time"] == 100
