#!/usr/bin/env node
// `npm create troupe NAME` is `troupe init NAME` of the version of troupe that this package depends on.
import { readFileSync } from "node:fs";

const manifest = new URL(import.meta.resolve("troupe/package.json"));
const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
process.argv.splice(2, 0, "init");
await import(new URL(bin.troupe, manifest).href);
