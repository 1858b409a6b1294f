import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import {
  type Agent,
  type AgentDefinition,
  createAgent,
  createAgentLoop,
  createRuntime,
  type DeepPartial,
  defineAgent,
  type Json,
  run,
  type Turn,
  type TurnResult,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

interface Price {
  francs: number;
  note?: string | undefined;
}

const price = z.object({ francs: z.number(), note: z.string().optional() });
const model = scriptedModel(() => '{"francs":12}');
const priced = defineAgent({ name: "priced", model, output: price });
const plain = defineAgent({ name: "plain", model });

test("output has the type of its schema in every API that runs an agent", async () => {
  expectTypeOf(priced).toEqualTypeOf<AgentDefinition<Price>>();
  expectTypeOf((await run(priced, "How much?")).output).toEqualTypeOf<Price | undefined>();

  const runtime = await createRuntime({ agents: [priced, plain] });
  const agent = await runtime.agent(priced);
  expectTypeOf(agent).toEqualTypeOf<Agent<Price>>();
  await agent.start();
  const turn = agent.executeTurn("How much?");
  const rest = await turn.settled;
  if (rest.status !== "waiting") expectTypeOf(rest.output).toEqualTypeOf<Price | undefined>();
  expectTypeOf((await turn.result).output).toEqualTypeOf<Price | undefined>();
  await runtime.shutdown();

  const own = await createAgent({ model, output: z.array(z.enum(["red", "blue"])) });
  expectTypeOf<Awaited<ReturnType<typeof own.executeTurn>["result"]>["output"]>().toEqualTypeOf<
    ("red" | "blue")[] | undefined
  >();
  await own.runtime.shutdown();

  const looped = await createAgentLoop(priced).executeTurn([{ role: "user", content: "How much?" }]).result;
  expectTypeOf(looped.output).toEqualTypeOf<Price | undefined>();
});

test("output has the output type of transforms and of zod/mini schemas", () => {
  const doubled = defineAgent({ name: "a", model, output: z.object({ n: z.number().transform(String) }) });
  expectTypeOf(doubled).toEqualTypeOf<AgentDefinition<{ n: string }>>();
  const small = defineAgent({ name: "b", model, output: mini.object({ n: mini.number() }) });
  expectTypeOf(small).toEqualTypeOf<AgentDefinition<{ n: number }>>();
});

test("while it is written, any part of it may be missing", () => {
  interface Trip {
    readonly legs: readonly { readonly to: string; readonly via?: string[] | undefined }[];
    readonly price: Price | null;
  }
  type Part = DeepPartial<Trip>;
  expectTypeOf<Part>().toEqualTypeOf<{
    readonly legs?: readonly { readonly to?: string; readonly via?: readonly string[] | undefined }[];
    readonly price?: { readonly francs?: number; readonly note?: string | undefined } | null;
  }>();
  type Shown = ReturnType<Turn<Price>["partialOutputs"]>;
  expectTypeOf<Shown>().toEqualTypeOf<
    AsyncIterable<{ readonly francs?: number; readonly note?: string | undefined }>
  >();
});

test("without a schema its type is Json", async () => {
  expectTypeOf(plain).toEqualTypeOf<AgentDefinition<Json>>();
  expectTypeOf<Awaited<ReturnType<typeof run<Json>>>["output"]>().toEqualTypeOf<Json | undefined>();
  const runtime = await createRuntime({ agents: [plain] });
  expectTypeOf(await runtime.agent("plain")).toEqualTypeOf<Agent<Json>>();
  await runtime.shutdown();
});

test("typed agents, definitions and results are assignable to the untyped ones", () => {
  expectTypeOf<Agent<Price>>().toExtend<Agent>();
  expectTypeOf<AgentDefinition<Price>>().toExtend<AgentDefinition>();
  expectTypeOf<TurnResult<Price>>().toExtend<TurnResult>();
});
