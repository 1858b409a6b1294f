import { createHash } from "node:crypto";

/** The only other site whose page may connect, when that is asked for. */
export const STATELY_ORIGIN = "https://stately.ai";

export interface Page {
  readonly html: string;
  /** Its Content-Security-Policy: nothing but itself, and the frames of this server. */
  readonly policy: string;
}

/** The tree of actors with their states, drawn from the frames. Nothing is loaded from anywhere else. */
export function treePage(host: string): Page {
  const body = `<header><h1>troupe</h1><p id="status">connecting …</p></header>
<main><section><h2>Actors</h2><ul id="tree"></ul></section><section><h2>Last events</h2><ol id="log"></ol></section></main>`;
  return page(host, { body, style: pageStyle, script: treeScript, frames: "" });
}

/** Stately's own inspector in a frame, with a bridge that hands the frames on to it and to nobody else. */
export function statelyPage(host: string): Page {
  const body = `<iframe id="stately" title="Stately inspector" src="${STATELY_ORIGIN}/inspect"></iframe>`;
  return page(host, { body, style: statelyStyle, script: statelyScript, frames: `; frame-src ${STATELY_ORIGIN}` });
}

interface PageParts {
  readonly body: string;
  readonly style: string;
  readonly script: string;
  readonly frames: string;
}

