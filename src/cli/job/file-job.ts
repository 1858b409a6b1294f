import { relative } from "node:path";
import { z } from "zod";
import type { AgentDefinition } from "../../agents/index.ts";
import type { JsonObject } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { commandLine } from "../invocation.ts";
import { oneLine } from "../view/text-width.ts";
import type { Job } from "./job.ts";
import type { StorePlace } from "./store-place.ts";

/** What `run` and `chat` keep in an agent's metadata, so that it can be carried on without naming the file again. */
const fileJobSchema = z.object({
  command: z.enum(["run", "chat"]),
  /** Absolute path of the agent file. */
  file: z.string(),
  /** Of the first turn; empty for a chat, which has none of its own. */
  input: z.string(),
});
export type FileJob = z.infer<typeof fileJobSchema>;

/** What an agent was started with by `run` or `chat`; undefined when it was started otherwise. */
export function fileJobOf(metadata: JsonObject): FileJob | undefined {
  const parsed = fileJobSchema.safeParse(metadata);
  return parsed.success ? parsed.data : undefined;
}

export interface FileWork {
  /** Absolute. */
  readonly file: string;
  readonly agents: readonly [AgentDefinition, ...AgentDefinition[]];
  readonly input: string;
  readonly mayDecide?: Job["mayDecide"];
}

export interface FilePlace {
  readonly rootAgentId: string;
  readonly store: StorePlace;
  readonly isResumed: boolean;
}

export function jobOfFile(
  { invocation, directory }: CliContext,
  { file, agents, input, mayDecide }: FileWork,
  place: FilePlace,
): Job {
  const { rootAgentId, store, isResumed } = place;
  const [{ name, model }] = agents;
  return {
    agents,
    mayDecide,
    rootAgentId,
    metadata: { command: "run", file, input } satisfies FileJob,
    input,
    isResumed,
    header: [
      ...(input === "" ? [] : [`Input: ${oneLine(input)}`]),
      `For ${name} (${model.provider}/${model.name}); kept in ${store.name} as ${rootAgentId}`,
    ],
    resumeCommand: commandLine(invocation, "resume", [rootAgentId, ...store.words]),
    showCommand: commandLine(invocation, "show", [rootAgentId, ...store.words]),
    workerWords: ["--agents", relative(directory, file)],
    store,
  };
}
