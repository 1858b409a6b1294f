/** Runs the works of one key one after the other, in the order in which they were given, and those of different keys at the same time. */
export function oneAtATime(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const ends = new Map<string, Promise<void>>();
  return async (key, work) => {
    const before = ends.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.set(key, promise);
    try {
      await before;
      return await work();
    } finally {
      resolve();
      if (ends.get(key) === promise) ends.delete(key);
    }
  };
}
