import { z } from "zod";
import { approvals, effects, LONGEST_MS, renamePattern, serverNamePattern } from "./mcp-options.ts";

// The form of a configuration file, for editors. The parser reads each server by itself, because a broken one must not hide the others,
// and its errors suggest the option that was meant; test/cli/schema/agreement.test.ts compares both.

/** The values of `type`, as editors write it. */
export const serverTypes = ["stdio", "http", "sse", "streamable-http", "streamableHttp"] as const;

const text = z.string();
const filledText = text.regex(/\S/);
const milliseconds = z.int().min(1).max(LONGEST_MS);

const toolSchema = z.strictObject({
  effect: z.enum(effects).optional().meta({ description: "Whether a call with an unknown outcome may be repeated." }),
  needsApproval: z.boolean().optional().meta({ description: "Whether a person has to approve each call." }),
  idempotencyArgument: filledText.optional().meta({ description: "Argument that gets the idempotency key of a call." }),
  timeoutMs: milliseconds.optional().meta({ description: "Milliseconds per attempt. Default 60,000." }),
  rename: text.regex(renamePattern).optional().meta({ description: "The tool's name for the model." }),
});

const clientShape = {
  clientId: filledText,
  issuer: filledText.meta({ description: "The authorization server's `issuer`." }),
};
const scopes = z
  .array(text)
  .optional()
  .meta({ description: "Scopes to request. Default: those that the server names." });
const origins = z
  .array(text)
  .optional()
  .meta({ description: "Origins of authorization servers that may be in private networks." });

const authSchema = z
  .strictObject({
    token: text.optional().meta({ description: "A bearer token; write it as a variable." }),
    oauth: z
      .strictObject({
        redirectUrl: text.optional(),
        scopes,
        clientMetadata: z.record(text, z.unknown()).optional(),
        clientMetadataUrl: text.optional(),
        client: z.strictObject({ ...clientShape, clientSecret: filledText.optional() }).optional(),
        origins,
      })
      .optional()
      .meta({ description: "People log in, with `troupe mcp login`." }),
    clientCredentials: z
      .strictObject({ ...clientShape, clientSecret: filledText, scopes, origins })
      .optional()
      .meta({ description: "The program logs in as itself." }),
  })
  .meta({ oneOf: [{ required: ["token"] }, { required: ["oauth"] }, { required: ["clientCredentials"] }] });

const ownSchema = z.strictObject({
  name: text
    .regex(serverNamePattern)
    .optional()
    .meta({ description: "Begins the names of the tools. Default: the server's name in this file." }),
  approval: z
    .enum(approvals)
    .optional()
    .meta({ description: "Calls that a person has to approve. Default `destructive`." }),
  trust: z
    .boolean()
    .optional()
    .meta({ description: "Whether the server's annotations may loosen rules. Default false." }),
  tools: z
    .record(text, z.union([z.literal(false), toolSchema]))
    .optional()
    .meta({ description: "Settings of single tools by the server's names; `false` leaves a tool out." }),
  connectTimeoutMs: milliseconds.optional().meta({ description: "Milliseconds for connecting. Default 30,000." }),
  pin: z
    .union([filledText, z.literal(false)])
    .optional()
    .meta({
      description: "The lock file; `false` for none. Default: `mcp.lock.json` next to this file, if it exists.",
    }),
  auth: authSchema.optional().meta({ description: "How requests to `url` are authorized." }),
});

const serverSchema = z
  .looseObject({
    type: z.enum(serverTypes).optional().meta({ description: "Not needed: `command` and `url` tell the kinds apart." }),
    command: filledText.optional().meta({ description: "Program that runs the server on standard input and output." }),
    args: z.array(text).optional().meta({ description: "Arguments of `command`." }),
    env: z
      .record(text, z.union([text, z.number()]))
      .optional()
      .meta({ description: "Environment variables of `command`." }),
    envFile: filledText.optional().meta({ description: "File of `NAME=value` lines, relative to this file's folder." }),
    cwd: filledText.optional().meta({ description: "Working directory of `command`, relative to this file's folder." }),
    url: text.optional().meta({ description: "Address of the server." }),
    headers: z.record(text, text).optional().meta({ description: "Headers of every request to `url`." }),
    disabled: z.boolean().optional().meta({ description: "Leaves the server out." }),
    troupe: ownSchema.optional().meta({ description: "Settings that only troupe reads." }),
  })
  .meta({
    anyOf: [
      { properties: { disabled: { const: true } }, required: ["disabled"] },
      { oneOf: [{ required: ["command"] }, { required: ["url"] }] },
    ],
  });

/** An input that a person gives, as editors know it. */
export const configInputSchema = z.looseObject({
  id: text,
  default: text.optional(),
  password: z.boolean().optional().meta({ description: "Whether the value is a secret." }),
});

const servers = z.record(text, serverSchema).optional();

/**
 * A file of MCP servers, `mcp.json`, of which `mcpFromConfig()` accepts the same servers. `troupe schema mcp-config` prints it as JSON
 * Schema.
 */
export const mcpConfigSchema = z
  .looseObject({
    mcpServers: servers.meta({ description: "The servers by their names." }),
    servers: servers.meta({ description: "The servers by their names, as VS Code writes it." }),
    inputs: z.array(configInputSchema).optional().meta({ description: "Inputs that `${input:id}` stands for." }),
  })
  .meta({ oneOf: [{ required: ["mcpServers"] }, { required: ["servers"] }] });
