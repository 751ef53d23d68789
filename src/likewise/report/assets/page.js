// Puts the page together: reads the document, fills tables and charts, wires switches and tabs.
"use strict";

const { t, curveChart, frontierChart, peopleTable } = window.likewise;

const data = JSON.parse(document.getElementById("data").textContent);
const compared = data.kind === "likewise.report.comparison";
const audits = compared ? data.entries.map((entry) => entry.audit) : [data];
document.documentElement.classList.remove("no-js");

const all = (selector, inside) => [...(inside || document).querySelectorAll(selector)];
const one = (selector, inside) => (inside || document).querySelector(selector);

function press(group, button) {
  for (const other of all("button", group)) other.setAttribute("aria-pressed", String(other === button));
}

function asSeries(audit, index) {
  return { name: audit.name || t("script.gap"), index, colour: `var(--s${index % 6})`, x: audit.curve.eps, y: audit.curve.gap, slope: audit.curve.lambda };
}

audits.forEach((audit, index) => {
  const key = `a${index}`;
  const root = document.getElementById(key);
  const showPeople = peopleTable(one(`[data-people="${key}"]`), audit.maps);
  const showMap = (id) => {
    for (const part of all(".map", root)) part.hidden = part.dataset.map !== id;
    for (const group of all(".switch[data-audit]", root)) press(group, one(`[data-map="${id}"]`, group));
    showPeople(id);
  };
  for (const button of all(".switch[data-audit] button", root)) button.addEventListener("click", () => showMap(button.dataset.map));
  // Pure unfairness first; where there is none, the budget has more to tell.
  showMap(audit.maps[0].harmed || audit.maps.length === 1 ? audit.maps[0].id : audit.maps[1].id);
  const range = curveChart(one(`[data-curve="${key}"]`), one(`[data-readout="${key}"]`), {
    series: [asSeries(audit, index)], near: audit.curve.near, eps: audit.numbers.eps, delta: audit.verdict.delta, gap: audit.numbers.gap,
  });
  wireRange(key, range);
});

function wireRange(key, range) {
  for (const group of all(`.switch[data-range="${key}"]`)) {
    for (const button of all("button", group)) {
      button.addEventListener("click", () => { press(group, button); range(button.dataset.to === "all"); });
    }
  }
}

if (compared) {
  const models = data.entries.map((entry, index) => {
    const { numbers, evaluation } = entry.audit;
    const accuracy = evaluation ? evaluation.measures.find((m) => m.name === "balanced accuracy") : null;
    const gaps = { free: numbers.pure_gap };
    if (data.eps > 0) gaps.budget = numbers.gap;
    return { name: entry.name, colour: `var(--s${index % 6})`, accuracy, gaps, onFrontier: entry.on_frontier };
  });
  const which = frontierChart(one("[data-frontier]"), one("[data-frontier-readout]"), { models });
  for (const group of all("[data-frontier-switch]")) {
    for (const button of all("button", group)) button.addEventListener("click", () => { press(group, button); which(button.dataset.map); });
  }
  const range = curveChart(one('[data-curve="all"]'), one('[data-readout="all"]'), {
    series: audits.map(asSeries), near: Math.max(...audits.map((a) => a.curve.near)), eps: data.eps, delta: null, gap: null,
  });
  wireRange("all", range);
  wireTabs(all("[role=tab]"));
}

function wireTabs(tabs) {
  const choose = (chosen) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      choose(next);
      next.focus();
    });
  });
  choose(tabs[0]);
}

// Mark the section that is being read in the list of contents.
const links = new Map(all(".contents a").map((link) => [link.getAttribute("href").slice(1), link]));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const link of links.values()) link.removeAttribute("aria-current");
    const link = links.get(entry.target.id);
    link.setAttribute("aria-current", "true");
    const list = link.closest("ul");
    list.scrollTo({ left: link.offsetLeft - list.clientWidth / 2 + link.offsetWidth / 2 });
  }
}, { rootMargin: "-15% 0px -75% 0px" });
for (const id of links.keys()) {
  const section = document.getElementById(id);
  if (section) seen.observe(section);
}

document.getElementById("save-data").addEventListener("click", () => {
  const address = URL.createObjectURL(new Blob([JSON.stringify(data, null, 1)], { type: "application/json" }));
  const link = Object.assign(document.createElement("a"), { href: address, download: compared ? "comparison.json" : "audit.json" });
  link.click();
  URL.revokeObjectURL(address);
});
