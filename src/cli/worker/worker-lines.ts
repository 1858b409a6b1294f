import type { RuntimeMetrics } from "../../runtime/index.ts";
import { formatDuration, formatNumberOf } from "../view/format.ts";
import { type QueuePlan, queueText } from "./queue-plan.ts";

export interface Readiness {
  /** Definitions that it knows. */
  readonly names: readonly string[];
  readonly concurrency: number;
  readonly queuePlan: QueuePlan;
  /** As people are told of it. */
  readonly storeName: string;
  readonly metricsUrl: string | undefined;
}

/** One line that says what a worker does and where; it works from then on. */
export function readyLine({ names, concurrency, queuePlan, storeName, metricsUrl }: Readiness): string {
  const queues = Object.entries(queuePlan).map(queueText);
  return [
    `Worker ${process.pid} is ready on ${storeName}: ${names.join(", ")} (${formatNumberOf(concurrency, "agent")} at a time)`,
    queues.length === 0 ? "no queues of tools" : `queues ${queues.join(", ")}`,
    ...(metricsUrl === undefined ? [] : [`metrics at ${metricsUrl}/metrics`]),
  ].join("; ");
}

type Counted = Pick<RuntimeMetrics, "turnsEnded" | "parked" | "toolJobs" | "deaths">;

/** One line that says what it has done; `counted` is null where Redis did not answer. */
export function summaryLine(
  counted: Counted | null,
  { left, tookMs }: { readonly left: number; readonly tookMs: number },
): string {
  const rest = left === 0 ? "nothing was cut off" : `${left} cut off, which others carry on`;
  return `Left after ${formatDuration(tookMs)}: ${[...(counted === null ? [] : [doneText(counted)]), rest].join("; ")}.`;
}

function doneText({ turnsEnded, parked, toolJobs, deaths }: Counted): string {
  return [
    `${formatNumberOf(turnsEnded, "turn")} ended`,
    `${parked} parked`,
    `${formatNumberOf(toolJobs, "tool job")} run`,
    ...(deaths === 0 ? [] : [`${formatNumberOf(deaths, "death")} of workers seen`]),
  ].join(", ");
}
