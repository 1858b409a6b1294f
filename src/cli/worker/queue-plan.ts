import { InvalidArgumentError } from "commander";
import type { AgentDefinition } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { RuntimeOptions } from "../../runtime/index.ts";

/** The tool queues of a worker, with concurrency and rate limit. */
export type QueuePlan = NonNullable<NonNullable<RuntimeOptions["work"]>["queues"]>;
type ToolQueueOptions = QueuePlan[string];

const form =
  "NAME, NAME=CONCURRENCY or NAME=CONCURRENCY@MAX/UNIT with the units s, m and h; several separated by commas";
const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const entryPattern = /^([\w.@-]{1,128})(?:=(\d{1,6})(?:@(\d{1,9})\/([smh]))?)?$/;

/**
 * Parses `browser,mail=4,scan=2@30/m`: two scans at a time in this worker, at most 30 started per minute by all workers
 * together. `none`: no queue. Throws commander's `InvalidArgumentError`.
 */
export function queuePlan(text: string): QueuePlan {
  if (text.trim() === "none") return {};
  const plan: Record<string, ToolQueueOptions> = {};
  for (const part of text.split(",").map((one) => one.trim())) {
    const [, name, concurrency, max, unit] = entryPattern.exec(part) ?? [];
    if (name === undefined) throw new InvalidArgumentError(`${JSON.stringify(part)} is not of the form ${form}.`);
    if (name === "wake") throw new InvalidArgumentError('"wake" is the queue of the agents; see --concurrency.');
    if (Object.hasOwn(plan, name)) throw new InvalidArgumentError(`"${name}" is named twice.`);
    if (Number(concurrency ?? 1) < 1 || Number(max ?? 1) < 1) {
      throw new InvalidArgumentError(`${JSON.stringify(part)} would never run; its numbers must be at least 1.`);
    }
    plan[name] = {
      ...(concurrency === undefined ? {} : { concurrency: Number(concurrency) }),
      ...(max === undefined ? {} : { rateLimit: { max: Number(max), perMs: unitMs[unit ?? "s"] ?? 1_000 } }),
    };
  }
  return plan;
}

/** The queues of these definitions' tools, in alphabetical order. */
export function queuesOfDefinitions(definitions: Iterable<AgentDefinition>): string[] {
  const names = new Set<string>();
  for (const { tools } of definitions) {
    for (const tool of tools.tools) if (tool.kind === "function" && tool.queue !== undefined) names.add(tool.queue);
  }
  return [...names].toSorted();
}

/**
 * The queues of a worker: the wanted ones, or all queues of the definitions with one job at a time. Throws
 * `InvalidInputError` for a queue without a tool in the definitions, because its jobs could not be run.
 */
export function workOfQueues(wanted: QueuePlan | undefined, known: readonly string[]): QueuePlan {
  if (wanted === undefined) return Object.fromEntries(known.map((name) => [name, {}]));
  const strange = Object.keys(wanted).find((name) => !known.includes(name));
  if (strange === undefined) return wanted;
  const has = known.length === 0 ? "they have none" : `they have ${known.map((name) => `"${name}"`).join(", ")}`;
  throw new InvalidInputError(`--queues names "${strange}", but no tool of these agents has that queue; ${has}`);
}

/** `browser (2 at a time, at most 30 started in 60 s)`. */
export function queueText([name, { concurrency = 1, rateLimit }]: readonly [string, ToolQueueOptions]): string {
  const limit = rateLimit === undefined ? "" : `, at most ${rateLimit.max} started in ${rateLimit.perMs / 1_000} s`;
  return `${name} (${concurrency} at a time${limit})`;
}
