import { inputHooksOf } from "./input-hooks.ts";
import { McpAuthorization } from "./mcp-authorization.ts";
import type { ConnectionHooks } from "./mcp-connection.ts";
import type { McpOptions } from "./mcp-options.ts";
import { McpPool } from "./mcp-pool.ts";
import { loadSdk } from "./mcp-sdk.ts";
import type { McpSecrets } from "./mcp-secrets.ts";

/** The connections to a server, and how they are authorized. */
export interface ServerPool {
  readonly pool: McpPool;
  /** `undefined` without the option `auth`. */
  readonly authorization: McpAuthorization | undefined;
}

/** The pool for checked options. Rejects with `UnsupportedError` if the official package is not installed. */
export async function serverPoolOf(
  options: McpOptions,
  secrets: McpSecrets,
  { hooks = {}, isLegacy }: { readonly hooks?: ConnectionHooks; readonly isLegacy?: boolean | undefined } = {},
): Promise<ServerPool> {
  const sdk = await loadSdk();
  const { auth } = options;
  const authorization = auth === undefined ? undefined : new McpAuthorization(sdk, options, { auth, secrets });
  const authorizationOf: ConnectionHooks["authorizationOf"] =
    authorization && (({ actorId }) => authorization.of(actorId));
  const all = { ...inputHooksOf(options), ...hooks, authorizationOf };
  return { pool: new McpPool({ sdk, options, secrets, hooks: all, isLegacy }), authorization };
}
