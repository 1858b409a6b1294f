import type { ShownDocument, ShownOperation, ShownSchema } from "./document.ts";

/** Generates a TypeScript client for the whole document: its types, and a method for each operation. */
export function clientSource(document: ShownDocument): string {
  const types = Object.entries(document.components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)};`,
  );
  const methods = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, operation]) => methodsOf(path, method.toUpperCase(), operation)),
  );
  return `${types.join("\n")}\n${runtime}\n${methods.join("\n")}\n}\n`;
}

function methodsOf(path: string, method: string, operation: ShownOperation): string[] {
  const { operationId, responses } = operation;
  const call = `${JSON.stringify(method)}, ${JSON.stringify(path)}, args`;
  const argumentsType = argumentsOf(operation);
  const successes = Object.entries(responses).filter(([status]) => status.startsWith("2"));
  const answers = successes.flatMap(([status, { content }]) => {
    const schema = content["application/json"]?.schema;
    return schema ? [`{ status: ${status}; headers: Headers; body: ${typeOf(schema)} }`] : [];
  });
  const streams = successes.flatMap(([, { content }]): ShownSchema[] => {
    const schema = content["text/event-stream"]?.schema;
    return schema ? [schema] : [];
  });
  return [
    ...(answers.length > 0
      ? [
          `  async ${operationId}(args: ${argumentsType}): Promise<${answers.join(" | ")}> {\n    return (await this.json(${call})) as never;\n  }`,
        ]
      : []),
    ...streams.map(
      (schema) =>
        `  ${answers.length > 0 ? `${operationId}Stream` : operationId}(args: ${argumentsType}): AsyncGenerator<Frame<${typeOf(schema)}>> {\n    return this.stream(${call}) as never;\n  }`,
    ),
  ];
}

function argumentsOf({ parameters = [], requestBody }: ShownOperation): string {
  const groups = ["path", "query", "header"].flatMap((place) => {
    const fields = parameters.filter((one) => one.in === place);
    if (fields.length === 0) return [];
    const isOptional = fields.every(({ required }) => required !== true);
    const types = fields.map(
      ({ name, required, schema }) => `${JSON.stringify(name)}${required === true ? "" : "?"}: ${typeOf(schema)}`,
    );
    return [`${place}${isOptional ? "?" : ""}: { ${types.join("; ")} }`];
  });
  const schema = requestBody?.content["application/json"]?.schema;
  if (schema) groups.push(`body${requestBody?.required === true ? "" : "?"}: ${typeOf(schema)}`);
  return `{ ${groups.join("; ")} }`;
}

function typeOf(schema: ShownSchema): string {
  const {
    $ref,
    const: only,
    enum: values,
    anyOf,
    oneOf,
    type,
    items,
    properties,
    required,
    additionalProperties,
  } = schema;
  if (typeof $ref === "string") return $ref.slice($ref.lastIndexOf("/") + 1);
  if (only !== undefined) return JSON.stringify(only);
  if (Array.isArray(values)) return values.map((one: unknown) => JSON.stringify(one)).join(" | ");
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return `(${(choices as ShownSchema[]).map(typeOf).join(" | ")})`;
  if (Array.isArray(type)) return (type as string[]).map((one) => typeOf({ ...schema, type: one })).join(" | ");
  if (type === "array") return `${typeOf((items ?? {}) as ShownSchema)}[]`;
  if (typeof properties === "object" && properties !== null) {
    const needed = new Set(required as string[] | undefined);
    const fields = Object.entries(properties as Record<string, ShownSchema>).map(
      ([name, field]) => `${JSON.stringify(name)}${needed.has(name) ? "" : "?"}: ${typeOf(field)}`,
    );
    return `{ ${fields.join("; ")} }`;
  }
  if (typeof additionalProperties === "object") return `Record<string, ${typeOf(additionalProperties as ShownSchema)}>`;
  if (type === "object") return "Record<string, unknown>";
  if (type === "integer" || type === "number") return "number";
  return typeof type === "string" ? type : "unknown";
}

/** The source that is the same for every document. */
const runtime = `
interface Arguments {
  readonly path?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export interface Frame<Data> { readonly id: string | undefined; readonly event: string | undefined; readonly data: Data }

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, body: { error: { code: string; message: string } }) {
    super(body.error.message);
    this.status = status;
    this.code = body.error.code;
  }
}

export class Client {
  readonly #base: string;
  readonly #token: string;

  constructor(base: string, token: string) {
    this.#base = base;
    this.#token = token;
  }

  private async send(method: string, path: string, { path: params = {}, query = {}, header = {}, body }: Arguments, accept: string) {
    const place = path.replaceAll(/\\{(\\w+)\\}/g, (_, name: string) => encodeURIComponent(String(params[name])));
    const url = new URL(place, this.#base);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
    const headers = new Headers({ authorization: "Bearer " + this.#token, accept });
    for (const [name, value] of Object.entries(header)) if (value !== undefined) headers.set(name, String(value));
    if (body !== undefined) headers.set("content-type", "application/json");
    const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    if (!response.ok) throw new ApiError(response.status, (await response.json()) as never);
    return response;
  }

  private async json(method: string, path: string, args: Arguments) {
    const response = await this.send(method, path, args, "application/json");
    return { status: response.status, headers: response.headers, body: await response.json() };
  }

  private async *stream(method: string, path: string, args: Arguments): AsyncGenerator<Frame<unknown>> {
    const response = await this.send(method, path, args, "text/event-stream");
    let rest = "";
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      rest += decoder.decode(bytes as Uint8Array, { stream: true });
      const blocks = rest.split("\\n\\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const field = (name: string) => block.split("\\n").find((line) => line.startsWith(name + ": "))?.slice(name.length + 2);
        const data = field("data");
        if (data !== undefined) yield { id: field("id"), event: field("event"), data: JSON.parse(data) };
      }
    }
  }
`;
