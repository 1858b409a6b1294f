/** Thrown when a check would take too long; the message is fit for a model. */
export class TooManySteps extends Error {
  constructor() {
    super("checking it takes too many steps: send fewer or shorter values");
  }
}

/**
 * Counts the steps of one synchronous check, so that no schema and no value can hold the event loop (guarantee S11).
 * One step costs some ten to thirty nanoseconds; the default of one million is a few tens of milliseconds.
 */
export interface StepLimit {
  /** Starts a new check. */
  reset(steps?: number): void;
  /** Throws `TooManySteps` when none are left. */
  spend(steps: number): void;
  /** Steps since the check was started. */
  spent(): number;
}

export const defaultSteps = 1_000_000;

export function createStepLimit(): StepLimit {
  let allowed = 0;
  let left = 0;
  return {
    reset(steps = defaultSteps) {
      allowed = steps;
      left = steps;
    },
    spent: () => allowed - left,
    spend(steps) {
      left -= steps;
      if (left < 0) throw new TooManySteps();
    },
  };
}
