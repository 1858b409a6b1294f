import type { Entry, Message } from "../../state/index.ts";

/**
 * Entries and messages as a database stores them. Those of which a turn has many become lists: the type or role, a number
 * with a bit for each field whose value is there, and these values in the order of the form below. A field without a bit has its
 * usual value, which follows from the object itself or the one before it, or is absent. What does not fit its form, such as
 * an object with a field that the form lacks, is stored as it is.
 *
 * Stored lists are read by the place of a field, so that a new field goes to the end of its form, and none is removed.
 */
type Fields = Readonly<Record<string, unknown>>;

interface Around {
  /** The entry or message that the object is a part of. */
  readonly whole: Fields;
  /** The entry or message before it in its row. */
  readonly before: Fields;
}

interface Field {
  readonly name: string;
  /** The form of its value; of each item, if the value is a list. */
  readonly form?: Form;
  /** It may read fields of the object that come earlier in the form. */
  readonly usual?: (own: Fields, around: Around) => unknown;
}

type Form = readonly Field[];

const nothing: Fields = Object.freeze({});

function plain(...names: readonly string[]): Field[] {
  return names.map((name) => ({ name }));
}

/** Fields that mostly have the value of the object before. */
function asBefore(...names: readonly string[]): Field[] {
  return names.map((name) => ({ name, usual: (_own, { before }) => before[name] }));
}

function mostly(value: unknown, ...names: readonly string[]): Field[] {
  return names.map((name) => ({ name, usual: () => value }));
}

function same(name: string, of: string): Field {
  return { name, usual: (own) => own[of] };
}

function asWhole(...names: readonly string[]): Field[] {
  return names.map((name) => ({ name, usual: (_own, { whole }) => whole[name] }));
}

const ofStep: Form = [
  ...asBefore("turnId", "step", "at", "epoch"),
  { name: "seq", usual: (_own, { before: { seq } }) => (typeof seq === "number" ? seq + 1 : undefined) },
];

const accountId: Field = { name: "accountId", usual: (_own, { whole }) => `turn:${String(whole["turnId"])}` };

const usage: Form = plain(
  "inputTokens",
  "outputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "reasoningTokens",
  "estimated",
  "note",
);

const reservation: Form = [
  accountId,
  ...plain("tokens"),
  ...mostly(0, "costMicros"),
  {
    name: "outputTokens",
    usual: (_own, { whole }) => (isFields(whole["ask"]) ? whole["ask"]["outputTokens"] : undefined),
  },
  ...plain("isBound"),
  ...asWhole("model"),
  ...plain("isLast", "isUnpriced"),
];

const ask: Form = [
  { name: "key", usual: (_own, { whole }) => whole["messageId"] },
  accountId,
  ...plain("agentId", "promptTokens", "promptBound", "outputTokens"),
  ...mostly(256, "minimumOutputTokens"),
  ...asWhole("price"),
  ...mostly(true, "opensStep"),
  ...asWhole("model"),
  ...plain("finalAnswer"),
];

const hooks: Form = mostly(
  0,
  "afterUserInput",
  "beforeLlm",
  "afterLlm",
  "beforeTools",
  "beforeEachTool",
  "afterEachTool",
  "onError",
  "afterTools",
  "onComplete",
);

const entryForms: ReadonlyMap<unknown, Form> = new Map([
  [
    "turn.started",
    [
      ...ofStep,
      ...plain("number", "inputMessageIds"),
      ...mostly(null, "actorId"),
      { name: "definition", form: plain("name", "hash") },
      { name: "model", form: plain("name", "provider") },
      { name: "tools", form: [...plain("name"), ...mostly("function", "kind"), ...plain("effect", "queue")] },
      ...plain("clientTools", "limits"),
      accountId,
      ...plain("maxConsecutiveToolFailures"),
      { name: "hooks", form: hooks },
      ...plain("checksOutput", "contextWindowSize", "wokenBy", "trace", "waking"),
    ],
  ],
  [
    "model.requested",
    [
      ...ofStep,
      ...mostly(1, "attempt"),
      ...plain("model", "promptHash", "messageId"),
      ...mostly(null, "price"),
      { name: "ask", form: ask },
      { name: "reservation", form: reservation },
      ...plain("last"),
    ],
  ],
  [
    "model.responded",
    [
      ...ofStep,
      ...mostly(1, "attempt"),
      ...plain("model", "messageId", "hasText"),
      { name: "calls", form: plain("callId", "name", "internal") },
      { name: "usage", form: usage },
      ...mostly(null, "costMicros"),
      ...plain("finishReason", "durationMs"),
      {
        name: "settlement",
        form: [
          { name: "reservation", form: reservation },
          ...plain("tokens"),
          ...mostly(0, "costMicros"),
          { name: "usage", form: usage },
          ...mostly(false, "unconfirmed"),
          ...plain("model"),
        ],
      },
    ],
  ],
  [
    "tool.started",
    [
      ...ofStep,
      ...plain("callId", "name"),
      ...mostly(1, "attempt"),
      ...plain("effect"),
      same("idempotencyKey", "callId"),
      accountId,
      ...plain("arguments", "queue", "priority"),
    ],
  ],
  [
    "tool.settled",
    [
      ...ofStep,
      ...asBefore("callId", "name"),
      ...mostly("success", "outcome"),
      same("messageId", "callId"),
      ...mostly(0, "durationMs"),
      ...mostly(null, "error", "artifactId"),
      ...plain("internal", "reviewDue", "reports"),
    ],
  ],
  [
    "turn.ended",
    [
      ...ofStep.filter(({ name }) => name !== "step"),
      ...plain("number"),
      ...mostly("completed", "outcome"),
      ...plain("stopReason"),
      ...mostly(null, "signal"),
      { name: "outputMessageId", usual: (_own, { before }) => before["messageId"] },
      ...plain("steps", "toolCalls"),
      { name: "usage", form: usage },
      ...mostly(null, "costMicros", "error"),
      ...plain("lifecycle", "waking"),
    ],
  ],
]);

