import { z } from "zod";

// The parser is in agent-yaml.ts, which loads YAML.

/** The only supported version of the format. */
export const SERVED_VERSION = "tealagents/v1alpha1";

const text = z.string({ error: "a text" });
const filledText = text.regex(/\S/, { error: "a text that is not empty" });
const texts = z.array(text, { error: "a list of texts" });

/** The name begins the names of the server's tools. */
const mcpName = /^(?!.*__)[a-zA-Z0-9](?:[a-zA-Z0-9_-]{0,30}[a-zA-Z0-9])?$/;
const mcpNameMessage = 'a name of 1 to 32 letters, digits, "_" and "-", without "__"';

const skillSchema = z.object(
  {
    id: filledText,
    name: filledText,
    description: text,
    tags: texts,
    examples: texts.nullish().meta({ description: "Messages that the skill answers." }),
    input_modes: texts.nullish().meta({ description: "Media types that it takes." }),
    output_modes: texts.nullish().meta({ description: "Media types that it answers with." }),
  },
  { error: "an object { id, name, description, tags }" },
);

const metadataSchema = z.object(
  {
    description: text.nullish().meta({ description: "What the agent's card says about it." }),
    documentation_url: text.nullish(),
    skills: z
      .array(skillSchema, { error: "a list of skills" })
      .nullish()
      .meta({ description: "The skills on the agent's card." }),
  },
  { error: "an object { description, skills }" },
);

/** Remote plugins are not supported: their list may be present, but must be empty. */
const emptyList = z.array(z.unknown(), { error: "a list" }).max(0);

const textRecord = z.record(z.string(), text, { error: "an object of texts" });
const seconds = z.number({ error: "a number of seconds above 0" }).gt(0, { error: "a number of seconds above 0" });

const mcpServerSchema = z.object(
  {
    name: z.string({ error: mcpNameMessage }).regex(mcpName, { error: mcpNameMessage }),
    transport: z
      .enum(["stdio", "http"], { error: '"stdio" or "http"' })
      .nullish()
      .meta({ description: "Default: `stdio` with `command`, `http` with `url`." }),
    command: filledText.nullish().meta({ description: "Program that runs the server on standard input and output." }),
    args: texts.nullish().meta({ description: "Arguments of `command`." }),
    env: textRecord.nullish().meta({ description: "Environment variables of `command`." }),
    url: filledText.nullish().meta({ description: "Address of the server." }),
    headers: textRecord.nullish().meta({ description: "Headers of every request to `url`." }),
    timeout: seconds.nullish().meta({ description: "Seconds for a call." }),
    verify_ssl: z.boolean({ error: "true or false" }).nullish(),
    auth_server: filledText.nullish(),
    oauth_client_id: filledText.nullish(),
    user_id_header: filledText.nullish(),
    user_id_source: filledText.nullish(),
    trust_level: z
      .enum(["trusted", "sandboxed", "untrusted"], { error: '"trusted", "sandboxed" or "untrusted"' })
      .nullish(),
    tool_governance_overrides: z
      .record(
        z.string(),
        z.object(
          { requires_hitl: z.boolean({ error: "true or false" }).nullish() },
          { error: "an object { requires_hitl }" },
        ),
        { error: "an object of rules by the names of tools" },
      )
      .nullish(),
  },
  { error: "an object { name, command } or { name, url }" },
);
export type TealMcpServer = z.output<typeof mcpServerSchema>;

const temperature = z.number({ error: "a number from 0 to 1" }).min(0).max(1);

const agentSchema = z.object(
  {
    name: text.nullish(),
    model: filledText.meta({ description: "Name of the model; `offline` needs no server and no key." }),
    system_prompt: text.meta({ description: "The agent's instructions." }),
    temperature: temperature.nullish().meta({ description: "Sampling temperature. Default: the model's own." }),
    max_tokens: z
      .int({ error: "a whole number of at least 1" })
      .min(1, { error: "a whole number of at least 1" })
      .nullish()
      .meta({ description: "Tokens that one model call may generate." }),
    reasoning_effort: z
      .enum(["low", "medium", "high"], { error: '"low", "medium" or "high"' })
      .nullish()
      .meta({ description: "How much a model whose name contains `gpt-5` thinks. Default: `low`." }),
    plugins: z
      .array(filledText, { error: "a list of the names of plugins" })
      .nullish()
      .meta({ description: "Names that the module of plugins exports." }),
    remote_plugins: emptyList.nullish().meta({ description: "Not supported; must be empty." }),
    mcp_servers: z
      .array(mcpServerSchema, { error: "a list of MCP servers" })
      .nullish()
      .meta({ description: "MCP servers whose tools the agent has." }),
  },
  { error: "an object { name, model, system_prompt }" },
);

const nameMessage = 'a name of 1 to 64 letters, digits, "_", "-" and "."';

/** An agent file, `apiVersion: tealagents/v1alpha1`, as YAML has it. `troupe schema agent-yaml` prints it as JSON Schema. */
export const tealAgentFileSchema = z.object(
  {
    apiVersion: z.literal(SERVED_VERSION, { error: JSON.stringify(SERVED_VERSION) }),
    name: text
      .regex(/^(?=.*[A-Za-z0-9_-])[A-Za-z0-9_.-]{1,64}$/, { error: nameMessage })
      .meta({ description: "Name of the agent, and the first part of its URLs." }),
    version: z
      .union([z.number(), filledText], { error: "a version, for instance 0.1" })
      .meta({ description: "Version of the agent, and the second part of its URLs." }),
    description: text.nullish(),
    metadata: metadataSchema.nullish().meta({ description: "What the agent's card says." }),
    spec: z.object({ agent: agentSchema }, { error: "an object { agent }" }),
  },
  { error: "an object { apiVersion, name, version, spec }" },
);

export type TealAgentSpec = z.output<typeof agentSchema>;
export type TealMetadata = z.output<typeof metadataSchema>;
