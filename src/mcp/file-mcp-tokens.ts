import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { nameRule, optionsOf, type OptionsSchema } from "../base/index.ts";
import { CorruptRecordError, InvalidInputError } from "../errors/index.ts";
import { type McpTokenKey, mcpTokenKeyText, type McpTokenStore } from "./mcp-token-store.ts";

/** Options of `fileMcpTokens()`. */
export interface FileMcpTokensOptions {
  /** Folder of the files; created if it is missing, readable by this user only. */
  readonly folder: string;
  /** 32 random bytes in base64 or base64url, such as the output of `openssl rand -base64 32`. Keep it apart from the folder. */
  readonly key: string;
}

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The error must not contain the key. */
const keyRule = (value: unknown, where: string): string => {
  if (typeof value === "string" && /^[\w+/-]{43}=?$/.test(value)) return value;
  throw new InvalidInputError(
    `${where} must be 32 random bytes in base64, such as the output of "openssl rand -base64 32"`,
  );
};

const optionsSchema: OptionsSchema<FileMcpTokensOptions> = {
  rules: { folder: nameRule, key: keyRule },
  needed: ["folder", "key"],
  instead: { path: "folder", directory: "folder", secret: "key" },
};

/**
 * A token store in files that are encrypted with AES-256-GCM; each is bound to its key, so that exchanged files are refused. For the
 * processes of one machine. Throws `InvalidInputError` for invalid options; reading rejects with `CorruptRecordError` for a file that
 * was changed or has another key.
 */
export function fileMcpTokens(options: FileMcpTokensOptions): McpTokenStore {
  const { folder, key: text } = optionsOf<FileMcpTokensOptions>(options, "fileMcpTokens()", optionsSchema);
  const secret = Buffer.from(text, "base64");
  const pathOf = (key: McpTokenKey): string =>
    join(folder, `${createHash("sha256").update(mcpTokenKeyText(key)).digest("hex")}.token`);
  return Object.freeze({
    async get(key: McpTokenKey): Promise<string | undefined> {
      const path = pathOf(key);
      const sealed = await readFile(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      });
      if (sealed === undefined) return undefined;
      const opened = open(sealed, secret, mcpTokenKeyText(key));
      if (opened !== undefined) return opened;
      throw new CorruptRecordError(`${path} cannot be decrypted with this key; give its key, or delete the file`);
    },
    async set(key: McpTokenKey, value: string): Promise<void> {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const path = pathOf(key);
      // Renamed at the end, so that a process that is killed leaves the earlier value.
      const draft = `${path}.${randomBytes(6).toString("hex")}`;
      try {
        await writeFile(draft, seal(value, secret, mcpTokenKeyText(key)), { mode: 0o600, flag: "wx", flush: true });
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
    async delete(key: McpTokenKey): Promise<void> {
      await rm(pathOf(key), { force: true });
    },
  });
}

function seal(value: string, secret: Buffer, about: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, secret, nonce).setAAD(Buffer.from(about));
  const text = Buffer.concat([cipher.update(value, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]);
}

/** `undefined` if the text was not sealed with the secret for the same key. */
function open(sealed: Buffer, secret: Buffer, about: string): string | undefined {
  try {
    const nonce = sealed.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, secret, nonce, { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(about))
      .setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString(
      "utf8",
    );
  } catch {
    return undefined;
  }
}
