import { type McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { z } from "zod";

const pdf = Buffer.from("%PDF-1.7").toString("base64");
const gif = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";

/** Adds resources and prompts of every kind to a server, and a tool that shows the trace of its call. */
export function addShelf(server: McpServer): void {
  server.registerTool("trace", { inputSchema: z.object({}) }, (_args, { mcpReq, http }) => {
    const seen = { meta: mcpReq._meta, header: http?.req?.headers.get("traceparent") ?? null };
    return { content: [{ type: "text", text: JSON.stringify(seen) }] };
  });
  const describedAs = { description: "A note.", mimeType: "text/plain" };
  server.registerResource("note", "desk://note", describedAs, ({ href }) => ({
    contents: [{ uri: href, mimeType: "text/plain", text: `the token is ${process.env["DESK_TOKEN"] ?? "unset"}` }],
  }));
  server.registerResource("folder", "desk://folder", {}, ({ href }) => ({
    contents: [
      { uri: `${href}/a.txt`, text: "first" },
      { uri: `${href}/report.pdf`, mimeType: "application/pdf", blob: pdf },
      { uri: `${href}/dot.gif`, mimeType: "image/gif", blob: gif },
      { uri: `${href}/empty.bin`, blob: "" },
    ],
  }));
  const drawers = new ResourceTemplate("desk://drawer/{number}", { list: undefined });
  server.registerResource("drawer", drawers, {}, ({ href }, { number }) => ({
    contents: [{ uri: href, text: `drawer ${String(number)}` }],
  }));
  server.registerPrompt("tidy", { description: "Tidies." }, () => ({
    messages: [{ role: "user", content: { type: "text", text: "Tidy the desk." } }],
  }));
  const argsSchema = z.object({ about: z.string(), tone: z.string().optional() });
  server.registerPrompt("letter", { argsSchema }, ({ about, tone }) => ({
    description: "A letter.",
    messages: [
      {
        role: "user",
        content: { type: "text", text: `Write about ${about}${tone === undefined ? "" : `, ${tone}`}.` },
      },
      { role: "assistant", content: { type: "text", text: "Here is my paper:" } },
      { role: "user", content: { type: "image", data: gif, mimeType: "image/gif" } },
      {
        role: "user",
        content: { type: "resource", resource: { uri: "desk://paper.pdf", mimeType: "application/pdf", blob: pdf } },
      },
    ],
  }));
}
