import { randomUUID } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { InvalidInputError } from "../errors/index.ts";

/** Bytes of a key before its encoding. */
export const KEY_BYTES = 32;

/**
 * The key in a file that only this user can read. `fresh` is written if the file is missing. Rejects with `InvalidInputError` if the file
 * has no key, and with the error of the file system if it cannot be written or read.
 */
export async function keyInFile(path: string, fresh: string): Promise<string> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, `${fresh}\n`, { mode: 0o600 });
    // Unlike a rename, a link keeps the file of another process, and it never appears half written.
    await link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    const key = (await readFile(path, "utf8")).trim();
    if (Buffer.byteLength(key) >= KEY_BYTES) return key;
  } finally {
    await rm(draft, { force: true });
  }
  throw new InvalidInputError(`${path} contains no key of at least ${KEY_BYTES} bytes; delete it to get a new one`);
}
