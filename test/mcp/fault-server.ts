import { appendFileSync } from "node:fs";
import { ProtocolError, Server } from "@modelcontextprotocol/server";

const names = ["fail", "refuse", "hang", "crash", "remember", "recall", "token", "work"];

function words(text: string) {
  return { content: [{ type: "text" as const, text }] };
}

/**
 * A server whose tools show each way in which a call ends: an error with the code of the argument `code`, a result with `isError`, no
 * answer. It remembers a text per session, or per process on stdio. `witness` is a file with a line for each effect.
 */
export function faultServer(witness?: string): Server {
  const server = new Server({ name: "faults", version: "1.0.0" }, { capabilities: { tools: {} } });
  const note = (line: string): void => {
    if (witness !== undefined) appendFileSync(witness, `${line}\n`);
  };
  let remembered = "";
  server.setRequestHandler("tools/list", () => ({
    tools: names.map((name) => ({ name, inputSchema: { type: "object" as const } })),
  }));
  server.setRequestHandler("tools/call", async ({ params }, { http, mcpReq }) => {
    const { code = 0, text = "" } = (params.arguments ?? {}) as { readonly code?: number; readonly text?: string };
    note(params.name);
    switch (params.name) {
      case "fail":
        throw new ProtocolError(code, "refused");
      case "refuse":
        return { ...words("there is no paper"), isError: true };
      case "crash":
        process.exit(1);
      case "hang": {
        const { promise, resolve } = Promise.withResolvers<void>();
        mcpReq.signal.addEventListener("abort", () => resolve());
        await promise;
        note("cancelled");
        return words("too late");
      }
      case "remember":
        remembered = text;
        return words("remembered");
      case "recall":
        return words(remembered);
      case "token":
        return words(`the token is ${http?.req?.headers.get("x-caller") ?? "none"}`);
      default:
        return words("worked");
    }
  });
  return server;
}
