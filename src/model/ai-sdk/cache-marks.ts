import type { JsonObject, ProviderOptions } from "../../state/index.ts";
import {
  anthropicTtls,
  cacheKeyOf,
  type CacheOptions,
  type CacheTtl,
  hasBreakpoints,
  lastPrompts,
  openaiTtls,
} from "../prompt-cache.ts";
import type { AiSdkLanguageModel, ProviderCall, ProviderMessage } from "./provider-model.ts";

type Named = Pick<AiSdkLanguageModel, "provider" | "modelId">;

/** The lifetimes of cache entries that the model has. */
export function providerTtls(model: Named): readonly CacheTtl[] {
  if (markOf(model, undefined) !== undefined) return anthropicTtls;
  return model.provider === "openai.responses" && hasBreakpoints(model.modelId) ? openaiTtls : [];
}

type MarkedCall = Pick<ProviderCall, "prompt" | "tools" | "providerOptions">;

/**
 * The call with the provider's marks for its cache, four at most: on the last tool, the system message, the end of the prompt before
 * this one, and the newest message. OpenAI gets the agent's id as its key. Marks and keys of the user's own are left as they are.
 */
export function withCacheMarks<Call extends MarkedCall>(
  call: Call,
  model: Named,
  { cache, cacheTtl, agentId }: CacheOptions & { readonly agentId: string | undefined },
): Call {
  const { providerOptions = {} } = call;
  if (isOpenai(model)) return withOpenaiFields(call, model, { cache, cacheTtl, agentId });
  const mark = cache === "off" ? undefined : markOf(model, cacheTtl);
  if (mark === undefined || Object.keys(mark).some((name) => providerOptions[name]?.["cacheControl"] !== undefined)) {
    return call;
  }
  const marked = new Set(lastPrompts(call.prompt));
  const prompt = call.prompt.map((message, index) => (marked.has(index) ? marking(message, mark) : message));
  const { tools = [] } = call;
  if (!takesMarkedTools(model) || tools.length === 0) return { ...call, prompt };
  return {
    ...call,
    prompt,
    tools: tools.map((tool, index) => (index < tools.length - 1 ? tool : { ...tool, providerOptions: mark })),
  };
}

function isOpenai({ provider }: Named): boolean {
  return provider === "openai.chat" || provider === "openai.responses";
}

/** Providers of Anthropic's API: Anthropic itself, and Google Vertex and Bedrock with it. */
function takesMarkedTools({ provider }: Named): boolean {
  return provider.includes("anthropic");
}

/** The mark of the model's provider; `undefined` if it has none. */
function markOf(model: Named, cacheTtl: CacheTtl | undefined): ProviderOptions | undefined {
  const { provider, modelId } = model;
  const ttl = cacheTtl === undefined ? {} : { ttl: cacheTtl };
  const cacheControl = { type: "ephemeral", ...ttl };
  if (takesMarkedTools(model)) return { anthropic: { cacheControl } };
  if (provider === "amazon-bedrock" && /claude|nova/.test(modelId)) {
    return { bedrock: { cachePoint: { type: "default", ...ttl } } };
  }
  return provider.startsWith("openrouter") && modelId.startsWith("anthropic/")
    ? { openrouter: { cacheControl } }
    : undefined;
}

function marking(message: ProviderMessage, mark: ProviderOptions): ProviderMessage {
  return { ...message, providerOptions: mark };
}

function withOpenaiFields<Call extends MarkedCall>(
  call: Call,
  { provider, modelId }: Named,
  { cache, cacheTtl, agentId }: CacheOptions & { readonly agentId: string | undefined },
): Call {
  const isMarked = hasBreakpoints(modelId);
  const { openai, ...others } = call.providerOptions ?? {};
  const withFields = (fields: JsonObject): Call => {
    if (Object.keys(fields).length === 0) return call;
    return { ...call, providerOptions: { ...others, openai: { ...fields, ...openai } } };
  };
  // Without an explicit breakpoint nothing is written, and nothing is billed for it.
  if (cache === "off") return withFields(isMarked ? { promptCacheOptions: { mode: "explicit" } } : {});
  const sent = withFields({
    ...(agentId === undefined ? {} : { promptCacheKey: cacheKeyOf(agentId) }),
    ...(cacheTtl === undefined || provider !== "openai.responses" ? {} : { promptCacheOptions: { ttl: cacheTtl } }),
  });
  if (!isMarked) return sent;
  const breakpoint = { openai: { promptCacheBreakpoint: { mode: "explicit" } } };
  const prompt = call.prompt.map((message) => (message.role === "system" ? marking(message, breakpoint) : message));
  return { ...sent, prompt };
}
