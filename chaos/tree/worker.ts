/**
 * A process that runs parts of trees, on commands over its IPC channel: `node chaos/tree/worker.ts ORDERS` (JSON).
 */
import { z } from "zod";
import { AlreadyOwnedError, createRuntime, type Runtime } from "../../src/index.ts";
import { endWithParent } from "../end-with-parent.ts";
import { openLineWriter } from "../line-log.ts";
import { taskPrefix } from "../model/script.ts";
import { deepTeam } from "./team.ts";
import { storesAt } from "../stores-at.ts";

const ordersSchema = z.object({
  store: z.string(),
  model: z.string(),
  /** Path of its tools' log. */
  log: z.string(),
  width: z.number(),
  depth: z.number(),
  leaseMs: z.number(),
});
export type TreeOrders = z.infer<typeof ordersSchema>;

const commandSchema = z.discriminatedUnion("type", [
  /** Starts the root's first turn. `deadlineInMs`: from now, by this process's clock. */
  z.object({
    type: z.literal("build"),
    agentId: z.string(),
    maxSeconds: z.number().optional(),
    deadlineInMs: z.number().optional(),
  }),
  /** Starts agents, in this order. */
  z.object({ type: z.literal("take"), agentIds: z.array(z.string()) }),
  /** Releases agents, in this order. The process that starts them next continues their turns. */
  z.object({ type: z.literal("drop"), agentIds: z.array(z.string()) }),
  /** Sets this process's clock. */
  z.object({ type: z.literal("jump"), by: z.number() }),
  /** Runs one more turn of a stopped agent. */
  z.object({ type: z.literal("again"), agentId: z.string() }),
]);
export type TreeCommand = z.infer<typeof commandSchema>;

/** A line of the tools' log. */
export interface ToolLine {
  readonly event: "began" | "cut";
  readonly callId: string;
  /** Milliseconds of `process.hrtime`, a clock that is never set. */
  readonly at: number;
}

export interface TreeAnswer {
  readonly error?: string;
  readonly status?: string;
}

const { store, model, log, width, depth, leaseMs } = ordersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const lines = openLineWriter(log, { sync: false });
const realNow = Date.now;
let offset = 0;
Date.now = () => realNow() + offset;

const lead = deepTeam(model, { width, depth }, (event, callId) => {
  const line: ToolLine = { event, callId, at: Math.round(performance.timeOrigin + performance.now()) };
  lines.append(line);
});
const runtime = await createRuntime({ agents: [lead], stores: storesAt(store), leaseMs });

async function obey(command: TreeCommand): Promise<TreeAnswer> {
  switch (command.type) {
    case "build": {
      const { agentId, maxSeconds, deadlineInMs } = command;
      const agent = await runtime.agent("level-0", { agentId });
      await agent.start();
      const deadline = deadlineInMs === undefined ? {} : { deadline: Date.now() + deadlineInMs };
      const turn = agent.executeTurn(`${taskPrefix}${agentId}`, { budget: { maxSeconds, ...deadline } });
      turn.result.catch(() => undefined);
      await turn.id;
      return {};
    }
    case "take":
      for (const agentId of command.agentIds) await take(runtime, agentId);
      return {};
    case "drop":
      for (const agentId of command.agentIds) await (await runtime.find(agentId)).shutdown();
      return {};
    case "jump":
      offset += command.by;
      return {};
    case "again": {
      const agent = await runtime.find(command.agentId);
      await agent.start();
      const { status } = await agent.executeTurn("again", { budget: { maxSteps: 0 } }).result;
      return { status };
    }
    default:
      throw new Error(`there is no command ${JSON.stringify(command satisfies never)}`);
  }
}

/** The owner of a part of the tree may have started the released agent by itself. */
async function take(from: Runtime, agentId: string): Promise<void> {
  try {
    await (await from.find(agentId)).start();
  } catch (error) {
    if (!(error instanceof AlreadyOwnedError)) throw error;
  }
}

process.on("message", (message) => {
  obey(commandSchema.parse(message))
    .catch(
      (error: unknown): TreeAnswer => ({
        error: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      }),
    )
    .then((answer) => process.send?.(answer))
    .catch(() => process.exit(1));
});
endWithParent();
process.stdout.write("ready\n");
