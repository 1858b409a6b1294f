// Adds the optional packages of other platforms to package-lock.json. npm leaves out packages that the current registry
// does not offer, and `npm ci` then rejects the lock everywhere. Run it after `npm install`; a test fails if it is missing.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { completeLock, type Lock } from "./lock-file.ts";
import { repositoryRoot } from "./run-command.ts";

const path = join(repositoryRoot, "package-lock.json");
const lock = JSON.parse(readFileSync(path, "utf8")) as Lock;
const { completed, added } = completeLock(lock);
if (added.length > 0) writeFileSync(path, `${JSON.stringify(completed, null, 2)}\n`);
process.stdout.write(`${added.length} packages added\n${added.map((name) => `  ${name}\n`).join("")}`);
