import type { AgentRecord } from "../../state/index.ts";
import { askJobOf } from "../ask/job.ts";
import type { CliContext } from "../cli-context.ts";
import { commandLine } from "../invocation.ts";
import { oneLine } from "../view/text-width.ts";
import { fileJobOf } from "./file-job.ts";
import type { Job } from "./job.ts";
import type { StorePlace } from "./store-place.ts";

/** How an agent that has ended is presented: from its record alone, without its definition. */
export function endedPlace(
  { invocation }: CliContext,
  { agentId, metadata }: AgentRecord,
  store: StorePlace,
): Pick<Job, "rootAgentId" | "header" | "showCommand" | "store"> {
  const question = askJobOf(metadata)?.question;
  const input = fileJobOf(metadata)?.input;
  return {
    rootAgentId: agentId,
    header: [
      ...(question === undefined ? [] : [`Question: ${oneLine(question)}`]),
      ...(input === undefined ? [] : [`Input: ${oneLine(input)}`]),
      `${agentId} has ended before, as kept in ${store.name}:`,
    ],
    showCommand: commandLine(invocation, "show", [agentId, ...store.words]),
    store,
  };
}
