/** How long matching may block the event loop at a time, in milliseconds. */
const AT_ONCE_MS = 4;

interface MatchOptions {
  readonly signal: AbortSignal;
  /** Stops after so many matches. */
  readonly most: number;
  /** A reading of `performance.now()` after which no further texts are tested. */
  readonly deadline: number;
}

/** Matches among some texts, and how many of these texts were tested. */
export interface BoundedMatches {
  /** Indexes of the matching texts, ascending. */
  readonly matches: readonly number[];
  readonly tested: number;
}

/**
 * Tests texts with a pattern of a model, for a few milliseconds at a time, so that the event loop is not blocked. Returns `undefined` if
 * the pattern is too slow for one of the texts. Rejects when the signal is aborted.
 */
export async function boundedMatches(
  texts: readonly string[],
  test: (text: string) => boolean,
  { signal, most, deadline }: MatchOptions,
): Promise<BoundedMatches | undefined> {
  const { nextTask, TooSlowError, withinLimit } = await import("./time-limit.ts");
  const matches: number[] = [];
  let tested = 0;
  try {
    while (tested < texts.length && matches.length < most && performance.now() < deadline) {
      const { found, next } = withinLimit(() => testSome(texts, test, { from: tested, most: most - matches.length }));
      matches.push(...found);
      tested = next;
      await nextTask();
      signal.throwIfAborted();
    }
  } catch (error) {
    if (error instanceof TooSlowError) return undefined;
    throw error;
  }
  return { matches, tested };
}

function testSome(
  texts: readonly string[],
  test: (text: string) => boolean,
  { from, most }: { readonly from: number; readonly most: number },
): { readonly found: readonly number[]; readonly next: number } {
  const until = performance.now() + AT_ONCE_MS;
  const found: number[] = [];
  let next = from;
  while (next < texts.length && found.length < most) {
    if (test(texts[next] ?? "")) found.push(next);
    next += 1;
    if (performance.now() > until) break;
  }
  return { found, next };
}
