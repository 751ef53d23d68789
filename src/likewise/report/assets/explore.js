// The panel in which a reader edits a person and sees what the models decide.
"use strict";

const { make, t, contained, written, decide, fault, localScorer, marked, remoteScorer, variants, Refusal } = window.likewise;

const MOST_VARIANTS = 200;
// By whether there are several models, and whether the decision is another one.
const SAID = [["explore.said_same", "explore.said_flipped"], ["explore.said_model_same", "explore.said_model_flipped"]];
const BADGES = { proved: "explore.proved", found: "explore.found", unknown: "explore.unknown" };
const BAND_POINTS = 60;
const MOST_FIELDS = 24;

const given = JSON.parse(document.getElementById("explore-data").textContent);
const place = document.querySelector("[data-explore]");
const { columns } = given;
const shownColumns = columns.map((_, j) => j).filter((j) => columns[j].marks === undefined);
const models = given.models.map((entry, index) => ({
  ...entry,
  index,
  scorer: entry.model ? localScorer(entry.model, columns) : remoteScorer(given.endpoint, entry.name),
}));

function shown(value) {
  if (value === null) return t("explore.missing");
  if (typeof value === "number") return written(value, "recorded");
  return contained(String(value));
}

const percent = (value) => t("explore.percent", { value });

// ---- what is asked of a model ---------------------------------------------------------------------------

// {probability, decision} of each row; null for a row that the model does not take.
async function ask(model, rows) {
  if (!rows.length) return [];
  const outcome = (probability) => ({ probability, decision: decide(probability) });
  if (!model.scorer.one) return (await model.scorer.score(rows.map((row) => marked(columns, row)))).map(outcome);
  return rows.map((row) => {
    try {
      return outcome(model.scorer.one(marked(columns, row)));
    } catch (error) {
      if (error instanceof Refusal) return null;
      throw error;
    }
  });
}

// The class whose chance is shown: the second of two, else the one decided.
const classShown = (model, outcome) => (model.classes.length === 2 ? 1 : outcome.decision);
const className = (model, k) => shown(model.classes[k]);
const chanceOf = (model, outcome) => outcome.probability[classShown(model, outcome)];

// ---- state ----------------------------------------------------------------------------------------------

const people = new Map(given.people.map((person) => [person.person, person]));
const state = { origin: null, row: null, draft: null, model: models[0], turn: 0 };

// ---- the form -------------------------------------------------------------------------------------------

const picker = make("select", { id: "explore-person" });
const back = make("button", { type: "button", className: "button" }, t("explore.back"));
const fresh = make("button", { type: "button", className: "button" }, t("explore.fresh"));
const form = make("div", { className: "explore-form", role: "group", "aria-label": t("explore.form") });
const outcomes = make("div", { className: "explore-outcomes" });
const said = make("p", { className: "explore-said", role: "status", "aria-live": "polite" });
const refused = make("p", { className: "explore-refused warning", role: "alert", hidden: true });
const facts = make("p", { className: "explore-facts" });
const more = make("div", { className: "explore-more" });
const fields = new Map();

