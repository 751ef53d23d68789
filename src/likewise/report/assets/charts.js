// Small charts in SVG. Colours come from the style sheet, text goes in as text, never as markup.
"use strict";

const { t, number, written } = window.likewise;
const SPACE = document.getElementById("svg-space").namespaceURI;

function draw(tag, attributes, parent, text) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

function ticks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) || rough;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

// Axes, grid and scales of a plot; redrawn with the width of its place.
function frame(host, { x, y, xName, yName, label }) {
  const width = Math.max(host.clientWidth, 240);
  const height = width < 560 ? 270 : 340;
  const box = { left: 52, right: width - 16, top: 26, bottom: height - 46 };
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const sx = (v) => box.left + ((v - x[0]) / (x[1] - x[0] || 1)) * (box.right - box.left);
  const sy = (v) => box.bottom - ((v - y[0]) / (y[1] - y[0] || 1)) * (box.bottom - box.top);
  for (const at of ticks(y[0], y[1], 5)) {
    draw("line", { x1: box.left, x2: box.right, y1: sy(at), y2: sy(at), class: "tick" }, svg);
    draw("text", { x: box.left - 8, y: sy(at) + 4, "text-anchor": "end" }, svg, written(at));
  }
  for (const at of ticks(x[0], x[1], width < 560 ? 4 : 8)) {
    draw("line", { x1: sx(at), x2: sx(at), y1: box.bottom, y2: box.bottom + 5, class: "axis" }, svg);
    draw("text", { x: sx(at), y: box.bottom + 19, "text-anchor": "middle" }, svg, written(at));
  }
  draw("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom, class: "axis" }, svg);
  draw("text", { x: box.left - 44, y: 12 }, svg, yName);
  draw("text", { x: box.right, y: height - 8, "text-anchor": "end" }, svg, xName);
  host.replaceChildren(svg);
  return { svg, sx, sy, box, width, height };
}

function valueAt(xs, ys, at) {
  let low = 0;
  let high = xs.length - 1;
  if (at >= xs[high]) return ys[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= at) low = middle;
    else high = middle;
  }
  const width = xs[high] - xs[low];
  return width > 0 ? ys[low] + ((ys[high] - ys[low]) * (at - xs[low])) / width : ys[low];
}

// Draw again when the width changes, also from nothing: a panel that was hidden has none.
function onWidth(host, redraw) {
  let last = 0;
  new ResizeObserver(() => {
    if (host.clientWidth && host.clientWidth !== last) {
      last = host.clientWidth;
      redraw();
    }
  }).observe(host);
}

