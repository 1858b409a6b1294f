import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { apiSurface } from "../../../src/server/api/api-surface.ts";
import { docsPage, docsPolicy } from "../../../src/server/core/docs-page.ts";
import { readDocument, refsIn, schemaAt, type ShownOperation } from "./document.ts";

const surface = apiSurface();
const document = await readDocument(surface);
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]): [string, ShownOperation] => [
    `${method.toUpperCase()} ${path}`,
    operation,
  ]),
);

test("every route is in the document, and no others", () => {
  const routes = surface.routes.map(({ method, path, id }) => `${method} ${path} ${id}`);
  expect(operations.map(([place, { operationId }]) => `${place} ${operationId}`).sort()).toEqual(routes.sort());
  expect(new Set(surface.routes.map(({ id }) => id)).size).toBe(surface.routes.length);
});

test("it has the form of OpenAPI 3.1: fields of each object, parameters of each path, an answer of each operation", () => {
  expect(Object.keys(document).sort()).toEqual(["components", "info", "openapi", "paths", "security"]);
  expect(document.openapi).toMatch(/^3\.1\.\d$/);
  expect(document.info).toEqual({ title: "troupe", version: expect.any(String), description: expect.any(String) });
  for (const [place, operation] of operations) {
    const known = ["operationId", "summary", "description", "parameters", "requestBody", "responses", "security"];
    expect(Object.keys(operation).filter((key) => !known.includes(key))).toEqual([]);
    const inPath = [...place.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const parameters = operation.parameters ?? [];
    const named = parameters.filter((one) => one.in === "path");
    expect([place, named.map(({ name }) => name)]).toEqual([place, inPath]);
    expect(named.every(({ required }) => required === true)).toBe(true);
    expect(new Set(parameters.map((one) => `${one.in} ${one.name}`)).size).toBe(parameters.length);
    const statuses = Object.keys(operation.responses);
    expect(statuses.every((status) => /^([2345]\d\d|default)$/.test(status))).toBe(true);
    expect(statuses.some((status) => status.startsWith("2"))).toBe(true);
    expect(Object.values(operation.responses).every(({ description }) => description !== "")).toBe(true);
    expect(Object.keys(operation.requestBody?.content ?? {}).filter((type) => type !== "application/json")).toEqual([]);
  }
});

test("every reference has a target, every component is used, and all have readable names", () => {
  const refs = refsIn(document);
  expect(refs.size).toBeGreaterThan(20);
  for (const ref of refs) expect([ref, schemaAt(document, ref) !== undefined]).toEqual([ref, true]);
  const names = Object.keys(document.components.schemas);
  expect(names.filter((name) => !refs.has(`#/components/schemas/${name}`))).toEqual([]);
  expect(names.filter((name) => !/^[A-Z][A-Za-z]+$/.test(name))).toEqual([]);
});

test("every schema compiles", () => {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true });
  addFormats.default(ajv);
  for (const keyword of ["openapi", "info", "paths", "components", "security", "discriminator"])
    ajv.addKeyword(keyword);
  ajv.addSchema({ ...document, $id: "document" });
  const all = Object.keys(document.components.schemas).map((name) => ({
    $ref: `document#/components/schemas/${name}`,
  }));
  expect(() => ajv.compile({ anyOf: all })).not.toThrow();
});

test("answers allow unknown fields, bodies do not", () => {
  expect(document.components.schemas["NewAgent"]).toMatchObject({ additionalProperties: false });
  expect(document.components.schemas["Agent"]).not.toHaveProperty("additionalProperties");
});

test("each operation states whether it needs a token", () => {
  const open = operations.filter(([, { security }]) => security?.length === 0).map(([place]) => place);
  expect(open).toEqual(["GET /api/openapi.json", "GET /api/docs"]);
  expect(document.security).toEqual([{ bearer: [] }]);
});

test("the page shows every route and schema, loads nothing and runs nothing", () => {
  const html = docsPage(document);
  for (const [, { operationId }] of operations) expect(html).toContain(`<section class="entry" id="${operationId}">`);
  for (const name of Object.keys(document.components.schemas)) expect(html).toContain(`id="schema-${name}"`);
  const targets = [...html.matchAll(/href="#([^"]*)"/g)].map(([, id]) => `id="${id}"`);
  expect(targets.filter((id) => !html.includes(id))).toEqual([]);
  expect(html.match(/<script|<link|<img|<iframe|src=|href="(?!#)|\son\w+=|url\(|@import/i)).toBeNull();
  const [, style = ""] = /<style>(.*?)<\/style>/s.exec(html) ?? [];
  const hash = createHash("sha256").update(style).digest("base64");
  expect(docsPolicy).toBe(
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
});

test("the page shows texts of the document as text", () => {
  const hostile = '<script>alert("1")</script>';
  const html = docsPage({
    info: { title: hostile, version: hostile, description: hostile },
    paths: {
      [`/${hostile}`]: {
        get: { operationId: hostile, summary: hostile, responses: { 200: { description: hostile } } },
      },
    },
    components: { schemas: { [hostile]: { properties: { [hostile]: { enum: [hostile], description: hostile } } } } },
  });
  expect(html).not.toContain("<script");
});
