import { createHash } from "node:crypto";
import { STATELY_ORIGIN } from "./admission.ts";
import { pageStyle, statelyScript, statelyStyle, treeScript } from "./page-parts.ts";

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