function field(j) {
  const column = columns[j];
  const id = `explore-${j}`;
  const note = make("p", { className: "field-note", id: `${id}-note` });
  const wrong = make("p", { className: "field-error", id: `${id}-wrong`, hidden: true });
  const described = { "aria-describedby": `${id}-note ${id}-wrong` };
  const parts = { column, note, wrong, slider: null, band: null, gap: null };
  const controls = make("div", { className: "field-controls" });
  if (column.kind === "category") {
    parts.input = make("select", { id, ...described }, ...column.categories.map((value, k) => make("option", { value: String(k) }, shown(value))));
    parts.read = () => column.categories[Number(parts.input.value)];
    parts.write = (cell) => { parts.input.value = String(column.categories.indexOf(cell)); };
    controls.append(parts.input);
  } else {
    const step = column.kind === "integer" ? "1" : "any";
    const range = { min: column.low === null ? "" : column.low, max: column.high === null ? "" : column.high };
    parts.input = make("input", { id, type: "number", inputMode: column.kind === "integer" ? "numeric" : "decimal", step, ...range, ...described });
    // A number field that does not hold a number says "": then the text is not known, only that it is wrong.
    parts.read = () => (parts.input.value.trim() === "" ? NaN : Number(parts.input.value));
    parts.write = (cell) => { parts.input.value = cell === null ? "" : String(cell); if (parts.slider) parts.slider.value = cell === null ? "" : String(cell); };
    controls.append(parts.input);
    if (column.low !== null && column.high !== null && column.high > column.low) {
      const whole = column.kind === "integer" ? 1 : (column.high - column.low) / 500;
      // The number field does all that the slider does, so keyboards and screen readers meet one control only.
      parts.slider = make("input", { type: "range", tabIndex: -1, min: column.low, max: column.high, step: whole, "aria-hidden": "true" });
      parts.slider.addEventListener("input", () => { parts.input.value = parts.slider.value; edited(j); });
      parts.band = make("span", { className: "band", "aria-hidden": "true" });
      controls.append(make("span", { className: "slide", "aria-hidden": "true" }, parts.band, parts.slider));
    }
  }
  parts.input.addEventListener(column.kind === "category" ? "change" : "input", () => edited(j));
  if (column.missing) {
    parts.gap = make("input", { type: "checkbox" });
    parts.gap.addEventListener("change", () => edited(j));
    parts.gone = make("label", { className: "check" }, parts.gap, t("explore.missing"));
    controls.append(parts.gone);
  }
  const tags = [column.sensitive ? make("span", { className: "tag" }, t("explore.sensitive")) : null];
  parts.root = make("div", { className: `field${column.sensitive ? " is-sensitive" : ""}` },
    make("label", { htmlFor: id }, make("span", { className: "field-name" }, column.name), ...tags), controls, note, wrong);
  fields.set(j, parts);
  return parts.root;
}

function edited(j) {
  const parts = fields.get(j);
  state.draft[j] = parts.gap && parts.gap.checked ? null : parts.read();
  if (parts.slider && Number.isFinite(state.draft[j])) parts.slider.value = String(state.draft[j]);
  update();
}

// Everything that says how a field stands: locked, changed, wrong.
function describe(j, found) {
  const parts = fields.get(j);
  const { column } = parts;
  const origin = state.origin ? state.origin.cells[j] : undefined;
  const locked = state.origin !== null && (column.locked || origin === null);
  const gone = parts.gap !== null && state.draft[j] === null;
  parts.input.disabled = locked || gone;
  if (parts.slider) parts.slider.disabled = locked || gone;
  if (parts.gap) { parts.gone.hidden = state.origin !== null; parts.gap.checked = state.draft[j] === null; }
  const words = [];
  if (locked) words.push(t(column.locked ? "explore.locked" : "explore.locked_gap"));
  else if (column.kind !== "category" && column.low !== null && column.high !== null) words.push(t("explore.range", { low: column.low, high: column.high }));
  const changed = origin !== undefined && state.draft[j] !== origin;
  parts.note.replaceChildren(words.join(" "), ...(changed ? [words.length ? " · " : "", make("mark", {}, t("explore.was", { value: shown(origin) }))] : []));
  parts.root.classList.toggle("is-changed", changed);
  parts.root.classList.toggle("is-locked", locked);
  parts.root.classList.toggle("is-wrong", found !== null);
  parts.input.setAttribute("aria-invalid", String(found !== null));
  parts.wrong.hidden = found === null;
  const folded = parts.root.closest("details");
  if (folded && (found !== null || changed)) folded.open = true;
  parts.wrong.textContent = found === null ? "" : t(found.key, found.values);
}

// ---- from an edit to what is shown ----------------------------------------------------------------------

async function update() {
  const turn = ++state.turn;
  const faults = columns.map((column, j) => (column.marks === undefined ? fault(column, state.draft[j], state.origin ? state.origin.cells[j] : undefined) : null));
  shownColumns.forEach((j) => describe(j, faults[j]));
  const first = faults.find((found) => found !== null);
  if (first) {
    refuse(t("explore.impossible", { why: t(first.key, first.values) }));
    return;
  }
  const row = state.draft.slice();
  try {
    const before = state.origin === null ? [] : [state.origin.cells];
    const answers = await Promise.all(models.map((model) => ask(model, [row, ...before])));
    if (turn !== state.turn) return;
    if (answers.some((answer) => answer[0] === null)) throw new Refusal("not_taken", {});
    state.row = row;
    refuse(null);
    showOutcomes(answers);
    await showMore(turn, answers[state.model.index]);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (turn === state.turn) refuse(error.key === "server" ? error.values.sentence : t(error.key === "unreachable" ? "explore.unreachable" : "explore.not_taken"));
  }
}

