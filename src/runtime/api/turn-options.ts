import { z } from "zod";
import {
  activeTrace,
  anyRule,
  deepFreeze,
  describeValue,
  type OptionsSchema,
  nameRule,
  oneOfRule,
  optionsOf,
  optionsRule,
  type OptionRule,
  reading,
  ruleOf,
  signalRule,
  type TraceHeaders,
} from "../../base/index.ts";
import { budgetRule } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import {
  callSettingsRule,
  callSettingsRules,
  checkedFilePart,
  type Content,
  type ContentPart,
  contentSchema,
  type FilePart,
  modelToolSchema,
  take,
  taken,
  traceHeadersSchema,
} from "../../state/index.ts";
import { type Auth, clientToolsOf, concealCredentials } from "../../tools/index.ts";
import type { EventObserver, SteerOptions, TurnOptions } from "./turn-types.ts";

/** Maximum length of a `data:` URL of an image, in characters: about 15 MB of image. */
const IMAGE_CHARACTERS = 20_000_000;
/** Maximum number of characters of all parts of one input: a few images of the largest size. */
export const INPUT_CHARACTERS = 200_000_000;

const dataUrl = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;

const authOptionsSchema: OptionsSchema<Auth> = {
  rules: { actorId: nameRule, credentials: anyRule },
  needed: ["actorId"],
  instead: { userId: "actorId", user: "actorId", id: "actorId", token: "credentials" },
};

const authOptions = optionsRule(authOptionsSchema);

/** A copy of a turn's actor with hidden credentials. */
export const authRule: OptionRule = (value, where) => concealCredentials(authOptions(value, where) as Auth);

/** Uses only the trace headers, so that callers can pass all headers of a request. */
const traceRule: OptionRule = (value) => {
  const isObject = typeof value === "object" && value !== null;
  const { traceparent, tracestate } = (isObject ? value : {}) as Partial<TraceHeaders>;
  return take(traceHeadersSchema, isObject ? { traceparent, tracestate } : value, "executeTurn({ trace })");
};

export const keyRule: OptionRule = ruleOf(
  "1 to 255 visible ASCII characters",
  (value) => typeof value === "string" && /^[!-~]{1,255}$/.test(value),
);

/** Maximum number of client tools of one turn, and of their characters in total. */
const MOST_CLIENT_TOOLS = 128;
const CLIENT_TOOLS_CHARACTERS = 1_000_000;

const clientToolsSchema = z.array(z.strictObject(modelToolSchema.shape)).max(MOST_CLIENT_TOOLS);

/** Client tools as a frozen copy, with names, descriptions and schemas validated. */
const clientToolsRule: OptionRule = (value, where) => {
  const tools = take(clientToolsSchema, value, where, { maxSize: CLIENT_TOOLS_CHARACTERS });
  reading(where, () => clientToolsOf(tools));
  return tools;
};

export const turnOptions = {
  rules: {
    auth: authRule,
    signal: signalRule,
    budget: budgetRule,
    ifBusy: oneOfRule("refuse", "queue", "supersede", "steer"),
    key: keyRule,
    trace: traceRule,
    clientTools: clientToolsRule,
    settings: callSettingsRule,
  },
  instead: {
    abortSignal: "signal",
    controller: "signal",
    limits: "budget",
    maxSteps: "budget: { maxSteps }",
    maxTokens: "budget: { maxTokens }",
    maxCost: "budget: { maxCost }",
    timeout: "budget: { maxSeconds }, or signal: AbortSignal.timeout(…)",
    actorId: "auth: { actorId }",
    headers: "trace",
    idempotencyKey: "key",
    tools: "clientTools, or defineAgent({ tools })",
    ...Object.fromEntries(Object.keys(callSettingsRules).map((name) => [name, `settings: { ${name} }`])),
  },
} satisfies OptionsSchema<TurnOptions>;

const steerOptions = {
  rules: { auth: turnOptions.rules.auth, key: turnOptions.rules.key },
  instead: { ...turnOptions.instead, signal: 'executeTurn(input, { ifBusy: "steer", signal })' },
} satisfies OptionsSchema<SteerOptions>;

/** The validated options of an input for an open turn. Throws `InvalidInputError`. */
export function steerOptionsOf(options: unknown): SteerOptions {
  return options === undefined ? {} : optionsOf<SteerOptions>(options, "steer()", steerOptions);
}

