/**
 * Milliseconds a server asked to wait: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date.
 * A date that has passed is 0; what cannot be read is `undefined`. `now` is in milliseconds since the epoch.
 */
export function parseRetryAfter(headers: { get(name: string): string | null }, now: number): number | undefined {
  const milliseconds = numberOf(headers.get("retry-after-ms"));
  if (milliseconds !== undefined) return Math.ceil(milliseconds);
  const text = headers.get("retry-after");
  const seconds = numberOf(text);
  if (seconds !== undefined) return Math.ceil(seconds * 1_000);
  if (text === null) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function numberOf(text: string | null): number | undefined {
  if (text === null || !/^\s*\d+(\.\d+)?\s*$/.test(text)) return undefined;
  return Number(text);
}
