import { replyErrorOf } from "../../redis/index.ts";
import { type Script, script } from "./redis-scripts.ts";

/** How many calls one script answers, so that other clients do not wait for long. */
const MOST = 8;
/** A call of more keys and arguments than this is sent alone: the stack of a script is limited. */
const MOST_PARTS = 800;

type Args = readonly (string | number)[];

interface Call {
  readonly keys: readonly string[];
  /** `repeat`: how often the call was sent before. */
  readonly args: (repeat: number) => Args;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Sends a script, and again when the connection breaks. */
type Send = (script: Script, keys: readonly string[], args: Call["args"]) => Promise<unknown>;

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
  #waiting: Call[] = [];

  /** The script gives a list, and never nothing. */
  constructor(one: Script, send: Send) {
    this.#script = one;
    this.#several = severalOf(one);
    this.#send = send;
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
    const few = calls.filter(({ keys, args }) => keys.length + args(0).length <= MOST_PARTS);
    for (const call of calls) if (!few.includes(call)) this.#sendAlone(call);
    for (let at = 0; at < few.length; at += MOST) void this.#sendTogether(few.slice(at, at + MOST));
  }

  #sendAlone({ keys, args, resolve, reject }: Call): void {
    this.#send(this.#script, keys, args).then(resolve, reject);
  }

  async #sendTogether(calls: readonly Call[]): Promise<void> {
    const [first] = calls;
    if (first && calls.length === 1) return this.#sendAlone(first);
    const keys = calls.flatMap((call) => call.keys);
    const args = (repeat: number): Args =>
      calls.flatMap((call) => {
        const own = call.args(repeat);
        return [call.keys.length, own.length, ...own];
      });
    try {
      const answers: unknown = await this.#send(this.#several, keys, args);
      for (const [at, call] of calls.entries()) settle(call, Array.isArray(answers) ? answers[at] : undefined);
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }
}

function settle({ resolve, reject }: Call, answer: unknown): void {
  const [isDone, result]: unknown[] = Array.isArray(answer) ? answer : [];
  if (isDone === 1) resolve(result);
  else reject(replyErrorOf(String(result)));
}

/**
 * A script that runs another one for each of several calls.
 * KEYS those of all calls. ARGV for each call: how many keys it has, how many arguments, the arguments.
 * Gives for each {1, its answer} or {0, its error}.
 */
function severalOf({ name, text }: Script): Script {
  return script(
    `${name}, several`,
    `
local function one(KEYS, ARGV)
${text}
end
local answers, key, at = {}, 1, 1
while at <= #ARGV do
  local keys, args = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local ok, answer = pcall(one, {unpack(KEYS, key, key + keys - 1)}, {unpack(ARGV, at + 2, at + 1 + args)})
  if not ok and type(answer) == 'table' then answer = answer.err end
  answers[#answers + 1] = ok and {1, answer} or {0, answer}
  key, at = key + keys, at + 2 + args
end
return answers
`,
  );
}
