import type { AgentTool } from "../agents/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { AgentIdentity, Json, JsonObject, SessionStub } from "../state/index.ts";

/*
 * Tool calls of stubbed sessions. In an agent with `stubs` no function tool runs: a call gets the result of the first stub that answers
 * it, or it fails its turn.
 *
 * 1. The rule depends only on the stored record of the agent (`stubs`), which each subagent inherits, and on its journal: another
 *    process, a restart or a worker of a queue decides in the same way.
 * 2. How often a stub was used is counted in the journal of the agent: each agent of a session counts its own calls, so that the results
 *    of parallel subagents do not depend on which of them is faster.
 * 3. Subagents, questions and tools of the caller go on as without stubs, unless a stub names them. Tools of the runtime always do.
 */

type Stubbed = Pick<AgentIdentity, "stubs" | "definition">;

/** Whether stubs give the calls of this tool their results. */
export function isStubbed({ stubs, definition }: Stubbed, { kind, name }: Pick<AgentTool, "kind" | "name">): boolean {
  if (!stubs) return false;
  if (kind === "function") return true;
  if (kind !== "client" && kind !== "subagent") return false;
  return stubs.some((stub) => stub.tool === name && isOfAgent(stub, definition));
}

function isOfAgent({ agent }: SessionStub, { name }: AgentIdentity["definition"]): boolean {
  return agent === undefined || agent === name;
}

/** A call as the rule sees it. */
export interface StubbedCall {
  readonly tool: string;
  readonly arguments: Json;
}

/** The stub that answers a call, with its index; otherwise why none does, as one sentence for people. */
export type StubAnswer =
  | { readonly stub: SessionStub; readonly index: number }
  | { readonly stub: undefined; readonly mismatch: string };

/** @param uses How many calls of the agent each stub has answered, by its index. */
export function stubFor(
  { stubs = [], definition }: Stubbed,
  call: StubbedCall,
  uses: Readonly<Record<string, number>>,
): StubAnswer {
  const misfits: Misfit[] = [];
  for (const [index, stub] of stubs.entries()) {
    if (stub.tool !== call.tool || !isOfAgent(stub, definition)) continue;
    const reasons = differencesOf(stub, call.arguments);
    const isUsedUp = stub.times !== undefined && (uses[index] ?? 0) >= stub.times;
    if (reasons.length === 0 && !isUsedUp) return { stub, index };
    misfits.push({ index, stub, reasons: isUsedUp ? [...reasons, usedUp(stub)] : reasons });
  }
  const shown = `The call ${call.tool}(${shortJson(call.arguments)}) of agent "${definition.name}"`;
  return { stub: undefined, mismatch: `${shown} matches no stub. ${nearest(stubs, call, misfits)}` };
}

interface Misfit {
  readonly index: number;
  readonly stub: SessionStub;
  readonly reasons: readonly string[];
}

function usedUp({ times }: SessionStub): string {
  return times === 1 ? "it has answered its one call" : `it has answered its ${times} calls`;
}

/** Maximum number of differences that a message names. */
const SHOWN_DIFFERENCES = 3;

/** The stub with the fewest differences, and what differs. */
function nearest(stubs: readonly SessionStub[], { tool }: StubbedCall, misfits: readonly Misfit[]): string {
  const [near] = misfits.toSorted((one, other) => one.reasons.length - other.reasons.length);
  if (near) {
    const { index, stub, reasons } = near;
    const args = stub.arguments === undefined ? "" : shortJson(stub.arguments);
    const left = reasons.length - SHOWN_DIFFERENCES;
    const more = left > 0 ? `; and ${left} more` : "";
    return `Nearest is stub ${index + 1}, ${stub.tool}(${args}): ${reasons.slice(0, SHOWN_DIFFERENCES).join("; ")}${more}.`;
  }
  const ofOthers = stubs.find((stub) => stub.tool === tool && stub.agent !== undefined);
  if (ofOthers) return `Its stubs are for agent "${ofOthers.agent}".`;
  const names = [...new Set(stubs.map((stub) => stub.tool))].join(", ");
  return `No stub names the tool "${tool}"; there are stubs for ${names}.`;
}

function differencesOf({ arguments: expected, match = "partial" }: SessionStub, given: Json): string[] {
  return expected === undefined ? [] : differences(expected, given, { path: "arguments", isEqual: match === "equal" });
}

interface Compared {
  readonly path: string;
  /** Whether the given value may have no further members. */
  readonly isEqual: boolean;
}

/** Members of objects are compared by name; lists have the same length. */
function differences(expected: Json, given: Json | undefined, { path, isEqual }: Compared): string[] {
  if (Array.isArray(expected) && Array.isArray(given)) {
    if (expected.length !== given.length) return [`${path} has ${given.length} items, not ${expected.length}`];
    return expected.flatMap((one: Json, index) =>
      differences(one, given[index] as Json, { path: `${path}[${index}]`, isEqual }),
    );
  }
  if (isObject(expected) && isObject(given)) {
    const known = Object.entries(expected).flatMap(([name, one]) =>
      differences(one, Object.hasOwn(given, name) ? given[name] : undefined, { path: `${path}.${name}`, isEqual }),
    );
    const further = isEqual ? Object.keys(given).filter((name) => !Object.hasOwn(expected, name)) : [];
    if (further.length > SHOWN_DIFFERENCES)
      return [...known, `${path} has ${further.length} fields that are not expected`];
    return [...known, ...further.map((name) => `${path}.${name} is not expected`)];
  }
  if (given === undefined) return [`${path} is missing, expected ${shortJson(expected)}`];
  if (expected === given) return [];
  return [`${path} is ${shortJson(given)}, expected ${shortJson(expected)}`];
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Maximum length of a value in a message. */
const SHOWN_CHARACTERS = 200;

function shortJson(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** The error for tools that the provider executes during an answer, where no stub can take their place. */
export function hostedInStubbed(model: string, hostedTools: readonly string[]): InvalidInputError {
  return new InvalidInputError(
    `the provider of model "${model}" executes ${hostedTools.join(", ")} during an answer, which stubs cannot replace: use a model without these tools`,
  );
}
