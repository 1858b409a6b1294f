import { createHash } from "node:crypto";

/** A piece of Lua that Redis runs as one step. */
export interface Script {
  readonly name: string;
  readonly text: string;
  readonly sha: string;
}

/** The text is sent once to a server; then it is called by its sum. */
export function script(name: string, text: string): Script {
  return { name, text, sha: createHash("sha1").update(text).digest("hex") };
}
