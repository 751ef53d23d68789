// The table of people and their twins: searched, sorted and turned page by page.
"use strict";

const { make, t, number, written } = window.likewise;
const narrow = window.matchMedia("(max-width: 44rem)");

function shown(value) {
  if (value === null) return t("script.missing");
  if (typeof value === "number") return Number.isInteger(value) ? String(value).replace("-", "−") : written(value);
  return String(value);
}

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), document.documentElement.lang, { numeric: true });
}

function twinOf(row, columns, j) {
  return Object.hasOwn(row.twin, columns[j]) ? row.twin[columns[j]] : row.cells[j];
}

// Fixed columns first, then the table's own. `sort` is what a click on the header sorts by.
function fields(map) {
  const fixed = [
    { name: t("script.row"), sort: (r) => r.person },
    { name: t("script.added_loss"), sort: (r) => r.harm, numeric: true, falling: true },
    { name: t("script.decisions"), sort: (r) => (r.decision === r.twin_decision ? "same" : "changes") + shown(r.decision) },
    { name: t("script.label"), sort: (r) => r.label },
  ];
  if (map.id === "budget") fixed.push({ name: t("script.distance"), sort: (r) => r.squared_distance, numeric: true });
  const own = inOrder(map).map((j) => ({
    name: map.people.columns[j], sort: (r) => r.cells[j], numeric: map.people.rows.every((r) => r.cells[j] === null || typeof r.cells[j] === "number"),
  }));
  return fixed.concat(own);
}

// The columns that move most often come first, where the eye is.
function inOrder(map) {
  const { columns, rows } = map.people;
  const moved = columns.map((name) => rows.filter((r) => Object.hasOwn(r.twin, name)).length);
  return columns.map((_, j) => j).sort((i, j) => moved[j] - moved[i] || i - j);
}

function matches(row, columns, words) {
  if (!words) return true;
  const colon = words.lastIndexOf(":");
  if (colon > 0) {
    const name = words.slice(0, colon).trim().toLowerCase();
    const j = columns.findIndex((column) => column.toLowerCase() === name);
    if (j >= 0) {
      const wanted = words.slice(colon + 1).trim().toLowerCase();
      return [row.cells[j], twinOf(row, columns, j)].some((value) => shown(value).toLowerCase().startsWith(wanted));
    }
  }
  const wanted = words.toLowerCase();
  const all = [row.person, row.label, row.decision, row.twin_decision, ...row.cells, ...Object.values(row.twin)];
  return all.some((value) => shown(value).toLowerCase().includes(wanted));
}

function both(before, after) {
  return [make("span", { className: "was" }, shown(before)), make("span", { className: "becomes", role: "img", "aria-label": t("script.becomes") }, "→"), make("mark", {}, shown(after))];
}

function decisionCell(row) {
  const cell = make("td", { "data-label": t("script.decisions") });
  if (row.decision === row.twin_decision) cell.append(make("span", {}, `${shown(row.decision)} `, make("span", { className: "muted" }, t("script.same"))));
  else cell.append(make("span", {}, make("span", { className: "was" }, shown(row.decision)), make("span", { className: "becomes", role: "img", "aria-label": t("script.becomes") }, "→"), make("span", { className: "flip" }, shown(row.twin_decision))));
  return cell;
}

// Where the page has a panel to edit people in, a person of the table can be taken there.
function tryButton(row) {
  if (!document.getElementById("explore-data")) return null;
  const button = make("button", { type: "button", className: "button try", "aria-label": t("explore.pick_name", { person: row.person }) }, t("explore.try"));
  button.addEventListener("click", () => {
    const audit = Number(button.closest(".audit").dataset.audit.slice(1));
    document.dispatchEvent(new CustomEvent("likewise:try", { detail: { person: row.person, audit } }));
  });
  return button;
}

function personRow(row, map, order, open, toggle) {
  const button = make("button", { type: "button", className: "open", "aria-expanded": String(open), "aria-label": t("script.open_row", { row: String(row.person) }), onclick: toggle }, make("span", { className: "narrow-word" }, `${t("script.row")} `), String(row.person));
  const line = make("tr", { className: "person", "data-person": row.person }, make("th", { scope: "row" }, button, tryButton(row)));
  line.append(make("td", { className: "number", "data-label": t("script.added_loss") }, `+${number(row.harm)}`), decisionCell(row), make("td", { "data-label": t("script.label") }, shown(row.label)));
  if (map.id === "budget") line.append(make("td", { className: "number", "data-label": t("script.distance") }, number(row.squared_distance)));
  for (const j of order) {
    const name = map.people.columns[j];
    const differs = Object.hasOwn(row.twin, name);
    const numeric = typeof row.cells[j] === "number" && !differs;
    const cell = make("td", { className: (differs ? "differs" : "same") + (numeric ? " number" : ""), "data-label": name });
    if (differs) cell.append(make("span", {}, ...both(row.cells[j], row.twin[name])));
    else cell.append(shown(row.cells[j]));
    line.append(cell);
  }
  return line;
}

function sideBySide(row, map, width) {
  const columns = map.people.columns;
  const body = make("tbody");
  const add = (name, before, after, differs, kind) => {
    const last = make("td");
    if (differs) last.append(make("mark", {}, after));
    else last.append(after);
    body.append(make("tr", { className: `${kind || ""} ${differs ? "differs" : ""}` }, make("th", { scope: "row" }, name), make("td", {}, before), last));
  };
  add(t("script.decision"), shown(row.decision), shown(row.twin_decision), row.decision !== row.twin_decision, "outcome");
  add(t("script.loss"), number(row.loss), number(row.twin_loss), false, "outcome");
  columns.forEach((name, j) => add(name, shown(row.cells[j]), shown(twinOf(row, columns, j)), Object.hasOwn(row.twin, name)));
  const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, t("script.column")), make("th", { scope: "col" }, t("script.person_row", { row: String(row.person) })), make("th", { scope: "col" }, t("script.twin"))));
  return make("tr", { className: "more" }, make("td", { colSpan: width }, make("table", { className: "twins" }, head, body)));
}

