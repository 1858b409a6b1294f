import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, linkSync, openSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { layOut } from "./sqlite-schema.ts";

/**
 * Makes a new file, which only its owner can read. It is laid out under another name, synced once, and only then gets its own: after a
 * power cut there is either no file or a whole one. Laid out in its place it is synced four times, and each time the disk is waited for.
 * Throws what the file system says if there can be no file.
 */
export function makeFile(path: string): void {
  const draft = `${path}-${randomUUID()}`;
  try {
    writeDraft(draft);
    // Fails if another process was faster.
    linkSync(draft, path);
  } catch {
    // A file without tables gets them when it is opened, as where a file cannot have two names.
    closeSync(openSync(path, "a", 0o600));
  } finally {
    rmSync(draft, { force: true });
  }
}

function writeDraft(draft: string): void {
  const descriptor = openSync(draft, "ax", 0o600);
  try {
    const database = new DatabaseSync(draft);
    try {
      database.exec("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
      layOut(database, draft);
      // Last, since changes after it would go into a log of their own.
      database.exec("PRAGMA journal_mode = WAL");
    } finally {
      database.close();
    }
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