function page(host: string, { body, style, script, frames }: PageParts): Page {
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>troupe inspector</title><style>${style}</style></head>
<body>${body}<script>${script}</script></body></html>
`;
  const policy =
    `default-src 'none'; script-src '${hashOf(script)}'; style-src '${hashOf(style)}'; connect-src ws://${host}; ` +
    `base-uri 'none'; form-action 'none'; frame-ancestors 'none'${frames}`;
  return { html, policy };
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/*
 * What the browser gets, as texts: plain scripts without a build. Whatever comes over the wire is put into the page as
 * text, never as markup.
 */

const pageStyle = `
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; }
header { display: flex; gap: 1rem; align-items: baseline; }
h1 { font-size: 1.2rem; margin: 0; } h2 { font-size: 1rem; }
#status { margin: 0; opacity: .7; }
main { display: grid; grid-template-columns: 3fr 2fr; gap: 2rem; }
ul { list-style: none; padding-left: 1.2rem; margin: 0; border-left: 1px solid #8886; }
#tree { padding: 0; border: 0; }
#log { padding: 0; list-style: none; font-size: .85em; max-height: 85vh; overflow: auto; }
code { font-family: ui-monospace, monospace; }
.state { border-radius: .3em; padding: 0 .4em; background: #4a7d; color: #fff; white-space: nowrap; }
.ended > div > .state { background: #8888; }
.budget { font-size: .85em; margin-left: 1.2rem; }
.budget.full { color: #c33; }
.facts { opacity: .7; font-size: .85em; margin-left: .6em; }
@media (max-width: 50rem) { main { grid-template-columns: 1fr; } }
`;

const treeScript = `"use strict";
const actors = new Map();
const budgets = new Map();
const events = [];
let isDrawn = false;

function stateText(value) {
  if (typeof value === "string") return value;
  if (value === null || typeof value !== "object") return "";
  return Object.entries(value).map(([key, inner]) => key + (stateText(inner) === "" ? "" : "." + stateText(inner))).join(", ");
}

function take(frame) {
  if (frame.type === "troupe.budgets") budgets.set(frame.sessionId, frame.rows);
  if (frame.type === "@xstate.actor") {
    actors.set(frame.sessionId, { id: frame.sessionId, name: frame.name, parentId: frame.parentId, snapshot: frame.snapshot });
  }
  const actor = actors.get(frame.sessionId);
  if (frame.type === "@xstate.snapshot" && actor) {
    actor.snapshot = frame.snapshot;
    if (frame.snapshot.status !== "active" && actor.id.includes("/")) actors.delete(actor.id);
  }
  if (frame.type === "@xstate.event" && !frame.event.type.startsWith("xstate.")) {
    const time = new Date(Number(frame.createdAt)).toISOString().slice(11, 23);
    events.unshift(time + "  " + frame.sessionId + "  " + frame.event.type);
    events.length = Math.min(events.length, 200);
  }
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

const factNames = ["name", "step", "attempt", "toolCalls", "turnCount", "outcome", "openCallIds", "openChildIds"];

function factsOf(context) {
  return factNames
    .filter((name) => context && context[name] !== undefined && context[name] !== null && context[name] !== 0)
    .map((name) => (Array.isArray(context[name]) ? [name, context[name].length] : [name, context[name]]))
    .filter(([, value]) => value !== 0)
    .map(([name, value]) => name + " " + value)
    .join(" · ");
}

const limitNames = {
  maxSteps: "steps", maxTreeSteps: "tree steps", maxToolCalls: "tool calls", maxTreeToolCalls: "tree tool calls",
  maxTokens: "tokens", maxCostMicros: "cost", maxActiveMs: "working time", deadlineAt: "deadline",
};

function amountText(limit, amount) {
  if (limit === "maxCostMicros") return "$" + (amount / 1e6).toFixed(6).replace(/0{1,4}$/, "");
  if (limit === "maxActiveMs") return (amount / 1000).toFixed(1) + " s";
  return amount.toLocaleString("en-US");
}

function budgetText(row) {
  const name = limitNames[row.limit] || row.limit;
  if (row.limit === "deadlineAt") return row.account + ": deadline " + new Date(row.max).toISOString();
  const of = row.max === null ? "unlimited" : amountText(row.limit, row.max);
  const parts = [row.account + ": " + name + " " + amountText(row.limit, row.used) + " of " + of];
  if (row.reserved > 0) parts.push(amountText(row.limit, row.reserved) + " reserved");
  if (row.unconfirmed > 0) parts.push(amountText(row.limit, row.unconfirmed) + " unconfirmed");
  return parts.join(", ");
}

function budgetLines(rows) {
  return rows.map((row) => {
    const full = row.max !== null && row.limit !== "deadlineAt" && row.used + row.reserved >= row.max;
    return element("div", full ? "budget full" : "budget", budgetText(row));
  });
}

function branch(actor, children) {
  const ended = actor.snapshot.status !== "active";
  const item = element("li", ended ? "ended" : "", "");
  const line = element("div", "", "");
  line.append(element("code", "", actor.name), " ");
  line.append(element("span", "state", stateText(actor.snapshot.value) || actor.snapshot.status));
  line.append(element("span", "facts", factsOf(actor.snapshot.context)));
  item.append(line, ...budgetLines(budgets.get(actor.id) || []));
  const below = children.get(actor.id) || [];
  if (below.length > 0) {
    const list = element("ul", "", "");
    list.append(...below.map((child) => branch(child, children)));
    item.append(list);
  }
  return item;
}

function draw() {
  isDrawn = true;
  const children = new Map();
  const roots = [];
  for (const actor of actors.values()) {
    if (actor.parentId === undefined || !actors.has(actor.parentId)) roots.push(actor);
    else children.set(actor.parentId, [...(children.get(actor.parentId) || []), actor]);
  }
  document.getElementById("tree").replaceChildren(...roots.map((root) => branch(root, children)));
  document.getElementById("log").replaceChildren(...events.slice(0, 100).map((text) => element("li", "", text)));
}

function say(text) {
  document.getElementById("status").textContent = text;
}

const socket = new WebSocket("ws://" + location.host + "/frames" + location.search + "&budgets=1");
socket.onopen = () => say("live");
socket.onclose = () => say("the connection has ended; this is the last that was seen");
socket.onmessage = (message) => {
  take(JSON.parse(message.data));
  isDrawn = false;
};
setInterval(() => {
  if (!isDrawn) draw();
}, 100);
`;

const statelyStyle = `
html, body, iframe { border: 0; height: 100%; margin: 0; padding: 0; width: 100%; }
`;

const statelyScript = `"use strict";
const target = document.getElementById("stately");
const waiting = [];
let isConnected = false;

function hand(frame) {
  target.contentWindow.postMessage(frame, "https://stately.ai");
}

addEventListener("message", (message) => {
  if (message.origin !== "https://stately.ai" || message.source !== target.contentWindow) return;
  if (!message.data || message.data.type !== "@statelyai.connected") return;
  isConnected = true;
  waiting.splice(0).forEach(hand);
});
const socket = new WebSocket("ws://" + location.host + "/frames" + location.search);
socket.onmessage = (message) => {
  const frame = JSON.parse(message.data);
  if (isConnected) hand(frame);
  else if (waiting.push(frame) > 10000) waiting.shift();
};
`;
