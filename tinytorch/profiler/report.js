"use strict";
// Draws the page from the figures in #data. All text of the user's goes through textContent or the canvas.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim() || "#888";
const KINDS = ["op", "backward", "module", "kernel", "program", "compile", "cache", "user", "step", "runtime", "copy", "gap"];

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "style") Object.assign(element.style, value);
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

function time(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return (ns / 1e9).toPrecision(4) + " s";
  if (size >= 1e6) return (ns / 1e6).toPrecision(4) + " ms";
  if (size >= 1e3) return (ns / 1e3).toPrecision(4) + " µs";
  return Math.round(ns) + " ns";
}

function amount(n, unit) {
  if (n === null || n === undefined) return "";
  const units = ["", "k", "M", "G", "T", "P"];
  let k = 0;
  for (; Math.abs(n) >= 1000 && k < units.length - 1; k++) n /= 1000;
  const digits = k === 0 ? String(Math.round(n)) : Math.abs(n) >= 100 ? n.toFixed(0) : n.toFixed(1);
  return digits + " " + units[k] + unit;
}

const whole = n => n.toLocaleString("en");
// What can be read on a color "#rrggbb".
const readable = c => [1, 3, 5].reduce((sum, k, n) => sum + parseInt(c.slice(k, k + 2), 16) * [0.3, 0.59, 0.11][n], 0) > 100
  ? "#0c1116" : "#e4e8eb";

