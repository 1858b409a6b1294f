import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TreeEvidence, treesIn } from "../src/testing/simulation/evidence.ts";
import { isOnServer, storesAt } from "./stores-at.ts";

/**
 * Reads the data that a dead process left. A file is copied first: opening it repairs it, which is the next process's task.
 * Returns an empty list if there is no store yet.
 */
export async function evidenceOf(place: string): Promise<TreeEvidence[]> {
  return isOnServer(place) ? await treesAt(place) : await evidenceOfFile(place);
}

async function evidenceOfFile(storePath: string): Promise<TreeEvidence[]> {
  if (!existsSync(storePath)) return [];
  const folder = mkdtempSync(join(tmpdir(), "troupe-evidence-"));
  const copy = join(folder, "store.db");
  for (const ending of ["", "-wal"]) {
    if (existsSync(storePath + ending)) copyFileSync(storePath + ending, copy + ending);
  }
  try {
    return await treesAt(copy);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function treesAt(place: string): Promise<TreeEvidence[]> {
  const stores = storesAt(place);
  try {
    return await treesIn(stores);
  } finally {
    await stores.close();
  }
}
