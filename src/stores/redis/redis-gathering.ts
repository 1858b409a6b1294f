import { type ArgumentLists, replyErrorOf } from "../../redis/index.ts";
import { type Script, severalOf } from "./redis-scripts.ts";

/** How many calls one script answers, so that other clients do not wait for long. */
const MOST = 8;
/** A call of more keys and arguments than this is sent alone: the stack of a script is limited. */
const MOST_PARTS = 800;

type Args = ArgumentLists[number];

/** A call of a script. */
export interface ScriptCall {
  readonly keys: readonly string[];
  /** `repeat`: how often the call was sent before. */
  readonly args: (repeat: number) => Args;
}

interface Call extends ScriptCall {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends a script, and again when the connection breaks. `args` gets how often it was sent before. */
export type Send = (script: Script, keys: ArgumentLists, args: (repeat: number) => ArgumentLists) => Promise<unknown>;

/** What becomes of a call after its error. */
type Recover = (error: unknown, call: ScriptCall) => Promise<unknown>;

/**
 * Calls of one script, each about one tree. Those of one moment go to the server as one, because a command costs more
 * than what it does: the process that sends it, and the server too.
 * Owns: the calls that wait for the end of the moment. Does not own: the connection. Not for a cluster, where the keys of
 * several calls may lie on several nodes.
 *
 * Invariants
 * 1. A call gets what it would have got alone: the error of one is not that of the others.
 * 2. Calls are made in the order in which they came.
 */
export class Gathering {
  readonly #script: Script;
  readonly #several: Script;
  readonly #send: Send;
  readonly #recover: Recover;
  #waiting: Call[] = [];

  /** The script gives a text or a list, and never nothing. */
  constructor(one: Script, send: Send, recover: Recover) {
    this.#script = one;
    this.#several = severalOf(one);
    this.#send = send;
    this.#recover = recover;
  }

  call(keys: Call["keys"], args: Call["args"]): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.push({ keys, args, resolve, reject });
    // After everything that follows from what has just been heard.
    if (this.#waiting.length === 1) process.nextTick(() => this.#sendAll());
    return promise;
  }

  #sendAll(): void {
    const calls = this.#waiting;
    this.#waiting = [];
    let few: Call[] = [];
    const sendFew = (): void => {
      if (few.length > 0) this.#sendTogether(few);
      few = [];
    };
    for (const call of calls) {
      if (call.keys.length + call.args(0).length > MOST_PARTS) {
        sendFew();
        this.#sendAlone(call);
      } else if (few.push(call) === MOST) sendFew();
    }
    sendFew();
  }

  #sendAlone(call: Call): void {
    this.#send(this.#script, [call.keys], (repeat) => [call.args(repeat)]).then(call.resolve, (error: unknown) =>
      this.#fail(call, error),
    );
  }

  #sendTogether(calls: readonly Call[]): void {
    const [first] = calls;
    if (first && calls.length === 1) return this.#sendAlone(first);
    const args = (repeat: number): ArgumentLists =>
      calls.flatMap((call) => {
        const own = call.args(repeat);
        return [[call.keys.length, own.length], own];
      });
    this.#send(
      this.#several,
      calls.map(({ keys }) => keys),
      args,
    ).then(
      (answers) => {
        const parts: readonly unknown[] = Array.isArray(answers) ? answers : [];
        calls.forEach((call, at) => {
          const answer = parts[2 * at + 1];
          if (parts[2 * at] === 1) call.resolve(answer);
          else this.#fail(call, replyErrorOf(String(answer)));
        });
      },
      (error: unknown) => {
        for (const call of calls) this.#fail(call, error);
      },
    );
  }

  #fail(call: Call, error: unknown): void {
    this.#recover(error, call).then(call.resolve, call.reject);
  }
}
