import type { AgentDefinition } from "../../agents/index.ts";
import { type Clock, wordsOfThrown } from "../../base/index.ts";
import { StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import type { StoredDefinition } from "../../state/index.ts";
import type { DataSubject, Forget } from "../../tools/index.ts";

/** The definitions that a process knows, by name. */
export type KnownDefinitions = ReadonlyMap<string, AgentDefinition>;

interface Keeper {
  /** For errors: `plugin "memory" of agent "clerk"`. */
  readonly what: string;
  readonly forget: Forget;
}

/** How long one call of `forget` may take, in milliseconds. */
const LIMIT_MS = 60_000;

/** Whether plugins or tools of the definition keep data of their own. */
export function keepsData({ forgets, tools }: AgentDefinition): boolean {
  return forgets.length > 0 || tools.tools.some((tool) => tool.kind === "function" && tool.forget !== undefined);
}

/** Names of definitions of a tree that this process does not know, and whose plugins or tools may keep data of their own. */
export function unknownKeepers(stored: readonly StoredDefinition[], known: KnownDefinitions): readonly string[] {
  const may = stored.filter(
    ({ name, plugins, tools }) =>
      !known.has(name) && (plugins.length > 0 || tools.some(({ kind }) => kind === "function")),
  );
  return [...new Set(may.map(({ name }) => name))].toSorted();
}

/** Throws `UnsupportedError` if this process lacks a definition that is needed to finish a deletion. */
export function assertKnown(rootAgentId: string, keepers: readonly string[], known: KnownDefinitions): void {
  const missing = keepers.filter((name) => !known.has(name));
  if (missing.length === 0) return;
  const names = missing.map((name) => `"${name}"`).join(", ");
  throw new UnsupportedError(
    `the deletion of "${rootAgentId}" is unfinished: plugins or tools of ${names} keep data of their own, and this process does not know ${missing.length === 1 ? "this definition" : "these definitions"}; repeat it in a runtime that does, or with troupe delete ${rootAgentId} --agents FILE`,
    { details: { rootAgentId } },
  );
}

/**
 * Has all plugins and tools that this process knows forget these agents or owners, each shared one once: also those of other definitions,
 * because an agent's definition may have been renamed. One that fails does not prevent the others.
 * @throws StoreUnavailableError for the first that failed.
 */
export async function forgetData(
  { definitions, clock }: { readonly definitions: KnownDefinitions; readonly clock: Pick<Clock, "setDelay"> },
  subjects: readonly DataSubject[],
): Promise<void> {
  const failed: StoreUnavailableError[] = [];
  for (const { what, forget } of keepersIn(definitions)) {
    for (const subject of subjects) {
      try {
        await withinLimit(clock, async () => await forget({ ...subject }));
      } catch (cause) {
        failed.push(unforgotten(what, subject, cause));
        break;
      }
    }
  }
  const [first] = failed;
  if (first) throw first;
}

function keepersIn(definitions: KnownDefinitions): Iterable<Keeper> {
  const keepers = new Map<object, Keeper>();
  for (const { name, forgets, tools } of definitions.values()) {
    for (const { plugin, source, forget } of forgets) {
      if (!keepers.has(source)) keepers.set(source, { what: `plugin "${plugin}" of agent "${name}"`, forget });
    }
    for (const tool of tools.tools) {
      if (tool.kind !== "function" || tool.forget === undefined || keepers.has(tool.forget)) continue;
      keepers.set(tool.forget, { what: `tool "${tool.name}" of agent "${name}"`, forget: tool.forget });
    }
  }
  return keepers.values();
}

function unforgotten(what: string, { scope, id }: DataSubject, cause: unknown): StoreUnavailableError {
  return new StoreUnavailableError(
    `the deletion is unfinished: ${what} could not forget ${scope} "${id}": ${wordsOfThrown(cause)}; repeat the deletion`,
    { cause, details: { scope, id } },
  );
}

async function withinLimit(clock: Pick<Clock, "setDelay">, work: () => Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.setDelay(LIMIT_MS, () => late.reject(new Error(`forget() did not end within ${LIMIT_MS} ms`)));
  try {
    await Promise.race([work(), late.promise]);
  } finally {
    cancel();
  }
}
