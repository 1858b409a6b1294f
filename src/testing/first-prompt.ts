import type { AgentDefinition } from "../agents/index.ts";
import { describeValue } from "../base/index.ts";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import { hookCountsOf, registerHooks } from "../hooks/index.ts";
import { calledModels, type LanguageModel } from "../model/index.ts";
import { run } from "../runtime/index.ts";
import type { ModelRequest } from "../state/index.ts";

/**
 * The tokens of the first prompt of a new agent for this input, as its model's adapter counts them. Instructions and the history compiler run,
 * hooks and tools do not, no model is called, and nothing is stored.
 * @throws InvalidInputError if the prompt cannot be built or counted.
 */
export async function firstPromptTokens(definition: AgentDefinition, input: string): Promise<number> {
  const [counting = definition.model] = calledModels(definition.model);
  const prompt = await firstPromptOf(definition, input, counting);
  const counted = await counting.countPromptTokens(prompt);
  if (Number.isFinite(counted) && counted >= 0) return Math.ceil(counted);
  throw new InvalidInputError(
    `agent "${definition.name}": its model's adapter counted ${describeValue(counted)} tokens; expected a number from 0`,
  );
}

async function firstPromptOf(
  definition: AgentDefinition,
  input: string,
  counting: LanguageModel,
): Promise<ModelRequest> {
  let prompt: ModelRequest | undefined;
  const captured: LanguageModel = {
    name: counting.name,
    provider: counting.provider,
    countPromptTokens: (request) => counting.countPromptTokens(request),
    generate(request) {
      prompt ??= request;
      return Promise.reject(new ModelError("the prompt is only counted", { retryable: false, mayHaveBeenSent: false }));
    },
  };
  const hooks = registerHooks(undefined, []);
  const counted: AgentDefinition = Object.freeze({
    ...definition,
    model: captured,
    hooks,
    hookCounts: hookCountsOf(hooks),
    limits: { maxSteps: 1 },
    autoCompact: null,
    maxModelAttempts: 1,
  });
  const { error } = await run(counted, input, { throwOnFailure: false });
  if (prompt) return prompt;
  throw new InvalidInputError(
    `the prompt of agent "${definition.name}" cannot be built: ${error?.message ?? "the turn ended before its first model call"}`,
  );
}
