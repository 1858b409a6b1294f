/** The annotation of a property whose value the client sends as the header `Mcp-Param-<name>` too. */
const HEADER = "x-mcp-header";
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const headerTypes: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);
/** Keywords that hold data, in which the annotation is a property like any other. */
const dataKeywords: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"]);
const schemaMaps: ReadonlySet<string> = new Set([
  "properties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
]);
/** Schemas that are searched; a server's schema may be of any size. */
const MOST_SCHEMAS = 100_000;

interface Found {
  readonly schema: unknown;
  /** Whether only `properties` lead to the schema from the root. */
  readonly isReachable: boolean;
}

/**
 * Why the annotations of arguments that become HTTP headers are invalid; `undefined` if they are valid. The protocol makes a client leave
 * out such tools. Bounded by `MOST_SCHEMAS`, without recursion.
 */
export function headerFaultOf(inputSchema: unknown): string | undefined {
  const names = new Set<string>();
  if (isRecord(inputSchema) && Object.hasOwn(inputSchema, HEADER)) return "its root is annotated";
  const open = partsOf(inputSchema, true);
  for (let seen = 0; seen < MOST_SCHEMAS; seen += 1) {
    const found = open.pop();
    if (found === undefined) return undefined;
    const { schema, isReachable } = found;
    if (!isRecord(schema)) continue;
    if (Object.hasOwn(schema, HEADER)) {
      const fault = isReachable ? faultOf(schema, names) : "a schema that is not a property is annotated";
      if (fault !== undefined) return fault;
    }
    for (const part of partsOf(schema, isReachable)) open.push(part);
    if (open.length > MOST_SCHEMAS) break;
  }
  return `it has more than ${MOST_SCHEMAS} schemas`;
}

function faultOf(schema: Readonly<Record<string, unknown>>, names: Set<string>): string | undefined {
  const name = schema[HEADER];
  if (typeof name !== "string" || !headerName.test(name)) return "a name is not a valid HTTP header";
  if (!headerTypes.has(schema["type"])) return "only string, integer and boolean properties can be headers";
  if (names.has(name.toLowerCase())) return "a name is used twice";
  names.add(name.toLowerCase());
  return undefined;
}

/** The schemas inside a schema. */
function partsOf(schema: unknown, isReachable: boolean): Found[] {
  if (!isRecord(schema)) return [];
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (dataKeywords.has(keyword) || typeof value !== "object" || value === null) return [];
    const schemas = Array.isArray(value) || schemaMaps.has(keyword) ? Object.values(value) : [value];
    return schemas.map((one: unknown) => ({ schema: one, isReachable: isReachable && keyword === "properties" }));
  });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
