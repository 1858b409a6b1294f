import { z } from "zod";
import type { AgentDefinition } from "../../agents/index.ts";
import type { JsonObject } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { commandLine } from "../invocation.ts";
import { oneLine } from "../view/text-width.ts";
import { storeWords } from "./open-store.ts";
import type { Job } from "./job.ts";

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
}

export interface FilePlace {
  readonly rootAgentId: string;
  readonly storePath: string;
  readonly isResumed: boolean;
}

export function jobOfFile({ invocation }: CliContext, { file, agents, input }: FileWork, place: FilePlace): Job {
  const { rootAgentId, storePath, isResumed } = place;
  const store = storeWords(storePath);
  const [{ name, model }] = agents;
  return {
    agents,
    rootAgentId,
    metadata: { command: "run", file, input } satisfies FileJob,
    input,
    isResumed,
    header: [
      ...(input === "" ? [] : [`Input: ${oneLine(input)}`]),
      `For ${name} (${model.provider}/${model.name}); kept in ${storePath} as ${rootAgentId}`,
    ],
    resumeCommand: commandLine(invocation, "resume", [rootAgentId, ...store]),
    showCommand: commandLine(invocation, "show", [rootAgentId, ...store]),
    storeWords: store,
  };
}
