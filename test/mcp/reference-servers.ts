import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { McpOptions } from "troupe/mcp";
import { onTestFinished, vi } from "vitest";
import { freePort } from "../support/redis-server.ts";

/** The program of a package's server. */
export function programOf(server: "server-everything" | "server-filesystem"): string {
  return fileURLToPath(import.meta.resolve(`@modelcontextprotocol/${server}/dist/index.js`));
}

export const everythingTransports = ["stdio", "streamableHttp", "sse"] as const;

/** The protocol's reference server, in a process of its own that ends with the test. */
export async function openEverything(
  transport: (typeof everythingTransports)[number],
): Promise<Pick<McpOptions, "command" | "args" | "url">> {
  // It adds tools after the connection was opened, and reports them.
  vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => void vi.restoreAllMocks());
  const args = [programOf("server-everything"), transport];
  if (transport === "stdio") return { command: process.execPath, args };
  const port = await freePort();
  const server = spawn(process.execPath, args, {
    env: { PATH: process.env["PATH"], PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(server, "exit");
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await ended;
  });
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  let words = "";
  server.stderr.on("data", (chunk: Buffer) => {
    words += chunk.toString();
    if (words.includes(`port ${port}`)) resolve();
  });
  await Promise.race([listening, ended.then(() => Promise.reject(new Error(`the server has ended: ${words}`)))]);
  return { url: `http://127.0.0.1:${port}/${transport === "sse" ? "sse" : "mcp"}` };
}
