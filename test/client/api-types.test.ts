import type {
  AgentInfo,
  BudgetInput,
  DefinitionInfo,
  DeletedAgent,
  NewAgent,
  NewSchedule,
  RequestDecision,
  ScheduledRunInfo,
  ScheduleInfo,
  TurnInfo,
  TurnOutcome,
  TurnRequest,
  TurnSummary,
} from "troupe/client";
import { expectTypeOf, it } from "vitest";
import type { z } from "zod";
import type { DeepReadonly } from "../../src/base/index.ts";
import type { agentSchema, budgetSchema, definitionSchema } from "../../src/server/api/agent-json.ts";
import type { deletedSchema, newAgentSchema } from "../../src/server/api/agent-routes.ts";
import type {
  newScheduleSchema,
  scheduledRunJsonSchema,
  scheduleJsonSchema,
} from "../../src/server/api/schedule-json.ts";
import type {
  decisionBodySchema,
  requestSchema,
  turnResultSchema,
  turnSchema,
  turnSummarySchema,
} from "../../src/server/api/turn-json.ts";

type Given<Schema extends z.ZodType> = DeepReadonly<z.output<Schema>>;
type Taken<Schema extends z.ZodType> = DeepReadonly<z.input<Schema>>;

it("the client's types equal those of the server's schemas", () => {
  expectTypeOf<Given<typeof agentSchema>>().toExtend<AgentInfo>();
  expectTypeOf<Given<typeof deletedSchema>>().toEqualTypeOf<DeletedAgent>();
  expectTypeOf<Given<typeof definitionSchema>>().toExtend<DefinitionInfo>();
  expectTypeOf<Given<typeof requestSchema>>().toExtend<TurnRequest>();
  expectTypeOf<Given<typeof turnResultSchema>>().toExtend<TurnOutcome>();
  expectTypeOf<Given<typeof turnSchema>>().toExtend<TurnInfo>();
  expectTypeOf<Given<typeof turnSummarySchema>>().toExtend<TurnSummary>();
  expectTypeOf<Given<typeof scheduleJsonSchema>>().toExtend<ScheduleInfo>();
  expectTypeOf<Given<typeof scheduledRunJsonSchema>>().toExtend<ScheduledRunInfo>();
  expectTypeOf<BudgetInput>().toExtend<Taken<typeof budgetSchema>>();
  expectTypeOf<NewAgent>().toExtend<Taken<typeof newAgentSchema>>();
  expectTypeOf<NewSchedule>().toExtend<Taken<typeof newScheduleSchema>>();
  expectTypeOf<RequestDecision>().toExtend<Taken<typeof decisionBodySchema>>();
});

it("the client has all properties of the server's schemas", () => {
  expectTypeOf<keyof AgentInfo>().toEqualTypeOf<keyof Given<typeof agentSchema>>();
  expectTypeOf<keyof TurnRequest>().toEqualTypeOf<keyof Given<typeof requestSchema>>();
  expectTypeOf<keyof TurnOutcome>().toEqualTypeOf<keyof Given<typeof turnResultSchema>>();
  expectTypeOf<keyof TurnInfo>().toEqualTypeOf<keyof Given<typeof turnSchema>>();
  expectTypeOf<keyof TurnSummary>().toEqualTypeOf<keyof Given<typeof turnSummarySchema>>();
  expectTypeOf<keyof BudgetInput>().toEqualTypeOf<keyof Taken<typeof budgetSchema>>();
  expectTypeOf<keyof NewAgent>().toEqualTypeOf<keyof Taken<typeof newAgentSchema>>();
  expectTypeOf<keyof NewSchedule>().toEqualTypeOf<keyof Taken<typeof newScheduleSchema>>();
  expectTypeOf<keyof ScheduleInfo>().toEqualTypeOf<keyof Given<typeof scheduleJsonSchema>>();
  expectTypeOf<keyof ScheduledRunInfo>().toEqualTypeOf<keyof Given<typeof scheduledRunJsonSchema>>();
});
