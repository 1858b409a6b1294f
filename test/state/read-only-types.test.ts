import { expectTypeOf, test } from "vitest";
import type {
  AgentRequest,
  AgentStatus,
  Artifact,
  HookDrafts,
  LanguageModel,
  Message,
  Runtime,
  TraceEntry,
  TroupeEvent,
  TurnResult,
} from "../../src/index.ts";
import type { AgentState } from "../../src/state/index.ts";
import type { DeepReadonly } from "../../src/base/index.ts";
import type { Account } from "../../src/budget/index.ts";

test("public types are read-only at every depth", () => {
  expectTypeOf<{ list: string[] }>().not.toEqualTypeOf<DeepReadonly<{ list: string[] }>>();
  expectTypeOf<{ readonly list: string[] }>().not.toEqualTypeOf<DeepReadonly<{ readonly list: string[] }>>();
  expectTypeOf<Message>().toEqualTypeOf<DeepReadonly<Message>>();
  expectTypeOf<HookDrafts["beforeLlm"]["messages"]>().toEqualTypeOf<
    DeepReadonly<HookDrafts["beforeLlm"]["messages"]>
  >();
  expectTypeOf<HookDrafts["afterTools"]["results"]>().toEqualTypeOf<
    DeepReadonly<HookDrafts["afterTools"]["results"]>
  >();
  expectTypeOf<TroupeEvent>().toEqualTypeOf<DeepReadonly<TroupeEvent>>();
  expectTypeOf<TurnResult>().toEqualTypeOf<DeepReadonly<TurnResult>>();
  expectTypeOf<AgentState>().toEqualTypeOf<DeepReadonly<AgentState>>();
  expectTypeOf<AgentStatus>().toEqualTypeOf<DeepReadonly<AgentStatus>>();
  expectTypeOf<AgentRequest>().toEqualTypeOf<DeepReadonly<AgentRequest>>();
  expectTypeOf<TraceEntry>().toEqualTypeOf<DeepReadonly<TraceEntry>>();
  expectTypeOf<Artifact>().toEqualTypeOf<DeepReadonly<Artifact>>();
  expectTypeOf<Account>().toEqualTypeOf<DeepReadonly<Account>>();
  expectTypeOf<Awaited<ReturnType<Runtime["list"]>>[number]>().toEqualTypeOf<
    DeepReadonly<Awaited<ReturnType<Runtime["list"]>>[number]>
  >();
  expectTypeOf<Parameters<LanguageModel["generate"]>[0]>().toEqualTypeOf<
    DeepReadonly<Parameters<LanguageModel["generate"]>[0]>
  >();
});
