import type { McpAuthorization } from "./mcp-authorization.ts";
import type { McpOptions } from "./mcp-options.ts";
import type { McpPool } from "./mcp-pool.ts";
import type { McpSecrets } from "./mcp-secrets.ts";

/** What all tools of one server share. */
export interface ToolSource {
  readonly options: McpOptions;
  readonly pool: McpPool;
  readonly secrets: McpSecrets;
  readonly authorization?: McpAuthorization | undefined;
}
