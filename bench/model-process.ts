import { fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface ModelProcess {
  /** For instance `http://127.0.0.1:40123/v1`. */
  readonly baseUrl: string;
  /** Answers given since the process started; refusals do not count. */
  answered(): Promise<number>;
  /** Ends the process at once, by its handle; resolves when it is gone. May be called again. */
  stop(): Promise<void>;
}

/** Starts the model server and waits until it listens. Throws when it ends before that. */
export async function startModelProcess(): Promise<ModelProcess> {
  const child = fork(fileURLToPath(new URL("model-server.ts", import.meta.url)), [], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    execArgv: [],
  });
  const gone = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await gone;
  };
  const stdout = child.stdout;
  if (stdout === null) throw new Error("The model server has no standard output.");
  const lines = createInterface({ input: stdout });
  const ended = gone.then(() => {
    throw new Error("The model server ended before it listened; its own output says why.");
  });
  const [baseUrl] = (await Promise.race([once(lines, "line"), ended])) as [string];
  const answered = async (): Promise<number> => {
    const response = await fetch(new URL("/requests", baseUrl));
    return ((await response.json()) as { answered: number }).answered;
  };
  return { baseUrl, answered, stop };
}
