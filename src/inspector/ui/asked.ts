import { useEffect, useRef, useState } from "preact/hooks";
import { errorText } from "./feed-client.ts";

/** An answer of the feed for a view. The previous answer stays until the next one is received. */
export interface Asked<Answer> {
  readonly answer: Answer | undefined;
  readonly failure: string | null;
  readonly isWaiting: boolean;
}

interface AskOptions {
  /** `ask` is called again when one of these values changes. If `subject` changes, the previous answer is dropped. */
  readonly on: readonly unknown[];
  readonly subject: unknown;
  /** Debounce time for further changes. */
  readonly delayMs?: number;
}

export function useAsked<Answer>(ask: () => Promise<Answer>, { on, subject, delayMs = 0 }: AskOptions): Asked<Answer> {
  const [state, setState] = useState<Asked<Answer> & { readonly subject: unknown }>({
    answer: undefined,
    failure: null,
    isWaiting: true,
    subject,
  });
  const isSame = state.subject === subject;
  useEffect(() => {
    let isGone = false;
    const timer = setTimeout(
      () => {
        ask().then(
          (answer) => {
            if (!isGone) setState({ answer, failure: null, isWaiting: false, subject });
          },
          (error: unknown) => {
            if (!isGone) setState({ answer: undefined, failure: errorText(error), isWaiting: false, subject });
          },
        );
      },
      isSame && state.answer !== undefined ? delayMs : 0,
    );
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [subject, ...on]);
  return isSame ? state : { answer: undefined, failure: null, isWaiting: true };
}

/** An answer that is polled while it is shown. The previous answer stays if a later request fails. */
export function usePolled<Answer>(ask: () => Promise<Answer>, subject: unknown, everyMs: number): Asked<Answer> {
  const newest = useRef(ask);
  newest.current = ask;
  const [state, setState] = useState<{ readonly subject: unknown; readonly asked: Asked<Answer> }>();
  useEffect(() => {
    let isGone = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (next: (known: Answer | undefined) => Asked<Answer>): void => {
      if (isGone) return;
      setState((known) => ({ subject, asked: next(known?.subject === subject ? known?.asked.answer : undefined) }));
      timer = setTimeout(read, everyMs);
    };
    const read = (): void => {
      newest.current().then(
        (answer) => show(() => ({ answer, failure: null, isWaiting: false })),
        (error: unknown) => show((answer) => ({ answer, failure: errorText(error), isWaiting: false })),
      );
    };
    read();
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [subject, everyMs]);
  return state && state.subject === subject ? state.asked : { answer: undefined, failure: null, isWaiting: true };
}
