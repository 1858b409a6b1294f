import { z } from "zod";
import type { AgentDefinition } from "../../agents/index.ts";
import { type Clock, type OptionsSchema, listRule, optionsOf, ruleOf } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type Route, route } from "../core/route.ts";
import type { Surface } from "../core/surface.ts";
import { answerFrames } from "./answer-stream.ts";
import {
  type Address,
  contentSchema,
  partialResponseSchema,
  prefixOf,
  resumePath,
  stateResponseSchema,
} from "./answers.ts";
import { answerWhenSettled, invoke, replayHeaders } from "./invocation.ts";
import { decideAll, type ResumeCall, type Resumed, resumedOf, resumptionOf } from "./resumption.ts";
import { resumeBodySchema, userMessageSchema } from "./user-message.ts";
import { tealFailure } from "./validation-errors.ts";
import { jsonSchema } from "../../state/index.ts";
import { docsPage, docsPolicy } from "../core/docs-page.ts";
import type { OpenApiDocument } from "../core/openapi.ts";

/** An agent of this surface: from a YAML file, or any definition with a version. */
export interface TealServed {
  /** Version in its URLs. */
  readonly version: string;
  /** Description of the agent, for its API document. Default: none. */
  readonly description?: string | null | undefined;
  /** Must be a definition of the runtime. */
  readonly definition: AgentDefinition;
}

/** Options of `tealSurface()`. */
export interface TealSurfaceOptions {
  /** The agents to serve. Their definitions must belong to the runtime. */
  readonly agents: readonly TealServed[];
}

/**
 * The HTTP interface of Teal Agents, version `tealagents/v1alpha1`: each agent is below `/{name}/{version}`. A task is
 * an agent, a request one of its turns. Throws `InvalidInputError` for two agents at one URL.
 */
export function tealSurface(given: TealSurfaceOptions): Surface {
  const { agents } = optionsOf<TealSurfaceOptions>(given, "tealSurface()", tealOptionsSchema);
  const addresses = agents.map(({ version, definition }): Address => ({ name: definition.name, version }));
  const prefixes = addresses.map(prefixOf);
  const twice = prefixes.find((prefix, index) => prefixes.indexOf(prefix) !== index);
  if (twice !== undefined) throw new InvalidInputError(`tealSurface(): two agents are at ${twice}`);
  const startedAt = performance.now();
  const routes = addresses.flatMap((address, index) => {
    const own = routesOf(address, startedAt);
    return [...own, ...documentRoutes(agents[index]?.description ?? "", address, own)];
  });
  return {
    name: "teal",
    paths: [...prefixes, "/tealagents/v1alpha1"],
    routes: [...routes, ...resumeRoutes("", addresses)],
    failure: tealFailure,
    strangers: "unauthenticated",
  };
}

const tealOptionsSchema: OptionsSchema<TealSurfaceOptions> = {
  rules: { agents: listRule("a list of agents, such as results of loadTealAgent()", servedRule) },
  needed: ["agents"],
  instead: { files: "agents: [await loadTealAgent(file)]" },
};

const isServed = ruleOf("an agent { version, definition }, such as the result of loadTealAgent()", (value) => {
  const { definition, version } = (typeof value === "object" && value !== null ? value : {}) as Partial<TealServed>;
  return typeof definition === "object" && definition !== null && typeof version === "string";
});

function servedRule(value: unknown, where: string): unknown {
  const { version } = isServed(value, where) as TealServed;
  if (/^[\w.+-]{1,64}$/.test(version)) return value;
  throw new InvalidInputError(
    `${where}.version is ${JSON.stringify(version)}; a version consists of letters, digits, "_", ".", "+" and "-"`,
  );
}

function routesOf(address: Address, startedAt: number): readonly Route[] {
  return [...invokeRoutes(address), ...resumeRoutes(prefixOf(address), [address]), ...healthRoutes(address, startedAt)];
}

function invokeRoutes(address: Address): readonly Route[] {
  const prefix = prefixOf(address);
  const shape = { method: "POST", access: "caller", body: userMessageSchema } as const;
  return [
    route({
      ...shape,
      id: `${prefix}.invoke`,
      path: prefix,
      summary: "Starts a task, or continues one, and waits for the answer",
      responses: {
        200: { description: "The request is completed, paused or canceled.", schema: stateResponseSchema },
        ...errors,
      },
      handle: async (call) => {
        const started = await invoke(call, address);
        return started instanceof Response
          ? started
          : await answerWhenSettled(call, started, { address, isBare: false });
      },
    }),
    route({
      ...shape,
      id: `${prefix}.invokeStream`,
      path: `${prefix}/sse`,
      summary: "Starts a task, or continues one, and streams the answer",
      responses: { 200: streamed, ...errors },
      handle: async (call) => {
        const started = await invoke(call, address);
        if (started instanceof Response) return started;
        const headers = replayHeaders(started);
        return await call.stream((signal) => answerFrames(call, started, { address, signal }), { headers });
      },
    }),
  ];
}