// One table in its place; returns a function that switches between the maps.
function peopleTable(place, maps) {
  const state = { map: maps[0], sort: 2, falling: false, words: "", column: "", changed: false, page: 0, open: new Set() };
  const search = make("input", { type: "search", placeholder: t("script.search_hint"), autocomplete: "off", spellcheck: false });
  const column = make("select");
  const order = make("select");
  const turn = make("button", { type: "button", className: "button" }, "");
  const changed = make("input", { type: "checkbox" });
  const count = make("p", { className: "people-count", role: "status" });
  const scroll = make("div", { className: "people-scroll", tabIndex: 0, role: "region", "aria-label": t("script.people_name") });
  const before = make("button", { type: "button", className: "button" }, t("script.previous"));
  const after = make("button", { type: "button", className: "button" }, t("script.next"));
  const where = make("span");
  place.append(
    make("div", { className: "people-tools" },
      make("label", {}, t("script.search"), search),
      make("label", {}, t("script.differs_in"), column),
      make("label", { className: "narrow-only" }, t("script.sort_by"), order),
      make("label", { className: "narrow-only" }, t("script.direction"), turn),
      make("label", { className: "check" }, changed, t("script.only_changed"))),
    count, scroll, make("div", { className: "pages" }, before, where, after));

  function list() {
    const { map } = state;
    const columns = map.people.columns;
    const by = fields(map)[state.sort].sort;
    return map.people.rows
      .filter((r) => (!state.changed || r.decision !== r.twin_decision) && (!state.column || Object.hasOwn(r.twin, state.column)) && matches(r, columns, state.words))
      .sort((a, b) => (state.falling ? compare(by(b), by(a)) : compare(by(a), by(b))) || b.harm - a.harm || a.person - b.person);
  }

  function header(all) {
    return make("thead", {}, make("tr", {}, ...all.map((field, k) => {
      const cell = make("th", { scope: "col", className: field.numeric ? "number" : "" }, make("button", { type: "button", onclick: () => sortBy(k) }, field.name));
      if (k === state.sort) cell.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
      return cell;
    })));
  }

  function render() {
    const all = fields(state.map);
    const rows = list();
    const places = inOrder(state.map);
    const size = narrow.matches ? 8 : 25;
    const pages = Math.max(Math.ceil(rows.length / size), 1);
    state.page = Math.min(state.page, pages - 1);
    const body = make("tbody");
    for (const row of rows.slice(state.page * size, (state.page + 1) * size)) {
      const open = state.open.has(row.person);
      body.append(personRow(row, state.map, places, open, () => { if (open) state.open.delete(row.person); else state.open.add(row.person); render(); focusOn(`tr[data-person="${row.person}"] .open`); }));
      if (open) body.append(sideBySide(row, state.map, all.length));
    }
    const table = make("table", { className: "persons" }, header(all), body);
    scroll.replaceChildren(rows.length ? table : make("p", { className: "nobody" }, state.map.people.rows.length ? t("script.nobody_matches") : t("script.nobody")));
    const total = state.map.people.rows.length;
    count.textContent = rows.length === total ? t("script.people", { n: total }) : t("script.matching", { n: rows.length, total });
    where.textContent = t("script.page", { page: state.page + 1, pages });
    before.disabled = state.page === 0;
    after.disabled = state.page >= pages - 1;
    before.parentElement.hidden = pages === 1;
    order.value = String(state.sort);
    turn.textContent = state.falling ? t("script.largest_first") : t("script.smallest_first");
  }

  function focusOn(selector) {
    const found = scroll.querySelector(selector);
    if (found) found.focus({ preventScroll: true });
  }

  function sortBy(k) {
    const field = fields(state.map)[k];
    state.falling = k === state.sort ? !state.falling : Boolean(field.falling);
    state.sort = k;
    state.page = 0;
    render();
    focusOn(`thead th:nth-child(${k + 1}) button`);
  }

  function choices() {
    const moved = state.map.people.columns.filter((name) => state.map.people.rows.some((r) => Object.hasOwn(r.twin, name)));
    column.replaceChildren(make("option", { value: "" }, t("script.any_column")), ...moved.map((name) => make("option", { value: name }, name)));
    if (!moved.includes(state.column)) state.column = "";
    column.value = state.column;
    order.replaceChildren(...fields(state.map).map((field, k) => make("option", { value: String(k) }, field.name)));
  }

  const update = (change) => () => { change(); state.page = 0; render(); };
  search.addEventListener("input", update(() => { state.words = search.value.trim(); }));
  column.addEventListener("change", update(() => { state.column = column.value; }));
  changed.addEventListener("change", update(() => { state.changed = changed.checked; }));
  order.addEventListener("change", update(() => { state.sort = Number(order.value); state.falling = Boolean(fields(state.map)[state.sort].falling); }));
  turn.addEventListener("click", update(() => { state.falling = !state.falling; }));
  before.addEventListener("click", () => { state.page -= 1; render(); });
  after.addEventListener("click", () => { state.page += 1; render(); });

  function show(id) {
    state.map = maps.find((map) => map.id === id) || maps[0];
    Object.assign(state, { page: 0, sort: 2, falling: false });
    state.open.clear();
    choices();
    render();
  }
  narrow.addEventListener("change", render);
  show(maps[0].id);
  return show;
}

window.likewise.peopleTable = peopleTable;
