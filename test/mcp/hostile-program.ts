// A server on stdio that breaks the protocol. argv: the fault.
import { createInterface } from "node:readline";

interface Message {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly _meta?: { readonly progressToken?: number } };
}

const [, , fault = ""] = process.argv;
const write = (text: string): void => void process.stdout.write(text);
const send = (message: object): void => write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (words: string): object => ({ content: [{ type: "text", text: words }] });

if (fault === "banner") write("Welcome to the server!\n\n{ not json\n[]\n");
if (fault === "list changes") {
  const change = `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })}\n`;
  const flood = (): void => void process.stdout.write(change.repeat(20), () => setImmediate(flood));
  process.stdin.once("data", flood);
}

/** The answer to a call, for each fault. */
const faults: Readonly<Record<string, (id: number, token: number | undefined) => void>> = {
  banner: (id) => {
    write("a log line\n");
    send({ id, result: text("worked") });
    write('{"jsonrpc":"2.0","id":\n');
  },
  "wrong ids": (id) => {
    for (const wrong of [id + 1_000, "another", null, -1]) send({ id: wrong, result: text("of another call") });
    send({ id, result: text("worked") });
  },
  "two answers": (id) => {
    send({ id, result: text("worked") });
    send({ id, result: text("not this") });
    send({ id, error: { code: -32_603, message: "nor this" } });
  },
  progress: (id, progressToken) => {
    for (let progress = 0; progress < 20_000; progress += 1) {
      send({ method: "notifications/progress", params: { progressToken, progress, message: "x".repeat(100) } });
    }
    send({ id, result: text("worked") });
  },
  "long line": () => {
    const piece = "x".repeat(1_000_000);
    const flood = (): void => void process.stdout.write(piece, () => flood());
    flood();
  },
  "list changes": (id) => send({ id, result: text("worked") }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line) as Message;
  if (id === undefined) return;
  if (method === "initialize") {
    const serverInfo = { name: "hostile", version: "1" };
    const capabilities = { tools: { listChanged: true } };
    send({ id, result: { protocolVersion: "2025-06-18", capabilities, serverInfo } });
  } else if (method === "tools/list") {
    send({ id, result: { tools: [{ name: "work", inputSchema: { type: "object" } }] } });
  } else if (method === "tools/call") faults[fault]?.(id, params?._meta?.progressToken);
  else send({ id, error: { code: -32_601, message: "Method not found" } });
});
