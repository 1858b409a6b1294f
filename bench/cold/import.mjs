// Imports what its first argument names, or nothing, and says that it is done.
import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";

const [name] = process.argv.slice(2);
if (name) await import(isAbsolute(name) ? pathToFileURL(name).href : name);
process.stdout.write(`${JSON.stringify({ text: "", processor: process.cpuUsage() })}\n`);
process.exit(0);
