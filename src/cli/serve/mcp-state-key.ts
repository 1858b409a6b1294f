import { randomBytes, randomUUID } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { RedisSharing } from "../../server/index.ts";
import type { StoreLocation } from "../job/store-location.ts";

const KEY_BYTES = 32;

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
  return file === undefined ? fresh : await keyInFile(`${file}.mcp-key`, fresh);
}

async function keyInRedis({ client, prefix }: Pick<RedisSharing, "client" | "prefix">, fresh: string): Promise<string> {
  const name = `${prefix}mcp:state-key`;
  await client.set(name, fresh, "NX");
  return (await client.get(name)) ?? fresh;
}

async function keyInFile(path: string, fresh: string): Promise<string> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, `${fresh}\n`, { mode: 0o600 });
    // Unlike a rename, a link keeps the file of another process, and it never appears half written.
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    const key = (await readFile(path, "utf8")).trim();
    if (Buffer.byteLength(key) >= KEY_BYTES) return key;
  } catch (error) {
    throw unusable(path, error);
  } finally {
    await rm(draft, { force: true });
  }
  throw new InvalidInputError(`${path} contains no key of at least ${KEY_BYTES} bytes; delete it to get a new one`);
}

function unusable(path: string, error: unknown): InvalidInputError {
  return new InvalidInputError(
    `${describeFileError(`the key for answers over MCP, ${path},`, error as NodeJS.ErrnoException)}; make the file writable, or name another --store`,
    { cause: error },
  );
}