// Tables whose columns sort at a click on their heads: columns are [title, class, cell => text or node, cell => key].
function table(columns, rows, describe) {
  let by = null, down = true;
  const body = make("tbody"), head = make("tr");
  const fill = () => {
    const shown = by === null ? rows : [...rows].sort((a, b) => {
      const x = columns[by][3](a), y = columns[by][3](b);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    body.replaceChildren(...shown.map(row => make("tr", describe ? describe(row) : {}, columns.map(([, kind, cell]) => {
      const content = cell(row);
      return Array.isArray(content) ? make("td", {class: kind + " " + content[1]}, content[0])
        : make("td", {class: kind}, content);
    }))));
  };
  columns.forEach(([title, kind, , key], k) => {
    const sort = () => { down = by === k ? !down : kind === "n"; by = k; fill(); };
    head.append(key ? make("th", {class: kind, "data-sort": "", tabindex: 0, onclick: sort,
      onkeydown: e => { if (e.key === "Enter") sort(); }}, title) : make("th", {class: kind}, title));
  });
  fill();
  return make("table", {}, make("thead", {}, head), body);
}

// The details of an event, as a list of terms: for the tip and for what is picked.
function terms(mode, lane, row, k) {
  const sort = mode.sorts[row.s[k]], list = [], put = (name, text) => {
    if (text) list.push(make("dt", {}, name), make("dd", {}, text));
  };
  const merged = row.c && row.c[k];
  put("what", merged ? whole(merged) + " short events next to each other, the longest " + sort.name : data.kinds[sort.kind]);
  put("from", time(row.t[k]) + " on, in " + lane.name);
  put("took", time(row.d[k]));
  if (!merged) {
    put("shapes", sort.shapes);
    put("memory", sort.bytes === null ? "" : amount(sort.bytes, "B") + ", " + amount(sort.bytes / row.d[k] * 1e9, "B/s"));
    put("FLOPs", sort.flops === null ? "" : amount(sort.flops, "") + ", " + amount(sort.flops / row.d[k] * 1e9, "FLOP/s"));
    for (const [name, text] of sort.extra) put(name, text);
    put("lines", sort.stack.length ? make("span", {class: "code"}, sort.stack.join("\n")) : "");
    if (row.q && row.q[k] >= 0) put("sequence", String(row.q[k]) + ", as its forward or backward, which is outlined");
  }
  return [make("b", {}, merged ? "several" : sort.name), make("dl", {}, list)];
}

// The timeline of one mode: a canvas with a group of rows for each thread or stream.
const ROW = 17, HEAD = 17, AXIS = 20;
const hidden = new Set();
let needle = "", panels = [];

class Panel {
  constructor(mode) {
    this.mode = mode;
    this.from = 0;
    this.to = Math.max(mode.span, 1);
    this.picked = this.hovered = null;
    let y = AXIS;
    this.rows = [];
    for (const lane of mode.lanes) {
      lane.y = y;
      y += HEAD;
      for (const row of lane.rows) {
        let at = 0;
        for (let k = 0; k < row.t.length; k++) row.t[k] = at += row.t[k];
        this.rows.push({lane, row, y});
        y += ROW;
      }
      y += 4;
    }
    this.height = Math.max(y, AXIS + 40);
    this.canvas = make("canvas", {tabindex: 0, role: "img", "aria-label": "timeline of " + mode.name});
    this.canvas.style.height = this.height + "px";
    this.scale = make("span");
    const note = (mode.merged ? ", short ones of the earlier part merged" : "") +
      (mode.before > mode.span / 20 ? `, begun after ${time(mode.before)}` : "");
    this.element = make("div", {class: "panel", "data-mode": mode.name},
      make("div", {}, make("h3", {}, mode.name),
        make("span", {}, `${time(mode.span)}, ${whole(mode.count)} events${note}`), this.scale),
      make("div", {class: "scroll"}, this.canvas));
    this.listen();
  }

  listen() {
    const c = this.canvas;
    let down = null, pending = false;
    c.addEventListener("pointerdown", e => {
      down = {x: e.clientX, from: this.from, to: this.to, moved: false};
      c.setPointerCapture(e.pointerId);
      c.focus({preventScroll: true});
    });
    c.addEventListener("pointermove", e => {
      if (down) {
        const by = (e.clientX - down.x) / c.clientWidth * (down.to - down.from);
        if (Math.abs(e.clientX - down.x) > 3) { down.moved = true; c.classList.add("dragging"); }
        if (down.moved) this.view(down.from - by, down.to - by);
        return;
      }
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => { pending = false; this.hover(e); });
    });
    c.addEventListener("pointerup", e => {
      c.classList.remove("dragging");
      if (down && !down.moved) this.pick(this.at(e));
      down = null;
    });
    c.addEventListener("pointerleave", () => { this.hovered = null; tip.style.display = "none"; });
    c.addEventListener("dblclick", () => this.view(0, this.mode.span));
    c.addEventListener("wheel", e => {
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        const by = e.deltaX / c.clientWidth * (this.to - this.from);
        this.view(this.from + by, this.to + by);
      } else if (e.ctrlKey || e.metaKey || document.activeElement === c) {
        this.zoom(Math.exp(e.deltaY * 0.002), e.offsetX / c.clientWidth);
      } else return;
      e.preventDefault();
    }, {passive: false});
    c.addEventListener("keydown", e => {
      const by = (this.to - this.from) / 5;
      const act = {ArrowLeft: () => this.view(this.from - by, this.to - by), "+": () => this.zoom(0.6, 0.5),
        ArrowRight: () => this.view(this.from + by, this.to + by), "=": () => this.zoom(0.6, 0.5),
        "-": () => this.zoom(1 / 0.6, 0.5), "0": () => this.view(0, this.mode.span)}[e.key];
      if (act) { act(); e.preventDefault(); }
    });
  }

  zoom(factor, where) {
    const at = this.from + where * (this.to - this.from);
    this.view(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  view(from, to, alone) {
    const linked = byId("linked").checked && !alone;
    const end = linked ? Math.max(...panels.map(p => p.mode.span)) : this.mode.span;
    const width = Math.min(Math.max(to - from, 200), end);
    from = Math.min(Math.max(from, 0), Math.max(end - width, 0));
    for (const p of linked ? panels : [this]) { p.from = from; p.to = from + width; p.draw(); }
  }

  draw() {
    const c = this.canvas, width = c.clientWidth, ratio = window.devicePixelRatio || 1;
    if (!width) return;
    c.width = width * ratio;
    c.height = this.height * ratio;
    const g = c.getContext("2d");
    g.scale(ratio, ratio);
    const colors = Object.fromEntries(KINDS.map(k => [k, color(k)]));
    const ink = color("ink"), soft = color("soft"), line = color("line"), px = width / (this.to - this.from);
    this.axis(g, width, soft, line);
    for (const lane of this.mode.lanes) {
      g.fillStyle = line;
      g.fillRect(0, lane.y - 2, width, 1);
      g.fillStyle = soft;
      g.font = "11px system-ui, sans-serif";
      g.fillText(lane.name, 6, lane.y + 12);
    }
    let drawn = 0;
    g.font = "11px system-ui, sans-serif";
    const chosen = this.picked && this.picked.row.q ? this.picked.row.q[this.picked.k] : -1;
    for (const {row, y} of this.rows) {
      let last = -1;
      for (let k = this.first(row); k < row.t.length && row.t[k] < this.to; k++) {
        const sort = this.mode.sorts[row.s[k]];
        if (hidden.has(sort.kind)) continue;
        const left = Math.max((row.t[k] - this.from) * px, 0);
        const right = Math.min((row.t[k] + row.d[k] - this.from) * px, width);
        if (right - left < 1 && Math.floor(left) === last) continue;  // that pixel is full
        last = Math.floor(left);
        drawn++;
        const dim = needle && !sort.name.toLowerCase().includes(needle);
        g.globalAlpha = dim ? 0.15 : row.c && row.c[k] ? 0.55 : 1;
        g.fillStyle = colors[sort.kind];
        const w = Math.max(right - left - (right - left > 3 ? 0.7 : 0), 1);
        g.fillRect(left, y, w, ROW - 2);
        if (w > 26 && !dim) {
          g.globalAlpha = 1;
          g.fillStyle = readable(colors[sort.kind]);
          g.save();
          g.beginPath();
          g.rect(left, y, w - 3, ROW);
          g.clip();
          g.fillText(row.c && row.c[k] ? row.c[k] + " × " + sort.name : sort.name, left + 4, y + 11.5);
          g.restore();
        }
        g.globalAlpha = 1;
        if (chosen >= 0 && row.q && row.q[k] === chosen || this.same(this.picked, row, k)) {
          g.strokeStyle = ink;
          g.lineWidth = 2;
          g.strokeRect(left, y, w, ROW - 2);
        }
      }
    }
    this.scale.textContent = "shown: " + time(this.from) + " to " + time(this.to);
    c.dataset.drawn = drawn;
  }

  axis(g, width, soft, line) {
    const about = (this.to - this.from) / Math.max(width / 110, 1), power = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= about);
    g.font = "10.5px system-ui, sans-serif";
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = (t - this.from) / (this.to - this.from) * width;
      g.fillStyle = line;
      g.fillRect(x, 0, 1, this.height);
      g.fillStyle = soft;
      g.fillText(t ? time(t).replace(/\.0+ | (?=.s$)|(\.\d*?)0+ /, "$1 ") : "0", x + 3, 12);
    }
  }

  same(found, row, k) { return found && found.row === row && found.k === k; }

  // The first event of a row that ends after the left edge: in a row they do not overlap.
  first(row) {
    let low = 0, high = row.t.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (row.t[mid] + row.d[mid] < this.from) low = mid + 1; else high = mid;
    }
    return low;
  }

  at(e) {
    const box = this.canvas.getBoundingClientRect(), y = e.clientY - box.top;
    const per = (this.to - this.from) / box.width, t = this.from + (e.clientX - box.left) * per;
    const found = this.rows.find(r => y >= r.y && y < r.y + ROW);
    if (!found) return null;
    const row = found.row;
    let low = 0, high = row.t.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (row.t[mid] <= t) low = mid + 1; else high = mid;
    }
    for (const k of [low - 1, low]) {  // short ones are caught from two pixels away
      if (k >= 0 && k < row.t.length && row.t[k] - 2 * per <= t && t <= row.t[k] + row.d[k] + 2 * per &&
          !hidden.has(this.mode.sorts[row.s[k]].kind)) return {lane: found.lane, row, k};
    }
    return null;
  }

  hover(e) {
    const found = this.at(e);
    if (!found) { tip.style.display = "none"; return; }
    tip.replaceChildren(...terms(this.mode, found.lane, found.row, found.k));
    show(tip, e.clientX, e.clientY);
  }

  pick(found) {
    for (const p of panels) p.picked = null;
    this.picked = found;
    byId("picked").replaceChildren(...(found ? terms(this.mode, found.lane, found.row, found.k) : ["Nothing is picked."]));
    for (const p of panels) p.draw();
  }
}

