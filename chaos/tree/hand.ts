import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { TreeAnswer, TreeCommand, TreeOrders } from "./worker.ts";

/** Longest time for one command, in milliseconds. */
const LIMIT_MS = 60_000;

/** A process that runs parts of trees and executes commands sequentially. */
export class TreeHand {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #gone: Promise<never>;
  #said = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#ended = once(child, "exit");
    this.#gone = this.#ended.then(() => {
      throw new Error(`a process of the tree ended: ${this.#said.slice(-600)}`);
    });
    this.#gone.catch(() => undefined);
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#said += text;
    });
  }

  static async start(orders: TreeOrders): Promise<TreeHand> {
    const program = fileURLToPath(new URL("worker.ts", import.meta.url));
    const child = fork(program, [JSON.stringify(orders)], { stdio: ["ignore", "pipe", "pipe", "ipc"], execArgv: [] });
    const hand = new TreeHand(child);
    if (child.stdout) await Promise.race([once(child.stdout, "data"), hand.#gone]);
    return hand;
  }

  /** Its standard error. */
  get said(): string {
    return this.#said.trim();
  }

  /** Sends a command. Throws if the process answers with an error or does not answer. */
  async tell(command: TreeCommand): Promise<TreeAnswer> {
    const late = Promise.withResolvers<never>();
    const limit = setTimeout(() => late.reject(new Error(`${command.type} took over ${LIMIT_MS} ms`)), LIMIT_MS);
    try {
      const answered = Promise.withResolvers<TreeAnswer>();
      this.#child.once("message", (answer) => answered.resolve(answer as TreeAnswer));
      this.#child.send(command);
      const answer = await Promise.race([answered.promise, late.promise, this.#gone]);
      if (answer.error !== undefined) throw new Error(`${command.type}: ${answer.error}`);
      return answer;
    } finally {
      clearTimeout(limit);
    }
  }

  /** Kills it, as in a crash. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
