import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const agentFile = fileURLToPath(new URL("slow-agent.ts", import.meta.url));

/** A command that runs a process as process 1 of its own namespace, as in a container. */
const container = ["unshare", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child"] as const;
/** Whether this machine allows that. */
export const hasContainers = spawnSync(container[0], [...container.slice(1), "true"]).status === 0;

export interface ServeOptions {
  /** The options of `troupe serve` that name the store. */
  readonly store: readonly string[];
  readonly modelURL: string;
  /** Whether to run it as process 1 of its own namespace, under the same host name. */
  readonly isContained: boolean;
}

/** A listening `troupe serve`. */
export interface ServeProcess {
  readonly url: string;
  /** Sends SIGKILL; resolves when it has exited. */
  kill(): Promise<void>;
}

/** Starts `troupe serve` with the slow agent. Rejects if it exits before it listens. */
export async function startServe({ store, modelURL, isContained }: ServeOptions): Promise<ServeProcess> {
  const words = [process.execPath, program, "serve", agentFile, "--port", "0", "--auth", "none", ...store];
  const [command = "", ...rest] = isContained ? [...container, ...words] : words;
  const child = spawn(command, rest, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NO_COLOR: "1", NODE_OPTIONS: "--conditions=troupe-source", CHAOS_MODEL: modelURL },
  });
  let said = "";
  child.stderr.on("data", (bytes: Buffer) => {
    said += bytes.toString();
  });
  const ended = once(child, "close").then(() => undefined);
  const url = await Promise.race([
    ended,
    (async () => {
      for await (const line of createInterface({ input: child.stdout })) {
        const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
        if (found !== undefined) return found;
      }
      return undefined;
    })(),
  ]);
  child.stdout.resume();
  if (url === undefined) throw new Error(`troupe serve ended before it listened: ${said.slice(-600)}`);
  return {
    url,
    kill: async () => {
      // Kills unshare, with which the process in the namespace dies (--kill-child).
      child.kill("SIGKILL");
      await ended;
    },
  };
}
