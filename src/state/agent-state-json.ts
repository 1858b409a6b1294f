import { z } from "zod";
import { type DeepReadonly, deepFreeze, parseJson, stableStringify } from "../base/index.ts";
import { type Limits, limitsSchema } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type AgentState, agentStateSchema } from "./agent-state.ts";
import {
  type AgentStep,
  agentStepSchema,
  type ExecutionState,
  executionStateSchema,
  type StepExecution,
  stepExecutionSchema,
  type ToolExecution,
  toolExecutionSchema,
} from "./execution.ts";
import { type Message, messageSchema } from "./message.ts";
import { type Continuation, continuationSchema } from "./stop.ts";

/*
 * Converts the state objects to plain JSON and back. `fromJSON` accepts a parsed value or its text. It throws `InvalidInputError` with
 * the path for a value that is not plain JSON, a wrong type, a missing or unknown field, and a key that reaches an object's prototype.
 */

/** A step with its messages, as far as they are known: outside of a store, message ids would have no meaning. */
export const materialisedStepSchema = agentStepSchema.extend({
  inputMessages: z.array(messageSchema),
  outputMessages: z.array(messageSchema),
});
export type MaterialisedStep = DeepReadonly<z.infer<typeof materialisedStepSchema>>;

const materialisedStepExecutionSchema = stepExecutionSchema.extend({ step: materialisedStepSchema });
export type MaterialisedStepExecution = DeepReadonly<z.infer<typeof materialisedStepExecutionSchema>>;

const materialisedExecutionSchema = executionStateSchema.extend({
  stepExecutions: z.array(materialisedStepExecutionSchema),
  currentStep: materialisedStepSchema.nullable(),
});
export type MaterialisedExecution = DeepReadonly<z.infer<typeof materialisedExecutionSchema>>;

export const agentStateJsonSchema = agentStateSchema.extend({ execution: materialisedExecutionSchema.nullable() });
export type AgentStateJson = DeepReadonly<z.infer<typeof agentStateJsonSchema>>;

/** `messages`: the messages of the steps; an agent's state contains its own. */
export const agentStepJson = {
  toJSON: (step: AgentStep, messages: readonly Message[]): MaterialisedStep => stepWith(step, byId(messages)),
  fromJSON: (stored: unknown): MaterialisedStep => read(materialisedStepSchema, stored, "the agent step"),
};

export const stepExecutionJson = {
  toJSON: (one: StepExecution, messages: readonly Message[]): MaterialisedStepExecution =>
    plain({ ...one, step: stepWith(one.step, byId(messages)) }),
  fromJSON: (stored: unknown): MaterialisedStepExecution =>
    read(materialisedStepExecutionSchema, stored, "the step execution"),
};

export const executionStateJson = {
  toJSON: (execution: ExecutionState, messages: readonly Message[]): MaterialisedExecution =>
    plain(executionWith(execution, byId(messages))),
  fromJSON: (stored: unknown): MaterialisedExecution =>
    read(materialisedExecutionSchema, stored, "the execution state"),
};

export const agentStateJson = {
  toJSON({ execution, ...state }: AgentState): AgentStateJson {
    return plain({ ...state, execution: execution && executionWith(execution, byId(state.context.messages)) });
  },
  /** The messages are taken from the context; the copies within the steps are dropped. */
  fromJSON(stored: unknown): AgentState {
    const { execution, ...state } = read(agentStateJsonSchema, stored, "the agent state");
    const parsed = agentStateSchema.parse({ ...state, execution: execution && executionStateSchema.parse(execution) });
    return deepFreeze(parsed);
  },
};

export const toolExecutionJson = {
  toJSON: (execution: ToolExecution): ToolExecution => plain(execution),
  fromJSON: (stored: unknown): ToolExecution => read(toolExecutionSchema, stored, "the tool execution"),
};

export const continuationJson = {
  toJSON: (continuation: Continuation): Continuation => plain(continuation),
  fromJSON: (stored: unknown): Continuation => read(continuationSchema, stored, "the continuation"),
};

export const limitsJson = {
  toJSON: (limits: Limits): Limits => plain(limits),
  fromJSON: (stored: unknown): Limits => read(limitsSchema, stored, "the limits"),
};

function byId(messages: readonly Message[]): ReadonlyMap<string, Message> {
  return new Map(messages.map((message) => [message.id, message]));
}

function stepWith(step: AgentStep, messages: ReadonlyMap<string, Message>): MaterialisedStep {
  const known = (ids: readonly string[]): Message[] => ids.flatMap((id) => messages.get(id) ?? []);
  return plain({
    ...step,
    inputMessages: known(step.inputMessageIds),
    outputMessages: known(step.outputMessageIds),
  });
}

function executionWith(execution: ExecutionState, messages: ReadonlyMap<string, Message>): MaterialisedExecution {
  const { stepExecutions, currentStep } = execution;
  return {
    ...execution,
    stepExecutions: stepExecutions.map((one) => ({ ...one, step: stepWith(one.step, messages) })),
    currentStep: currentStep && stepWith(currentStep, messages),
  };
}

/** A copy that shares no objects with the state. */
function plain<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

function read<Schema extends z.ZodType>(schema: Schema, stored: unknown, what: string): z.output<Schema> {
  // Values other than text are serialized first, so that getters, classes and cycles are not passed on.
  const given = parseJson(typeof stored === "string" ? stored : stableStringify(stored), { what });
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new InvalidInputError(
      `${what} does not fit its schema: ${issue?.message} at ${issue?.path.join(".") || "$"}`,
    );
  }
  const unknown = unknownKey(given, parsed.data, "");
  if (unknown !== undefined) throw new InvalidInputError(`${what} contains an unknown field: ${unknown}`);
  return parsed.data;
}

/** The path of the first key of the given value that parsing dropped. */
function unknownKey(given: unknown, known: unknown, path: string): string | undefined {
  if (typeof given !== "object" || given === null || typeof known !== "object" || known === null) return undefined;
  for (const [key, value] of Object.entries(given)) {
    const place = path === "" ? key : `${path}.${key}`;
    if (!Object.hasOwn(known, key)) return place;
    const deeper = unknownKey(value, (known as Readonly<Record<string, unknown>>)[key], place);
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}
