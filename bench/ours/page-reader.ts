/**
 * A reader like a page, in a separate process: watches a run over the WebSocket and grants one credit per batch received.
 * Arguments: the feed's address, its token and the run. Prints `there`, `begun` with the first rows, and JSON on SIGTERM.
 */
import { WebSocket } from "ws";
import type { FeedMessage } from "../../src/inspector/index.ts";

const [origin = "", token = "", run = ""] = process.argv.slice(2);
const CREDIT = 8;
const delays: number[] = [];
let entries = 0;
let doubles = 0;
let head = 0;
let bytes = 0;

function watch(): void {
  const socket = new WebSocket(`${origin.replace("http", "ws")}/feed`, ["troupe.feed.v1", `bearer.${token}`]);
  let raw: { bytesRead: number } | undefined;
  socket.once("upgrade", (response) => {
    raw = response.socket;
  });
  socket.on("error", () => undefined);
  socket.on("open", () => socket.send(JSON.stringify({ type: "watch", run, after: head, credit: CREDIT })));
  socket.on("message", (data: Buffer) => {
    const now = Date.now();
    const message = JSON.parse(data.toString("utf8")) as FeedMessage;
    if (message.type === "error") setTimeout(() => socket.terminate(), 100);
    if (message.type !== "rows") return;
    if (head === 0) process.stdout.write("begun\n");
    if (message.rows[0] && message.rows[0].cursor <= head) doubles += 1;
    head = message.head;
    for (const row of message.rows) {
      entries += row.entries.length;
      const last = row.entries.at(-1);
      if (last) delays.push(now - last.at);
    }
    bytes = raw?.bytesRead ?? 0;
    socket.send(JSON.stringify({ type: "credit", batches: 1 }));
  });
  socket.on("close", () => setTimeout(watch, 50));
}

process.stdout.write("there\n");
watch();
process.once("SIGTERM", () => {
  const sorted = delays.toSorted((one, other) => one - other);
  const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? 0;
  process.stdout.write(`${JSON.stringify({ entries, doubles, head, bytes, p50: at(0.5), p95: at(0.95) })}\n`);
  process.exit(0);
});
