// The desk: choose a table, name its columns, watch the audit. Everything from a table is text, never markup.
"use strict";

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
    throw new Error("The server cannot be reached. It may have been ended.");
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const busy = answer.status === 429 ? "Too many requests. Wait a moment." : `The server refused this (${answer.status}).`;
    throw Object.assign(new Error(said.error || busy), { status: answer.status });
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

const size = (bytes) => `${(bytes / 1048576).toFixed(bytes < 10485760 ? 1 : 0)} MB`;

// ---- 1. the table

one("file").addEventListener("change", async () => {
  const file = one("file").files[0];
  one("question").hidden = true;
  one("notes").hidden = true;
  say("question-said", "");
  table = null;
  if (!file) return;
  if (file.size > data.most_bytes) {
    say("read-said", `${file.name} has ${size(file.size)}, and this server takes ${size(data.most_bytes)} at most.`, true);
    return;
  }
  say("read-said", `Reading ${file.name} …`);
  try {
    const headers = { "Content-Type": "application/octet-stream", "X-File-Name": encodeURIComponent(file.name) };
    table = await ask("/api/tables", { method: "POST", headers, body: file });
  } catch (error) {
    say("read-said", error.message, true);
    return;
  }
  say("read-said", `${table.name}: ${table.people.toLocaleString("en")} people, ${table.columns.length} columns.`);
  one("notes").replaceChildren(...table.notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })));
  one("notes").hidden = !table.notes.length;
  listColumns();
});

// ---- 2. the columns

function listColumns() {
  const names = table.columns.map((column) => column.name);
  one("target").replaceChildren(option("", "choose a column …"), ...names.map((name) => option(name)));
  one("target").value = names.includes(data.known.target) ? data.known.target : "";
  one("sensitive").replaceChildren(...table.columns.map(choice));
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
  one("positive").replaceChildren(option("", "as the model says"), ...values.map((value) => option(value)));
  if (values.includes(data.known.positive)) one("positive").value = data.known.positive;
  one("positive-field").hidden = !values.length;
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
  if (!one("target").value) return say("question-said", "Choose the column that the model predicts.", true);
  if (!sensitive.length) return say("question-said", "Choose at least one column that should not decide.", true);
  one("start").disabled = true;
  try {
    const seconds = Number(one("seconds").value) || null;
    show(await send("/api/jobs", { table: table.table, target: one("target").value, positive: one("positive").value || null, sensitive, seconds }));
    one("job").scrollIntoView({ block: "nearest" });
  } catch (error) {
    say("question-said", error.message, true);
    one("start").disabled = false;
  }
  return undefined;
});

// ---- 3. the audit

const time = (seconds) => (seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`);
const states = { cancelling: "Cancelling …", cancelled: "Cancelled. Nothing was kept.", done: "The audit is done." };

function show(job) {
  if (job.state === "none") return;
  const running = job.state === "running" || job.state === "cancelling";
  one("job").hidden = false;
  const words = job.state === "running" ? `${job.name}: ${job.stage} …` : job.state === "failed" ? job.error : states[job.state];
  // Said again only when it changes, so that a screen reader is not flooded.
  if (one("job-stage").textContent !== words) say("job-stage", words, job.state === "failed");
  const bar = one("job-bar");
  bar.hidden = !running;
  if (job.share === null) bar.removeAttribute("value");
  else bar.value = job.share;
  const left = running && job.left !== null ? `, about ${time(job.left)} left in this step` : "";
  one("job-time").textContent = `${time(job.seconds)} so far${left}`;
  if (!running) one("job-time").textContent = `It took ${time(job.seconds)}.`;
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