function refuse(sentence) {
  refused.hidden = sentence === null;
  refused.textContent = sentence === null ? "" : sentence;
  place.classList.toggle("is-refused", sentence !== null);
}

function changes(from, to) {
  return shownColumns.filter((j) => from[j] !== to[j]).map((j) => t("explore.change", { column: columns[j].name, before: shown(from[j]), after: shown(to[j]) }));
}

function bar(model, outcome, before) {
  const chance = chanceOf(model, outcome);
  const track = make("div", { className: "chance", role: "img", "aria-label": t("explore.chance", { chance, name: className(model, classShown(model, outcome)) }) });
  const fill = make("span", { className: "chance-fill" });
  fill.style.width = `${100 * chance}%`;
  track.append(fill);
  if (model.classes.length === 2) track.append(make("span", { className: "chance-half" }));
  if (before && Math.abs(chanceOf(model, before) - chance) > 0.002) {
    const mark = make("span", { className: "chance-before" });
    mark.style.left = `${100 * chanceOf(model, before)}%`;
    track.append(mark);
  }
  return track;
}

function showOutcomes(answers) {
  const who = state.origin === null ? t("explore.somebody") : t("explore.row", { row: state.origin.row });
  const moved = state.origin === null ? [] : changes(state.origin.cells, state.row);
  const sentences = [];
  outcomes.replaceChildren(...models.map((model, index) => {
    const [now, before] = answers[index];
    const name = className(model, now.decision);
    const flipped = Boolean(before) && before.decision !== now.decision;
    const shownClass = className(model, classShown(model, now));
    const several = models.length > 1;
    const values = { model: model.name, decision: name, chance: chanceOf(model, now), name: shownClass, before: before ? className(model, before.decision) : "" };
    sentences.push(t(SAID[Number(several)][Number(flipped)], values));
    const was = before && moved.length ? t(flipped ? "explore.before_other" : "explore.before_same", { decision: className(model, before.decision), chance: chanceOf(model, before) }) : "";
    const card = make("div", { className: `outcome${flipped ? " is-flipped" : ""}` },
      several ? make("p", { className: "outcome-model" }, make("span", { className: `series-dot s${index % 6}`, "aria-hidden": "true" }), model.name) : null,
      make("p", { className: "outcome-decision" }, name, flipped ? make("span", { className: "outcome-flip" }, t("explore.flipped")) : null),
      bar(model, now, before),
      make("p", { className: "outcome-chance" }, t("explore.chance", { chance: chanceOf(model, now), name: shownClass })),
      was ? make("p", { className: "outcome-before" }, was) : null);
    return card;
  }));
  const label = state.origin !== null && state.origin.label !== null ? t("explore.label", { label: shown(state.origin.label) }) : "";
  said.textContent = [moved.length ? t("explore.edited", { who, changes: moved }) : `${who}.`, ...sentences, label].filter(Boolean).join(" ");
  facts.textContent = shownColumns.map((j) => `${contained(columns[j].name)}: ${shown(state.row[j])}`).join(" · ");
}

// ---- what else there is to know about the row -----------------------------------------------------------

async function showMore(turn, [now]) {
  const { model, row } = state;
  const listed = variants(columns, row, MOST_VARIANTS);
  const answers = await ask(model, listed.rows || []);
  if (turn !== state.turn) return;
  const found = sensitiveBlock(listed, answers, now);
  more.replaceChildren(...(found === null ? [] : [found]));
  if (model.scorer.one) showBands(model, row, now);
}

function tryButton(cells, name) {
  const button = make("button", { type: "button", className: "button try", "aria-label": name }, t("explore.try"));
  button.addEventListener("click", () => { state.draft = cells.slice(); writeForm(); update(); });
  return button;
}

