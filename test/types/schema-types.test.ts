import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import { z as z42 } from "zod-4.2";
import { z as z40 } from "zod-lowest";
import * as mini from "zod/mini";
import {
  type AgentDefinition,
  clientTool,
  defineAgent,
  defineTool,
  type JsonObject,
  subagent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import type { ToolArguments } from "../../src/tools/index.ts";

interface Stay {
  city: string;
  days: number;
}

const schemas = {
  z40: z40.object({ city: z40.string(), days: z40.number().default(1) }),
  z42: z42.object({ city: z42.string(), days: z42.number().default(1) }),
  zod: z.object({ city: z.string(), days: z.number().default(1) }),
  mini: mini.object({ city: mini.string(), days: mini._default(mini.number(), 1) }),
  arktype: type({ city: "string", days: "number = 1" }),
  valibot: toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number(), 1) })),
};

test("the arguments of a tool have the type of its schema, in every library", () => {
  expectTypeOf<ToolArguments<typeof schemas.z40>>().toEqualTypeOf<Stay>();
  expectTypeOf<ToolArguments<typeof schemas.z42>>().toEqualTypeOf<Stay>();
  expectTypeOf<ToolArguments<typeof schemas.zod>>().toEqualTypeOf<Stay>();
  expectTypeOf<ToolArguments<typeof schemas.mini>>().toEqualTypeOf<Stay>();
  expectTypeOf<ToolArguments<typeof schemas.arktype>>().toEqualTypeOf<Stay>();
  expectTypeOf<ToolArguments<typeof schemas.valibot>>().toEqualTypeOf<Stay>();
  expectTypeOf<ToolArguments<'{"type":"object"}'>>().toEqualTypeOf<JsonObject>();
});

test("execute, needsApproval and describeCall infer their arguments", () => {
  defineTool({
    name: "weather",
    description: "The weather.",
    parameters: schemas.arktype,
    secrets: { key: () => "secret" },
    needsApproval: (args) => {
      expectTypeOf(args).toEqualTypeOf<Stay>();
      return args.days > 3;
    },
    execute: (args) => {
      expectTypeOf(args.city).toEqualTypeOf<string>();
      expectTypeOf(args.key).toEqualTypeOf<string>();
      return "";
    },
  });
  clientTool({
    name: "ask_client",
    description: "Asks.",
    parameters: schemas.valibot,
    describeCall: (args) => {
      expectTypeOf(args).toEqualTypeOf<Stay>();
      return args.city;
    },
  });
});

test("a subagent's input gets the arguments of its schema, or the default ones", () => {
  const child = defineAgent({ name: "child", model: scriptedModel("") });
  subagent(child, {
    parameters: schemas.valibot,
    input: (args) => {
      expectTypeOf(args).toEqualTypeOf<Stay>();
      return args.city;
    },
  });
  subagent(child, {
    input: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ readonly input: string }>();
      return args.input;
    },
  });
});

test("an output has the type of its schema, in every library", () => {
  const model = scriptedModel("");
  expectTypeOf(defineAgent({ name: "a", model, output: schemas.z40 })).toEqualTypeOf<AgentDefinition<Stay>>();
  expectTypeOf(defineAgent({ name: "b", model, output: schemas.arktype })).toEqualTypeOf<AgentDefinition<Stay>>();
  expectTypeOf(defineAgent({ name: "c", model, output: schemas.valibot })).toEqualTypeOf<AgentDefinition<Stay>>();
});

test("what is not a schema does not compile", () => {
  // @ts-expect-error: a plain object is not a schema.
  expectTypeOf(defineTool<{ city: string }>).not.toBeAny();
  // @ts-expect-error: a number is not a schema.
  expectTypeOf(defineAgent<number>).not.toBeAny();
});
