import { shortHash } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";

/** Whether prompts are marked for the provider's cache. */
export type PromptCaching = "auto" | "off";

/** How long the provider keeps what a call writes to its cache. */
export type CacheTtl = "5m" | "30m" | "1h" | "12h";

export interface CacheOptions {
  readonly cache?: PromptCaching | undefined;
  readonly cacheTtl?: CacheTtl | undefined;
}

/** Lifetimes of providers with marks in the form of Anthropic, and of OpenAI. The longer one of each is written at a higher rate. */
export const anthropicTtls: readonly CacheTtl[] = ["5m", "1h"];
export const openaiTtls: readonly CacheTtl[] = ["30m", "12h"];

/** Whether a call may write entries of the longer lifetime, by the option or by fields of the user's own. */
export function asksForLongTtl(cacheTtl: CacheTtl | undefined, ...fields: readonly unknown[]): boolean {
  return /"ttl":"(?:1h|12h)"/.test(JSON.stringify([{ ttl: cacheTtl }, ...fields]));
}

/** @throws InvalidInputError for a lifetime that the model does not have, and for one beside `cache: "off"`. */
export function assertCacheTtl({ cache, cacheTtl }: CacheOptions, of: string, ttls: readonly CacheTtl[]): void {
  if (cacheTtl === undefined) return;
  if (cache === "off")
    throw new InvalidInputError(`${of}: cacheTtl is "${cacheTtl}", but cache is "off". Leave one of them out.`);
  if (ttls.includes(cacheTtl)) return;
  const expected = ttls.map((ttl) => `"${ttl}"`).join(" or ");
  throw new InvalidInputError(
    `${of}: cacheTtl is "${cacheTtl}"; ${expected === "" ? "this model has no lifetime that can be chosen, so leave it out" : `expected ${expected} for this model`}.`,
  );
}

/** Longest `prompt_cache_key` that OpenAI takes, in characters. */
const LONGEST_KEY = 64;

/** The key under which an agent's prompts are cached: its id, or a hash of a longer id. */
export function cacheKeyOf(agentId: string): string {
  return agentId.length <= LONGEST_KEY ? agentId : shortHash(agentId);
}

/** Whether the model has explicit breakpoints and bills what it writes to its cache: GPT-5.6 and later. */
export function hasBreakpoints(model: string): boolean {
  const [, major, minor = "0"] = /^(?:ft:)?gpt-(\d+)(?:\.(\d+))?/.exec(model) ?? [];
  return major !== undefined && (Number(major) > 5 || (Number(major) === 5 && Number(minor) >= 6));
}

/** Marks on messages, by their positions, and the fields of the request. */
export interface CachePlan {
  readonly fields: JsonObject;
  readonly marked: readonly number[];
  /** The field of a marked part, and its value. */
  readonly mark?:
    | { readonly name: "prompt_cache_breakpoint" | "cache_control"; readonly value: JsonObject }
    | undefined;
}

type Roles = readonly { readonly role: string }[];

/** The server that gets a prompt, and the agent that sends it. */
export interface CacheTarget {
  readonly model: string;
  /** Host and path of the server. */
  readonly address: string;
  readonly agentId: string | undefined;
}

/** For Chat Completions: OpenAI's key and breakpoints on its own servers, and marks for models of Anthropic behind OpenRouter. */
export function chatCachePlan(messages: Roles, options: CacheOptions, target: CacheTarget): CachePlan {
  const { cache, cacheTtl } = options;
  if (isClaude(target.model)) {
    if (cache === "off" || !(isChosen(options) || isServerOf("openrouter.ai", target.address))) return nothing;
    const value = { type: "ephemeral", ...(cacheTtl === undefined ? {} : { ttl: cacheTtl }) };
    return { fields: {}, marked: lastPrompts(messages), mark: { name: "cache_control", value } };
  }
  const fields = keyFields(options, target);
  if (fields["prompt_cache_key"] === undefined || !hasBreakpoints(target.model)) return { fields, marked: [] };
  const name = "prompt_cache_breakpoint";
  // OpenAI marks the newest message by itself, but this API has the longer lifetime only on explicit breakpoints.
  if (cacheTtl !== "12h") return { fields, marked: systemOf(messages), mark: { name, value: { mode: "explicit" } } };
  const value = { mode: "explicit", ttl: cacheTtl };
  return {
    fields: { ...fields, prompt_cache_options: { mode: "explicit" } },
    marked: everyEnd(messages),
    mark: { name, value },
  };
}

/** For OpenAI's Responses: its key, and the lifetime of the breakpoint that it sets itself on the newest message. */
export function responsesCacheFields(options: CacheOptions, target: CacheTarget): JsonObject {
  const { cacheTtl } = options;
  return {
    ...keyFields(options, target),
    ...(cacheTtl === undefined ? {} : { prompt_cache_options: { ttl: cacheTtl } }),
  };
}

/** The key by which OpenAI finds a prompt again; empty for other servers, which may refuse it. */
function keyFields(options: CacheOptions, { model, address, agentId }: CacheTarget): JsonObject {
  const isOpenai = isServerOf("api.openai.com", address);
  // Without an explicit breakpoint nothing is written, and nothing is billed for it.
  if (options.cache === "off") {
    return isOpenai && hasBreakpoints(model) ? { prompt_cache_options: { mode: "explicit" } } : {};
  }
  if (agentId === undefined || !(isChosen(options) || isOpenai)) return {};
  return { prompt_cache_key: cacheKeyOf(agentId) };
}

function isChosen({ cache, cacheTtl }: CacheOptions): boolean {
  return cache === "auto" || cacheTtl !== undefined;
}

/** The lifetimes that a model of the Responses API has, by its name. */
export function responsesTtls(model: string): readonly CacheTtl[] {
  return hasBreakpoints(model) ? openaiTtls : [];
}

const nothing: CachePlan = { fields: {}, marked: [] };

/** The lifetimes that a model behind Chat Completions has, by its name. */
export function chatTtls(model: string): readonly CacheTtl[] {
  if (isClaude(model)) return anthropicTtls;
  return hasBreakpoints(model) ? openaiTtls : [];
}

function isClaude(model: string): boolean {
  return model.startsWith("anthropic/");
}

/** Whether the address is one of this host, or of a region of it. */
function isServerOf(host: string, address: string): boolean {
  const [given = ""] = address.split("/");
  return given === host || given.endsWith(`.${host}`);
}

function systemOf(messages: Roles): readonly number[] {
  return messages[0]?.role === "system" ? [0] : [];
}

/**
 * The system message, the newest message, and the end of the prompt before it. Providers look back only about 20 blocks for what is
 * cached, and one answer with many calls has more.
 */
export function lastPrompts(messages: Roles): readonly number[] {
  const before = messages.findLastIndex(({ role }) => role === "assistant") - 1;
  const places = [...systemOf(messages), before, messages.length - 1].filter((index) => index >= 0);
  return [...new Set(places)];
}

/** Number of breakpoints that OpenAI compares with its cache, from the newest on. */
const MOST_COMPARED = 80;

function everyEnd(messages: Roles): readonly number[] {
  const ends = messages.flatMap(({ role }, index) => (role === "user" || role === "tool" ? index : []));
  return [...systemOf(messages), ...ends.slice(1 - MOST_COMPARED)];
}
