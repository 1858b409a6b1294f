import type { AgentKey } from "../../state/index.ts";
import { currentProcess, type Stores } from "../../stores/index.ts";

/** The process that runs an agent now; `unknown` is one of another machine, of which nobody can tell from here. */
export interface Owner {
  readonly pid: number;
  readonly isAlive: boolean | "unknown";
}

/** Who runs an agent; undefined when nobody does. A process that has ended does not count. */
export async function ownerOf(stores: Stores, key: AgentKey): Promise<Owner | undefined> {
  const holder = await stores.holder(key);
  if (holder === undefined) return undefined;
  const { pid, bootId } = holder.process;
  if (bootId !== currentProcess("").bootId) return { pid, isAlive: "unknown" };
  return isPidInUse(pid) ? { pid, isAlive: true } : undefined;
}

function isPidInUse(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Not allowed to signal it: it is there.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
