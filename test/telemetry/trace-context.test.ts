import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, context, type ContextManager, createTraceState, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, localQueues, type Queues, subagent } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { traceToOpenTelemetry } from "../../src/telemetry/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";
import { createSpanRecorder } from "./span-recorder.ts";

/** What a server's OpenTelemetry SDK registers. */
class ContextsOfCalls implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();

  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }

  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    at: Context,
    work: F,
    thisArg?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(at, () => work.call(thisArg, ...args));
  }

  bind<T>(_context: Context, target: T): T {
    return target;
  }

  enable(): this {
    return this;
  }

  disable(): this {
    this.#storage.disable();
    return this;
  }
}

beforeEach(() => void context.setGlobalContextManager(new ContextsOfCalls().enable()));
afterEach(() => context.disable());

const closes: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0).toReversed()) await close();
});

/** A lead with a subagent, both with a tool whose code creates a span. */
function tracedTeam(queue: string | undefined) {
  const recorder = createSpanRecorder();
  const tracer = recorder.tracerProvider.getTracer("user code");
  const look = defineTool({
    name: "look",
    description: "Looks something up.",
    parameters: z.object({}),
    effect: "none",
    queue,
    execute: async () => {
      await Promise.resolve();
      tracer.startSpan("GET /page").end();
      return "a page";
    },
  });
  const helper = defineAgent({
    name: "helper",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "read" : calling("look"))),
    tools: [look],
  });
  const lead = defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "done" : calling("look", { name: "helper", arguments: { input: "go" } }),
    ),
    tools: [look, subagent(helper)],
  });
  return { recorder, tracer, agents: [lead, helper] };
}

const wholeTree = [
  "GET /page < execute_tool look < invoke_agent helper < execute_tool helper < invoke_agent lead < POST /ask",
  "GET /page < execute_tool look < invoke_agent lead < POST /ask",
  "POST /ask",
  "invoke_agent lead < POST /ask",
];

describe("the trace of the caller", () => {
  it("contains the turn, its subagents, and the spans of tools", async () => {
    const { recorder, tracer, agents } = tracedTeam(undefined);
    const runtime = await createRuntime({ agents });
    closes.push(() => runtime.shutdown());
    const telemetry = traceToOpenTelemetry(runtime, { tracerProvider: recorder.tracerProvider });
    closes.push(() => telemetry.close());
    const agent = await runtime.agent("lead");
    await agent.start();
    await tracer.startActiveSpan("POST /ask", async (span) => {
      await agent.executeTurn("go").result;
      span.end();
    });
    await telemetry.flush();
    expect(recorder.paths()).toEqual(expect.arrayContaining(wholeTree));
    expect(new Set(recorder.spans().map((span) => span.spanContext().traceId)).size).toBe(1);
  });

  it("is passed through queues and stores to the executing processes, with every job", async () => {
    const { recorder, tracer, agents } = tracedTeam("pages");
    const folder = mkdtempSync(join(tmpdir(), "troupe-trace-"));
    closes.push(() => rmSync(folder, { recursive: true, force: true }));
    const stores = () => sqliteStores(join(folder, "t.db"));
    const jobs: (string | undefined)[] = [];
    const inner = localQueues();
    const queues: Queues = {
      ...inner,
      kind: "shared",
      wake: (key, trace) => {
        jobs.push(trace?.traceparent);
        return inner.wake(key, trace);
      },
      add: (queue, job, options) => {
        jobs.push(job.traceparent);
        return inner.add(queue, job, options);
      },
    };
    const worker = await createRuntime({ agents, stores: stores(), queues, role: "worker" });
    closes.push(() => worker.shutdown());
    const telemetry = traceToOpenTelemetry(worker, { tracerProvider: recorder.tracerProvider });
    closes.push(() => telemetry.close());
    const theirs = { ...queues, close: async () => undefined };
    const client = await createRuntime({ agents, stores: stores(), queues: theirs, role: "client" });
    closes.push(() => client.shutdown());
    const agent = await client.agent("lead", { agentId: "a" });
    await agent.start();
    await tracer.startActiveSpan("POST /ask", async (span) => {
      await agent.executeTurn("go").result;
      span.end();
    });
    await telemetry.flush();
    const [first] = recorder.spans();
    expect(jobs.length).toBeGreaterThanOrEqual(3);
    const traceIds = new Set(jobs.map((traceparent) => traceparent?.slice(3, 35)));
    expect([...traceIds]).toEqual([first?.spanContext().traceId]);
    const made = recorder.paths().filter((path) => path.startsWith("GET /page"));
    expect(made).toHaveLength(2);
    for (const path of made) expect(path).toMatch(/< execute_tool look < invoke_agent (lead|helper) <.* POST \/ask$/);
  });

  it("is accepted as headers and stored with the turn", async () => {
    const { agents } = tracedTeam(undefined);
    const runtime = await createRuntime({ agents });
    closes.push(() => runtime.shutdown());
    const agent = await runtime.agent("helper", { agentId: "a" });
    await agent.start();
    const headers = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "vendor=1" };
    await agent.executeTurn("go", { trace: headers }).result;
    const started: unknown[] = [];
    for await (const event of runtime.follow("a")) {
      if (event.type === "turn.started") started.push(event.trace);
      if (event.type === "turn.completed") break;
    }
    expect(started).toEqual([headers]);
    await expect(agent.executeTurn("go", { trace: { traceparent: "00-1" } }).result).rejects.toThrow(
      "executeTurn({ trace }) cannot be taken: traceparent: is not of the form 00-<32 hex>",
    );
  });

  it("is stored without values above the length limit", async () => {
    const { recorder, agents } = tracedTeam(undefined);
    const runtime = await createRuntime({ agents });
    closes.push(() => runtime.shutdown());
    const telemetry = traceToOpenTelemetry(runtime, { tracerProvider: recorder.tracerProvider });
    closes.push(() => telemetry.close());
    const agent = await runtime.agent("helper", { agentId: "a" });
    await agent.start();
    const long = "x".repeat(200);
    const traceState = createTraceState().set("a", long).set("b", long).set("c", long);
    const span = { traceId: "A".repeat(32), spanId: "b".repeat(16), traceFlags: 1, traceState };
    await context.with(trace.setSpanContext(ROOT_CONTEXT, span), () => agent.executeTurn("go").result);
    for await (const event of runtime.follow("a")) {
      if (event.type !== "turn.started") continue;
      expect(event.trace).toEqual({ traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` });
      break;
    }
    expect.assertions(1);
  });

  it("is not created if the runtime traces nothing", async () => {
    const { recorder, tracer, agents } = tracedTeam(undefined);
    const runtime = await createRuntime({ agents });
    closes.push(() => runtime.shutdown());
    const agent = await runtime.agent("helper");
    await agent.start();
    await tracer.startActiveSpan("POST /ask", async (span) => {
      await agent.executeTurn("go").result;
      span.end();
    });
    expect(recorder.paths()).toEqual(["GET /page < POST /ask", "POST /ask"]);
  });
});
