import { z } from "zod";
import {
  type Artifact,
  agentStateJson,
  agentStateJsonSchema,
  contentSchema,
  deletedCountsSchema,
  jsonObjectSchema,
  messageSchema,
} from "../../state/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import { newSessionStubsSchema } from "../../runtime/index.ts";
import { shownMetadata } from "../core/creation-mark.ts";
import { type Route, route } from "../core/route.ts";
import { stubsHeader } from "../core/stub-access.ts";
import {
  accountJson,
  accountJsonSchema,
  agentJson,
  agentSchema,
  artifactInfoSchema,
  listedAgentJson,
  stubReportSchema,
  budgetSchema,
  definitionJson,
  definitionSchema,
} from "./agent-json.ts";
import {
  agentParams,
  errors,
  idempotencyHeaders,
  json,
  pageAfter,
  pageJson,
  pageOf,
  pageQuery,
  replayedHeader,
  wholeList,
} from "./answers.ts";

export const newAgentSchema = z
  .strictObject({
    definition: z.string(),
    key: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .meta({ description: "The caller's name of the agent; the same name is the same agent on every surface." }),
    sessionId: z.string().optional().meta({ description: "Groups agents for clients." }),
    metadata: jsonObjectSchema.optional(),
    budget: budgetSchema.optional().meta({ description: "Limits of the agent's whole lifetime." }),
    messages: z
      .array(z.strictObject({ role: z.enum(["user", "assistant"]), content: contentSchema }))
      .optional()
      .meta({ description: "The initial conversation of a new agent; ignored for an existing agent." }),
    stubs: newSessionStubsSchema.optional().meta({
      description: `Results in the place of tools, for tests: no tool runs. Needs the secret of the server in the header ${stubsHeader}.`,
    }),
  })
  .meta({ id: "NewAgent", description: "An agent to create." });

export const deletedSchema = z
  .object({ agentId: z.string(), deletedAt: z.number(), counts: deletedCountsSchema })
  .meta({ id: "DeletedAgent", description: "A deleted agent, and how much was deleted." });

const agentsQuery = z.object({ session: z.string().optional(), ...pageQuery });
const artifactParams = agentParams.extend({ artifactId: z.string() });

