// Evaluates a model that travels in the page as plain data: trees, linear models and plain networks. No DOM.
"use strict";

const ARRAYS = { u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

// What `likewise.report.explore.packing.pack` wrote.
function unpack(packed) {
  const text = atob(packed.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[packed.type](bytes.buffer);
}

// A row that the model does not take; `key` names the sentence, `values` fill it in.
class Refusal extends Error {
  constructor(key, values) {
    super(`${key}: ${JSON.stringify(values)}`);
    this.key = key;
    this.values = values;
  }
}

// A number on its scale, as `likewise.domains.curve.Curve`: perhaps a logarithm, then perhaps straight pieces.
function onCurve(curve, value) {
  if (!curve) return value;
  const { at, to } = curve;
  let found = value - curve.middle;
  if (curve.unit !== null) found = Math.sign(found) * Math.log1p(Math.abs(found) / curve.unit);
  if (!at.length) return found;
  const last = at.length - 1;
  if (found < at[0]) return to[0] + (found - at[0]) * curve.below;
  if (found >= at[last]) return to[last] + (found - at[last]) * curve.above;
  const k = at.findIndex((point) => point > found) - 1;
  return ((to[k + 1] - to[k]) / (at[k + 1] - at[k])) * (found - at[k]) + to[k];
}

// NaN for a value that stays missing; a refusal where the model takes none.
function taken(answer, key, values) {
  if (answer === "refused") throw new Refusal(key, values);
  return answer === "nan" ? NaN : answer;
}

function featureReader(feature, columns) {
  const { name, categories } = columns[feature.column];
  const place = feature.column;
  if (!("unseen" in feature)) {
    const { mean, scale } = feature;
    return (row) => {
      const cell = row[place];
      if (cell === null) return taken(feature.missing, "missing", { name });
      const number = Number(cell);
      if (!Number.isFinite(number)) throw new Refusal("number", { name, value: cell });
      return (onCurve(feature.curve, number) - mean) / scale;
    };
  }
  // 1 and "1" are two categories, so no object with names.
  const known = new Map((categories || []).map((category, k) => [category, k]));
  return (row) => {
    const cell = row[place];
    if (cell === null) return taken(feature.missing, "missing", { name });
    if (!known.has(cell)) return taken(feature.unseen, "unseen", { name, value: cell });
    if ("one" in feature) return cell === feature.one ? 1 : 0;
    return taken(feature.answers[known.get(cell)], "unseen", { name, value: cell });
  };
}

// Nodes stand in the order of a walk: the left child of a node is the next one, the right one `right` further on.
function treeSums(model) {
  const [roots, feature, threshold, right, missing, leaves] = [model.roots, model.feature, model.threshold, model.right, model.missing, model.leaves].map(unpack);
  const width = model.leaves.shape[1];
  const sets = model.set ? { of: unpack(model.set), ends: unpack(model.ends), codes: unpack(model.codes) } : null;
  // How many leaves stand before each node.
  const before = new Uint32Array(feature.length);
  for (let i = 1; i < feature.length; i += 1) before[i] = before[i - 1] + (feature[i - 1] < 0 ? 1 : 0);
  const listed = (node, code) => {
    const set = sets.of[node];
    for (let i = sets.ends[set]; i < sets.ends[set + 1]; i += 1) if (sets.codes[i] === code) return true;
    return false;
  };
  const goesLeft = (node, x, seen) => {
    if (Number.isNaN(x)) return missing[node] === 1;
    if (sets && sets.of[node] >= 0) return listed(node, x) === model.listed_left;
    return model.strict ? seen < threshold[node] : seen <= threshold[node];
  };
  const add = model.single_sum ? (a, b) => Math.fround(a + b) : (a, b) => a + b;
  return (x) => {
    // A library that compares in single precision rounds what it gets first, and its sums as they grow.
    const seen = model.single ? x.map(Math.fround) : x;
    if (model.bounded && seen.some((value) => Math.abs(value) === Infinity)) throw new Refusal("large", {});
    const total = model.base.map((value) => (model.single_sum ? Math.fround(value) : value));
    for (const root of roots) {
      let node = root;
      while (feature[node] >= 0) node += goesLeft(node, x[feature[node]], seen[feature[node]]) ? 1 : right[node];
      for (let c = 0; c < width; c += 1) total[c] = add(total[c], leaves[before[node] * width + c]);
    }
    return total;
  };
}

const UNITS = {
  leaky: (u, slope) => (u > 0 ? u : slope * u),
  identity: (u) => u,
  tanh: (u) => Math.tanh(u),
  logistic: (u) => sigmoid(u),
  silu: (u) => u * sigmoid(u),
};

function layerScores(model) {
  const weights = model.weights.map(unpack);
  const biases = model.biases.map(unpack);
  const rounded = model.single ? Math.fround : (value) => value;
  return (x) => {
    let values = x.map((value) => rounded(value));
    weights.forEach((weight, layer) => {
      const [height, width] = model.weights[layer].shape;
      const next = new Array(height);
      const [unit, slope] = model.activations[layer] || ["identity", 0];
      for (let i = 0; i < height; i += 1) {
        let sum = biases[layer][i];
        for (let j = 0; j < width; j += 1) sum += weight[i * width + j] * values[j];
        next[i] = rounded(UNITS[unit](rounded(sum), slope));
      }
      values = next;
    });
    return values;
  };
}

function sigmoid(u) {
  return u >= 0 ? 1 / (1 + Math.exp(-u)) : Math.exp(u) / (1 + Math.exp(u));
}

function probabilities(outputs, kind) {
  if (kind === "probabilities") return outputs;
  if (outputs.length === 1) return [sigmoid(-outputs[0]), sigmoid(outputs[0])];
  const top = Math.max(...outputs);
  const raised = outputs.map((value) => Math.exp(value - top));
  const sum = raised.reduce((a, b) => a + b, 0);
  return raised.map((value) => value / sum);
}

// The model as a function of one row of raw cells, in the order of the columns.
function evaluator(model, columns) {
  const readers = model.features.map((feature) => featureReader(feature, columns));
  const answer = model.kind === "trees" ? treeSums(model) : layerScores(model);
  return (row) => {
    const x = readers.map((read) => read(row));
    if (!model.takes_missing && x.some(Number.isNaN)) {
      throw new Refusal("missing", { name: columns[model.features[x.findIndex(Number.isNaN)].column].name });
    }
    const outputs = answer(x);
    if (outputs.some((value) => !Number.isFinite(value))) throw new Refusal("large", {});
    return probabilities(outputs, model.output);
  };
}

// A scorer: `score(rows)` promises one list of class probabilities per row, or a `Refusal`.
function localScorer(model, columns) {
  const one = evaluator(model, columns);
  return { one, score: async (rows) => rows.map(one) };
}

// The class of the largest probability; the first of several that differ by rounding only.
function decide(probability) {
  const top = Math.max(...probability);
  return probability.findIndex((value) => value >= top - 1e-12);
}

Object.assign(window.likewise, { Refusal, decide, localScorer, onCurve, unpack });
