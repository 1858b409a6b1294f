import type { Client, RequestOptions } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { ListedTool } from "./listed-tool.ts";
import { NO_TIMEOUT_MS } from "./mcp-connection.ts";
import { McpServerError } from "./mcp-server-error.ts";

/** Pages and entries of one list. */
const MAX_PAGES = 100;
const MAX_ENTRIES = 1_000;

/** A list that servers give in pages. */
export interface ServerList<Entry> {
  readonly method: string;
  /** The field of a page that has the entries, in words too. */
  readonly field: string;
  readonly entry: z.ZodType<Entry>;
}

/** One page of a list; entries that are not valid are left out. */
export interface ListPage<Entry> {
  readonly entries: readonly Entry[];
  readonly nextCursor: string | undefined;
}

const tools: ServerList<ListedTool> = {
  method: "tools/list",
  field: "tools",
  entry: z.looseObject({ name: z.string().min(1).max(1_000) }),
};

/**
 * All tools that the server lists; entries without a usable name are left out. Empty if the server declares that it has none, only skills or
 * resources for instance. Rejects with `McpServerError` for an endless list.
 */
export async function toolListOf(client: Client, signal: AbortSignal): Promise<ListedTool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  return await wholeList(client, tools, { signal, timeout: NO_TIMEOUT_MS });
}

/** All entries of a list. Rejects with `McpServerError` for an endless one. */
export async function wholeList<Entry>(
  client: Client,
  list: ServerList<Entry>,
  options: RequestOptions,
): Promise<Entry[]> {
  const all: Entry[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const { entries, nextCursor } = await pageOf(client, { list, params }, options);
    if (all.length + entries.length > MAX_ENTRIES) break;
    all.push(...entries);
    if (nextCursor === undefined) return all;
    cursor = nextCursor;
  }
  throw new McpServerError(
    `the list of ${list.field} does not end within ${MAX_PAGES} pages and ${MAX_ENTRIES} ${list.field}; ask the server's author for a shorter one`,
  );
}

/** One page of a list, by the parameters of its request. */
export async function pageOf<Entry>(
  client: Client,
  { list, params }: { readonly list: ServerList<Entry>; readonly params: Readonly<Record<string, unknown>> },
  options: RequestOptions,
): Promise<ListPage<Entry>> {
  const schema = z.looseObject({ nextCursor: z.string().optional() });
  const page = await client.request({ method: list.method, params }, schema, options);
  const given = page[list.field];
  if (!Array.isArray(given)) throw new McpServerError(`the answer to ${list.method} has no list "${list.field}"`);
  const entries = given.flatMap((entry: unknown) => {
    const read = list.entry.safeParse(entry);
    return read.success ? [read.data] : [];
  });
  return { entries, nextCursor: page.nextCursor };
}
