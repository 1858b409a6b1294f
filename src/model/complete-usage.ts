import type { Usage } from "../state/index.ts";
import { byteBound, countTokens } from "./token-count.ts";
import type { ReportedUsage } from "./wire-usage.ts";

export interface CompleteUsage {
  /** What the server told. */
  readonly reported: ReportedUsage | undefined;
  /** All that was generated. */
  readonly generated: string;
  /** Counts the prompt here. */
  readonly countInput: () => number | Promise<number>;
}

/** A token has four or five bytes of most texts; only where it would have more than this, the text is counted to compare. */
const doubtfulBytesPerToken = 8;
const doubtfulFrom = 64;

/**
 * A call's usage: as the server reports it, where a side is missing or cannot be true as it is counted here, which marks it
 * `estimated`. What cannot be true is told in `note`.
 */
export async function completeUsage({ reported, generated, countInput }: CompleteUsage): Promise<Usage> {
  const { inputTokens, outputTokens, nonsense, ...parts } = reported ?? {};
  const output = await outputTokensOf(outputTokens, generated);
  const isEstimated = inputTokens === undefined || output.isCounted;
  const note = output.note ?? (nonsense === undefined ? undefined : `the server reported ${nonsense}`);
  return {
    ...parts,
    inputTokens: inputTokens ?? (await countInput()),
    outputTokens: output.tokens,
    ...(isEstimated ? { estimated: true } : {}),
    ...(note === undefined ? {} : { note }),
  };
}

/** Output tokens as they were reported, unless there is more text than they can hold; then as they are counted here. */
export async function outputTokensOf(
  reported: number | undefined,
  generated: string,
): Promise<{ readonly tokens: number; readonly isCounted: boolean; readonly note?: string }> {
  const bytes = byteBound(generated);
  const isTold = reported !== undefined && (reported > 0 || bytes === 0);
  if (isTold && (bytes <= doubtfulFrom || bytes <= reported * doubtfulBytesPerToken)) {
    return { tokens: reported, isCounted: false };
  }
  const tokens = await countTokens(generated);
  if (!isTold) return { tokens, isCounted: true };
  if (tokens <= reported * 2) return { tokens: reported, isCounted: false };
  return {
    tokens,
    isCounted: true,
    note: `the server reported ${reported} output tokens for a text of about ${tokens}`,
  };
}
