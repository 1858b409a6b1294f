import type { AgentDefinition } from "../../agents/index.ts";
import { askTeam, documentModel } from "../../demo/index.ts";
import { openaiModel } from "../../model/index.ts";
import { documentsIn } from "../documents.ts";
import { type AskJob, offlineName } from "./job.ts";

interface TeamOptions {
  /** Where the team may run: in any process with its definition, or only in the asking process. */
  readonly reach: "here" | "anywhere";
  /** Speed of the offline engine. Default: unlimited. */
  readonly tokensPerSecond?: number | undefined;
}

/** The team of a question. */
export function teamOf(
  { files, model: name, maxReaders }: AskJob,
  { reach, tokensPerSecond }: TeamOptions,
): AgentDefinition {
  const pace = tokensPerSecond === undefined ? {} : { tokensPerSecond };
  const model = name === offlineName ? documentModel(pace) : openaiModel(name);
  return askTeam({ ...documentsIn(files), maxReaders, model }, reach);
}