// Lines ε ↦ gap with a cursor that follows the mouse, a finger or the arrow keys.
function curveChart(host, readout, { series, near, eps, delta, gap }) {
  const end = Math.max(...series.map((s) => s.x[s.x.length - 1]));
  let range = near > 0 ? near : end || 1;
  // Several lines need names, so the cursor stands at the chosen budget from the start.
  let at = series.length > 1 ? eps : null;
  let cursor = null;
  let plot = null;
  host.tabIndex = 0;
  host.setAttribute("role", "slider");
  host.setAttribute("aria-label", t("script.budget"));
  host.setAttribute("aria-valuemin", "0");

  function redraw() {
    const values = series.flatMap((s) => s.x.map((e, i) => (e <= range ? s.y[i] : 0)).concat(valueAt(s.x, s.y, range)));
    const top = Math.max(...values, gap && eps <= range ? Math.min(gap.high || 0, 3 * Math.max(...values)) : 0, delta !== null && delta < 3 * Math.max(...values) ? delta : 0) * 1.08 || 1;
    plot = frame(host, { x: [0, range], y: [0, top], xName: t("script.budget_axis"), yName: t("script.gap_axis"), label: t("script.curve_name") });
    const { svg, sx, sy, box } = plot;
    for (const s of series) {
      const inside = s.x.map((e, i) => [e, s.y[i]]).filter(([e]) => e <= range);
      inside.push([range, valueAt(s.x, s.y, range)]);
      const path = inside.map(([e, g], i) => `${i ? "L" : "M"}${sx(e).toFixed(1)},${sy(g).toFixed(1)}`).join("");
      if (series.length === 1) draw("path", { d: `${path}L${sx(range)},${box.bottom}L${box.left},${box.bottom}Z`, class: "area", style: `fill:${s.colour}` }, svg);
      draw("path", { d: path, class: "line", style: `stroke:${s.colour}` }, svg);
    }
    if (delta !== null && delta <= top) {
      draw("line", { x1: box.left, x2: box.right, y1: sy(delta), y2: sy(delta), class: "delta" }, svg);
      draw("text", { x: box.right, y: sy(delta) - 6, "text-anchor": "end", class: "halo" }, svg, t("script.allowed", { delta }));
    }
    if (eps > 0 && eps <= range) {
      draw("line", { x1: sx(eps), x2: sx(eps), y1: box.top, y2: box.bottom, class: "chosen" }, svg);
      const right = sx(eps) < box.left + (box.right - box.left) * 0.7;
      draw("text", { x: sx(eps) + (right ? 6 : -6), y: box.top + 4, "text-anchor": right ? "start" : "end", class: "strong halo" }, svg, t("script.chosen", { eps }));
    }
    for (const s of series) {
      draw("circle", { cx: sx(0), cy: sy(s.y[0]), r: 5, style: `fill:${s.colour}` }, svg);
      if (eps > 0 && eps <= range) draw("circle", { cx: sx(eps), cy: sy(valueAt(s.x, s.y, eps)), r: 5, style: `fill:${s.colour}` }, svg);
    }
    if (gap && eps <= range && gap.low !== null && gap.high !== null) {
      draw("line", { x1: sx(eps), x2: sx(eps), y1: sy(gap.low), y2: sy(Math.min(gap.high, top)), style: `stroke:${series[0].colour};stroke-width:5;opacity:.45` }, svg);
    }
    if (series.length === 1) draw("text", { x: sx(0) + 10, y: sy(series[0].y[0]) + 16, class: "halo" }, svg, t("script.pure", { gap: series[0].y[0] }));
    cursor = draw("g", { "pointer-events": "none" }, svg);
    host.setAttribute("aria-valuemax", String(range));
    point(at === null ? null : Math.min(at, range));
    if (at === null) say(Math.min(eps, range), series.map((s) => reading(s, Math.min(eps, range))));
  }

  function reading(s, value) {
    const gap = valueAt(s.x, s.y, value);
    return series.length > 1 ? `${s.name} ${number(gap)}` : t("script.gap_and_slope", { gap, slope: valueAt(s.x, s.slope, value) });
  }

  function say(value, readings) {
    host.setAttribute("aria-valuenow", value.toPrecision(4));
    host.setAttribute("aria-valuetext", `${t("script.at_eps", { eps: value })} ${readings.join("; ")}`);
  }

  function point(value) {
    at = value;
    cursor.replaceChildren();
    if (value === null) return;
    const { sx, sy, box } = plot;
    draw("line", { x1: sx(value), x2: sx(value), y1: box.top, y2: box.bottom, class: "cursor" }, cursor);
    const said = [];
    readout.replaceChildren(document.createTextNode(`${t("script.at_eps", { eps: value })} `));
    for (const s of series) {
      const found = valueAt(s.x, s.y, value);
      draw("circle", { cx: sx(value), cy: sy(found), r: 5.5, style: `fill:${s.colour};stroke:var(--card);stroke-width:2` }, cursor);
      const words = reading(s, value);
      const entry = document.createElement("span");
      entry.className = "entry";
      if (series.length > 1) {
        const dot = document.createElement("span");
        dot.className = `series-dot s${s.index % 6}`;
        entry.append(dot);
      }
      entry.append(words);
      readout.append(entry);
      said.push(words);
    }
    say(value, said);
  }

  function follow(event) {
    const { left, width } = host.getBoundingClientRect();
    const { box } = plot;
    const place = ((event.clientX - left) * plot.width) / width;
    point(Math.min(Math.max((place - box.left) / (box.right - box.left), 0), 1) * range);
  }
  host.addEventListener("pointermove", follow);
  host.addEventListener("pointerdown", follow);
  host.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (step !== undefined) point(Math.min(Math.max((at === null ? Math.min(eps, range) : at) + (step * range) / 100, 0), range));
    else if (event.key === "Home") point(0);
    else if (event.key === "End") point(range);
    else return;
    event.preventDefault();
  });
  onWidth(host, redraw);
  return (whole) => {
    range = whole ? end || 1 : near > 0 ? near : end || 1;
    redraw();
  };
}