const tip = byId("tip");
function show(element, x, y) {
  element.style.display = "block";
  const w = element.offsetWidth, h = element.offsetHeight;
  element.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 6)) + "px";
  element.style.top = Math.max(4, y + 16 + h > innerHeight ? y - h - 10 : y + 16) + "px";
}

function timeline() {
  const present = new Set(data.modes.flatMap(m => m.sorts.map(s => s.kind)));
  for (const kind of KINDS.filter(k => present.has(k))) {
    byId("kinds").append(make("button", {type: "button", "aria-pressed": "true", onclick: e => {
      hidden.has(kind) ? hidden.delete(kind) : hidden.add(kind);
      e.currentTarget.setAttribute("aria-pressed", String(!hidden.has(kind)));
      for (const p of panels) p.draw();
    }}, make("span", {class: "swatch", style: {background: `var(--${kind})`}}), data.kinds[kind]));
  }
  panels = data.modes.map(mode => new Panel(mode));
  byId("panels").append(...panels.map(p => p.element));
  byId("timeline").dataset.modes = data.modes.map(m => m.name).join(",");
  const all = () => panels.forEach(p => p.view(0, byId("linked").checked ? Math.max(...panels.map(q => q.mode.span))
    : p.mode.span));
  byId("all").addEventListener("click", all);
  if (data.modes.every(m => m.step)) {
    byId("step").addEventListener("click", () => {
      byId("linked").checked = false;
      for (const p of panels) p.view(p.mode.step[0], p.mode.step[1], true);
    });
  } else byId("step").hidden = true;
  byId("linked").addEventListener("change", all);
  byId("linked").parentElement.hidden = panels.length < 2;
  byId("find").addEventListener("input", e => {
    needle = e.target.value.toLowerCase();
    for (const p of panels) p.draw();
  });
  all();
}

