import type * as Tasks from "@modelcontextprotocol/ext-tasks/client";
import { optionalPackage } from "../base/index.ts";

/** The used exports of the official package for tasks. */
export type TaskSdk = typeof Tasks;

const load = optionalPackage(
  async (): Promise<TaskSdk> => await import("@modelcontextprotocol/ext-tasks/client"),
  'tasks of MCP servers need the package "@modelcontextprotocol/ext-tasks": npm install @modelcontextprotocol/ext-tasks',
);

/** Loads the package once; resolves with `undefined` if it is not installed. */
export async function loadTaskSdk(): Promise<TaskSdk | undefined> {
  return await load().catch(() => undefined);
}
