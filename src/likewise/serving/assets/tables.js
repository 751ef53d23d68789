// The desk: choose a table, name its columns, watch the audit. Everything from a table is text, never markup.
"use strict";

const { t } = window.likewise;
const one = (id) => document.getElementById(id);
const data = JSON.parse(one("data").textContent);
let table = null;
let watching = 0;

document.documentElement.classList.remove("no-js");

// Asks the server; what it refuses becomes an error with its sentence.
async function ask(url, options = {}) {
  const headers = { "X-Likewise-Token": data.token, ...options.headers };
  let answer;
  try {
    answer = await fetch(url, { ...options, headers });
  } catch {
    throw new Error(t("serving.script.unreachable"));
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const words = answer.status === 429 ? t("serving.script.too_often") : said.error || t("serving.script.refused", { status: answer.status });
    throw Object.assign(new Error(words), { status: answer.status });
  }
  return said;
}

const send = (url, document) =>
  ask(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(document) });

function say(id, words, wrong = false) {
  const line = one(id);
  line.textContent = words;
  line.classList.toggle("is-wrong", wrong);
}

function option(value, words = value) {
  const made = document.createElement("option");
  made.value = value;
  made.textContent = words;
  return made;
}

const size = (bytes) => t("serving.script.size", { size: Math.ceil(bytes / 1048576) });

// ---- 1. the table

one("file").addEventListener("change", async () => {
  const file = one("file").files[0];
  one("question").hidden = true;
  one("notes").hidden = true;
  one("job").hidden = true;
  say("question-said", "");
  table = null;
  if (!file) return;
  if (file.size > data.most_bytes) {
    say("read-said", t("serving.script.too_large", { name: file.name, size: size(file.size), most: size(data.most_bytes) }), true);
    return;
  }
  say("read-said", t("serving.script.reading", { name: file.name }));
  try {
    const headers = { "Content-Type": "application/octet-stream", "X-File-Name": encodeURIComponent(file.name) };
    table = await ask("/api/tables", { method: "POST", headers, body: file });
  } catch (error) {
    say("read-said", error.message, true);
    return;
  }
  say("read-said", t("serving.script.read", { name: table.name, people: table.people, columns: table.columns.length }));
  one("notes").replaceChildren(...table.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
  one("notes").hidden = !table.notes.length;
  listColumns();
});

// ---- 2. the columns

function listColumns() {
  const names = table.columns.map((column) => column.name);
  one("target").replaceChildren(option("", t("serving.script.choose_column")), ...names.map((name) => option(name)));
  one("target").value = names.includes(data.known.target) ? data.known.target : "";
  // Those that are proposed come first: of many columns they must not be out of sight.
  const proposed = (column) => Number(!(data.known.sensitive || []).includes(column.name));
  one("sensitive").replaceChildren(...[...table.columns].sort((a, b) => proposed(a) - proposed(b)).map(choice));
  one("question").hidden = false;
  listValues();
}

function choice(column) {
  const label = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type: "checkbox", value: column.name });
  box.checked = (data.known.sensitive || []).includes(column.name);
  label.append(box, Object.assign(document.createElement("span"), { textContent: column.name }));
  return label;
}

function listValues() {
  const target = table.columns.find((column) => column.name === one("target").value);
  const values = (target && target.values) || [];
  one("favourable").replaceChildren(option("", t("serving.script.as_model_says")), ...values.map((value) => option(value)));
  if (values.includes(data.known.favourable)) one("favourable").value = data.known.favourable;
  one("favourable-field").hidden = !values.length;
  for (const box of one("sensitive").querySelectorAll("input")) {
    box.disabled = Boolean(target) && box.value === target.name;
    if (box.disabled) box.checked = false;
  }
}

one("target").addEventListener("change", listValues);

one("question").addEventListener("submit", async (event) => {
  event.preventDefault();
  const sensitive = [...one("sensitive").querySelectorAll("input:checked")].map((box) => box.value);
  say("question-said", "");
  if (!sensitive.length) return say("question-said", t("serving.script.no_sensitive"), true);
  one("start").disabled = true;
  try {
    const sample = Number(one("sample").value) || null;
    const limit = one("limit").value === "" ? null : Number(one("limit").value) / 100;
    show(await send("/api/jobs", { table: table.table, target: one("target").value || null, favourable: one("favourable").value || null, sensitive, sample, limit }));
    one("job").scrollIntoView({ block: "nearest" });
  } catch (error) {
    say("question-said", error.message, true);
    one("start").disabled = false;
  }
  return undefined;
});

// ---- 3. the audit

const time = (seconds) => (seconds < 90 ? t("serving.script.in_seconds", { time: Math.max(1, seconds) }) : t("serving.script.in_minutes", { time: seconds / 60 }));
const states = { cancelling: t("serving.script.cancelling"), cancelled: t("serving.script.cancelled"), done: t("serving.script.done") };

function show(job) {
  if (job.state === "none") return;
  const running = job.state === "running" || job.state === "cancelling";
  one("job").hidden = false;
  const words = job.state === "running" ? t("serving.script.running", { name: job.name, stage: job.stage }) : job.state === "failed" ? job.error : states[job.state];
  // Said again only when it changes, so that a screen reader is not flooded.
  if (one("job-stage").textContent !== words) say("job-stage", words, job.state === "failed");
  const bar = one("job-bar");
  bar.hidden = !running;
  if (job.share === null) bar.removeAttribute("value");
  else bar.value = job.share;
  const known = running && job.left !== null;
  const clock = { time: time(job.seconds), left: known ? time(job.left) : "" };
  one("job-time").textContent = known ? t("serving.script.left", clock) : running ? t("serving.script.so_far", clock) : t("serving.script.took", clock);
  one("cancel").hidden = !running;
  one("cancel").disabled = job.state === "cancelling";
  one("open").hidden = job.state !== "done";
  if (job.page) one("open").href = job.page;
  one("start").disabled = running;
  clearTimeout(watching);
  if (running) watching = setTimeout(watch, 500);
}

async function watch() {
  try {
    show(await ask("/api/jobs/current"));
  } catch (error) {
    if (error.status === 429) watching = setTimeout(watch, 2000);
    else say("job-stage", error.message, true);
  }
}

one("cancel").addEventListener("click", async () => {
  one("cancel").disabled = true;
  try {
    show(await send("/api/jobs/cancel", {}));
  } catch (error) {
    say("job-stage", error.message, true);
  }
});

watch();
