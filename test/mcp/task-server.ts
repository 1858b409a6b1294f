import { serve } from "./served-desk.ts";

interface Message {
  readonly method: string;
  readonly id?: number;
  readonly params?: { readonly taskId?: string; readonly task?: object };
}

export interface TaskServer {
  readonly options: { readonly url: string };
  /** The tasks that were started and cancelled, in order. */
  effects(): string[];
  /** Ends all tasks, also those that are started later. */
  finish(status: "completed" | "failed"): void;
  /** Changes the description of the tool. */
  describe(description: string): void;
  /** Forgets all tasks. */
  forget(): void;
}

/** A server of the version 2025-11-25 over HTTP whose tool "report" runs only as a task. */
export async function openTasks(): Promise<TaskServer> {
  const states = new Map<string, string>();
  const effects: string[] = [];
  let ending: string | undefined;
  let description = "Writes a report.";
  const now = new Date().toISOString();
  const taskOf = (taskId: string): object => ({
    taskId,
    status: states.get(taskId) === "working" ? (ending ?? "working") : states.get(taskId),
    statusMessage: "half way",
    createdAt: now,
    lastUpdatedAt: now,
    ttl: null,
    pollInterval: 20,
  });
  const resultOf = ({ method, params = {} }: Message): object | undefined => {
    const { taskId = "" } = params;
    switch (method) {
      case "initialize":
        return {
          protocolVersion: "2025-11-25",
          capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
          serverInfo: { name: "tasks", version: "1" },
        };
      case "tools/list":
        return {
          tools: [
            { name: "report", description, inputSchema: { type: "object" }, execution: { taskSupport: "required" } },
          ],
        };
      case "tools/call": {
        if (params.task === undefined) return undefined;
        const started = `task${states.size + 1}`;
        states.set(started, "working");
        effects.push(`started ${started}`);
        return { task: taskOf(started) };
      }
      case "tasks/get":
        return states.has(taskId) ? taskOf(taskId) : undefined;
      case "tasks/result":
        return { content: [{ type: "text", text: `the report of ${taskId}` }] };
      case "tasks/cancel":
        states.set(taskId, "cancelled");
        effects.push(`cancelled ${taskId}`);
        return taskOf(taskId);
      default:
        return undefined;
    }
  };
  const { url } = await serve(async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const message = (await request.json()) as Message;
    const { id } = message;
    if (id === undefined) return new Response(null, { status: 202 });
    const result = resultOf(message);
    const error = { code: -32_602, message: "there is no such method, or no such task" };
    return Response.json({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) });
  });
  return {
    options: { url: `${url}/mcp` },
    effects: () => effects,
    finish: (status) => {
      ending = status;
    },
    describe: (words) => {
      description = words;
    },
    forget: () => states.clear(),
  };
}
