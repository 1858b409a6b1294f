import { z } from "zod";
import { armFaultPoints } from "../src/base/index.ts";
import { faultPointNames } from "./fault-point-names.ts";

/** The fault point and kind of a stall: stopped by SIGSTOP until another process continues it, or a blocked event loop. */
export const stallSchema = z.object({
  name: z.enum(faultPointNames),
  hit: z.int().positive(),
  /** Milliseconds that its event loop is blocked; `null` for SIGSTOP, which lasts until another process sends SIGCONT. */
  blockedMs: z.number().positive().nullable(),
});
export type Stall = z.infer<typeof stallSchema>;

/** Stalls at the fault point's `hit`-th pass from now. `onStall` is called just before. */
export function armStall({ name, hit, blockedMs }: Stall, onStall: () => void): void {
  const action = (): void => {
    onStall();
    if (blockedMs === null) process.kill(process.pid, "SIGSTOP");
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockedMs);
  };
  armFaultPoints([{ name, hit, action }]);
}
