import type { Attempt, AttemptRequest, KeyCounts } from "./effect-ledger.ts";

/** The ledger's client for tools. */
export interface LedgerClient {
  attempt(request: Omit<AttemptRequest, "pid">, signal?: AbortSignal): Promise<Attempt>;
  of(key: string): Promise<KeyCounts>;
  counts(): Promise<{ readonly attempts: number; readonly effects: number; readonly keys: number }>;
}

export function ledgerAt(origin: string): LedgerClient {
  const ask = async <Answer>(path: string, init?: RequestInit): Promise<Answer> => {
    const response = await fetch(new URL(path, origin), init);
    if (!response.ok) throw new Error(`the ledger answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Answer;
  };
  return {
    attempt: (request, signal) =>
      ask("/attempts", {
        method: "POST",
        body: JSON.stringify({ ...request, pid: process.pid }),
        ...(signal === undefined ? {} : { signal }),
      }),
    of: (key) => ask(`/keys/${encodeURIComponent(key)}`),
    counts: () => ask("/counts"),
  };
}
