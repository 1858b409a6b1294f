/** An MCP server over stdio. */
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

serveStdio(() => {
  const server = new McpServer({ name: "till", version: "1.0.0" });
  const numbers = z.object({ a: z.number(), b: z.number() });
  const annotations = { readOnlyHint: true };
  server.registerTool("add", { description: "Adds.", inputSchema: numbers, annotations }, ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
  }));
  server.registerTool("process", { description: "Names its process.", inputSchema: z.object({}), annotations }, () => ({
    content: [{ type: "text", text: String(process.pid) }],
  }));
  return server;
});
