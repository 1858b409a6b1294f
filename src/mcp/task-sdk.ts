import type * as Tasks from "@modelcontextprotocol/ext-tasks/client";

/** The used exports of the official package for tasks. */
export type TaskSdk = typeof Tasks;

let loaded: Promise<TaskSdk | undefined> | undefined;

/** Loads the package once; resolves with `undefined` if it is not installed. */
export async function loadTaskSdk(): Promise<TaskSdk | undefined> {
  loaded ??= import("@modelcontextprotocol/ext-tasks/client").catch(() => {
    loaded = undefined;
    return undefined;
  });
  return await loaded;
}
