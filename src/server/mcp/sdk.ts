import type * as ServerSide from "@modelcontextprotocol/server";
import type * as Stdio from "@modelcontextprotocol/server/stdio";
import { UnsupportedError } from "../../errors/index.ts";

/** The used exports of the official package. */
export interface McpServerSdk {
  readonly server: typeof ServerSide;
  readonly stdio: typeof Stdio;
}

let loaded: Promise<McpServerSdk> | undefined;

/** Loads the package once. Rejects with `UnsupportedError` if it is not installed. */
export async function loadServerSdk(): Promise<McpServerSdk> {
  loaded ??= importSdk();
  try {
    return await loaded;
  } catch (cause) {
    loaded = undefined;
    throw new UnsupportedError(
      'serving MCP needs the package "@modelcontextprotocol/server": npm install @modelcontextprotocol/server',
      { cause },
    );
  }
}

async function importSdk(): Promise<McpServerSdk> {
  const [server, stdio] = await Promise.all([
    import("@modelcontextprotocol/server"),
    import("@modelcontextprotocol/server/stdio"),
  ]);
  return { server, stdio };
}
