import type * as ServerSide from "@modelcontextprotocol/server";
import type * as Stdio from "@modelcontextprotocol/server/stdio";
import { optionalPackage } from "../../base/index.ts";

/** The used exports of the official package. */
export interface McpServerSdk {
  readonly server: typeof ServerSide;
  readonly stdio: typeof Stdio;
}

/** Loads the package once. Rejects with `UnsupportedError` if it is not installed. */
export const loadServerSdk = optionalPackage(
  importSdk,
  'serving MCP needs the package "@modelcontextprotocol/server": npm install @modelcontextprotocol/server',
);

async function importSdk(): Promise<McpServerSdk> {
  const [server, stdio] = await Promise.all([
    import("@modelcontextprotocol/server"),
    import("@modelcontextprotocol/server/stdio"),
  ]);
  return { server, stdio };
}
