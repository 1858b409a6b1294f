import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { McpTokenKey, McpTokenStore } from "../../mcp/index.ts";
import type { CliContext } from "../cli-context.ts";
import { KEY_BYTES, keyInFile } from "../key-file.ts";

type TokenContext = Pick<CliContext, "directory" | "environment">;

/** The folder with the logins of `mcp login`. */
export function tokenFolder({ directory, environment }: TokenContext): string {
  const named = environment["TROUPE_MCP_TOKENS"]?.trim();
  return resolve(directory, named ? named : join(homedir(), ".troupe", "mcp-tokens"));
}

/**
 * The logins of `mcp login`, for all commands. As a header of the file would be, a login is for all actors of the agents. The folder and
 * its key are created at the first use.
 */
export function loginTokens(context: TokenContext): McpTokenStore {
  let opening: Promise<McpTokenStore> | undefined;
  const opened = async (): Promise<McpTokenStore> => await (opening ??= openTokens(context));
  let last: Promise<unknown> = Promise.resolve();
  return {
    get: async (key) => await (await opened()).get(sharedKey(key)),
    set: async (key, value) => await (await opened()).set(sharedKey(key), value),
    delete: async (key) => await (await opened()).delete(sharedKey(key)),
    // Different actors have one token, so their refreshes must not overlap either.
    lock: async (_key, work) => {
      const working = last.then(work);
      last = working.catch(() => undefined);
      await working;
    },
  };
}

function sharedKey(key: McpTokenKey): McpTokenKey {
  return { ...key, actorId: null };
}

async function openTokens(context: TokenContext): Promise<McpTokenStore> {
  const { fileMcpTokens } = await import("../../mcp/index.ts");
  const folder = tokenFolder(context);
  const given = context.environment["TROUPE_MCP_TOKEN_KEY"]?.trim();
  return fileMcpTokens({ folder, key: given ? given : await keyIn(folder) });
}

async function keyIn(folder: string): Promise<string> {
  const path = join(folder, "key");
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await keyInFile(path, randomBytes(KEY_BYTES).toString("base64"));
  } catch (cause) {
    if (cause instanceof InvalidInputError) throw cause;
    throw new InvalidInputError(
      `${describeFileError(`the key of logins, ${path},`, cause)}; name another folder with TROUPE_MCP_TOKENS`,
      { cause },
    );
  }
}
