import { fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface ModelProcess {
  /** For instance `http://127.0.0.1:40123/v1`. */
  readonly baseUrl: string;
  /** Number of answers since the process started, without refusals. */
  answered(): Promise<number>;
  /** Kills the process; resolves when it has exited. May be called again. */
  stop(): Promise<void>;
}

/** Starts the model server and waits until it listens. Throws if it exits first. */
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
    throw new Error("The model server exited before it listened; see its output for the reason.");
  });
  const [baseUrl] = (await Promise.race([once(lines, "line"), ended])) as [string];
  const answered = async (): Promise<number> => {
    const response = await fetch(new URL("/requests", baseUrl));
    return ((await response.json()) as { answered: number }).answered;
  };
  return { baseUrl, answered, stop };
}
