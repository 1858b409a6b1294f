import { createHmac, randomBytes } from "node:crypto";
import { stableStringify } from "../../base/index.ts";
import { type AgentRecord, gateToldBy, meantCall, type Message, textOf } from "../../state/index.ts";
import { type AgentJournal, journalOf } from "./agent-journal.ts";
import type { ComparedText, StepContents, StepPage } from "./answers.ts";
import type { PlacedEntry } from "./journals.ts";
import { pauses } from "./pauses.ts";
import { sentPrompts } from "./prompts.ts";
import { agentKeyIn, type RunSource } from "./source.ts";
import type { Visibility } from "./visible-values.ts";

const AGENTS_AT_A_TIME = 50;
/** After this many milliseconds, no further agent is read for the answer. */
const MOST_MS = 300;
/** Characters of a text that are shown, and how many are searched for secrets, which may cross the cut. */
const LONGEST_TEXT = 400;
const LOOKED_AT = 4_000;
/** A random key per process, so that contents cannot be guessed from their hashes. */
const hashKey = randomBytes(32);

function hashOf(text: string): string {
  return createHmac("sha256", hashKey).update(text).digest("hex").slice(0, 16);
}

/** The contents of the steps of a run, agent by agent in the order of their ids. */
export async function stepPage(source: RunSource, after: string | undefined, sight: Visibility): Promise<StepPage> {
  if (sight.namesOnly) return { items: [], next: null };
  const { stores, tenant, runId } = source;
  const items: StepContents[] = [];
  const until = performance.now() + MOST_MS;
  let last = after;
  for (;;) {
    const limit = AGENTS_AT_A_TIME;
    const agents: AgentRecord[] = await stores.listAgents({ tenant, rootAgentId: runId, limit, after: last });
    for (const { agentId } of agents) {
      items.push(...(await stepsOf(source, await journalOf(source, agentId), sight)));
      last = agentId;
      if (performance.now() >= until) return { items, next: agentId };
    }
    if (agents.length < limit) return { items, next: null };
  }
}

async function stepsOf(source: RunSource, of: AgentJournal, sight: Visibility): Promise<StepContents[]> {
  const { agentId } = of.record;
  const { entries } = of.journal;
  const messages = await source.stores.messages(agentKeyIn(source, agentId));
  const byId = new Map(messages.map((message) => [message.id, message]));
  const given = argumentsIn(entries);
  const results = new Map(
    entries.flatMap(({ entry }) => (entry.type === "tool.settled" ? [[entry.callId, entry.messageId] as const] : [])),
  );
  const texts = new ComparedTexts(source.runId, sight);
  const sent = await sentPrompts(source, of);
  const pause = pauses();
  const steps: StepContents[] = [];
  for (const [place, { entry }] of entries.entries()) {
    if (entry.type !== "model.requested") continue;
    const end = endOf(entries, place);
    const answer = end && byId.get(end.messageId);
    const asked = answer?.role === "assistant" ? (answer.toolCalls ?? []).map(meantCall) : [];
    const prompt = sent.prompt(entry.seq);
    steps.push({
      agentId,
      seq: entry.seq,
      prompt: prompt ? texts.hashOfPrompt(prompt.request) : null,
      answer: answer ? texts.of(textOf(answer.content)) : null,
      calls: (end?.calls ?? []).map(({ callId }) => {
        const result = byId.get(results.get(callId) ?? "");
        const text = asked.find((one) => one.callId === callId)?.arguments;
        const args = given.get(callId) ?? (text === undefined ? undefined : canonical(text));
        return {
          callId,
          arguments: args === undefined ? null : texts.of(args),
          result: result ? texts.of(messageText(result)) : null,
        };
      }),
    });
    await pause();
  }
  return steps;
}

/** The checked arguments of calls, or those that a person edited, by call id. */
function argumentsIn(entries: readonly PlacedEntry[]): ReadonlyMap<string, string> {
  const given = new Map<string, string>();
  for (const { entry } of entries) {
    const gate = "callId" in entry ? gateToldBy(entry) : undefined;
    if (gate && "callId" in entry) given.set(entry.callId ?? "", stableStringify(gate.arguments));
  }
  return given;
}

/** The answer to the request at an index, if it precedes the next request. */
function endOf(entries: readonly PlacedEntry[], place: number) {
  for (let at = place + 1; at < entries.length; at += 1) {
    const entry = entries[at]?.entry;
    if (entry?.type === "model.responded") return entry;
    if (entry?.type === "model.requested") return undefined;
  }
  return undefined;
}

function messageText({ content }: Message): string {
  return typeof content === "string" ? content : stableStringify(content);
}

/** JSON with members in a fixed order. Text that is not JSON is returned unchanged. */
function canonical(text: string): string {
  try {
    return stableStringify(JSON.parse(text));
  } catch {
    return text;
  }
}

type Prompt = NonNullable<ReturnType<Awaited<ReturnType<typeof sentPrompts>>["prompt"]>>["request"];

/**
 * Texts and hashes that are comparable between two runs: ids of the run's subagents are left out.
 * Owns: the hashes of the messages, each of which is in many prompts.
 */
class ComparedTexts {
  readonly #ids: RegExp;
  readonly #sight: Visibility;
  readonly #hashes = new WeakMap<Message, string>();

  constructor(runId: string, sight: Visibility) {
    this.#ids = new RegExp(`${runId.replaceAll(/[^\w]/g, String.raw`\$&`)}~[0-9a-f]+`, "g");
    this.#sight = sight;
  }

  of(text: string): ComparedText {
    const shown = this.#sight.redactor.text(text.slice(0, LOOKED_AT));
    const cut = shown.length > LONGEST_TEXT ? `${shown.slice(0, LONGEST_TEXT)}…` : shown;
    return { text: cut, hash: hashOf(this.#withoutIds(text)) };
  }

  hashOfPrompt({ messages, ...others }: Prompt): string {
    return hashOf(messages.map((message) => this.#hashOf(message)).join("") + stableStringify(others));
  }

  #hashOf(message: Message): string {
    const known = this.#hashes.get(message);
    if (known !== undefined) return known;
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    const said = [
      message.role,
      message.content,
      message.role === "tool" ? [callPosition(message.callId), message.isError === true] : null,
      calls.map((call) => [callPosition(call.callId), call.name, canonical(call.arguments)]),
    ];
    const hash = hashOf(this.#withoutIds(stableStringify(said)));
    this.#hashes.set(message, hash);
    return hash;
  }

  #withoutIds(text: string): string {
    return text.replaceAll(this.#ids, "~");
  }
}

/** The suffix of a call's id that identifies it within its agent: turn, step and number. */
function callPosition(callId: string): string {
  return callId.slice(callId.lastIndexOf("#") + 1);
}
