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

/** Whether two types are the same to the last modifier; `readonly` does not count where one is merely assigned to the other. */
type IsSame<One, Other> =
  (<Any>() => Any extends One ? 1 : 2) extends <Any>() => Any extends Other ? 1 : 2 ? true : false;
type IsReadOnly<Value> = IsSame<Value, DeepReadonly<Value>>;

test("what is handed out is read-only to the last field", () => {
  expectTypeOf<IsReadOnly<{ list: string[] }>>().toEqualTypeOf<false>();
  expectTypeOf<IsReadOnly<{ readonly list: string[] }>>().toEqualTypeOf<false>();
  expectTypeOf<IsReadOnly<Message>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<HookDrafts["beforeLlm"]["messages"]>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<HookDrafts["afterTools"]["results"]>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<TroupeEvent>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<TurnResult>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<AgentState>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<AgentStatus>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<AgentRequest>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<TraceEntry>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<Artifact>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<Account>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<Awaited<ReturnType<Runtime["list"]>>[number]>>().toEqualTypeOf<true>();
  expectTypeOf<IsReadOnly<Parameters<LanguageModel["generate"]>[0]>>().toEqualTypeOf<true>();
});
