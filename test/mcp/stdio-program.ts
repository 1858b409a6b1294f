// A server on stdio without the official package, which starts fast: node stdio-program.ts ERA FOLDER [stubborn|helper]
// Each start creates the file FOLDER/started-PID with the pid of its helper. With a file FOLDER/broken it ends at its start.
// `stubborn` ignores the end of stdin and SIGTERM, and so does its helper; `helper` only has one, which keeps stdout open.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

interface Message {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly arguments?: { readonly text?: string; readonly code?: number } };
}

const [era, folder = "", kind] = process.argv.slice(2);
const helper: ChildProcess | undefined =
  kind === undefined
    ? undefined
    : spawn("/bin/sh", ["-c", "trap '' TERM; while :; do sleep 1; done"], { stdio: ["ignore", "inherit", "ignore"] });
writeFileSync(`${folder}/started-${process.pid}`, `${helper?.pid ?? ""}`);
if (existsSync(`${folder}/broken`)) {
  process.stderr.write("the disk is full\n");
  process.exit(3);
}
if (kind === "stubborn") {
  process.on("SIGTERM", () => undefined);
  setInterval(() => undefined, 60_000);
}

let remembered = "";
const complete = era === "modern" ? { resultType: "complete" } : {};
const serverInfo = { name: "program", version: "1" };
const names = ["remember", "recall", "die", "hang", "fail", "pid"];

function resultOf({ method, params }: Message): object | undefined {
  const { name, arguments: { text = "", code = 0 } = {} } = params ?? {};
  const words = (said: string): object => ({ result: { ...complete, content: [{ type: "text", text: said }] } });
  if (method === "server/discover" && era === "modern") {
    const caching = { ttlMs: 0, cacheScope: "private" };
    const _meta = { "io.modelcontextprotocol/serverInfo": serverInfo };
    return {
      result: { ...complete, ...caching, supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, _meta },
    };
  }
  if (method === "initialize" && era === "legacy")
    return { result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo } };
  if (method === "tools/list")
    return {
      result: {
        ...complete,
        ttlMs: 0,
        cacheScope: "private",
        tools: names.map((tool) => ({ name: tool, inputSchema: { type: "object" } })),
      },
    };
  if (method !== "tools/call") return { error: { code: -32_601, message: "Method not found" } };
  if (name === "remember") remembered = text;
  if (name === "die") process.exit(4);
  if (name === "hang") return undefined;
  if (name === "fail") return { error: { code, message: "refused" } };
  return words(name === "recall" ? remembered : name === "pid" ? `${process.pid}` : "remembered");
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as Message;
  if (message.id === undefined) continue;
  const result = resultOf(message);
  if (result) process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, ...result })}\n`);
}
