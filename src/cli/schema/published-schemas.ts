import type { z } from "zod";
import type { JsonObject } from "../../state/index.ts";
import { DIALECT, jsonSchemaFrom, schemaId } from "./json-schemas.ts";

/** A format with a schema. */
export interface PublishedSchema {
  /** Its name on the command line. */
  readonly name: string;
  /** Its title in editors. */
  readonly title: string;
  /** What has this format, in one sentence. */
  readonly description: string;
  /** Ending of its files in a folder of schemas. */
  readonly ending: ".schema.json" | ".json";
  /** The whole document. */
  readonly document: () => Promise<JsonObject>;
}

interface Format {
  readonly title: string;
  readonly description: string;
  /** The schema of the code that reads or writes the format. Loaded on request: no command needs all of them. */
  readonly zod: () => Promise<z.ZodType>;
}

const formats: Readonly<Record<string, Format>> = {
  "agent-yaml": {
    title: "Agent in YAML",
    description: "An agent file tealagents/v1alpha1, for loadTealAgent(), troupe run, chat and serve.",
    zod: async () => (await import("../../server/index.ts")).tealAgentFileSchema,
  },
  "plugin-catalog": {
    title: "Plugin catalog",
    description: "The catalog.json next to an agent in YAML: which of its plugins' tools need approval.",
    zod: async () => (await import("../../server/index.ts")).tealCatalogSchema,
  },
  skill: {
    title: "Head of a skill",
    description: "The YAML between the two lines --- at the start of a SKILL.md.",
    zod: async () => (await import("../../kit/index.ts")).skillHeadSchema,
  },
  "mcp-config": {
    title: "MCP servers",
    description: "The file of MCP servers, mcp.json, for mcpFromConfig() and --mcp.",
    zod: async () => (await import("../../mcp/index.ts")).mcpConfigSchema,
  },
  "mcp-lock": {
    title: "Pinned MCP servers",
    description: "The lock file mcp.lock.json, which troupe mcp pin writes.",
    zod: async () => (await import("../../mcp/index.ts")).mcpLockSchema,
  },
  "eval-cases": {
    title: "Eval cases",
    description:
      "A data set for readCases(), in JSON or YAML: a list of cases. Each line of a .jsonl file is one of its items.",
    zod: async () => (await import("../../testing/index.ts")).evalCasesSchema,
  },
  "eval-report": {
    title: "Eval report",
    description: "What troupe eval --json writes and --compare reads.",
    zod: async () => (await import("../eval/eval-report.ts")).evalReportSchema,
  },
  "model-recording": {
    title: "Recorded model calls",
    description: "The file in which recordedModel() keeps the calls of a test.",
    zod: async () => (await import("../../testing/index.ts")).modelRecordingSchema,
  },
  run: {
    title: "Exported run",
    description: "What troupe export --json writes; inspect, fork and replay read it.",
    zod: async () => (await import("../../inspector/index.ts")).runFileSchema,
  },
  audit: {
    title: "Audited run",
    description: "What troupe audit --file writes and --verify checks.",
    zod: async () => (await import("../../inspector/index.ts")).auditFileSchema,
  },
  event: {
    title: "Event",
    description: "An event: a line of --json, the data of a server-sent event, an item of turn.events.",
    zod: async () => (await import("../../state/index.ts")).troupeEventSchema,
  },
};

/** All formats that have a schema, in the order in which they are listed. */
export const publishedSchemas: readonly PublishedSchema[] = [
  ...Object.entries(formats).map(
    ([name, { title, description, zod }]): PublishedSchema => ({
      name,
      title,
      description,
      ending: ".schema.json",
      document: async () => ({
        $schema: DIALECT,
        $id: schemaId(name),
        title,
        description,
        ...jsonSchemaFrom(await zod()),
      }),
    }),
  ),
  {
    name: "openapi",
    title: "HTTP API",
    description: "The HTTP API of troupe serve, its bodies and answers, as an OpenAPI 3.1 document.",
    ending: ".json",
    document: async () => await (await import("./openapi-document.ts")).openApiDocument(),
  },
];
