import type * as ClientSide from "@modelcontextprotocol/client";
import type * as Stdio from "@modelcontextprotocol/client/stdio";
import { optionalPackage } from "../base/index.ts";

/** The used exports of the official package. */
export interface McpSdk {
  readonly client: typeof ClientSide;
  readonly stdio: typeof Stdio;
}

/** Loads the package once. Rejects with `UnsupportedError` if it is not installed. */
export const loadSdk = optionalPackage(
  importSdk,
  'MCP needs the package "@modelcontextprotocol/client": npm install @modelcontextprotocol/client',
);

async function importSdk(): Promise<McpSdk> {
  const [client, stdio] = await Promise.all([
    import("@modelcontextprotocol/client"),
    import("@modelcontextprotocol/client/stdio"),
  ]);
  return { client, stdio };
}
