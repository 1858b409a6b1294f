import { type ActorSystem, fromCallback } from "xstate";
import { createRedactor, type Redactor, readableThrown, wordsOfThrown } from "../base/index.ts";
import { LeaseLostError, TroupeError, TurnInterruptedError } from "../errors/index.ts";
import type { Entry, StoredError } from "../state/index.ts";
import type { Host } from "./host.ts";

type System = ActorSystem<never>;
const hosts = new WeakMap<object, Host>();

/** Ties a live agent's actor system to its host. Inputs of actors are persisted, so a host cannot be one. */
export function bindHost(system: object, host: Host): void {
  hosts.set(system, host);
}

export function hostOf(system: object): Host {
  const host = hosts.get(system);
  if (!host) throw new Error("an effect was started in an actor system without a host");
  return host;
}

/** One for all: leaving a state is ordinary, and an error made anew each time costs more than the transition. */
const stopped = new TurnInterruptedError("the state that called for this effect was left");

interface EffectInput {
  readonly turnId: string;
  readonly callId?: string;
}

/** Effects that have ended while the state that called for them goes on. */
const over = new WeakSet<object>();

/** Whether an effect actor has nothing to do any more, though its state goes on. */
export function isOver(actor: object): boolean {
  return over.has(actor);
}

export interface EffectOptions {
  /** Its state goes on when it has ended: the agent is told that nothing of it is under way any more. */
  readonly isOutlived?: boolean;
}

/**
 * The one wrapper of every effect actor. The body begins in a microtask, when the transition that called for it is over;
 * leaving the state aborts its signal; whatever it throws becomes an `effect.failed` entry, unless it was aborted or the
 * lease is lost.
 */
export function effectActor<Input extends EffectInput | undefined>(
  name: string,
  body: (host: Host, input: Input, signal: AbortSignal) => void | Promise<void>,
  { isOutlived = false }: EffectOptions = {},
) {
  return fromCallback<Entry, Input>(({ input, self, system }) => {
    const host = hostOf(system as System);
    const controller = new AbortController();
    const { signal } = controller;
    let isDone = false;
    const run = async (): Promise<void> => {
      await Promise.resolve();
      if (!signal.aborted) await body(host, input, signal);
      isDone = true;
      if (!isOutlived || signal.aborted) return;
      over.add(self);
      host.effectOver();
    };
    run().catch((thrown: unknown) => {
      const error = readableThrown(thrown);
      if (signal.aborted || error instanceof LeaseLostError || input === undefined) return;
      try {
        host.append({ type: "effect.failed", turnId: input.turnId, effect: name, error: storedErrorOf(error) });
      } catch (lost) {
        if (!(lost instanceof LeaseLostError)) throw lost;
      }
    });
    return () => {
      if (!isDone) controller.abort(stopped);
    };
  });
}

/** Longest error text that is journalled and told to a model; UTF-16 units. */
const MESSAGE_CHARACTERS = 8_000;

let redactor: Redactor | undefined;

/** Error texts are where secrets turn up that nobody meant to show: headers, addresses, values of the environment (S13). */
function shown(message: string): string {
  redactor ??= createRedactor();
  return redactor.text(bounded(message));
}

function bounded(message: string): string {
  if (message.length <= MESSAGE_CHARACTERS) return message;
  return `${message.slice(0, MESSAGE_CHARACTERS)}… [${message.length - MESSAGE_CHARACTERS} characters were cut]`;
}

/** Longest code that is journalled; UTF-16 units. */
const CODE_CHARACTERS = 200;

/** An error as it is journalled: code and words, no stack, no cause. Never throws, whatever was thrown. */
export function storedErrorOf(thrown: unknown): StoredError {
  const error = readableThrown(thrown);
  const message = shown(wordsOfThrown(error));
  if (error instanceof TroupeError) {
    // What a model refused as too long is told apart: it is what compaction is for.
    const isTooLong = (error.details as Partial<TroupeError["details"]> | undefined)?.["kind"] === "context_length";
    return { code: isTooLong ? "context_length" : codeOf(error.code), message, retryable: isTrue(error.retryable) };
  }
  return { code: error instanceof Error ? codeOf(error.name) : "thrown", message, retryable: false };
}

function isTrue(value: unknown): boolean {
  return value === true;
}

/** A class of a user's own may have set anything. */
function codeOf(code: unknown): string {
  return typeof code === "string" && code !== "" ? code.slice(0, CODE_CHARACTERS) : "Error";
}