// Accuracy against gap: one point per model, its intervals as whiskers, a line through the best.
function frontierChart(host, readout, { models }) {
  let id = models[0].gaps.budget ? "free" : Object.keys(models[0].gaps)[0];
  const known = models.filter((m) => m.accuracy && m.accuracy.value !== null);

  function redraw() {
    if (!known.length) {
      readout.textContent = t("script.no_accuracy");
      host.style.minHeight = "0";
      return;
    }
    const far = 3 * Math.max(...known.map((m) => m.gaps[id].value));
    const xs = known.flatMap((m) => [m.gaps[id].value, Math.min(m.gaps[id].high || 0, far)]);
    const ys = known.flatMap((m) => [m.accuracy.value, m.accuracy.low ?? m.accuracy.value, m.accuracy.high ?? m.accuracy.value]);
    const pad = (Math.max(...ys) - Math.min(...ys)) * 0.2 || 0.02;
    const plot = frame(host, {
      x: [0, Math.max(...xs) * 1.12 || 1],
      y: [Math.min(...ys) - pad, Math.min(Math.max(...ys) + pad, 1.02)],
      xName: t("script.frontier_gap"),
      yName: t("script.balanced_accuracy"),
      label: t("script.frontier_name"),
    });
    plot.svg.setAttribute("role", "group");
    const { svg, sx, sy, box } = plot;
    const best = known.filter((m) => m.onFrontier[id]).sort((a, b) => a.gaps[id].value - b.gaps[id].value);
    if (best.length > 1) {
      let path = "";
      best.forEach((m, i) => {
        path += i ? `H${sx(m.gaps[id].value)}V${sy(m.accuracy.value)}` : `M${sx(m.gaps[id].value)},${sy(m.accuracy.value)}`;
      });
      draw("path", { d: path, class: "frontier-line" }, svg);
    }
    const taken = known.map((m) => around(sx(m.gaps[id].value), sy(m.accuracy.value), 9));
    for (const m of known) mark(m, plot, box, taken);
  }

  // Where a name fits without covering a point or another name.
  function place(x, y, words, box, taken) {
    const width = 7.2 * words.length;
    const tries = [[12, -10], [12, 20], [-12 - width, -10], [-12 - width, 20], [12, -26], [12, 36], [-12 - width, -26], [-12 - width, 36]]
      .map(([dx, dy]) => ({ left: x + dx, right: x + dx + width, top: y + dy - 12, bottom: y + dy + 3, y: y + dy }))
      .filter((spot) => spot.left >= box.left - 40 && spot.right <= box.right + 10);
    const free = (spot) => !taken.some((t) => spot.left < t.right && spot.right > t.left && spot.top < t.bottom && spot.bottom > t.top);
    const spot = tries.find(free) || tries[0] || { left: box.left, right: box.left + width, top: y - 22, bottom: y - 7, y: y - 10 };
    taken.push(spot);
    return spot;
  }

  function around(x, y, size) {
    return { left: x - size, right: x + size, top: y - size, bottom: y + size };
  }

  function mark(m, { svg, sx, sy }, box, taken) {
    const gap = m.gaps[id];
    const x = sx(gap.value);
    const y = sy(m.accuracy.value);
    const words = t("script.model", { name: m.name, accuracy: `${number(m.accuracy.value)}${interval(m.accuracy)}`, gap: `${number(gap.value)}${interval(gap)}` });
    const group = draw("g", { tabindex: 0, role: "img", "aria-label": words, "data-model": m.name }, svg);
    const line = { style: `stroke:${m.colour};stroke-width:2.5;opacity:.45` };
    if (gap.low !== null && gap.high !== null) draw("line", { x1: Math.max(sx(gap.low), box.left), x2: Math.min(sx(gap.high), box.right), y1: y, y2: y, ...line }, group);
    if (m.accuracy.low !== null && m.accuracy.high !== null) draw("line", { x1: x, x2: x, y1: sy(m.accuracy.low), y2: sy(m.accuracy.high), ...line }, group);
    draw("circle", { cx: x, cy: y, r: 7, style: `fill:${m.colour}` }, group);
    const spot = place(x, y, m.name, box, taken);
    draw("text", { x: spot.left, y: spot.y, class: "strong halo" }, group, m.name);
    draw("circle", { cx: x, cy: y, r: 20, fill: "transparent" }, group);
    for (const kind of ["pointerenter", "focus"]) group.addEventListener(kind, () => { readout.textContent = `${words}.`; });
  }

  function interval(measure) {
    return measure.low === null || measure.high === null ? "" : ` (${t("script.interval", measure)})`;
  }

  onWidth(host, redraw);
  return (which) => {
    id = which;
    redraw();
  };
}

Object.assign(window.likewise, { curveChart, frontierChart });
