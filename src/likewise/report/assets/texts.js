// Texts in the page's language. Scripts have none of their own: t("script.search") or t("script.shown", { from: 1, … }).
"use strict";

const spoken = JSON.parse(document.getElementById("texts").textContent);

// English signs into the language's own.
function signs(text) {
  const own = { ",": spoken.group, ".": spoken.decimal, "%": spoken.percent, "-": "−" };
  return text.replace(/[,.%-]/g, (sign) => own[sign]);
}

// As short_number in Python: as many digits as people read.
function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return spoken.unknown;
  const size = Math.abs(value);
  if (size === Infinity) return value > 0 ? "∞" : "−∞";
  let text;
  if (size >= 1000) text = size < 1e7 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3);
  else if (size >= 10) text = value.toFixed(2);
  else if (size >= 0.001 || size < 1e-9) text = value.toFixed(3);
  else text = String(Number(value.toPrecision(2)));
  return signs(text);
}

function joined(words, last) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} ${last} ${words[words.length - 1]}`;
}

const formats = {
  number,
  whole: (value) => signs(Math.round(value).toLocaleString("en-US")),
  recorded: (value) => signs(String(value)),
  general: (value) => signs(String(Number(value.toPrecision(6)))),
  percent: (value) => {
    if (value === null) return spoken.unknown;
    const small = value > 0 && value < 0.0005;
    return signs(`${small ? Number(Math.max(100 * value, 0.001).toPrecision(1)) : (100 * value).toFixed(1)}%`);
  },
  percent0: (value) => signs(`${Number((100 * value).toPrecision(6))}%`),
  list: (words) => joined(words.map(contained), spoken.last),
  either: (words) => joined(words.map(contained), spoken.either),
};

// As `printable` in text.py: what a reader cannot see as it is, is spelled out.
const harmless = " \u00a0\u202f\u2009\u200c\u200d\u2068\u2069";
const unit = (sign, at) => "\\u" + sign.charCodeAt(at).toString(16).padStart(4, "0");
function spelled(sign) {
  const short = JSON.stringify(sign).slice(1, -1);
  return short === sign ? Array.from({ length: sign.length }, (_, at) => unit(sign, at)).join("") : short;
}
const printable = (text) => text.replace(/[\p{C}\p{Z}]/gu, (sign) => (harmless.includes(sign) ? sign : spelled(sign)));

// As `contained` in messages.py: printable, a space at the end is shown, and words from the right are isolated.
function contained(text) {
  const found = printable(text);
  const plain = found.endsWith(" ") ? `“${found}”` : found;
  let depth = 0, balanced = true, open = false;
  for (const sign of plain) {
    depth += (sign === "\u2068") - (sign === "\u2069");
    balanced &&= depth >= 0;
    open ||= depth <= 0 && /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(sign);
  }
  if (depth || !balanced) return contained(plain.replace(/[\u2068\u2069]/g, ""));
  return open ? `\u2068${plain}\u2069` : plain;
}

// A value in one of the formats; without one, text as it is and numbers in short.
function written(value, form) {
  if (typeof value === "string") return contained(value);
  if (form) return formats[form](value);
  return typeof value === "number" ? formats.general(value) : String(value);
}

// A text with its places filled; `n` chooses the form where there are two.
function t(key, values) {
  const forms = spoken.texts[key];
  if (forms === undefined) throw new Error(`no text ${key}`);
  const text = typeof forms === "string" ? forms : forms[values.n === 1 ? "one" : "other"];
  return text.replace(/\{(\w+)(?::(\w+))?\}/g, (_, name, form) => written(values[name], form));
}

window.likewise = { t, number, written, contained };
