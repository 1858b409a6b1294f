import { InvalidInputError } from "../../errors/index.ts";
import type { JsonObject } from "../../state/index.ts";
import { keyReused } from "./failures.ts";

/** The metadata field with the hash of the request that created an agent or a schedule. */
export const creationMark = "troupe:created-by";

/** Throws `ServerError` (`key_reused`) if another request has created the object with this metadata. */
export function assertSame(metadata: JsonObject, mark: JsonObject): void {
  const expected = mark[creationMark];
  if (expected === undefined || metadata[creationMark] === expected) return;
  throw keyReused();
}

/** Throws `InvalidInputError` for metadata of a client that contain the server's field. */
export function assertUnmarked(metadata: JsonObject): void {
  if (!Object.hasOwn(metadata, creationMark)) return;
  throw new InvalidInputError(`metadata.${creationMark} is reserved for the server`);
}

/** Metadata without the server's own fields. */
export function shownMetadata(metadata: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(metadata).filter(([name]) => name !== creationMark));
}
