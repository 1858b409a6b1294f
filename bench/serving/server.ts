import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Peak, Question, Weight } from "./server-process.ts";
import type { ServerKind } from "./wire.ts";

type AnswerTo<Asked extends Question> = Asked extends { readonly ask: "open" }
  ? string[]
  : Asked extends { readonly ask: "weigh" }
    ? Weight
    : Peak;

export interface ServerProcess {
  readonly url: string;
  ask<const Asked extends Question>(question: Asked): Promise<AnswerTo<Asked>>;
  stop(): Promise<void>;
}

/** `stallMs`: time after which a client that does not read is disconnected. */
interface ServerOptions {
  readonly stallMs?: number;
}

/** Starts a server in a separate process. Rejects if it exits before it listens. */
export async function startServerProcess(
  kind: ServerKind,
  { stallMs = 60_000 }: ServerOptions = {},
): Promise<ServerProcess> {
  const program = fileURLToPath(new URL("server-process.ts", import.meta.url));
  const child = fork(program, [kind, String(stallMs)], {
    execArgv: ["--expose-gc"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const gone = once(child, "exit");
  const url = (await answerOf(child, gone)) as string;
  return {
    url,
    async ask(question) {
      child.send(question);
      return (await answerOf(child, gone)) as AnswerTo<typeof question>;
    },
    async stop() {
      child.kill("SIGTERM");
      await gone;
    },
  };
}

interface Answered {
  readonly answer?: unknown;
  readonly error?: string;
}

async function answerOf(child: ChildProcess, gone: Promise<unknown>): Promise<unknown> {
  const cancel = new AbortController();
  const ended = gone.then(() => Promise.reject(new Error("The server has exited; see its output for the reason.")));
  try {
    const told = once(child, "message", { signal: cancel.signal });
    const [{ answer, error }] = (await Promise.race([told, ended])) as [Answered];
    if (error !== undefined) throw new Error(`The server failed: ${error}`);
    return answer;
  } finally {
    cancel.abort();
    ended.catch(() => undefined);
  }
}
