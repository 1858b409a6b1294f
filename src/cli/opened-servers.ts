/** Functions that close what a command has opened, in the order of opening. */
const closers = new WeakMap<object, (() => Promise<void>)[]>();

/** Calls a function when the command ends, also after an error. */
export function closeAtEnd(context: object, close: () => Promise<void>): void {
  closers.set(context, [...(closers.get(context) ?? []), close]);
}

/** Closes what the command has opened. */
export async function closeOpened(context: object): Promise<void> {
  const open = closers.get(context) ?? [];
  closers.delete(context);
  await Promise.all(open.map((close) => close()));
}
