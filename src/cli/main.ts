#!/usr/bin/env node
import * as nodeModule from "node:module";

// Enabled before any import, so that all modules are compiled once for all runs of the command. If the cache folder is
// not writable, Node continues without it. Deno has no such function.
const { enableCompileCache }: Partial<typeof nodeModule> = nodeModule;
enableCompileCache?.();
const { startProcess } = await import("./start-process.ts");
await startProcess(import.meta.filename, process.argv.slice(2));
