import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { describeFileError, describeValue } from "../base/index.ts";
import { InvalidInputError, StoreUnavailableError } from "../errors/index.ts";
import type { Note, NotesKey, NotesStore } from "./notes-store.ts";

const noteSchema = z.object({ id: z.string(), text: z.string(), createdAt: z.number() });

/**
 * Keeps each note as a file of its own below a folder, readable by this user only; several processes may use the folder. Names of files
 * and folders are hashes, so ids of owners never become paths. The folder is created with the first note.
 * @param folder A path, relative to the working directory, or a `file:` URL.
 */
export function fileNotes(folder: string | URL): NotesStore {
  const isPath =
    (typeof folder === "string" && folder.trim() !== "" && !folder.includes("\0")) || folder instanceof URL;
  if (!isPath) throw new InvalidInputError(`fileNotes() expects the path of a folder, not ${describeValue(folder)}`);
  const root = folder instanceof URL ? fileURLToPath(folder) : resolve(folder);
  const folderOf = (key: NotesKey): string => join(root, hashOf([key.tenant, key.scope, key.id]));
  const fileOf = (key: NotesKey, noteId: string): string => join(folderOf(key), `${hashOf([noteId])}.json`);
  return {
    async list(key) {
      const names = await readdir(folderOf(key)).catch(ifMissing<string[]>([]));
      const notes = await Promise.all(
        names.filter((name) => name.endsWith(".json")).map(async (name) => await noteIn(join(folderOf(key), name))),
      );
      return notes.filter((note) => note !== undefined);
    },
    async add(key, note) {
      const file = fileOf(key, note.id);
      if ((await noteIn(file)) !== undefined) return;
      await mkdir(folderOf(key), { recursive: true, mode: 0o700 });
      await writeWhole(file, JSON.stringify(note));
    },
    remove: async (key, noteId) => await rm(fileOf(key, noteId), { force: true }),
    clear: async (key) => await rm(folderOf(key), { recursive: true, force: true }),
  };
}

function hashOf(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

async function noteIn(file: string): Promise<Note | undefined> {
  const text = await readFile(file, "utf8").catch(ifMissing<undefined>(undefined));
  if (text === undefined) return undefined;
  try {
    return noteSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new StoreUnavailableError(`the note ${file} is damaged; remove the file`, { cause });
  }
}

function ifMissing<Value>(value: Value) {
  return (error: unknown): Value => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return value;
    throw error;
  };
}

/** A reader sees the whole note or none. */
async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomUUID()}.tmp`;
  try {
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(text);
      await handle.datasync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (cause) {
    await rm(draft, { force: true });
    throw new StoreUnavailableError(describeFileError(file, cause), { cause });
  }
}
