const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** A moment as it is typed: an ISO date with a time (local where no zone stands), or a span from now; undefined for others. */
export function dateOf(text: string, now: number): Date | undefined {
  const span = /^(\d{1,6})([smh])$/.exec(text);
  if (span) return new Date(now + Number(span[1]) * (units[span[2] ?? ""] ?? 0));
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})?$/.test(text)) return undefined;
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
