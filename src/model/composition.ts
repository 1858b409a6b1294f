import type { Account } from "../budget/index.ts";
import { ModelError } from "../errors/index.ts";
import type { Message, ModelTool } from "../state/index.ts";
import type { BreakerLimits } from "./circuit-breaker.ts";
import type { LanguageModel } from "./language-model.ts";

/** A limit of the turn's accounts, and how much of it no call has used or reserved. Absent fields are unlimited. */
export interface BudgetLeft {
  /** Input and output tokens. */
  readonly tokens?: number;
  /** In dollars. */
  readonly cost?: number;
  /** Model calls, including the one whose model is chosen. */
  readonly steps?: number;
}

/** The model call for which `pick` of `routedModel` chooses a model. */
export interface ModelChoice {
  /** The agent that makes the call. */
  readonly agentId: string;
  /** The agent at the root of its tree; the same one for an agent without a parent. */
  readonly rootAgentId: string;
  /** Name of the agent's definition. */
  readonly agentName: string;
  /** The open turn. */
  readonly turnId: string;
  /** Number of the agent's turn, from 1. */
  readonly turn: number;
  /** Number of the turn's step, from 1. */
  readonly step: number;
  /** `generate` for calls of `run.generate()`, of hooks and of compactions. */
  readonly purpose: "step" | "generate";
  /** The prompt, oldest first, without the reasoning of earlier answers. */
  readonly messages: readonly Message[];
  /** The tools that the call offers to the model. */
  readonly tools: readonly ModelTool[];
  /** What is left of the budget, on the tightest of the accounts that apply: turn, agent, and all agents above it. */
  readonly budgetLeft: () => Promise<BudgetLeft>;
}

/** Tries its models in their order. */
export interface FallbackComposition {
  readonly kind: "fallback";
  readonly models: readonly LanguageModel[];
  readonly when: (error: ModelError, byDefault: boolean) => boolean;
  /** `null` if a failing model is called again each time. */
  readonly breaker: BreakerLimits | null;
}

/** Chooses one of its models for each step. */
export interface RoutedComposition {
  readonly kind: "routed";
  readonly models: readonly LanguageModel[];
  readonly pick: (choice: ModelChoice) => LanguageModel | Promise<LanguageModel>;
}

/** How a model is made of others. The runtime chooses among them before each attempt. */
export type Composition = FallbackComposition | RoutedComposition;

/** Shared by all copies of the package. Not enumerable: a model that wraps a composition, or inherits from it, is not one itself. */
const compositionKey = Symbol.for("troupe.model.composition");

/** `undefined` for a model that is called itself. */
export function compositionOf(model: LanguageModel): Composition | undefined {
  if (!Object.hasOwn(model, compositionKey)) return undefined;
  return (model as { readonly [compositionKey]?: Composition })[compositionKey];
}

/** The models that can be called, each once. */
export function calledModels(model: LanguageModel): readonly LanguageModel[] {
  const composition = compositionOf(model);
  return composition ? [...new Set(composition.models.flatMap(calledModels))] : [model];
}

/** Names of a composition, as in the journal. */
interface ComposedFields {
  readonly name: string | undefined;
  /** Default: the smallest of its models that have one. */
  readonly contextWindow: number | undefined;
}

/** A model behind which the runtime chooses another one for each attempt. */
export function composedModel(composition: Composition, { name, contextWindow }: ComposedFields): LanguageModel {
  const { kind, models } = composition;
  const windows = models.flatMap((model) => model.contextWindow ?? []);
  const window = contextWindow ?? (windows.length === 0 ? undefined : Math.min(...windows));
  const model: LanguageModel = {
    name: name ?? defaultName(models),
    provider: kind,
    ...(window === undefined ? {} : { contextWindow: window }),
    generate: () => Promise.reject(notAlone(kind)),
    countPromptTokens: () => {
      throw notAlone(kind);
    },
  };
  Object.defineProperty(model, compositionKey, { value: Object.freeze(composition) });
  return Object.freeze(model);
}

const LONGEST_DEFAULT_NAME = 200;

function defaultName(models: readonly LanguageModel[]): string {
  const names = models.map(({ name }) => name).join(" | ");
  return names.length > LONGEST_DEFAULT_NAME ? `${names.slice(0, LONGEST_DEFAULT_NAME - 1)}…` : names;
}

function notAlone(kind: Composition["kind"]): ModelError {
  return new ModelError(
    `a ${kind}Model cannot be called itself: pass it as the model of an agent, or as one of the models of another composition, ` +
      "so that the runtime chooses, reserves and prices the model of each attempt",
    { retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } },
  );
}

/** What is left on the tightest of these accounts for the next model call of this agent. */
export function budgetLeftOf(agentId: string, accounts: readonly BoundingAccount[]): BudgetLeft {
  const left: { -readonly [Name in keyof BudgetLeft]: number } = {};
  const note = (name: keyof BudgetLeft, amount: number): void => {
    left[name] = Math.min(left[name] ?? Number.POSITIVE_INFINITY, Math.max(0, amount));
  };
  for (const { agentId: holder, limits, used, reserved } of accounts) {
    const { maxTokens, maxCostMicros, maxSteps, maxTreeSteps } = limits;
    if (maxTokens !== undefined) note("tokens", maxTokens - used.tokens - reserved.tokens);
    if (maxCostMicros !== undefined) note("cost", (maxCostMicros - used.costMicros - reserved.costMicros) / 1_000_000);
    if (maxSteps !== undefined && holder === agentId) note("steps", maxSteps - used.steps);
    if (maxTreeSteps !== undefined) note("steps", maxTreeSteps - used.treeSteps);
  }
  return left;
}

type BoundingAccount = Pick<Account, "agentId" | "limits" | "used" | "reserved">;
