import type { AgentDefinition } from "../../agents/index.ts";
import { anyRule, describeValue, type OptionRule, optionsOf, shortHash, stableStringify } from "../../base/index.ts";
import { storedAmount } from "../../budget/index.ts";
import {
  CorruptRecordError,
  InvalidInputError,
  InvariantError,
  NotFoundError,
  PolicyRefusedError,
  RequestConflictError,
} from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRequest,
  agentOfTurn,
  type BudgetQuestion,
  budgetQuestionSchema,
  callOfRequest,
  type Decision,
  partsOfCall,
  type RequestVerdict,
  takeJson,
  verdictsOf,
} from "../../state/index.ts";
import type { DecideOptions, Stores } from "../../stores/index.ts";
import { type RenderedOutput, renderAnswer } from "../../tools/index.ts";
import { decideOf, textOfCaller } from "../api/agent-options.ts";
import type { Decide, RequestListOptions } from "../api/agent-types.ts";
import type { RuntimeOptions } from "../api/runtime-types.ts";

export interface RequestsOptions {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: { now(): number };
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly mayDecide: RuntimeOptions["mayDecide"];
  /** Called with the agents that have new inbox items. */
  readonly notify: (agentIds: readonly string[]) => void;
}

/** `isReplayed`: the request was decided before with the same key. */
type Decided = AgentRequest & { readonly isReplayed?: true };