function decisionCell(model, outcome, now) {
  const name = className(model, outcome.decision);
  return make("td", { className: outcome.decision === now.decision ? "" : "flip" }, name);
}

function table(heads, rows, label) {
  // On a narrow page each row is a card, and its cells say themselves what they are.
  for (const row of rows) [...row.cells].forEach((cell, k) => { cell.dataset.label = heads[k][0]; });
  const head = make("thead", {}, make("tr", {}, ...heads.map(([name, kind]) => make("th", { scope: "col", className: kind || "" }, name))));
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": label }, make("table", { className: "grid explore-table stack" }, head, make("tbody", {}, ...rows)));
}

function block(title, ...content) {
  return make("div", { className: "explore-block" }, make("h3", {}, title), ...content);
}

// Does the decision hold whatever the sensitive columns are? Proved where all of their values are listed.
function sensitiveBlock(listed, answers, now) {
  const { model } = state;
  if (!listed.places.length) return null;
  const names = listed.places.map((j) => columns[j].name);
  const title = t("explore.all_values", { columns: names });
  if (listed.rows === null) {
    return block(title, make("p", { className: "verdict-line is-unknown" }, badge("unknown"), listed.total === null ? t("explore.endless", { columns: names }) : t("explore.too_many", { n: listed.total, most: MOST_VARIANTS })));
  }
  const asked = listed.rows.map((cells, i) => ({ cells, outcome: answers[i] })).filter((one) => one.outcome !== null);
  const other = asked.filter((one) => one.outcome.decision !== now.decision);
  const all = asked.length === listed.rows.length;
  const values = { n: listed.rows.length, k: other.length, decision: className(model, now.decision) };
  const [kind, key] = other.length ? ["found", "explore.holds_not"] : all ? ["proved", "explore.holds"] : ["unknown", "explore.holds_unknown"];
  const base = chanceOf(model, now);
  const order = asked.filter((one) => one.cells.some((cell, j) => cell !== state.row[j]))
    .sort((a, b) => (b.outcome.decision !== now.decision) - (a.outcome.decision !== now.decision) || Math.abs(chanceOf(model, b.outcome) - base) - Math.abs(chanceOf(model, a.outcome) - base));
  const rows = order.slice(0, 12).map(({ cells, outcome }) => make("tr", {},
    ...listed.places.map((j) => make("td", {}, cells[j] === state.row[j] ? shown(cells[j]) : make("mark", {}, shown(cells[j])))),
    make("td", { className: "number" }, percent(chanceOf(model, outcome))), decisionCell(model, outcome, now),
    make("td", { className: "number" }, tryButton(cells, t("explore.try_name", { what: listed.places.map((j) => shown(cells[j])) })))));
  const heads = [...names.map((name) => [name]), [t("explore.chance_head"), "number"], [t("explore.decision")], [t("explore.try_head"), "number"]];
  const rest = order.length - rows.length;
  return block(title, make("p", { className: `verdict-line is-${kind}` }, badge(kind), t(key, values)),
    rows.length ? table(heads, rows, title) : "", rest > 0 ? make("p", { className: "muted small" }, t("explore.more_rows", { n: rest })) : "");
}

function badge(kind) {
  return make("span", { className: "mini-badge" }, t(BADGES[kind]));
}

// Where along each column the decision would be another one: a band under the slider, a sign beside the category.
function showBands(model, row, now) {
  for (const [j, parts] of fields) {
    const { column } = parts;
    const at = (value) => {
      const made = row.slice();
      made[j] = value;
      try { return decide(model.scorer.one(marked(columns, made))) !== now.decision; } catch { return false; }
    };
    if (column.kind === "category") {
      [...parts.input.options].forEach((option, k) => {
        option.textContent = shown(column.categories[k]) + (!parts.input.disabled && at(column.categories[k]) ? ` ${t("explore.other_mark")}` : "");
      });
    } else if (parts.band) {
      parts.band.style.background = band(column, at);
    }
  }
}

