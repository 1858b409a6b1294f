import { type Clock, createRedactor, describeValue, maxJsonDepth, workingOn } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { AgentIdentity, TurnState } from "../../state/index.ts";
import { type Auth, concealCredentials } from "../../tools/index.ts";
import type { AuthRequest, RuntimeOptions } from "../api/runtime-types.ts";
import type { TurnContexts } from "./turn-contexts.ts";
import { TurnInheritance } from "./turn-inheritance.ts";

const nobody: Auth = Object.freeze({ actorId: "" });

/** Shorter texts in credentials are names and roles, which other texts may contain too. */
const SHORTEST_CREDENTIAL = 8;

/** All texts within credentials. A value that throws when it is read cannot be shown, so it needs no redaction. */
function secretsIn(credentials: unknown): string[] {
  try {
    return textsIn(credentials, new Set(), 0);
  } catch {
    return [];
  }
}

function textsIn(credentials: unknown, seen: Set<unknown>, depth: number): string[] {
  if (typeof credentials === "string") return credentials.length >= SHORTEST_CREDENTIAL ? [credentials] : [];
  if (typeof credentials !== "object" || credentials === null || seen.has(credentials)) return [];
  if (depth > maxJsonDepth) return [];
  seen.add(credentials);
  const parts: Iterable<unknown> = credentials instanceof Map ? credentials.values() : Object.values(credentials);
  return [...parts].flatMap((part) => textsIn(part, seen, depth + 1));
}

interface TurnAuthOptions {
  readonly resolve: RuntimeOptions["resolveAuth"];
  /** The turn that spawned the agent; `null` for a root. */
  readonly parentTurnOf: (agentId: string) => string | null;
  readonly contexts: Pick<TurnContexts, "of">;
  readonly clock: Pick<Clock, "work">;
}

/**
 * The actor of each open turn, with credentials. In memory only, because credentials are never stored. Children inherit the actor
 * from the turn that spawned them.
 */
export class TurnAuth {
  readonly #known: TurnInheritance<Auth>;
  readonly #redactors = new WeakMap<Auth, (text: string) => string>();
  readonly #resolve: RuntimeOptions["resolveAuth"];
  readonly #contexts: Pick<TurnContexts, "of">;
  readonly #clock: Pick<Clock, "work">;

  constructor({ resolve, parentTurnOf, contexts, clock }: TurnAuthOptions) {
    this.#known = new TurnInheritance(parentTurnOf);
    this.#resolve = resolve;
    this.#contexts = contexts;
    this.#clock = clock;
  }

  keep(turnId: string, auth: Auth): void {
    this.#known.keep(turnId, concealCredentials(auth));
  }

  /** Gives the credentials that were kept for an input to the turn that it has opened. */
  move(from: string, turnId: string): void {
    this.#known.move(from, turnId);
  }

  /** Drops the credentials of an ended turn; children that outlive it keep them for their first turns. */
  forget(turnId: string, heirs: readonly string[] = []): void {
    this.#known.forget(turnId, heirs);
  }

  of(turnId: string): Auth | undefined {
    return this.#known.find(turnId, ({ credentials }) => credentials !== undefined) ?? this.#known.find(turnId);
  }

  /** Redacts the turn's credentials, and secrets of the environment, in a text. */
  redactorOf(turnId: string): (text: string) => string {
    return this.redactorFor(this.of(turnId));
  }

  redactorFor(auth: Auth = nobody): (text: string) => string {
    const known = this.#redactors.get(auth);
    if (known) return known;
    const redactor = createRedactor({ secrets: secretsIn(auth.credentials), shapes: false });
    const redact = (text: string): string => redactor.text(text);
    this.#redactors.set(auth, redact);
    return redact;
  }

  /** Requests the credentials of the open turn again after a restart. */
  async resume(
    { agentId }: Pick<AgentIdentity, "agentId">,
    { actorId, turnId }: Pick<TurnState, "actorId" | "turnId">,
  ): Promise<void> {
    if (actorId === null || this.of(turnId)) return;
    const auth = (await this.ask({ actorId, agentId, turnId, reason: "restart" })) ?? { actorId };
    this.keep(turnId, auth);
  }

  /** Requests credentials that a tool needs, and keeps them for the turn. */
  async resolve(identity: AgentIdentity, turnId: string, actorId: string | null): Promise<Auth | undefined> {
    if (actorId === null) return undefined;
    const auth = await this.ask({ actorId, agentId: identity.agentId, turnId, reason: "tool" });
    if (auth) this.keep(turnId, auth);
    return auth;
  }

  /** Calls `resolveAuth`. Throws `InvalidInputError` if it returns anything but `undefined` or an `Auth`. */
  async ask(request: AuthRequest): Promise<Auth | undefined> {
    const asking = (): unknown => this.#resolve?.(request);
    const given: unknown = await this.#contexts.of(request.turnId).run(() => workingOn(this.#clock, asking));
    if (given === undefined || given === null) return undefined;
    const { actorId, credentials } = given as Partial<Auth>;
    if (typeof actorId === "string") return { actorId, credentials };
    const right = "expected { actorId: string, credentials } or undefined";
    throw new InvalidInputError(
      `resolveAuth returned ${describeValue(given)} with actorId ${describeValue(actorId)}; ${right}`,
    );
  }
}
