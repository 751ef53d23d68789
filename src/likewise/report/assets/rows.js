// Rows of a table by the domain's rules: which can exist, what else the sensitive columns may be. No DOM.
"use strict";

const isNumber = (column) => column.kind !== "category";

// Why a cell cannot be as it is: the key of a sentence and its values; null where it can. As `TabularDomain.validate`.
function fault(column, cell, origin) {
  const said = (key, values) => ({ key, values: { column: column.name, ...values } });
  if (cell === null) return column.missing ? null : said("explore.fault_missing");
  if (!isNumber(column)) {
    if (!column.categories.includes(cell)) return said("explore.fault_unseen", { value: String(cell) });
  } else {
    if (typeof cell !== "number" || !Number.isFinite(cell)) return said("explore.fault_number", { value: String(cell) });
    if (column.kind === "integer" && !Number.isInteger(cell)) return said("explore.fault_whole", { value: cell });
    if (column.low !== null && cell < column.low) return said("explore.fault_low", { value: cell, low: column.low });
    if (column.high !== null && cell > column.high) return said("explore.fault_high", { value: cell, high: column.high });
  }
  if (column.locked && origin !== undefined && cell !== origin) return said("explore.fault_locked");
  return null;
}

// A mark says of another column whether its cell is missing; it follows from that cell.
function marked(columns, row) {
  return row.map((cell, j) => {
    const { marks } = columns[j];
    return marks === undefined ? cell : row[columns.findIndex((column) => column.name === marks)] === null;
  });
}

// Values that a sensitive column may have; null where they cannot be listed.
function valuesOf(column, cell, most) {
  if (column.locked || cell === null) return [cell];
  if (!isNumber(column)) return column.categories;
  if (column.kind !== "integer" || column.low === null || column.high === null || column.high - column.low >= most) return null;
  return Array.from({ length: column.high - column.low + 1 }, (_, i) => column.low + i);
}

// All rows that differ in the sensitive columns only, or how many there would be: {rows, total}; total is null where endless.
function variants(columns, row, most) {
  const places = columns.flatMap((column, j) => (column.sensitive ? [j] : []));
  const lists = places.map((j) => valuesOf(columns[j], row[j], most));
  if (lists.some((list) => list === null)) return { places, rows: null, total: null };
  const total = lists.reduce((product, list) => product * list.length, 1);
  if (total > most) return { places, rows: null, total };
  let rows = [row];
  places.forEach((j, k) => {
    rows = rows.flatMap((made) => lists[k].map((value) => made.map((cell, i) => (i === j ? value : cell))));
  });
  return { places, rows, total };
}

Object.assign(window.likewise, { fault, marked, variants });
