import { createHash } from "node:crypto";

/** The fields of an OpenAPI document that the page shows. */
interface Described {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly paths?: Readonly<Record<string, object>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> };
}

/** The fields of a JSON schema that the page shows. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly description?: string;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: Schema;
}

interface Content {
  readonly description?: string;
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content;
  readonly responses?: Readonly<Record<string, Content>>;
}

const style = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: 0; }
code, .method { font-family: ui-monospace, monospace; }
.method { display: inline-block; min-width: 3.5rem; font-weight: 600; }
section.entry { border-top: 1px solid #8886; padding: .8rem 0; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; }
td { border-top: 1px solid #8883; padding: .15rem .6rem .15rem 0; vertical-align: top; }
td:first-child { white-space: nowrap; width: 12rem; }
nav ul { list-style: none; padding: 0; columns: 2; }
p { margin: .3rem 0; } .note { opacity: .75; }
@media (max-width: 50rem) { nav ul { columns: 1; } }
`;

/** Forbids all scripts and all requests. */
export const docsPolicy = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** Renders an OpenAPI document as one HTML page, without scripts and external resources. */
export function docsPage(document: Described): string {
  const { info, paths = {}, components } = document;
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item as Readonly<Record<string, Operation>>).map(([method, operation]) => ({
      method,
      path,
      operation,
    })),
  );
  const links = operations.map(
    ({ method, path, operation }) =>
      `<li><a href="#${text(operation.operationId)}"><span class="method">${text(method.toUpperCase())}</span> <code>${text(path)}</code></a></li>`,
  );
  const schemas = Object.entries(components?.schemas ?? {}) as [string, Schema][];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${text(info.title)}</title><style>${style}</style></head>
<body><header><h1>${text(info.title)} <span class="note">${text(info.version)}</span></h1>${paragraph(info.description)}</header>
<nav><ul>${links.join("")}</ul></nav>
<main><h2>Routes</h2>${operations.map(operationSection).join("")}
<h2>Schemas</h2>${schemas.map(schemaSection).join("")}</main></body></html>
`;
}

function operationSection({ method, path, operation }: { method: string; path: string; operation: Operation }): string {
  const { operationId, summary, description, parameters = [], requestBody, responses = {} } = operation;
  const rows = parameters.map(({ name, in: place, required, description: note, schema = {} }) =>
    row(
      `<code>${text(name)}</code> <span class="note">${text(place)}${required ? "" : ", optional"}</span>`,
      schema,
      note,
    ),
  );
  const answers = Object.entries(responses).map(
    ([status, { description: note, content = {} }]) =>
      `<tr><td><code>${text(status)}</code></td><td>${mediaTypesHtml(content)} <span class="note">${text(note)}</span></td></tr>`,
  );
  return `<section class="entry" id="${text(operationId)}"><h3><span class="method">${text(method.toUpperCase())}</span> <code>${text(path)}</code></h3>
<p>${text(summary)}</p>${paragraph(description)}${table(rows)}${requestBody ? `<p>Body: ${mediaTypesHtml(requestBody.content ?? {})}</p>` : ""}${table(answers)}</section>`;
}

function mediaTypesHtml(content: NonNullable<Content["content"]>): string {
  return Object.entries(content)
    .map(
      ([type, { schema }]) =>
        (type === "application/json" ? "" : `<code>${text(type)}</code> `) + (schema ? typeOf(schema) : ""),
    )
    .join(" or ");
}

function schemaSection([name, schema]: [string, Schema]): string {
  const shown = schema.properties ? propertiesOf(schema) : `<p>${typeOf(schema)}</p>`;
  return `<section class="entry" id="schema-${text(name)}"><h3><code>${text(name)}</code></h3>${paragraph(schema.description)}${shown}</section>`;
}

function propertiesOf({ properties = {}, required = [] }: Schema): string {
  return table(
    Object.entries(properties).map(([name, schema]) =>
      row(
        `<code>${text(name)}</code>${required.includes(name) ? "" : ' <span class="note">optional</span>'}`,
        schema,
        schema.description,
      ),
    ),
  );
}

/** Renders a schema on one line in TypeScript syntax; named schemas are links. */
function typeOf(schema: Schema): string {
  const { $ref, const: only, enum: values, anyOf, oneOf, type, items, properties, required = [] } = schema;
  if ($ref !== undefined) {
    const name = text($ref.slice($ref.lastIndexOf("/") + 1));
    return `<a href="#schema-${name}"><code>${name}</code></a>`;
  }
  if (only !== undefined) return literal(only);
  if (values) return values.map(literal).join(" | ");
  const choices = anyOf ?? oneOf;
  if (choices) return choices.map(typeOf).join(" | ");
  if (items) return `${typeOf(items)}[]`;
  if (properties) {
    const fields = Object.entries(properties).map(
      ([name, field]) => `${text(name)}${required.includes(name) ? "" : "?"}: ${typeOf(field)}`,
    );
    return `{ ${fields.join(", ")} }`;
  }
  const { additionalProperties } = schema;
  if (typeof additionalProperties === "object") return `{ [key]: ${typeOf(additionalProperties)} }`;
  return `<code>${type === undefined ? "any JSON" : text([type].flat().join(" | "))}</code>`;
}

function row(name: string, schema: Schema, note: string | undefined): string {
  return `<tr><td>${name}</td><td>${typeOf(schema)} <span class="note">${text(note)}</span></td></tr>`;
}

function table(rows: readonly string[]): string {
  return rows.length === 0 ? "" : `<table>${rows.join("")}</table>`;
}

function paragraph(words: string | undefined): string {
  return words === undefined ? "" : `<p class="note">${text(words)}</p>`;
}

function literal(value: unknown): string {
  return `<code>${text(JSON.stringify(value))}</code>`;
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function text(value: string | undefined): string {
  return (value ?? "").replaceAll(/[&<>"']/g, (sign) => escapes[sign] ?? "");
}
