import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import { type ListedTool, NO_TIMEOUT_MS } from "./mcp-connection.ts";
import { McpServerError } from "./mcp-server-error.ts";

/** Pages and tools of one list. */
const MAX_PAGES = 100;
const MAX_TOOLS = 1_000;

const pageSchema = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const listedSchema = z.looseObject({ name: z.string().min(1).max(1_000) });

/** All tools that the server lists; entries without a usable name are left out. Rejects with `McpServerError` for an endless list. */
export async function toolListOf(client: Client, signal: AbortSignal): Promise<ListedTool[]> {
  const tools: ListedTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const options = { signal, timeout: NO_TIMEOUT_MS };
    const { tools: listed, nextCursor } = await client.request({ method: "tools/list", params }, pageSchema, options);
    for (const tool of listed) {
      const read = listedSchema.safeParse(tool);
      if (read.success) tools.push(read.data);
    }
    if (tools.length > MAX_TOOLS) break;
    if (nextCursor === undefined) return tools;
    cursor = nextCursor;
  }
  throw new McpServerError(
    `the list of tools does not end within ${MAX_PAGES} pages and ${MAX_TOOLS} tools; ask the server's author for a shorter one`,
  );
}