// Numbers at the top, the table of a comparison, and the lists.
function cards() {
  byId("cards").append(...data.cards.map(([value, text]) => make("div", {class: "card"}, make("b", {}, value),
    make("span", {}, text))));
}

function comparison() {
  const c = data.comparison;
  if (!c) return;
  byId("comparison").hidden = false;
  byId("comparison-note").textContent = c.note;
  byId("comparison-table").append(table([["", "", r => r.name], ...c.columns.map((name, k) =>
    [name, "n", r => [r.cells[k], r.best === k ? "best" : r.bad.includes(k) ? "bad" : ""]])], c.rows));
}

function legend(element, names, swatch) {
  byId(element).append(...names.map((name, k) => make("span", {}, make("span", {class: "swatch",
    style: {background: `var(--${swatch(name, k)})`}}), name)));
}

function operators() {
  legend("operators-legend", data.modes.map(m => m.name), (name, k) => "mode" + k % 5);
  const most = Math.max(...data.operators.flatMap(o => o.cells.map(c => c ? c.self : 0)), 1);
  const few = 18, entry = o => make("div", {class: "pair", "data-operator": o.name},
    make("div", {class: "name"}, o.name, make("small", {}, o.kind)),
    make("div", {}, o.cells.map((c, k) => c && make("div", {class: "lane"},
      make("span", {class: "bar", style: {width: `${Math.max(c.self / most * 70, 0.15)}%`, background: `var(--mode${k % 5})`}}),
      `${time(c.self)}`, make("small", {}, `${whole(c.calls)} ×`)))));
  byId("bars").append(...data.operators.slice(0, few).map(entry));
  if (data.operators.length > few) byId("bars").append(make("details", {}, make("summary", {},
    `${data.operators.length - few} more`), data.operators.slice(few).map(entry)));
}

function gains() {
  if (!data.gains) return;
  byId("gains").hidden = false;
  byId("gains-note").textContent = data.gains.note;
  byId("gains-table").append(table([["line", "code place", r => r.place, r => r.place], ["operators", "", r => r.names],
    [data.gains.modes[0], "n", r => time(r.before), r => r.before], [data.gains.modes[1], "n", r => time(r.after), r => r.after],
    ["gained", "n", r => [time(r.before - r.after), r.after > r.before ? "bad" : "best"], r => r.before - r.after]],
    data.gains.rows));
}

