import { appendFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { addShelf } from "./desk-shelf.ts";

export const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });

/** A server whose tools have every kind of result and annotation. `witness` is a file with a line for each effect. */
export function deskServer(witness?: string): McpServer {
  const server = new McpServer({ name: "desk", version: "1.0.0" });
  server.registerTool(
    "echo",
    {
      description: "Repeats a text.",
      inputSchema: z.object({ text: z.string() }),
      annotations: { readOnlyHint: true },
    },
    ({ text: words }) => text(`echo: ${words}`),
  );
  server.registerTool(
    "pay",
    { description: "Pays.", inputSchema: z.object({ amount: z.number(), key: z.string() }) },
    ({ amount, key }) => {
      if (witness !== undefined) appendFileSync(witness, `${amount} ${key}\n`);
      return text(`paid ${amount} with ${key}`);
    },
  );
  server.registerTool("files.read.all", { inputSchema: z.object({}) }, () => text("all files"));
  server.registerTool("remove", { inputSchema: z.object({}), annotations: { destructiveHint: true } }, () =>
    text("removed"),
  );
  server.registerTool("put", { inputSchema: z.object({}), annotations: { idempotentHint: true } }, () => text("put"));
  server.registerTool("refuse", { inputSchema: z.object({}) }, () => ({
    ...text("there is no paper"),
    isError: true,
  }));
  server.registerTool("scan", { inputSchema: z.object({}) }, () => ({
    content: [
      { type: "text", text: "scanned" },
      { type: "image", data: pixel, mimeType: "image/png" },
      {
        type: "resource",
        resource: {
          uri: "file:///desk/report.pdf",
          mimeType: "application/pdf",
          blob: Buffer.from("%PDF-1.7").toString("base64"),
        },
      },
    ],
    structuredContent: { pages: 1 },
  }));
  server.registerTool("count", { inputSchema: z.object({}) }, () => ({ content: [], structuredContent: { files: 3 } }));
  server.registerTool("secrets", { inputSchema: z.object({}) }, () =>
    text(`the token is ${process.env["DESK_TOKEN"] ?? "unset"}`),
  );
  server.registerTool("crash", { inputSchema: z.object({}) }, () => {
    if (witness !== undefined) appendFileSync(witness, "crash\n");
    process.exit(1);
  });
  server.registerTool("hang", { inputSchema: z.object({}) }, async (_args, { mcpReq }) => {
    if (witness !== undefined) appendFileSync(witness, "hang\n");
    const { promise, resolve } = Promise.withResolvers<void>();
    mcpReq.signal.addEventListener("abort", () => {
      if (witness !== undefined) appendFileSync(witness, "cancelled\n");
      resolve();
    });
    await promise;
    return text("too late");
  });
  addShelf(server);
  return server;
}
