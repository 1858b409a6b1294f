/** Names an item in a token store. */
export interface McpTokenKey {
  /** Address of the MCP server, as `new URL(url).href`. */
  readonly server: string;
  /** The actor whose item it is; `null` for turns without an actor, and for the client's registration, which all actors share. */
  readonly actorId: string | null;
  /** `tokens`: access and refresh token. `client`: the registration at the authorization server. `flow`: a login that has begun. */
  readonly item: "tokens" | "client" | "flow";
}

/**
 * Where OAuth tokens, client registrations and code verifiers are kept. Values are texts that contain secrets: encrypt them, or keep them
 * where only this program can read them. All processes that run the same agents need the same store.
 */
export interface McpTokenStore {
  /** The value that was set last; `undefined` if there is none. */
  get(key: McpTokenKey): string | undefined | Promise<string | undefined>;
  /** Stores a value; the next `get` of any process returns it. */
  set(key: McpTokenKey, value: string): void | Promise<void>;
  /** Removes a value; no error if there is none. */
  delete(key: McpTokenKey): void | Promise<void>;
  /**
   * Runs `work` while no other process runs work for the same key, and resolves after it. Without it, two processes may refresh the same
   * token at once; with an authorization server that rotates refresh tokens the actor may then have to log in again. Default: within one
   * process only.
   */
  lock?(key: McpTokenKey, work: () => Promise<void>): Promise<void>;
}

/** The key as one text, for stores that have text keys. Different keys have different texts. */
export function mcpTokenKeyText({ server, actorId, item }: McpTokenKey): string {
  return JSON.stringify([server, actorId, item]);
}

/** A token store in memory, for development and tests: a restart loses all logins. */
export function memoryMcpTokens(): McpTokenStore {
  const values = new Map<string, string>();
  return Object.freeze({
    get: (key: McpTokenKey) => values.get(mcpTokenKeyText(key)),
    set: (key: McpTokenKey, value: string) => void values.set(mcpTokenKeyText(key), value),
    delete: (key: McpTokenKey) => void values.delete(mcpTokenKeyText(key)),
  });
}
