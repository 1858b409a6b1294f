import { TaskState, type TaskPushNotificationConfig } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { type AgentDefinition, createRuntime, type Runtime, type RuntimeOptions } from "troupe";
import { a2aSurface, type ServeOptions } from "troupe/server";
import { expect, onTestFinished } from "vitest";
import { type HookCall, type HookReceiver, startReceiver, webhookKey } from "../../support/hook-receiver.ts";
import { serve, type Served } from "../served.ts";
import { deskAgent, saying, sent } from "./a2a-served.ts";

export interface Hooked extends Served {
  readonly runtime: Runtime;
  readonly receiver: HookReceiver;
}

interface HookedOptions extends Pick<RuntimeOptions, "stores"> {
  readonly definition?: AgentDefinition;
  readonly receiver?: HookReceiver;
  readonly serving?: Partial<ServeOptions>;
}

/** The desk with push notifications to a receiver. */
export async function hooked({
  definition = deskAgent(),
  stores,
  serving,
  ...given
}: HookedOptions = {}): Promise<Hooked> {
  const receiver = given.receiver ?? (await startReceiver());
  const runtime = await createRuntime({ agents: [definition], stores });
  onTestFinished(() => runtime.shutdown());
  const surfaces = [await a2aSurface({ agents: [{ definition }] })];
  const webhooks = { keys: [webhookKey()], origins: [receiver.origin] };
  return { ...serve(runtime, { surfaces, webhooks, ...serving }), runtime, receiver };
}

/** A configuration as the client sends it. */
export function configOf(taskId: string, url: string, more: Partial<TaskPushNotificationConfig> = {}) {
  return { tenant: "", id: "", taskId, url, token: "", authentication: undefined, ...more };
}

export const bearer = { scheme: "Bearer", credentials: "secret-of-the-receiver" };

export interface Item {
  readonly task?: { readonly id: string; readonly status: { readonly state: string } };
  readonly statusUpdate?: { readonly taskId: string; readonly status: { readonly state: string } };
  readonly artifactUpdate?: { readonly artifact: { readonly artifactId: string; readonly name: string } };
}

/** The notifications of a receiver, in short. */
export function told(calls: readonly HookCall[]): string[] {
  return calls.map(({ body }) => {
    const { task, statusUpdate, artifactUpdate } = body as Item;
    const state = task?.status.state ?? statusUpdate?.status.state.replace("TASK_STATE_", "");
    return task ? `task ${state?.replace("TASK_STATE_", "")}` : (state ?? `artifact ${artifactUpdate?.artifact.name}`);
  });
}

export const isEnded = (calls: readonly HookCall[]): boolean => told(calls).some((one) => one.endsWith("COMPLETED"));

/** A task that waits for an answer. */
export async function asking(client: Client) {
  const task = await sent(client, saying("ask"));
  expect(task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
  return task;
}

export async function answer(client: Client, task: { readonly id: string; readonly contextId: string }): Promise<void> {
  await sent(client, saying("Ann", { taskId: task.id, contextId: task.contextId }));
}
