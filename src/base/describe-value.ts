const longestText = 64;

/** Describes a wrong value for an error message: `the text "me"`, `NaN`, `a list`, `an object of class Map`. Never throws. */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case "string":
      return `the text ${JSON.stringify(value.length > longestText ? `${value.slice(0, longestText)}…` : value)}`;
    case "bigint":
      return `the bigint ${value}n`;
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
    case "function":
      return "a function";
    case "symbol":
      return "a symbol";
    case "object":
      return value === null ? "null" : describeObject(value);
    default:
      return String(value);
  }
}

/** A revoked proxy throws on every access. */
function describeObject(value: object): string {
  try {
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "an invalid Date" : value.toISOString();
    if (Array.isArray(value)) return "a list";
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return "an object";
    const maker: unknown = value.constructor;
    return typeof maker === "function" && maker.name !== "" ? `an object of class ${maker.name}` : "an object";
  } catch {
    return "an object that cannot be read";
  }
}