function band(column, otherAt) {
  const wide = column.high - column.low;
  const n = column.kind === "integer" ? Math.min(wide, BAND_POINTS) : BAND_POINTS;
  const stops = [];
  for (let k = 0; k <= n; k += 1) {
    const value = column.low + (wide * k) / n;
    const colour = otherAt(column.kind === "integer" ? Math.round(value) : value) ? "var(--lose)" : "var(--line)";
    stops.push(`${colour} ${(100 * Math.max(k - 0.5, 0)) / n}% ${(100 * Math.min(k + 0.5, n)) / n}%`);
  }
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

// ---- choosing somebody ----------------------------------------------------------------------------------

function writeForm() {
  for (const [j, parts] of fields) parts.write(state.draft[j]);
}

function pick(person) {
  state.origin = person;
  state.draft = person.cells.slice();
  picker.value = String(person.person);
  back.disabled = false;
  writeForm();
  return update();
}

function summary(person) {
  // Sensitive values first, then one number by its name, then words, which speak for themselves.
  const rest = shownColumns.filter((j) => !columns[j].sensitive);
  const first = rest.filter((j) => columns[j].kind !== "category").slice(0, 1);
  const words = rest.filter((j) => columns[j].kind === "category");
  const told = [...shownColumns.filter((j) => columns[j].sensitive), ...first, ...words].slice(0, 6);
  const part = (j) => (columns[j].kind === "category" ? shown(person.cells[j]) : `${contained(columns[j].name)} ${shown(person.cells[j])}`);
  return `${t("explore.row", { row: person.row })}: ${told.map(part).join(", ")}`;
}

function build() {
  const groups = [["explore.changed", true], ["explore.others", false]].map(([key, wanted]) => {
    const chosen = given.people.filter((person) => person.found.some(Boolean) === wanted);
    return chosen.length ? make("optgroup", { label: t(key) }, ...chosen.map((person) => make("option", { value: String(person.person) }, summary(person)))) : null;
  });
  picker.append(make("option", { value: "" }, t("explore.somebody_new")), ...groups.filter((group) => group !== null));
  const order = shownColumns.filter((j) => columns[j].sensitive).concat(shownColumns.filter((j) => !columns[j].sensitive));
  // Of a wide table the rest is a click away, so that what the model decides stays near.
  const first = order.length > MOST_FIELDS + 6 ? order.slice(0, MOST_FIELDS) : order;
  const rest = order.slice(first.length);
  form.append(...first.map(field));
  if (rest.length) form.append(make("details", {}, make("summary", {}, t("explore.more_columns", { n: rest.length })), make("div", { className: "explore-form" }, ...rest.map(field))));
  place.append(
    make("div", { className: "explore-top" }, make("label", { htmlFor: "explore-person" }, t("explore.person"), picker), back, fresh, modelSwitch()),
    make("div", { className: "explore-grid" }, form, make("div", { className: "explore-side" }, refused, outcomes, said, facts)), more);
  picker.addEventListener("change", () => (picker.value === "" ? anew() : pick(people.get(Number(picker.value)))));
  back.addEventListener("click", () => { if (state.origin) pick(state.origin); });
  fresh.addEventListener("click", () => { anew(); fields.get(order[0]).input.focus(); });
  document.addEventListener("likewise:try", (event) => {
    choose(models[event.detail.model] || state.model);
    pick(people.get(event.detail.person));
    document.querySelector(".explore").scrollIntoView();
    picker.focus({ preventScroll: true });
  });
}

// Somebody of whom nothing is known but what is typed: nothing is locked, and nothing was changed.
function anew() {
  state.origin = null;
  state.draft = state.draft.slice();
  picker.value = "";
  back.disabled = true;
  update();
}

const switchButtons = [];
function modelSwitch() {
  if (models.length < 2) return null;
  models.forEach((model) => {
    const button = make("button", { type: "button", "aria-pressed": String(model === state.model) }, model.name);
    button.addEventListener("click", () => { choose(model); update(); });
    switchButtons.push(button);
  });
  return make("div", { className: "switch", role: "group", "aria-label": t("explore.which_model") }, make("span", { className: "switch-name" }, t("explore.which_model")), ...switchButtons);
}

function choose(model) {
  state.model = model;
  switchButtons.forEach((button, i) => button.setAttribute("aria-pressed", String(models[i] === model)));
}

build();
// The person of the card on the first screen, if there is one.
pick(people.get(given.first) || given.people[0]);
window.likewise.explored = { pick: (person) => pick(people.get(person)) };
