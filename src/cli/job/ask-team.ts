import type { AgentDefinition } from "../../agents/index.ts";
import { askTeam, documentModel } from "../../demo/index.ts";
import { openaiModel } from "../../model/index.ts";
import { documentsIn } from "../documents.ts";
import { type AskJob, offlineName } from "./job.ts";

interface TeamOptions {
  /** Where it may run: in any process that knows it by name, or only in the one that asks. */
  readonly reach: "here" | "anywhere";
  /** The pace of the offline engine. Default: as fast as it can. */
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