/** Definitions and agents: create, list and read. */
export const agentRoutes: readonly Route[] = [
  route({
    id: "listDefinitions",
    method: "GET",
    path: "/api/definitions",
    access: "caller",
    summary: "The agents that can be created here.",
    responses: { 200: { description: "All definitions.", schema: pageOf(definitionSchema) } },
    handle: ({ caller }) => wholeList([...caller.runtime.definitions.values()].map(definitionJson)),
  }),
  route({
    id: "createAgent",
    method: "POST",
    path: "/api/agents",
    access: "caller",
    summary: "Creates and starts an agent; with `key` or an Idempotency-Key only if none exists yet.",
    headers: idempotencyHeaders.extend({
      [stubsHeader]: z.string().optional().meta({ description: "The secret that a request with `stubs` needs." }),
    }),
    body: newAgentSchema,
    responses: {
      201: { description: "The agent was created.", schema: agentSchema },
      200: { description: "The agent already existed.", schema: agentSchema },
      ...errors(400, 403, 404, 410, 422),
    },
    handle: async (call) => {
      const { caller, body, headers, idempotencyKey } = call;
      if (body.stubs) call.assertMayStub(headers[stubsHeader]);
      const { key: name, ...options } = body;
      const key = idempotencyKey === undefined ? {} : { key: { route: "api.createAgent", value: idempotencyKey } };
      const { agent, isReplayed } = await caller.createAgent({ ...options, name, ...key });
      return json(agentJson(agent), {
        status: isReplayed ? 200 : 201,
        headers: { ...replayedHeader(isReplayed), location: `/api/agents/${agent.agentId}` },
      });
    },
  }),
  route({
    id: "listAgents",
    method: "GET",
    path: "/api/agents",
    access: "caller",
    summary: "The caller's agents without subagents, newest first.",
    query: agentsQuery,
    responses: { 200: { description: "A page.", schema: pageOf(agentSchema) }, ...errors(400) },
    handle: async ({ caller, query: { session: sessionId, ...page } }) => {
      const { items, next } = await caller.agents({ sessionId, ...page });
      return pageJson({ items: items.map(listedAgentJson), next });
    },
  }),
  route({
    id: "getAgent",
    method: "GET",
    path: "/api/agents/{agentId}",
    access: "caller",
    summary: "One agent.",
    params: agentParams,
    responses: { 200: { description: "Its current state.", schema: agentSchema }, ...errors(404) },
    handle: async ({ caller, params: { agentId } }) => json(agentJson(await caller.agent(agentId))),
  }),
  route({
    id: "deleteAgent",
    method: "DELETE",
    path: "/api/agents/{agentId}",
    access: "caller",
    summary: "Deletes a root agent for good, with its subagents and all that belongs to them.",
    params: agentParams,
    query: z.object({
      abort: z
        .enum(["true", "false"])
        .optional()
        .meta({ description: "`true`: ends open turns first. Otherwise an agent with an open turn is refused." }),
    }),
    responses: { 200: { description: "It was deleted.", schema: deletedSchema }, ...errors(404, 409) },
    handle: async ({ caller, params: { agentId }, query: { abort } }) => {
      const { deletedAt, counts } = await caller.deleteAgent(agentId, { abort: abort === "true" });
      return json({ agentId, deletedAt, counts });
    },
  }),
  route({
    id: "listMessages",
    method: "GET",
    path: "/api/agents/{agentId}/messages",
    access: "caller",
    summary: "The conversation, oldest first.",
    params: agentParams,
    query: z.object({
      ...pageQuery,
      last: z.coerce
        .number()
        .int()
        .min(1)
        .max(200)
        .optional()
        .meta({ description: "Only this many of the newest messages." }),
      withoutTrace: z
        .enum(["true", "false"])
        .optional()
        .meta({ description: "`true`: without messages that only trace intermediate steps." }),
    }),
    responses: { 200: { description: "A page.", schema: pageOf(messageSchema) }, ...errors(400, 404) },
    handle: async ({ caller, params, query: { last: maxMessages, withoutTrace, ...page } }) => {
      const agent = await caller.agent(params.agentId);
      const messages = await agent.getMessages({ maxMessages, withoutTrace: withoutTrace === "true" });
      return pageJson(pageAfter(messages, page, ({ id }) => id));
    },
  }),
  route({
    id: "listArtifacts",
    method: "GET",
    path: "/api/agents/{agentId}/artifacts",
    access: "caller",
    summary: "The agent's artifacts, without their contents.",
    params: agentParams,
    query: z.object(pageQuery),
    responses: { 200: { description: "A page.", schema: pageOf(artifactInfoSchema) }, ...errors(400, 404) },
    handle: async ({ caller, params, query }) => {
      const artifacts = await (await caller.agent(params.agentId)).getArtifacts();
      return pageJson(pageAfter(artifacts, query, ({ artifactId }) => artifactId));
    },
  }),
  route({
    id: "getArtifact",
    method: "GET",
    path: "/api/agents/{agentId}/artifacts/{artifactId}",
    access: "caller",
    summary: "The content of an artifact as a download.",
    params: artifactParams,
    responses: {
      200: { description: "The content, under its own content type.", media: "application/octet-stream" },
      ...errors(404),
    },
    handle: async ({ caller, params: { agentId, artifactId } }) => {
      const artifact = await (await caller.agent(agentId)).getArtifact(artifactId);
      if (!artifact) throw new NotFoundError(`agent "${agentId}" has no artifact "${artifactId}"`);
      return new Response(Buffer.from(artifact.content, artifact.encoding ?? "utf8"), {
        headers: fileHeaders(artifact),
      });
    },
  }),
  route({
    id: "getState",
    method: "GET",
    path: "/api/agents/{agentId}/state",
    access: "caller",
    summary: "The agent as one value: its conversation, settings and newest turn with all steps.",
    params: agentParams,
    responses: { 200: { description: "The committed state.", schema: agentStateJsonSchema }, ...errors(404) },
    handle: async ({ caller, params }) => {
      const agent = await caller.agent(params.agentId);
      const { context, ...state } = agentStateJson.toJSON(await agent.getState());
      return json({ ...state, context: { ...context, metadata: shownMetadata(context.metadata) } });
    },
  }),
  route({
    id: "getStubs",
    method: "GET",
    path: "/api/agents/{agentId}/stubs",
    access: "caller",
    summary: "How the stubs of the agent's session were used; empty lists for a session without stubs.",
    params: agentParams,
    responses: { 200: { description: "The report.", schema: stubReportSchema }, ...errors(404) },
    handle: async ({ caller, params }) => json(await (await caller.agent(params.agentId)).getStubs()),
  }),
  route({
    id: "listAccounts",
    method: "GET",
    path: "/api/agents/{agentId}/accounts",
    access: "caller",
    summary: "Limits and usage: of a root agent including its subagents, of a subagent alone.",
    params: agentParams,
    responses: { 200: { description: "All accounts.", schema: pageOf(accountJsonSchema) }, ...errors(404) },
    handle: async ({ caller, params }) => {
      const { agentId, rootAgentId } = await caller.agent(params.agentId);
      const accounts = await caller.runtime.accounts(rootAgentId);
      const shown = agentId === rootAgentId ? accounts : accounts.filter((account) => account.agentId === agentId);
      return wholeList(shown.map(accountJson));
    },
  }),
  route({
    id: "listOwnAccounts",
    method: "GET",
    path: "/api/accounts",
    access: "caller",
    summary:
      "The caller's limits and usage over all its agents, by window. Absent windows have no limit, or nothing was charged yet.",
    responses: { 200: { description: "All accounts.", schema: pageOf(accountJsonSchema) } },
    handle: async ({ caller }) => {
      const accounts = await caller.runtime.accountsAbove({ ownerId: caller.ownerId });
      // What the whole tenant spends is not the caller's.
      return wholeList(accounts.filter(({ outer }) => outer?.scope === "owner").map(accountJson));
    },
  }),
];

/** Headers that keep a browser from rendering the content as a page of this site, for any content type. */
function fileHeaders({ name, contentType }: Artifact): Record<string, string> {
  // A tool may have set any text as type and name; headers must not contain control characters.
  const isType = /^[\w.+-]+\/[\w.+-]+(?:; ?[\w-]+=[\w.+-]+)*$/.test(contentType);
  return {
    "content-type": isType ? contentType : "application/octet-stream",
    "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name).replaceAll(/['()*]/g, escaped)}`,
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
  };
}

function escaped(sign: string): string {
  return `%${sign.charCodeAt(0).toString(16)}`;
}