function breaks() {
  if (!data.breaks.length) return;
  byId("breaks").hidden = false;
  byId("breaks-table").append(table([...(data.modes.length > 1 ? [["mode", "", b => b.mode, b => b.mode]] : []),
    ["ended at", "code place", b => b.place || "unknown", b => b.place], ["because", "", b => b.reason, b => b.reason],
    ["programs", "n", b => whole(b.count), b => b.count], ["operators", "n", b => whole(b.operators), b => b.operators],
    ["kernels", "n", b => whole(b.kernels), b => b.kernels], ["of these compiled", "n", b => whole(b.compiled), b => b.compiled],
    ["time", "n", b => time(b.ns), b => b.ns], ["operators of the largest", "code", b => b.names]],
    data.breaks, b => ({"data-reason": b.reason})));
}

function share(part, name) {
  const percent = Math.min(part * 100, 100);
  return make("span", {}, make("span", {class: "track"}, make("span", {class: "bar",
    style: {width: percent + "%", background: `var(--${name})`}})), (part * 100).toFixed(part < 0.095 ? 1 : 0) + " %");
}

function efficiency() {
  if (!data.efficiency.length) return;
  byId("efficiency").hidden = false;
  const limits = data.ceilings;
  byId("efficiency-note").textContent = limits.length ? "Ceilings measured on this machine: " + limits.map(l =>
    `${l.device}: copies ${amount(l.bandwidth, "B/s")}, matrix products ${amount(l.flops, "FLOP/s")}`).join("; ") +
    ". Work that stays in a cache can exceed the bandwidth of memory." : "This machine's ceilings have not been measured: profiler.ceilings() does so.";
  const rate = (r, field) => r[field] === null ? -1 : r[field] / r.counted * 1e9;
  const limit = (r, field) => { const l = limits.find(x => x.device === r.device); return l ? l[field] : 0; };
  if (data.efficiency.some(r => limit(r, "flops") && rate(r, "flops") > 1.05 * limit(r, "flops")))
    byId("efficiency-note").textContent += " Some were faster than the ceiling, which must have been measured while the " +
      "machine was busy: profiler.ceilings() measures again some minutes later, profiler.ceilings(force=True) at once.";
  const columns = [...(data.modes.length > 1 ? [["mode", "", r => r.mode, r => r.mode]] : []),
    ["name", "", r => r.name, r => r.name], ["kind", "", r => data.kinds[r.kind], r => r.kind], ["calls", "n", r => whole(r.calls), r => r.calls],
    ["time", "n", r => time(r.counted), r => r.counted], ["memory", "n", r => amount(r.bytes, "B"), r => r.bytes || 0],
    ["FLOPs", "n", r => r.flops ? amount(r.flops, "") : "", r => r.flops || 0],
    ["bandwidth", "n", r => r.bytes === null ? "" : amount(rate(r, "bytes"), "B/s"), r => rate(r, "bytes")],
    ["rate", "n", r => !r.flops ? "" : amount(rate(r, "flops"), "FLOP/s"), r => rate(r, "flops")]];
  if (limits.length) columns.push(
    ["of the bandwidth", "", r => r.bytes === null || !limit(r, "bandwidth") ? "" : share(rate(r, "bytes") / limit(r, "bandwidth"), "op")],
    ["of the GEMM rate", "", r => !r.flops || !limit(r, "flops") ? "" : share(rate(r, "flops") / limit(r, "flops"), "backward")]);
  const few = 25;
  byId("efficiency-table").append(table(columns, data.efficiency.slice(0, few)));
  if (data.efficiency.length > few) byId("efficiency-table").append(make("details", {}, make("summary", {},
    `${data.efficiency.length - few} more`), table(columns, data.efficiency.slice(few))));
}

