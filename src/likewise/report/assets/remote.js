// A scorer behind a server: the model stays where it is, and the page asks about rows. No DOM.
"use strict";

const { Refusal } = window.likewise;

// POSTs {"rows": [[cells], …], "model": name} and gets {"probabilities": [[…], …]}, or {"error": sentence}.
function remoteScorer(endpoint, model) {
  const headers = { "Content-Type": "application/json" };
  if (endpoint.token) headers["X-Likewise-Token"] = endpoint.token;
  const score = async (rows) => {
    let answer;
    try {
      answer = await fetch(endpoint.url, { method: "POST", headers, body: JSON.stringify({ rows, model }) });
    } catch {
      throw new Refusal("unreachable", {});
    }
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Refusal("server", { sentence: said.error || String(answer.status) });
    return said.probabilities;
  };
  return { score };
}

Object.assign(window.likewise, { remoteScorer });
