import { createHash } from "node:crypto";
import { InvalidInputError } from "../../errors/index.ts";
import { readAudit } from "../feed/audits.ts";
import type { AuditFile } from "../run-model/audit-file.ts";
import { assetOf } from "./assets.ts";

/**
 * An audit as one HTML file. It verifies itself in any browser, also from a disk: it needs no server and sends no requests.
 * @throws InvalidInputError unless the value is an audit, and if the page is not built.
 */
export async function pageOfAudit(audit: AuditFile): Promise<string> {
  const file = readAudit(audit);
  const [scriptFile, styleFile] = await Promise.all([assetOf("audit.js"), assetOf("audit.css")]);
  if (!scriptFile || !styleFile) {
    throw new InvalidInputError("the page of audits is not built; run `npm run build:ui` first");
  }
  // In a script, `\/` and `\!` in texts and patterns mean the same.
  const script = scriptFile.toString("utf8").replaceAll(/<(?=\/script|!--)/gi, String.raw`\x3c`);
  const style = styleFile.toString("utf8").replaceAll(/<(?=\/style)/gi, String.raw`\3c `);
  // No text of the run can end the element with the data.
  const data = JSON.stringify(file).replaceAll("<", String.raw`\u003c`);
  const policy =
    `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; base-uri 'none'; form-action 'none'; ` +
    "require-trusted-types-for 'script'; trusted-types 'none'";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark"><title>Audit of a run</title><style>${style}</style></head>
<body><main id="app"></main><noscript>This page needs its script.</noscript>
<script id="troupe-audit" type="application/json">${data}</script>
<script type="module">${script}</script></body></html>
`;
}

function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
