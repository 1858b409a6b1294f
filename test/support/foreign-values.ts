import * as fc from "fast-check";

/** A value of this many levels, or an endlessly nested one. */
function nested(levels: number): unknown {
  let value: unknown = "bottom";
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? { inner: value } : [value];
  return value;
}

function cycle(): unknown {
  const value: Record<string, unknown> = { name: "cycle" };
  value["self"] = value;
  value["again"] = [value, value];
  return value;
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function refuse(): never {
  throw new RangeError("not to be read");
}

/** A value that throws at every access. */
function unruly(target: object): unknown {
  return new Proxy(target, { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse });
}

class Custom {
  readonly own = 1;
  get content(): string {
    throw new Error("not to be read");
  }
}

/** Values that users pass by mistake, by name; each call creates a new one. */
export const foreignValues: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  "a negative number": () => -2_000,
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  "a fraction": () => 12.5,
  "a number beyond 2^53": () => 2 ** 60,
  "a bigint": () => 10n ** 30n,
  "a number as text": () => "0101",
  "an empty text": () => "",
  "half a surrogate pair and a NUL": () => "\ud800\u0000",
  "a huge text": () => "x".repeat(2 ** 24 + 1),
  "a symbol": () => Symbol("symbol"),
  "a function": () => () => "called",
  "a promise": () => Promise.resolve("later"),
  "an empty list": () => [],
  "a list of everything": () => [undefined, null, {}, [], 1n, "text", Number.NaN],
  "a list of a billion": () => Object.assign([], { length: 1_000_000_000 }),
  "an empty object": () => ({}),
  "3,000 levels": () => nested(3_000),
  "a cycle": cycle,
  "a date": () => new Date(Number.NaN),
  "a map": () => new Map([["key", 1]]),
  bytes: () => new Uint8Array([0, 255]),
  "an object of a class": () => new Custom(),
  "an object without a prototype": () => Object.assign(Object.create(null) as object, { through: 5, content: {} }),
  "an object with a key that reaches its prototype": () => JSON.parse('{"__proto__": {"content": "x"}}') as unknown,
  "a revoked proxy": revoked,
  "a proxy that throws": () => unruly({}),
  "a list behind a proxy that throws": () => unruly([]),
  "an error": () => new Error("an error"),
  "a frozen error": () => Object.freeze(new Error("frozen")),
  "an error whose message throws": () =>
    Object.defineProperty(new Error("x"), "message", {
      get: () => {
        throw new Error("no message");
      },
    }),
  "an error of other types": () => Object.assign(new Error("x"), { name: 5, message: {}, code: Symbol("code") }),
  "an error that causes itself": () => {
    const error = new Error("cyclic");
    error.cause = error;
    return error;
  },
  "an error behind a proxy that throws": () => unruly(new Error("x")),
};

const random = fc.oneof(
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true }),
  fc.anything({ withNullPrototype: true, withSparseArray: true, withTypedArray: true }),
);

/** Any value, including the named ones. They are wrapped in functions because fast-check must not inspect the drawn values. */
export const anything: fc.Arbitrary<() => unknown> = fc.oneof(
  { weight: 4, arbitrary: random.map((value) => () => value) },
  { weight: 1, arbitrary: fc.constantFrom(...Object.values(foreignValues)) },
);