const SVG = "http://www.w3.org/2000/svg";
function svg(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function memory() {
  const charts = data.modes.flatMap(m => m.memory.map(chart => ({mode: m.name, span: m.span, ...chart})));
  if (!charts.length) return;
  byId("memory").hidden = false;
  legend("memory-legend", data.categories.filter(c => charts.some(m => m.parts[c])), name => name);
  const high = Math.max(...charts.map(c => c.peak), 1) * 1.08, W = 1160, H = 170, LEFT = 62, TOP = 14, BOTTOM = 20;
  for (const chart of charts) {
    const picture = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "memory of " + chart.mode});
    const x = t => LEFT + (W - LEFT - 6) * t / Math.max(chart.span, 1);
    const y = b => H - BOTTOM - (H - TOP - BOTTOM) * b / high;
    for (const part of [0, 0.5, 1]) {
      picture.append(svg("line", {x1: LEFT, x2: W, y1: y(high * part), y2: y(high * part), stroke: "var(--line)"}),
        svg("text", {x: LEFT - 6, y: y(high * part) + 4, "text-anchor": "end"}, amount(high * part, "B")));
    }
    for (const part of [0, 0.25, 0.5, 0.75, 1])
      picture.append(svg("text", {x: x(chart.span * part), y: H - 5, "text-anchor": part === 1 ? "end" : part ? "middle" : "start"},
        time(chart.span * part)));
    const below = chart.times.map(() => 0);
    const steps = level => chart.times.map((t, k) => `${x(t).toFixed(1)},${y(level[k]).toFixed(1)} ` +
      `${x(k + 1 < chart.times.length ? chart.times[k + 1] : chart.span).toFixed(1)},${y(level[k]).toFixed(1)}`);
    for (const name of data.categories.filter(c => chart.parts[c])) {
      const top = below.map((b, k) => b + chart.parts[name][k]);
      const back = steps(below).reverse().map(pair => pair.split(" ").reverse().join(" "));
      picture.append(svg("polygon", {points: steps(top).concat(back).join(" "), fill: `var(--${name})`, "data-category": name}));
      top.forEach((v, k) => { below[k] = v; });
    }
    const px = x(chart.peak_time), early = px < W / 2;
    picture.append(svg("circle", {cx: px, cy: y(chart.peak), r: 3.5, fill: "var(--hot)"}), svg("text", {x: px + (early ? 8 : -8),
      y: Math.max(y(chart.peak) + 4, 11), "text-anchor": early ? "start" : "end", style: "fill: var(--ink)"},
      `peak ${amount(chart.peak, "B")} at ${time(chart.peak_time)}`));
    const cursor = svg("line", {y1: TOP, y2: H - BOTTOM, stroke: "var(--ink)", visibility: "hidden"});
    picture.append(cursor);
    picture.addEventListener("pointermove", e => {
      const box = picture.getBoundingClientRect(), at = (e.clientX - box.left) / box.width * W;
      const t = (at - LEFT) / (W - LEFT - 6) * chart.span;
      let k = chart.times.findIndex(v => v > t);
      k = Math.max((k < 0 ? chart.times.length : k) - 1, 0);
      cursor.setAttribute("x1", at); cursor.setAttribute("x2", at); cursor.setAttribute("visibility", "visible");
      tip.replaceChildren(make("b", {}, `${amount(chart.totals[k], "B")} at ${time(Math.max(t, 0))}`), make("dl", {},
        data.categories.filter(c => chart.parts[c] && chart.parts[c][k]).flatMap(c => [make("dt", {}, c),
          make("dd", {}, amount(chart.parts[c][k], "B"))])));
      show(tip, e.clientX, e.clientY);
    });
    picture.addEventListener("pointerleave", () => { tip.style.display = "none"; cursor.setAttribute("visibility", "hidden"); });
    byId("memory-charts").append(make("h3", {}, chart.mode + (chart.device === "cpu" ? "" : ", " + chart.device)), picture);
    if (chart.held.length) byId("memory-charts").append(make("details", {}, make("summary", {}, "what was alive at the peak"),
      table([["bytes", "n", h => amount(h.bytes, "B"), h => h.bytes], ["for", "", h => h.category, h => h.category],
        ["operator", "", h => h.operator, h => h.operator], ["line", "code place", h => h.line, h => h.line]], chart.held)));
  }
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = name => {
    document.documentElement.dataset.theme = name;
    document.documentElement.style.colorScheme = name;
    for (const p of panels) p.draw();
  };
  set(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => set(dark.matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => set(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}

theme();
cards();
comparison();
timeline();
operators();
gains();
breaks();
efficiency();
memory();
new ResizeObserver(() => panels.forEach(p => p.draw())).observe(byId("panels"));
document.body.dataset.ready = "yes";
