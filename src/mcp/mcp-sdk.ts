import type * as ClientSide from "@modelcontextprotocol/client";
import type * as Stdio from "@modelcontextprotocol/client/stdio";
import { UnsupportedError } from "../errors/index.ts";

/** The used exports of the official package. */
export interface McpSdk {
  readonly client: typeof ClientSide;
  readonly stdio: typeof Stdio;
}

let loaded: Promise<McpSdk> | undefined;

/** Loads the package once. Rejects with `UnsupportedError` if it is not installed. */
export async function loadSdk(): Promise<McpSdk> {
  loaded ??= importSdk();
  try {
    return await loaded;
  } catch (cause) {
    loaded = undefined;
    throw new UnsupportedError(
      'MCP needs the package "@modelcontextprotocol/client": npm install @modelcontextprotocol/client',
      { cause },
    );
  }
}

async function importSdk(): Promise<McpSdk> {
  const [client, stdio] = await Promise.all([
    import("@modelcontextprotocol/client"),
    import("@modelcontextprotocol/client/stdio"),
  ]);
  return { client, stdio };
}
