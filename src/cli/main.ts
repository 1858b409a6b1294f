#!/usr/bin/env node
import { enableCompileCache } from "node:module";

// Before anything is imported, so that all of it is compiled once for all runs of the command. Where the folder of the cache cannot
// be written, Node goes on without it.
enableCompileCache();
const { startProcess } = await import("./start-process.ts");
await startProcess(import.meta.filename, process.argv.slice(2));
