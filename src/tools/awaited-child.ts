/**
 * What a tool returns to leave its result to a child that it has spawned: `run.await(child)` makes it. The call then waits for
 * the child without holding a slot, and the child's answer is its result.
 */
export class AwaitedChild {
  readonly childId: string;
  /** What comes before the child's answer. */
  readonly prefix: string | undefined;

  constructor(childId: string, prefix?: string) {
    this.childId = childId;
    this.prefix = prefix;
  }
}