/** Requests and their decisions, for agents of any process, whether or not their owner is alive. */
export class Requests {
  readonly #options: RequestsOptions;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  async list(filter: RequestListOptions = {}): Promise<AgentRequest[]> {
    const { stores, tenant } = this.#options;
    return await stores.requests({ status: "open", ...filter, tenant });
  }

  async find(requestId: string): Promise<AgentRequest> {
    textOfCaller(requestId, "the id of the request");
    const request = await this.#options.stores.request(this.#keyOf(requestId), requestId);
    if (!request) throw new NotFoundError(`there is no request "${requestId}"`);
    return request;
  }

  /**
   * Decides a request once. Later attempts get `RequestConflictError` with the earlier decision and its author; attempts that
   * `mayDecide` refuses get `PolicyRefusedError`. `onAllowed` is called after `mayDecide` has allowed the decision and before it
   * is stored.
   */
  async decide(requestId: string, given: Decide, onAllowed?: () => void): Promise<Decided> {
    textOfCaller(requestId, "the id of the request");
    const decide = copyOf(requestId, given);
    const request = await this.find(requestId);
    const decision = await this.#decisionOf(request, decide);
    const { by = null } = decide;
    const { mayDecide } = this.#options;
    const edited = decision.arguments === undefined ? {} : { arguments: decision.arguments };
    if (mayDecide && !isAllowed(await mayDecide({ request, by, verdict: decision.verdict, ...edited }))) {
      throw new PolicyRefusedError(`${by ?? "nobody"} may not decide request "${requestId}"`, {
        details: { requestId, by },
      });
    }
    onAllowed?.();
    const { argumentsHash, key } = decide;
    return await this.#apply(request, decision, { argumentsHash, key });
  }

  /** Closes an expired request, so that it cannot be decided any more. */
  async expire(requestId: string): Promise<void> {
    const { stores, clock } = this.#options;
    const decision: Decision = { verdict: "expired", by: null, reason: null };
    const outcome = await stores.decide(this.#keyOf(requestId), requestId, decision, clock.now());
    if (outcome.type === "decided") this.#notify(outcome.request, outcome.posted);
  }

  async #apply(request: AgentRequest, decision: Decision, options: DecideOptions): Promise<Decided> {
    const { stores, clock } = this.#options;
    const { requestId } = request;
    const outcome = await stores.decide(this.#keyOf(requestId), requestId, decision, clock.now(), options);
    switch (outcome.type) {
      case "decided":
        this.#notify(request, outcome.posted);
        return outcome.request;
      case "conflict":
        this.#notify(request, outcome.posted);
        throw conflictOf(outcome.request);
      case "known":
        // The process that stored the decision may have ended before it could notify the agent's owner.
        this.#notify(request, [request.agentId]);
        return { ...outcome.request, isReplayed: true };
      case "taken":
        throw takenKey(request, options.key, outcome);
      case "changed":
        throw new RequestConflictError(
          `request "${requestId}" has other arguments than those that were shown; read it again`,
          { details: { requestId } },
        );
      case "unfit":
        throw new InvalidInputError(unfit(request, decision.verdict));
      case "notFound":
        throw new NotFoundError(`there is no request "${requestId}"`);
      default:
        outcome satisfies never;
        throw new InvariantError("the outcome of a decision is missing");
    }
  }

  async #decisionOf(request: AgentRequest, decide: Decide): Promise<Decision> {
    const { verdict, by = null, reason = null } = decide;
    const isTheClocks = (verdict as RequestVerdict) === "expired";
    if (isTheClocks || !verdictsOf[request.kind].includes(verdict))
      throw new InvalidInputError(unfit(request, verdict));
    const tool = this.#options.definitions.get(request.agentName)?.tools.get(request.name);
    if (verdict === "edited" && request.kind === "budget") {
      return { verdict, by, reason, arguments: amountOf(request, decide.arguments) };
    }
    if (verdict === "edited" && request.isAsked === true) {
      throw new InvalidInputError(
        `request "${request.requestId}" is a question of the running tool without arguments to edit; approve or reject it`,
      );
    }
    if (verdict === "edited") {
      if (decide.arguments === undefined) {
        throw new InvalidInputError(`request "${request.requestId}": verdict "edited" requires { arguments }`);
      }
      // If the definition is known, invalid arguments are refused before the decision is stored.
      const parsed = await tool?.parse(JSON.stringify(decide.arguments));
      if (parsed && !parsed.ok) {
        const { message, issues } = parsed;
        throw new InvalidInputError(`request "${request.requestId}": ${message}`, { issues });
      }
      return { verdict, by, reason, arguments: decide.arguments };
    }
    // The stored arguments must match the hash, because people approve what they see.
    if (verdict === "approved" && shortHash(stableStringify(request.arguments)) !== request.argumentsHash) {
      throw new CorruptRecordError(
        `request "${request.requestId}": its stored arguments were changed; it can only be rejected`,
      );
    }
    if (verdict === "answered") return { verdict, by, reason, result: resultOf(request, decide) };
    return { verdict, by, reason };
  }

  /** Without its definition the agent is left to a process that can run it; the posted items wait in the store. */
  #notify({ agentName }: AgentRequest, posted: readonly string[]): void {
    if (this.#options.definitions.has(agentName)) this.#options.notify(posted);
  }

  #keyOf(requestId: string): AgentKey {
    const { turnId } = partsOfCall(callOfRequest(requestId));
    return { tenant: this.#options.tenant, agentId: agentOfTurn(turnId) };
  }
}

function unchangedRule(right: string): OptionRule {
  return (value, where) => {
    if (value === right) return value;
    throw new InvalidInputError(
      `${where} is ${describeValue(value)}; it stays ${JSON.stringify(right)}, only add can be changed`,
    );
  };
}

/** The amount that a person adds instead of the proposed one. */
function amountOf({ requestId, arguments: asked }: AgentRequest, given: unknown): { readonly add: number } {
  const where = `request "${requestId}": arguments`;
  const { accountId, limit } = budgetQuestionSchema.parse(asked);
  const rules = { add: anyRule, accountId: unchangedRule(accountId), limit: unchangedRule(limit) };
  const { add } = optionsOf<Partial<BudgetQuestion>>(given, where, { rules, needed: ["add"] });
  const isAmount = typeof add === "number" && Number.isFinite(add) && add > 0 && storedAmount(limit, add) >= 1;
  if (
    isAmount &&
    Number.isSafeInteger(storedAmount(limit, add)) &&
    (limit === "maxCostMicros" || Number.isInteger(add))
  ) {
    return { add };
  }
  const right =
    limit === "maxCostMicros"
      ? "dollars to add, for instance { add: 2.5 }"
      : "a whole number to add, for instance { add: 1000 }";
  throw new InvalidInputError(`${where}.add is ${describeValue(add)}; expected ${right}`);
}

