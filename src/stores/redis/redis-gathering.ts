import { type Script, script } from "./redis-scripts.ts";

/** How many calls one script answers, so that other clients do not wait for long. */
const MOST = 8;

interface Call {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Send = (script: Script, keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

/**
 * Calls of one script that only reads. Those of one moment go to the server as one, because a command costs more than
 * what it reads: the process that sends it, and the server too.
 * Owns: the calls that wait for the end of the moment. Does not own: the connection. Not for a cluster, where the keys of
 * several calls may lie on several nodes.
 *
 * Invariant: a call gets what it would have got alone. Where one of several fails, each is sent alone.
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
    for (let at = 0; at < calls.length; at += MOST) void this.#answer(calls.slice(at, at + MOST));
  }

  async #answer(calls: readonly Call[]): Promise<void> {
    if (calls.length > 1) {
      const keys = calls.flatMap((call) => call.keys);
      const args = calls.flatMap((call) => [call.keys.length, call.args.length, ...call.args]);
      const answers = await this.#send(this.#several, keys, args).catch(() => undefined);
      if (Array.isArray(answers)) return calls.forEach(({ resolve }, at) => resolve(answers[at]));
    }
    for (const { keys, args, resolve, reject } of calls) this.#send(this.#script, keys, args).then(resolve, reject);
  }
}

/**
 * A script that runs another one for each of several calls.
 * KEYS those of all calls. ARGV for each call: how many keys it has, how many arguments, the arguments. Gives the answers.
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
  answers[#answers + 1] = one({unpack(KEYS, key, key + keys - 1)}, {unpack(ARGV, at + 2, at + 1 + args)})
  key, at = key + keys, at + 2 + args
end
return answers
`,
  );
}
