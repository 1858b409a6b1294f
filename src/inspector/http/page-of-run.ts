import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { InvalidInputError } from "../../errors/index.ts";
import type { Feed } from "../feed/feed.ts";
import { packedLines } from "../feed/packed-page.ts";
import { assetOf } from "./assets.ts";

/**
 * A run as one HTML file: the page with its data. It opens without a server and sends no requests. Throws
 * `InvalidInputError` if the page is not built, `NotFoundError` for an unknown run.
 */
export async function pageOfRun(feed: Feed, runId: string): Promise<string> {
  const { script, style } = await builtPage();
  const data = await promisify(gzip)(packedLines(await feed.page(runId)).join("\n"));
  // The hashes allow only this script and this style, so no text of the run can become either.
  const policy =
    `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; img-src data:; ` +
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark"><title>troupe</title><style>${style}</style></head>
<body><div id="app"></div><noscript>This page needs its script.</noscript>
<script id="troupe-data" type="application/gzip">${data.toString("base64")}</script>
<script type="module">${script}</script></body></html>
`;
}

async function builtPage(): Promise<{ readonly script: string; readonly style: string }> {
  const [script, style] = await Promise.all([assetOf("app.js"), assetOf("app.css")]);
  if (!script || !style) throw new InvalidInputError("the inspector's page is not built; run `npm run build:ui` first");
  return {
    // In a script, `\/` and `\!` in texts and patterns mean the same.
    script: script.toString("utf8").replaceAll(/<(?=\/script|!--)/gi, String.raw`\x3c`),
    style: style.toString("utf8").replaceAll(/<(?=\/style)/gi, String.raw`\3c `),
  };
}

function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