/** Any other return value is a mistake in the rule, and must not allow the decision. */
function isAllowed(answer: unknown): boolean {
  if (typeof answer === "boolean") return answer;
  throw new InvalidInputError(`mayDecide returned ${describeValue(answer)}; expected true or false`);
}

/** Copied, so that later changes by the caller have no effect; values that cannot be stored are refused first. */
function copyOf(requestId: string, given: Decide): Decide {
  const of = `request "${requestId}"`;
  const decide = decideOf(given, of);
  if (decide.arguments === undefined) return decide;
  return { ...decide, arguments: takeJson(decide.arguments, `${of}: the arguments`) };
}

/** Refuses an answer that cannot be shown to the model before it is stored, because a decision cannot be repeated. */
function resultOf(request: AgentRequest, { result, isError = false }: Decide): NonNullable<Decision["result"]> {
  const rendered = renderAnswer(request, result);
  const { text, images = [], files = [], structured, error } = rendered;
  if (error === "unreadable") throw new InvalidInputError(`request "${request.requestId}": ${text}`);
  assertAnswerLength(request, rendered);
  const artifacts = files.flatMap(({ artifact }) => artifact ?? []);
  return {
    text,
    isError: isError || error === "told",
    ...(images.length > 0 ? { images: [...images] } : {}),
    ...(files.length > 0 ? { files: files.map(({ part }) => part) } : {}),
    ...(artifacts.length > 0 ? { artifacts } : {}),
    ...(structured === undefined ? {} : { structured }),
  };
}

/** Longest images and files of an answer, in characters: a decision is stored several times until its call has ended. */
const LONGEST_ANSWER_FILES = 20_000_000;

function assertAnswerLength({ requestId }: AgentRequest, { images = [], files = [] }: RenderedOutput): void {
  const ofImages = images.reduce((sum, { url }) => sum + url.length, 0);
  const length = files.reduce((sum, { artifact }) => sum + (artifact?.content.length ?? 0), ofImages);
  if (length <= LONGEST_ANSWER_FILES) return;
  throw new InvalidInputError(
    `request "${requestId}": the images and files of the answer have ${length} characters; at most ${LONGEST_ANSWER_FILES} are allowed`,
  );
}

function unfit({ requestId, kind }: AgentRequest, verdict: string | undefined): string {
  const fit = verdictsOf[kind].filter((one) => one !== "expired").join(", ");
  if (verdict === undefined) return `request "${requestId}" needs a verdict, one of: ${fit}`;
  return `request "${requestId}" is of kind "${kind}" and cannot be ${verdict}; it can be ${fit}`;
}

function takenKey(
  { requestId: asked }: AgentRequest,
  key: string | undefined,
  { turnId, requestId }: { readonly turnId: string; readonly requestId?: string | undefined },
): RequestConflictError {
  const meaning =
    requestId === undefined
      ? `turn ${turnId}`
      : requestId === asked
        ? "another decision on this request"
        : `the decision on request "${requestId}"`;
  return new RequestConflictError(
    `request "${asked}": the key "${key}" belongs to ${meaning}; use another key for this decision`,
    { details: { requestId: requestId ?? null, turnId, key } },
  );
}

function conflictOf({ requestId, status, decision }: AgentRequest): RequestConflictError {
  const by = decision?.by ?? null;
  const how = decision
    ? `was ${decision.verdict}${by === null ? "" : ` by ${by}`}`
    : "was closed: its turn continued without a decision";
  return new RequestConflictError(`request "${requestId}" ${how}`, {
    details: { requestId, status, verdict: decision?.verdict ?? null, by },
  });
}
