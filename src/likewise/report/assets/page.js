// Lists of people in pages that can be searched, and the numbers as a file. Everything else is in the page already.
"use strict";

const { make, t } = window.likewise;
const SIZE = 10;
document.documentElement.classList.remove("no-js");

function wire(place) {
  const rows = [...place.querySelectorAll("tbody tr")];
  const kinds = [...new Set(rows.map((row) => row.dataset.effect))];
  const search = make("input", { type: "search", autocomplete: "off", spellcheck: false });
  const kind = make("select", {}, make("option", { value: "" }, t("script.all")), ...kinds.map((one) => { const mine = rows.filter((row) => row.dataset.effect === one); return make("option", { value: one }, `${mine[0].cells[1].textContent} (${mine.length})`); }));
  const count = make("span", { className: "people-count muted", role: "status" });
  const before = make("button", { type: "button", className: "button" }, t("script.previous"));
  const after = make("button", { type: "button", className: "button" }, t("script.next"));
  let page = 0;

  function show() {
    const words = search.value.trim().toLowerCase();
    const found = rows.filter((row) => (!kind.value || row.dataset.effect === kind.value) && row.textContent.toLowerCase().includes(words));
    page = Math.max(Math.min(page, Math.ceil(found.length / SIZE) - 1), 0);
    const shown = new Set(found.slice(page * SIZE, (page + 1) * SIZE));
    for (const row of rows) row.hidden = !shown.has(row);
    count.textContent = t("script.shown", { from: found.length && page * SIZE + 1, to: page * SIZE + shown.size, total: found.length });
    before.disabled = page === 0;
    after.disabled = (page + 1) * SIZE >= found.length;
  }

  const update = (step) => () => { page = step ? page + step : 0; show(); };
  search.addEventListener("input", update(0));
  kind.addEventListener("change", update(0));
  before.addEventListener("click", update(-1));
  after.addEventListener("click", update(1));
  place.prepend(make("div", { className: "tools" }, make("label", {}, t("script.search"), search),
    kinds.length > 1 ? make("label", {}, t("script.which"), kind) : null, count, before, after));
  show();
}

// If the page has a panel to edit people in, a person of the table can be taken there.
function tryButtons(place, carried) {
  for (const row of place.querySelectorAll("tbody tr")) {
    const person = Number(row.dataset.person);
    if (!carried.has(person)) continue;
    const button = make("button", { type: "button", className: "button try", "aria-label": t("explore.pick_name", { row: row.cells[0].textContent }) }, t("explore.try"));
    button.addEventListener("click", () => document.dispatchEvent(new CustomEvent("likewise:try", { detail: { person, model: Number(place.dataset.model) } })));
    row.cells[0].append(" ", button);
  }
}

const explore = document.getElementById("explore-data");
const carried = new Set(explore ? JSON.parse(explore.textContent).people.map((one) => one.person) : []);
for (const place of document.querySelectorAll(".people-place")) {
  tryButtons(place, carried);
  wire(place);
}

document.getElementById("save-data").addEventListener("click", () => {
  const text = JSON.stringify(JSON.parse(document.getElementById("data").textContent), null, 1);
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  make("a", { href: address, download: "audit.json" }).click();
  URL.revokeObjectURL(address);
});