/** The validated options of a turn. Throws `InvalidInputError`. */
export function turnOptionsOf(options: unknown): TurnOptions {
  return options === undefined ? {} : optionsOf<TurnOptions>(options, "executeTurn()", turnOptions);
}

/** The parent span of a turn: the given one, otherwise the one that is active in the caller. */
export function traceOfTurn({ trace }: TurnOptions): TraceHeaders | undefined {
  return trace ?? activeTrace();
}

/** A copy of a turn's input. Throws `InvalidInputError` that names the wrong part and what is expected. */
export function inputOf(input: unknown): Content | null {
  if (input === null || typeof input === "string") return input;
  const result = taken(contentSchema, input, { maxDepth: 3, maxSize: INPUT_CHARACTERS });
  if (!result.ok || typeof result.value === "string") {
    const where = result.ok || !reading("executeTurn()", () => Array.isArray(input)) ? "" : ` (${result.problem})`;
    throw new InvalidInputError(
      `executeTurn() expects a text, a list of content parts, or null to continue without a message${where}`,
    );
  }
  if (result.value.length === 0) throw new InvalidInputError("the list of content parts is empty; use null, or a text");
  return checkedParts(result.value, "content part");
}

/** A copy of an input for an open turn. Throws `InvalidInputError`, also for `null`, which has nothing to add to a turn. */
export function steeredInputOf(input: unknown): Content {
  const content = inputOf(input);
  if (content !== null) return content;
  throw new InvalidInputError("an input for an open turn is a text or a list of content parts, not null");
}

/** The parts in their stored form: images and files are checked. Throws `InvalidInputError` that names the part. */
export function checkedParts(parts: readonly ContentPart[], of: string): readonly ContentPart[] {
  const checked = parts.map((part, index) => {
    if (part.type === "image") assertImage(part.url, `${of} ${index}`);
    return part.type === "file" ? takenFile(part, `${of} ${index}`) : part;
  });
  return deepFreeze(checked);
}

/** A file in its stored form; an image among files is an image. */
function takenFile(part: FilePart, of: string): ContentPart {
  const checked = checkedFilePart(part);
  if (!checked.ok) throw new InvalidInputError(`${of}: ${checked.problem}`);
  const { url } = checked.part;
  return url !== undefined && dataUrl.test(url) ? { type: "image", url } : checked.part;
}

/** A caller's reason for an abort. Throws `InvalidInputError` for anything but a string. */
export function reasonOf(reason: unknown, of: string): string {
  return ruleOf("a text, or leave it out", (value) => typeof value === "string")(reason, `${of}: reason`) as string;
}

/** Throws `InvalidInputError` for anything that cannot receive events. */
export function assertObserver(observer: unknown, of: string): asserts observer is EventObserver {
  if (typeof observer === "function") return;
  const isObserver = reading(of, () => {
    if (typeof observer !== "object" || observer === null) return false;
    const given = observer as Readonly<Record<string, unknown>>;
    return ["next", "error", "complete"].every((name) => typeof (given[name] ?? assertObserver) === "function");
  });
  if (isObserver) return;
  throw new InvalidInputError(
    `${of} expects a function, or an observer { next, error, complete } of functions, not ${describeValue(observer)}`,
  );
}

/** Throws `InvalidInputError` for anything but the URL of an image; `of` names the part. */
export function assertImage(url: string, of: string): void {
  const refuse = (what: string): InvalidInputError => new InvalidInputError(`${of}: ${what}`);
  if (url.startsWith("data:")) {
    if (url.length > IMAGE_CHARACTERS) {
      throw refuse(
        `the image has ${url.length} characters; at most ${IMAGE_CHARACTERS} are allowed: use its https: URL`,
      );
    }
    if (dataUrl.test(url)) return;
    throw refuse("the data: URL must be a base64-encoded image: data:image/png;base64,… (png, jpeg, gif or webp)");
  }
  // A model server that fetches it may reach addresses without TLS that the caller cannot, such as those of its own network.
  if (URL.canParse(url) && new URL(url).protocol === "https:") return;
  throw refuse(`invalid image URL "${url.slice(0, 80)}"; use https:, or data: with base64`);
}
