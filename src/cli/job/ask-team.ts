import type { AgentDefinition } from "../../agents/index.ts";
import { askTeam, documentModel } from "../../demo/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type LanguageModel, openaiModel } from "../../model/index.ts";
import type { CliContext } from "../cli-context.ts";
import { documentsIn } from "../documents.ts";
import { type AskJob, offlineName } from "./job.ts";

/**
 * The team of a question. `reach` says where it may run: in any process that knows it by name, or only in the one that
 * asks.
 */
export function teamOf(
  { files, model, maxReaders }: AskJob,
  environment: CliContext["environment"],
  reach: "here" | "anywhere",
): AgentDefinition {
  return askTeam({ ...documentsIn(files), maxReaders, model: modelOf(model, environment) }, reach);
}

function modelOf(name: string, environment: CliContext["environment"]): LanguageModel {
  if (name !== offlineName) return openaiModel(name);
  const speed = environment["TROUPE_OFFLINE_SPEED"] ?? "";
  if (speed === "") return documentModel();
  const tokensPerSecond = Number(speed);
  if (tokensPerSecond > 0) return documentModel({ tokensPerSecond });
  throw new InvalidInputError(`TROUPE_OFFLINE_SPEED is ${JSON.stringify(speed)}; it takes tokens per second, above 0`);
}
