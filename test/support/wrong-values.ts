import { anything, sample } from "fast-check";
import { expect } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";

const refuse = (): never => {
  throw new TypeError("it does not want to be looked at");
};

/** An object that throws at every access. */
export function hostile(): object {
  return new Proxy(
    {},
    { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse, getOwnPropertyDescriptor: refuse },
  );
}

function nested(levels: number): object {
  let value: object = {};
  for (let level = 0; level < levels; level += 1) value = { value };
  return value;
}

function cycle(): object {
  const value: Record<string, unknown> = {};
  value["self"] = value;
  return value;
}

class Own {
  readonly field = 1;
}

/** Values that people, or faulty programs, pass instead of valid ones. */
export function classicValues(): readonly unknown[] {
  const classics = [
    null,
    0,
    -1,
    5,
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    10n,
    "",
    " ",
    "nonsense",
    "\0",
    true,
    false,
  ];
  const objects = [
    [],
    [null],
    {},
    { a: 1 },
    Object.create(null),
    new Date(Number.NaN),
    new Map([["a", 1]]),
    new Own(),
    new AbortController(),
  ];
  return [...classics, ...objects, Symbol("s"), () => undefined, nested(3_000), cycle(), hostile(), Promise.resolve()];
}

/** Some more, of any kind; the same ones each time. */
export function anyValues(count: number): readonly unknown[] {
  return sample(anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }), {
    numRuns: count,
    seed: 16,
  });
}

/** Whether it was accepted; a refusal must be an input error that names the value. */
export async function isTaken(name: string, call: () => unknown): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    expect(error, `${name}: ${String(error instanceof Error ? error.stack : error)}`).toBeInstanceOf(InvalidInputError);
    expect((error as Error).message).toContain(name);
    return false;
  }
}
