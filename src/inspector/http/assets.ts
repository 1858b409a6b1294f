import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";

/** Beside the folder of this file: in `src/inspector` as in `dist`. */
const folder = new URL("../assets/", import.meta.url);

const contentTypes: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
};

/** Allows only the page's own script, style and feed; no text can become code. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/** `base`: path prefix of the feed's addresses. */
function shellAt(base: string): string {
  return `<!doctype html>
<html lang="en" data-base="${base}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>troupe</title>
<link rel="stylesheet" href="${base}/assets/app.css"><script type="module" src="${base}/assets/app.js"></script></head>
<body><div id="app"></div><noscript>This page needs its script.</noscript></body></html>
`;
}

const notBuilt = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>troupe</title></head>
<body><h1>The inspector's page is not built</h1>
<p>Build it with <code>npm run build:ui</code> and load this page again.</p>
<p>The feed itself works: see docs/inspector.md for its addresses.</p></body></html>
`;

/** Answers with the page. It holds no state, so it needs no token. */
export async function sendPage(response: ServerResponse, base: string): Promise<void> {
  const isBuilt = (await assetOf("app.js")) !== undefined;
  response.setHeader("content-type", "text/html; charset=utf-8");
  response.setHeader("content-security-policy", pagePolicy);
  response.end(isBuilt ? shellAt(base) : notBuilt);
}

/** Answers with a built file of the page. Returns false if there is no file of that name. */
export async function sendAsset(response: ServerResponse, name: string): Promise<boolean> {
  const content = await assetOf(name);
  if (content === undefined) return false;
  const [extension = ""] = name.split(".").toReversed();
  response.setHeader("content-type", contentTypes[extension] ?? "application/octet-stream");
  response.setHeader("content-security-policy", "default-src 'none'");
  response.end(content);
  return true;
}

/** Reads a built file of the page; `undefined` if the page is not built or has no file of that name. */
export async function assetOf(name: string): Promise<Buffer | undefined> {
  // Only a plain file name, so that the path cannot leave the folder.
  if (!/^[\w-]+(\.[\w-]+)+$/.test(name)) return undefined;
  try {
    return await readFile(new URL(name, folder));
  } catch {
    return undefined;
  }
}
