import { randomBytes } from "node:crypto";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { RedisSharing } from "../../server/index.ts";
import type { StoreLocation } from "../job/store-location.ts";
import { KEY_BYTES, keyInFile } from "../key-file.ts";

/**
 * The key that signs the states of open requests over MCP: next to the store's file, or in its Redis, so that another
 * process with the same store accepts an answer. Created at the first use. Rejects with `InvalidInputError` if the file
 * cannot be written or read.
 */
export async function mcpStateKey(
  { file }: Pick<StoreLocation, "file">,
  sharing: Pick<RedisSharing, "client" | "prefix"> | undefined,
): Promise<string> {
  const fresh = randomBytes(KEY_BYTES).toString("base64");
  if (sharing !== undefined) return await keyInRedis(sharing, fresh);
  return file === undefined ? fresh : await keyNextTo(file, fresh);
}

async function keyNextTo(file: string, fresh: string): Promise<string> {
  const path = `${file}.mcp-key`;
  try {
    return await keyInFile(path, fresh);
  } catch (error) {
    if (error instanceof InvalidInputError) throw error;
    throw unusable(path, error);
  }
}

async function keyInRedis({ client, prefix }: Pick<RedisSharing, "client" | "prefix">, fresh: string): Promise<string> {
  const name = `${prefix}mcp:state-key`;
  await client.set(name, fresh, "NX");
  return (await client.get(name)) ?? fresh;
}

function unusable(path: string, error: unknown): InvalidInputError {
  return new InvalidInputError(
    `${describeFileError(`the key for answers over MCP, ${path},`, error as NodeJS.ErrnoException)}; make the file writable, or name another --store`,
    { cause: error },
  );
}
