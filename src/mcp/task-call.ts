import type { CallToolResult, Client, Tool as McpTool } from "@modelcontextprotocol/client";
import type { SerializedTaskReference, TaskEnabledSession, TaskView } from "@modelcontextprotocol/ext-tasks/client";
import { z } from "zod";
import { abortable } from "../base/index.ts";
import { OutcomeUnknownError, ToolNotStartedError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { Reconciliation, RunContext } from "../tools/index.ts";
import type { ListedTool } from "./listed-tool.ts";
import type { OpenConnection } from "./mcp-connection.ts";
import { wordsOf } from "./mcp-errors.ts";
import type { McpPool } from "./mcp-pool.ts";
import { McpServerError } from "./mcp-server-error.ts";
import type { TaskSdk } from "./task-sdk.ts";

export interface TaskCallOptions {
  readonly server: string;
  readonly sdk: TaskSdk;
  readonly pool: McpPool;
  readonly tool: ListedTool;
  readonly args: JsonObject;
  /** Milliseconds of an attempt, after which the task is cancelled. */
  readonly timeoutMs: number;
  /** Called before the call is sent. Default: none. */
  readonly onSend?: (() => void) | undefined;
}

/** Attempts to reach the server while the task runs, and the pause before the second, in milliseconds; it doubles. */
const MOST_TRIES = 6;
const FIRST_PAUSE_MS = 500;
/** Longest wait for the cancellation of a task, in milliseconds. */
export const CANCELLING_MS = 5_000;
/** Protocol errors with which a server refuses a call before a task starts. */
const refusals: ReadonlySet<number> = new Set([-32_601, -32_602]);

const noteSchema = z.object({
  phase: z.literal("task"),
  reference: z.object({
    endpointId: z.string(),
    generation: z.literal("v1"),
    taskId: z.string().min(1).max(1_000),
    originalOperation: z.literal("tools/call"),
  }),
});

/** One client can have one session. */
const sessions = new WeakMap<Client, TaskEnabledSession>();

/**
 * A call of a tool that runs as a task at its server. The id of the task is noted, so that another process follows the same task instead
 * of starting another one.
 */
export class TaskCall {
  readonly #options: TaskCallOptions;
  readonly #run: RunContext;
  /** Read at once: the end of a task may outlive the run. */
  readonly #owner: { readonly actorId: string | null };
  readonly #ending: AbortSignal;
  #reference: SerializedTaskReference | undefined;
  #isSent = false;

  constructor(options: TaskCallOptions, run: RunContext) {
    this.#options = options;
    this.#run = run;
    this.#owner = { actorId: run.actorId };
    this.#ending = run.signal;
    const noted = noteSchema.safeParse(run.noted);
    this.#reference = noted.success ? (noted.data.reference as SerializedTaskReference) : undefined;
  }

  /** Rejects with `ToolNotStartedError` if no task was started, and with `OutcomeUnknownError` if its end cannot be learnt. */
  async perform(): Promise<CallToolResult> {
    const late = AbortSignal.timeout(this.#options.timeoutMs);
    const signal = AbortSignal.any([this.#ending, late]);
    try {
      return await this.#followed(signal);
    } catch (error) {
      if (!late.aborted || this.#ending.aborted) throw error;
      return await this.#late();
    }
  }

  reconcile(): Reconciliation {
    return this.#reference === undefined ? { unknown: true } : { resume: true };
  }

  /** Cancels the task, if it was started. */
  async cancel(signal: AbortSignal = this.#ending): Promise<void> {
    const reference = this.#reference;
    if (reference === undefined) return;
    await this.#options.pool.use(this.#owner, signal, async ({ client }) => {
      await this.#session(client).task(reference.taskId).cancel(signal);
    });
  }

  async #followed(signal: AbortSignal): Promise<CallToolResult> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#options.pool.use(
          this.#owner,
          signal,
          async (connection) => await this.#settled(connection, signal),
        );
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ToolNotStartedError) throw error;
        const words = `the MCP server "${this.#options.server}" gave no result: ${wordsOf(causeOf(error))}`;
        if (!this.#isSent && this.#reference === undefined) throw new ToolNotStartedError(words);
        if (this.#reference === undefined || this.#isAnswer(error) || tries >= MOST_TRIES) {
          throw new OutcomeUnknownError(words);
        }
        await abortable(pause(FIRST_PAUSE_MS * 2 ** (tries - 1)), signal);
      }
    }
  }

  async #settled(connection: OpenConnection, signal: AbortSignal): Promise<CallToolResult> {
    const { sdk, pool, tool, args, server } = this.#options;
    const { client } = connection;
    if (this.#reference === undefined) await pool.verify(connection, { tool, signal });
    const session = this.#session(client);
    const declaration = sdk.toolDeclarationFromMcpTool({ ...tool, inputSchema: tool.inputSchema ?? {} } as McpTool);
    const options = { declaration, signal };
    if (!session.capabilities.execution) throw new McpServerError("it does not offer tasks of the protocol 2025-11-25");
    this.#isSent ||= this.#reference === undefined;
    this.#options.onSend?.();
    const execution =
      this.#reference === undefined
        ? await session
            .callTool(tool.name, args, { ...options, task: { preference: "require" } })
            .catch((error: unknown) => {
              if (error instanceof sdk.JsonRpcResponseError && refusals.has(error.code)) this.#isSent = false;
              throw error;
            })
        : await session.resumeTask(this.#reference, options);
    if (execution.kind === "task" && this.#reference === undefined) {
      const reference = execution.serializeReference();
      await this.#run.note({ phase: "task", reference: { ...reference } });
      this.#reference = reference;
    }
    const { outcome } = await execution.settle({
      signal,
      onEvent: (event) => this.#show(sdk.taskViewFromExecutionEvent(event)),
    });
    if (outcome.status === "completed") return outcome.result as CallToolResult;
    if (outcome.status === "cancelled") return failure(`The MCP server "${server}" has cancelled the task.`);
    // An error that is not the task's own leaves its end open.
    const { task, error } = outcome;
    if (task?.status !== "failed") throw error;
    return failure(`The task of the MCP server "${server}" has failed: ${wordsOf(error)}`);
  }

  #session(client: Client): TaskEnabledSession {
    const { sdk, server } = this.#options;
    const known = sessions.get(client);
    if (known !== undefined) return known;
    if (client.getProtocolEra() !== "legacy")
      throw new McpServerError("it does not use the protocol 2025-11-25, whose tasks are supported");
    const session = sdk.createTaskSessionFromClient(client, { endpointId: `mcp:${server}` });
    sessions.set(client, session);
    return session;
  }

  #show(task: TaskView | undefined): void {
    if (task === undefined || this.#ending.aborted) return;
    const { status, statusMessage } = task;
    this.#run.progress({ status, ...(statusMessage === undefined ? {} : { message: statusMessage }) });
  }

  /** Whether the server has answered: it does not have the task. */
  #isAnswer(error: unknown): boolean {
    const { JsonRpcResponseError } = this.#options.sdk;
    const cause = error instanceof Error ? error.cause : undefined;
    return error instanceof JsonRpcResponseError || cause instanceof JsonRpcResponseError;
  }

  async #late(): Promise<CallToolResult> {
    const { server, timeoutMs } = this.#options;
    const words = `the task of the MCP server "${server}" did not end within ${timeoutMs} ms`;
    if (this.#reference === undefined) throw new OutcomeUnknownError(`${words}, and its id is unknown`);
    try {
      await this.cancel(AbortSignal.timeout(CANCELLING_MS));
    } catch {
      throw new OutcomeUnknownError(`${words}, and could not be cancelled`);
    }
    return failure(`Error: ${words}, and was cancelled.`);
  }
}

function failure(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

/** The package wraps errors of the connection. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.name === "DispatchError" && error.cause !== undefined ? error.cause : error;
}

async function pause(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  await promise;
}
