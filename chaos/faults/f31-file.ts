import { existsSync, readFileSync, statSync } from "node:fs";
import { jsonLinesOf, runProcess } from "../processes.ts";
import { type Acknowledged, auditStore } from "./f31-audit.ts";
import type { WriterLine, WriterOrders } from "./f31-team.ts";

const LIMIT_MS = 60_000;

/** One database file, its writers, and everything acknowledged to them. */
export class WrittenFile {
  readonly path: string;
  readonly violations: string[] = [];
  acknowledged = 0;
  killed = 0;
  /** Writes rejected as unavailable for another reason than a full disk. */
  unavailable = 0;
  full = 0;
  /** Writers that started and exited while another one kept running. */
  visits = 0;
  readonly #acknowledged = new Map<string, Acknowledged["lines"]>();
  #runs = 0;

  constructor(path: string) {
    this.path = path;
  }

  size(): number {
    return statSync(this.path).size;
  }

  async write(
    agentId: string,
    limits: Partial<Pick<WriterOrders, "batches" | "killAfterMs" | "pauseMs" | "maxBytes">>,
  ): Promise<void> {
    this.#runs += 1;
    const log = `${this.path}.${this.#runs}.jsonl`;
    const open = { batches: Number.MAX_SAFE_INTEGER, killAfterMs: null, pauseMs: 0, maxBytes: null };
    const orders: WriterOrders = { store: this.path, log, agentId, ...open, ...limits };
    const end = await runProcess("faults/f31-writer.ts", [JSON.stringify(orders)], { limitMs: LIMIT_MS });
    if (end.timedOut) this.violations.push(`${agentId} was still running after ${LIMIT_MS} ms`);
    else if (end.signal === "SIGKILL") this.killed += 1;
    if (end.stderr !== "") this.violations.push(`${agentId} wrote to standard error: ${end.stderr.slice(0, 500)}`);
    this.#note(agentId, existsSync(log) ? jsonLinesOf<WriterLine>(readFileSync(log, "utf8")) : []);
  }

  async audit(when: string): Promise<void> {
    const acknowledged = [...this.#acknowledged].map(([agentId, lines]) => ({ agentId, lines }));
    this.violations.push(...(await auditStore(this.path, acknowledged)).map((fault) => `${when}: ${fault}`));
  }

  #note(agentId: string, lines: readonly WriterLine[]): void {
    const written = lines.filter((line) => line.type === "acknowledged");
    this.#acknowledged.set(agentId, [...(this.#acknowledged.get(agentId) ?? []), ...written]);
    this.acknowledged += written.length;
    for (const line of lines) {
      if (line.type === "failed") this.violations.push(`${agentId}: ${line.message}`);
      if (line.type === "unavailable" && line.code === "SQLITE_FULL") this.full += 1;
      else if (line.type === "unavailable") this.unavailable += 1;
    }
  }
}
