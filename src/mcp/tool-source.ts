import type { Forget } from "../tools/index.ts";
import type { McpAuthorization } from "./mcp-authorization.ts";
import type { McpOptions } from "./mcp-options.ts";
import type { McpPool } from "./mcp-pool.ts";
import type { McpSecrets } from "./mcp-secrets.ts";
import type { TaskSdk } from "./task-sdk.ts";

/** What all tools of one server share. */
export interface ToolSource {
  readonly options: McpOptions;
  readonly pool: McpPool;
  readonly secrets: McpSecrets;
  /** The package for tasks; `undefined` if it is not installed, or if no tool needs it. */
  readonly tasks?: TaskSdk | undefined;
  readonly authorization?: McpAuthorization | undefined;
  /** Forgets logins; `undefined` if there are none. */
  readonly forget?: Forget | undefined;
}