const metadata: Form = [
  {
    name: "step_id",
    usual: (_own, { whole: { role, id } }) => (role === "tool" ? beforeLast(":", id) : id),
  },
  { name: "execution_id", usual: (own) => beforeLast(":", own["step_id"]) },
  { name: "agent_id", usual: (own) => beforeLast("#", own["execution_id"]) },
  ...plain("is_trace"),
];

function ofMessage(origin: string): Form {
  return [
    ...plain("id"),
    ...asBefore("createdAt"),
    ...plain("content"),
    ...mostly(origin, "origin"),
    { name: "metadata", form: metadata },
  ];
}

const messageForms: ReadonlyMap<unknown, Form> = new Map([
  ["user", ofMessage("user")],
  ["system", ofMessage("runtime")],
  [
    "assistant",
    [
      ...ofMessage("model"),
      { name: "toolCalls", form: plain("callId", "providerId", "name", "arguments") },
      ...plain("reasoning", "reasoningBy"),
    ],
  ],
  ["tool", [...ofMessage("tool"), same("callId", "id"), ...plain("providerId", "isError", "artifactId")]],
]);

export function textOfEntries(entries: readonly Entry[]): string {
  return textOf(entries, "type", entryForms);
}

export function textOfMessages(messages: readonly Message[]): string {
  return textOf(messages, "role", messageForms);
}

/** Entries as they were, from parsed JSON; what is no entry is to be found by their schema. */
export function wholeEntries(stored: unknown): unknown {
  return wholeOf(stored, "type", entryForms);
}

export function wholeMessages(stored: unknown): unknown {
  return wholeOf(stored, "role", messageForms);
}

function textOf(objects: readonly Fields[], kind: string, forms: ReadonlyMap<unknown, Form>): string {
  let before = nothing;
  const short = objects.map((whole) => {
    const form = forms.get(whole[kind]);
    const list = form && listOf(form, whole, { whole, before }, [whole[kind], 0]);
    before = whole;
    return list ?? whole;
  });
  return JSON.stringify(short);
}

/** Undefined if the object does not fit. The last of the first values becomes the number that says which fields are there. */
function listOf(form: Form, own: Fields, around: Around, list: unknown[]): unknown[] | undefined {
  const place = list.length - 1;
  let there = 0;
  // The type or role is no field of its form.
  let fitting = place;
  let next = 1;
  for (const { name, form: inner, usual } of form) {
    const bit = next;
    next <<= 1;
    const value = own[name];
    const expected = usual?.(own, around);
    if (value === undefined) {
      if (expected !== undefined) return undefined;
      continue;
    }
    fitting += 1;
    if (value === expected) continue;
    there |= bit;
    list.push(inner ? shortValue(inner, value, around) : value);
  }
  for (const name in own) if (own[name] !== undefined) fitting -= 1;
  if (fitting !== 0) return undefined;
  list[place] = there;
  return list;
}

function shortValue(form: Form, value: unknown, around: Around): unknown {
  if (Array.isArray(value)) return value.map((item) => shortValue(form, item, around));
  return isFields(value) ? (listOf(form, value, around, [0]) ?? value) : value;
}

function wholeOf(stored: unknown, kind: string, forms: ReadonlyMap<unknown, Form>): unknown {
  if (!Array.isArray(stored)) return stored;
  let before = nothing;
  return stored.map((one: unknown) => {
    const form = Array.isArray(one) ? forms.get(one[0]) : undefined;
    const whole: Record<string, unknown> = {};
    let object = one;
    if (form && Array.isArray(one)) {
      whole[kind] = one[0];
      object = fill(form, whole, { whole, before }, one.slice(1));
    }
    before = isFields(object) ? object : nothing;
    return object;
  });
}

/** Undefined for a list that is damaged. */
function fill(form: Form, own: Record<string, unknown>, around: Around, list: readonly unknown[]): unknown {
  const [there] = list;
  if (typeof there !== "number") return undefined;
  let place = 1;
  let bit = 1;
  for (const { name, form: inner, usual } of form) {
    const isThere = (there & bit) !== 0;
    bit <<= 1;
    const value = isThere ? list[place] : usual?.(own, around);
    if (isThere) place += 1;
    if (value !== undefined) own[name] = isThere && inner ? wholeValue(inner, value, around) : value;
  }
  return place === list.length ? own : undefined;
}

/** A list that begins with a number is one object; any other is a list of objects. */
function wholeValue(form: Form, value: unknown, around: Around): unknown {
  if (!Array.isArray(value)) return value;
  if (typeof value[0] === "number") return fill(form, {}, around, value);
  return value.map((item) => wholeValue(form, item, around));
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function beforeLast(mark: string, id: unknown): unknown {
  if (typeof id !== "string") return undefined;
  const end = id.lastIndexOf(mark);
  return end < 0 ? undefined : id.slice(0, end);
}
