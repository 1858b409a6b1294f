import type { Host } from "./host.ts";

export interface Warning {
  readonly code: string;
  readonly message: string;
}

/** Whether this turn has warned of it. */
export function isWarnedOf(host: Host, turnId: string, code: string): boolean {
  return host.memory(turnId).entries.some((entry) => entry.type === "warning" && entry.code === code);
}

/** Warns of what this turn has not warned of yet. */
export function appendWarnings(host: Host, turnId: string, warnings: readonly Warning[]): void {
  for (const { code, message } of warnings) {
    if (!isWarnedOf(host, turnId, code)) host.append({ type: "warning", turnId, code, message });
  }
}
