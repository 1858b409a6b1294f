import { createHash } from "node:crypto";

/** The only other site whose page may connect, if `allowStately` is set. */
export const STATELY_ORIGIN = "https://stately.ai";

export interface Page {
  readonly html: string;
  /** The page's Content-Security-Policy: allows only itself and this server's frames. */
  readonly policy: string;
}

/** Stately's own inspector in an iframe, with a bridge that forwards the frames only to that page. */
export function statelyPage(host: string): Page {
  const body = `<p id="notice" role="status" hidden></p>
<iframe id="stately" title="Stately inspector" src="${STATELY_ORIGIN}/inspect"></iframe>`;
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

const statelyStyle = `
html, body { height: 100%; margin: 0; }
body { display: flex; flex-direction: column; }
iframe { border: 0; flex: 1; }
p { background: #fff3c4; color: #332b00; font: 15px/1.5 system-ui, sans-serif; margin: 0; padding: 12px 16px; }
`;

const statelyScript = `"use strict";
const target = document.getElementById("stately");
const notice = document.getElementById("notice");
const waiting = [];
const unreached = setTimeout(() => tell("Stately's page has not answered. It is loaded from https://stately.ai, which needs a network. The page of this server needs none: its address was printed beside this one."), 8000);
let isConnected = false;

function tell(text) {
  notice.textContent = text;
  notice.hidden = text === "";
}

function hand(frame) {
  target.contentWindow.postMessage(frame, "https://stately.ai");
}

addEventListener("message", (message) => {
  if (message.origin !== "https://stately.ai" || message.source !== target.contentWindow) return;
  if (!message.data || message.data.type !== "@statelyai.connected") return;
  isConnected = true;
  clearTimeout(unreached);
  tell("");
  waiting.splice(0).forEach(hand);
});
const socket = new WebSocket("ws://" + location.host + "/frames" + location.search);
socket.onclose = () => tell("The connection to the runtime has ended. What is shown is the last that came from it.");
socket.onmessage = (message) => {
  const frame = JSON.parse(message.data);
  if (isConnected) hand(frame);
  else if (waiting.push(frame) > 10000) waiting.shift();
};
`;