/** Routes below an agent's URL, and without it, like the original's URLs. */
function resumeRoutes(prefix: string, addresses: readonly Address[]): readonly Route[] {
  const shape = {
    method: "POST",
    access: "caller",
    params: z.object({ request_id: z.string() }),
    query: z.object({ action: z.string().optional(), calls: z.string().optional() }),
    body: resumeBodySchema,
  } as const;
  const resume = async (call: ResumeCall): Promise<Resumed | Response> => {
    const resumption = resumptionOf(call);
    if (resumption instanceof Response) return resumption;
    const resumed = await resumedOf(call, addresses);
    return (await decideAll(call, resumed, resumption)) ?? resumed;
  };
  const path = `${prefix}${resumePath}/{request_id}`;
  return [
    route({
      ...shape,
      id: `${prefix}.resume`,
      path,
      summary: "Decides a waiting request, and waits for its answer",
      responses: { 200: { description: "The content of the answer.", schema: contentSchema }, ...errors },
      handle: async (call) => {
        const resumed = await resume(call);
        if (resumed instanceof Response) return resumed;
        return await answerWhenSettled(call, resumed, { address: resumed.address, isBare: true });
      },
    }),
    route({
      ...shape,
      id: `${prefix}.resumeStream`,
      path: `${path}/sse`,
      summary: "Decides a waiting request, and streams its answer",
      responses: { 200: streamed, ...errors },
      handle: async (call) => {
        const resumed = await resume(call);
        if (resumed instanceof Response) return resumed;
        return await call.stream((signal) => answerFrames(call, resumed, { address: resumed.address, signal }));
      },
    }),
  ];
}

const streamed = {
  description: "`partial-response` events, then `final-response`, `hitl-response` or `error`.",
  stream: z.union([partialResponseSchema, contentSchema]),
};

const failed = (description: string) => ({ description, isError: true });
const errors = {
  401: failed("No identity, or the task of another user."),
  403: failed("A rule of the server forbids the decision."),
  404: failed("There is no such task or request."),
  409: failed("The task is busy, or the request was decided differently."),
  422: failed("The request is invalid."),
  500: failed("The request failed."),
  504: failed("The request is still running."),
};

function healthRoutes(address: Address, startedAt: number): readonly Route[] {
  const prefix = prefixOf(address);
  const shape = { method: "GET", access: "public" } as const;
  return [
    route({
      ...shape,
      id: `${prefix}.health`,
      path: `${prefix}/health`,
      summary: "Whether the process runs, and since when",
      responses: { 200: { description: "The process runs." } },
      handle: ({ clock }) =>
        Response.json({
          status: "healthy",
          timestamp: timestampOf(clock),
          version: address.version,
          uptime: (performance.now() - startedAt) / 1_000,
          dependencies: null,
        }),
    }),
    route({
      ...shape,
      id: `${prefix}.live`,
      path: `${prefix}/health/live`,
      summary: "Whether the process runs",
      responses: { 200: { description: "The process runs." } },
      handle: ({ clock }) => Response.json({ alive: true, timestamp: timestampOf(clock) }),
    }),
  ];
}

function timestampOf(clock: Clock): string {
  return new Date(clock.now()).toISOString();
}

const errorSchema = z.object({ detail: z.union([z.string(), z.array(z.record(z.string(), jsonSchema))]) }).meta({
  id: "Error",
});

/** The OpenAPI document of one agent, and the page that shows it. */
export function documentRoutes(description: string, address: Address, routes: readonly Route[]): readonly Route[] {
  const prefix = prefixOf(address);
  const shape = { method: "GET", access: "public" } as const;
  const read = async (): Promise<OpenApiDocument> => {
    const { openApiDocument } = await import("../core/openapi.ts");
    return openApiDocument({
      title: address.name,
      description,
      version: address.version,
      routes,
      error: errorSchema,
      named: {},
      anything: [jsonSchema],
    });
  };
  return [
    route({
      ...shape,
      id: `${prefix}.openapi`,
      path: `${prefix}/openapi.json`,
      summary: "The OpenAPI document of this agent",
      responses: { 200: { description: "OpenAPI 3.1." } },
      handle: async () => Response.json(await read()),
    }),
    route({
      ...shape,
      id: `${prefix}.docs`,
      path: `${prefix}/docs`,
      summary: "This document as a page",
      responses: { 200: { description: "HTML.", media: "text/html" } },
      handle: async () =>
        new Response(docsPage(await read()), {
          headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": docsPolicy },
        }),
    }),
  ];
}
