/** Bodies that cause a server the most work for their size, up to the default limit of 10 MB. */
const MOST_BYTES = 9_900_000;

/**
 * A request that causes much work. In its path and its bodies `{agent}` is replaced by an agent of the caller, `{full}` by one
 * with 10,000 messages, `{long}` by one with a message of 9.5 MB, `{idle}` by one that receives commands, `{thread}` and `{run}`
 * by new names.
 */
export interface WorstRequest {
  readonly path: string;
  readonly shape: string;
  /** Default: a GET without a body. */
  readonly body?: (() => string) | undefined;
  /** Sent first, to the same URL and conversation. */
  readonly before?: (() => string) | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

type Shape = readonly [name: string, body: () => string, before?: () => string];

/** Bodies from which `{full}` and `{long}` are made. */
export const fullAgents: Readonly<Record<string, () => string>> = {
  full: () => filled('{"definition":"desk","messages":[', '{"role":"user","content":"a"}', "]}", 10_000),
  long: () => `{"definition":"desk","messages":[{"role":"user","content":"${longText(9_500_000)}"}]}`,
  idle: () => '{"definition":"desk"}',
};

const reads: readonly string[] = [
  "/api/agents/{full}/messages?limit=100",
  "/api/agents/{full}/messages?last=200",
  "/api/agents/{full}/state",
  "/api/agents/{full}",
  "/api/trees/{full}",
  "/api/agents/{long}/messages",
  "/api/agents/{long}/state",
  "/api/agents?limit=100",
  "/api/turns?limit=100",
  "/api/requests?limit=100",
  "/api/definitions",
  "/api/openapi.json",
  "/api/docs",
  "/v1/models",
  "/a2a/desk/.well-known/agent-card.json",
  "/desk/1.0/openapi.json",
  "/metrics",
  `/api/agents?${"a&".repeat(7_000)}`,
];

/** As many copies of a text as fit, between two others. */
function filled(before: string, item: string | ((index: number) => string), after: string, most = Infinity): string {
  const items: string[] = [];
  let left = MOST_BYTES - before.length - after.length;
  for (let index = 0; index < most; index += 1) {
    const one = typeof item === "string" ? item : item(index);
    left -= one.length + 1;
    if (left < 0) break;
    items.push(one);
  }
  return before + items.join(",") + after;
}

const longText = (length: number): string =>
  "The quick brown fox jumps. ".repeat(Math.ceil(length / 27)).slice(0, length);

/** Bodies that every route refuses or accepts by their syntax alone. */
const anywhere: readonly Shape[] = [
  ["many empty lists", () => filled("[", "[]", "]")],
  ["many numbers", () => filled("[", "0", "]")],
  ["many members", () => filled("{", (index) => `"k${index}":0`, "}")],
  ["many members that look like indices", () => filled("{", (index) => `"${index * 7}":0`, "}")],
  ["many escapes", () => `["${"\\u0041".repeat(1_600_000)}"]`],
  ["deep", () => "[".repeat(4_900_000) + "]".repeat(4_900_000)],
  ["one long number", () => `[${"1".repeat(9_000_000)}]`],
  ["spaces", () => " ".repeat(9_900_000)],
];

const api: Readonly<Record<string, readonly Shape[]>> = {
  "/api/agents": [
    ["many messages", () => filled('{"definition":"desk","messages":[', '{"role":"user","content":""}', "]}")],
    [
      "many parts",
      () => filled('{"definition":"desk","messages":[{"role":"user","content":[', '{"type":"text","text":""}', "]}]}"),
    ],
    [
      "10,000 messages",
      () => filled('{"definition":"desk","messages":[', '{"role":"user","content":"a"}', "]}", 10_000),
    ],
    ["one long message", () => `{"definition":"desk","messages":[{"role":"user","content":"${longText(9_500_000)}"}]}`],
    ["much metadata", () => filled('{"definition":"desk","metadata":{', (index) => `"k${index}":0`, "}}")],
    ["unknown fields", () => filled('{"definition":"desk",', (index) => `"k${index}":0`, "}")],
  ],
  "/api/schedules": [
    ["one long input", () => `{"definition":"desk","every":"1h","input":"${longText(9_500_000)}"}`],
    ["many parts", () => filled('{"definition":"desk","every":"1h","input":[', '{"type":"text","text":"a"}', "]}")],
    ["a pattern without dates", () => '{"definition":"desk","input":"a","cron":"0 0 0 31 2,4,6,9,11 *"}'],
    ["a rare pattern", () => '{"definition":"desk","input":"a","cron":"0 0 29 2 MON#5"}'],
  ],
  "/api/agents/{idle}/steer": [
    ["one long text", () => `{"input":"${longText(9_500_000)}"}`],
    ["10,000 parts", () => filled('{"input":[', '{"type":"text","text":"a"}', "]}", 10_000)],
  ],
  "/api/agents/{agent}/turns/1/steer": [["one long text", () => `{"input":"${longText(9_500_000)}"}`]],
  "/api/agents/{agent}/turns": [
    ["one long text", () => `{"input":"${longText(9_500_000)}"}`],
    ["one long word", () => `{"input":"${"a".repeat(9_500_000)}"}`],
    ["many parts", () => filled('{"input":[', '{"type":"text","text":"a"}', "]}")],
    ["10,000 parts", () => filled('{"input":[', '{"type":"text","text":"a"}', "]}", 10_000)],
    [
      "many tools",
      () =>
        filled(
          '{"input":"a","clientTools":[',
          (index) => `{"name":"t${index}","description":"d","parameters":{"type":"object","properties":{}}}`,
          "]}",
        ),
    ],
    [
      "120 large tools",
      () =>
        filled(
          '{"input":"a","clientTools":[',
          (index) =>
            `{"name":"t${index}","description":"d","parameters":{"type":"object","properties":{${Array.from({ length: 200 }, (_, at) => `"p${at}":{"type":"string"}`).join(",")}}}}`,
          "]}",
          120,
        ),
    ],
  ],
  "/api/requests/{agent}.1:1:0:0": [
    ["large arguments", () => filled('{"verdict":"edited","arguments":{', (index) => `"k${index}":0`, "}}")],
    ["a long result", () => `{"verdict":"answered","result":"${longText(9_500_000)}"}`],
  ],
  ...Object.fromEntries(
    ["start", "pause", "resume", "abort", "clear", "shutdown", "turns/1/abort"].map((command) => [
      `/api/agents/{idle}/${command}`,
      [["a long reason", () => `{"reason":"${longText(9_500_000)}"}`]],
    ]),
  ),
  "/api/tickets": [["a long id", () => `{"rootAgentId":"${"a".repeat(9_500_000)}"}`]],
};

const user = '{"role":"user","content":"a"}';
const chat = (messages: string): string => `{"model":"desk","messages":[${messages}]}`;
const chatOf = (item: string | ((index: number) => string), most?: number): string =>
  filled('{"model":"desk","messages":[', item, `,${user}]}`, most);

/** Alternating messages, the last one from the user; the answer repeats the agent's answer. */
function historyOf(length: number): string {
  const messages = Array.from({ length: length - 1 }, (_, index) =>
    index % 2 ? '{"role":"assistant","content":"done"}' : user,
  );
  return chat(messages.slice(0, length - 1).join(","));
}

function longHistory(text: string, isAgain: boolean): string {
  const first = `{"role":"user","content":"${text}"}`;
  return chat(isAgain ? `${first},{"role":"assistant","content":"done"},${user}` : first);
}

const openai: Readonly<Record<string, readonly Shape[]>> = {
  "/v1/chat/completions": [
    ["200,000 empty messages", () => chatOf('{"role":"user","content":""}', 200_000)],
    [
      "200,000 messages",
      () => chatOf((index) => `{"role":"${index % 2 ? "assistant" : "user"}","content":"a"}`, 200_000),
    ],
    [
      "10,000 messages",
      () => chatOf((index) => `{"role":"${index % 2 ? "assistant" : "user"}","content":"a"}`, 10_000),
    ],
    ["a history of 10,000", () => historyOf(10_000), () => historyOf(9_998)],
    [
      "a history of one long text",
      () => longHistory(longText(9_500_000), true),
      () => longHistory(longText(9_500_000), false),
    ],
    [
      "a history of many short words",
      () => longHistory("a ".repeat(4_700_000), true),
      () => longHistory("a ".repeat(4_700_000), false),
    ],
    ["10,000 messages of a user", () => chatOf('{"role":"user","content":"word word"}', 10_000)],
    [
      "10,000 results",
      () =>
        chatOf('{"role":"tool","tool_call_id":"call_ZGVzayMxOjE6MDow","content":"a"}', 10_000).replace(`,${user}`, ""),
    ],
    [
      "images that begin",
      () =>
        chat(
          [`{"role":"user","content":"${"![](".repeat(80_000)}"}`, '{"role":"assistant","content":"a"}', user].join(
            ",",
          ),
        ),
    ],
    [
      "more images that begin",
      () =>
        chat(
          [`{"role":"user","content":"${"![](".repeat(2_400_000)}"}`, '{"role":"assistant","content":"a"}', user].join(
            ",",
          ),
        ),
    ],
    [
      "much white space",
      () =>
        chat(
          [`{"role":"user","content":"${"a ".repeat(4_500_000)}"}`, '{"role":"assistant","content":"a"}', user].join(
            ",",
          ),
        ),
    ],
    ["one long text", () => chat(`{"role":"user","content":"${longText(9_500_000)}"}`)],
    [
      "many parts",
      () => filled('{"model":"desk","messages":[{"role":"user","content":[', '{"type":"text","text":"a"}', "]}]}"),
    ],
    [
      "many calls",
      () =>
        filled(
          '{"model":"desk","messages":[{"role":"assistant","tool_calls":[',
          '{"id":"c","function":{"name":"f","arguments":"{}"}}',
          `]},${user}]}`,
        ),
    ],
    [
      "one large schema",
      () =>
        filled(
          `{"model":"desk","messages":[${user}],"response_format":{"type":"json_schema","json_schema":{"schema":{`,
          (index) => `"k${index}":0`,
          "}}}}",
        ),
    ],
    ["many unknown fields", () => filled(`{"model":"desk","messages":[${user}],`, (index) => `"k${index}":0`, "}")],
  ],
  "/v1/responses": [
    [
      "150,000 outputs",
      () =>
        filled(
          '{"model":"desk","input":[',
          (index) => `{"type":"function_call_output","call_id":"c${index}","output":"a"}`,
          "]}",
          150_000,
        ),
    ],
    [
      "10,000 outputs",
      () =>
        filled(
          '{"model":"desk","input":[',
          (index) => `{"type":"function_call_output","call_id":"c${index}","output":"a"}`,
          "]}",
          10_000,
        ),
    ],
    ["many messages", () => filled('{"model":"desk","input":[', user, "]}")],
    ["10,000 messages", () => filled('{"model":"desk","input":[', user, "]}", 10_000)],
    ["one long text", () => `{"model":"desk","input":"${longText(9_500_000)}"}`],
    [
      "many parts",
      () => filled('{"model":"desk","input":[{"role":"user","content":[', '{"type":"input_text","text":"a"}', "]}]}"),
    ],
    [
      "many tools",
      () => filled('{"model":"desk","input":"a","tools":[', (index) => `{"type":"function","name":"t${index}"}`, "]}"),
    ],
    ["much metadata", () => filled('{"model":"desk","input":"a","metadata":{', (index) => `"k${index}":0`, "}}")],
  ],
};

const run = (more: string): string => `{"threadId":"{thread}","runId":"{run}",${more}}`;
const said = '{"id":"u","role":"user","content":"a"}';

const agUi: Readonly<Record<string, readonly Shape[]>> = {
  "/ag-ui/desk": [
    [
      "100,000 messages of one id",
      () =>
        filled(
          '{"threadId":"{thread}","runId":"{run}","messages":[',
          '{"id":"a:1","role":"assistant","content":"b"}',
          "]}",
          100_000,
        ),
    ],
    [
      "50,000 pairs of one turn",
      () =>
        filled(
          '{"threadId":"{thread}","runId":"{run}","messages":[',
          '{"id":"u","role":"user","content":"a"},{"id":"a:1","role":"assistant","content":"b"}',
          "]}",
          50_000,
        ),
    ],
    [
      "5,000 pairs of one turn",
      () =>
        filled(
          '{"threadId":"{thread}","runId":"{run}","messages":[',
          '{"id":"u","role":"user","content":"a"},{"id":"a:1","role":"assistant","content":"b"}',
          `,${said}]}`,
          5_000,
        ),
    ],
    [
      "5,000 pairs",
      () =>
        filled(
          '{"threadId":"{thread}","runId":"{run}","messages":[',
          (index) =>
            `{"id":"u${index}","role":"user","content":"a"},{"id":"a${index}:1","role":"assistant","content":"b"}`,
          `,${said}]}`,
          5_000,
        ),
    ],
    [
      "10,000 messages of a user",
      () =>
        filled(
          '{"threadId":"{thread}","runId":"{run}","messages":[',
          (index) => `{"id":"u${index}","role":"user","content":"a"}`,
          "]}",
          10_000,
        ),
    ],
    [
      "10,000 results",
      () =>
        filled(
          '{"threadId":"{thread}","runId":"{run}","messages":[',
          (index) => `{"id":"t${index}","role":"tool","toolCallId":"c${index}","content":"a"}`,
          `,${said}]}`,
          10_000,
        ),
    ],
    ["one long text", () => run(`"messages":[{"id":"u","role":"user","content":"${longText(9_500_000)}"}]`)],
    [
      "many parts",
      () =>
        filled(
          '{"threadId":"{thread}","runId":"{run}","messages":[{"id":"u","role":"user","content":[',
          '{"type":"text","text":"a"}',
          "]}]}",
        ),
    ],
    [
      "many tools",
      () =>
        filled(
          `{"threadId":"{thread}","runId":"{run}","messages":[${said}],"tools":[`,
          (index) => `{"name":"t${index}","description":"d"}`,
          "]}",
        ),
    ],
    [
      "much context",
      () =>
        filled(
          `{"threadId":"{thread}","runId":"{run}","messages":[${said}],"context":[`,
          '{"description":"a","value":"b"}',
          "]}",
        ),
    ],
    [
      "many answers",
      () =>
        filled(
          '{"threadId":"{thread}","runId":"{run}","messages":[],"resume":[',
          (index) => `{"interruptId":"i${index}","status":"resolved"}`,
          "]}",
        ),
    ],
  ],
  "/ag-ui/desk/cancel": [["a long id", () => `{"threadId":"${"a".repeat(9_500_000)}"}`]],
};

const aiSdkBody = '{"id":"{thread}","messages":[';
const aiSdkUser = '{"id":"{run}","role":"user","parts":[{"type":"text","text":"a"}]}';

const aiSdk: Readonly<Record<string, readonly Shape[]>> = {
  "/ai-sdk/desk": [
    ["many messages", () => filled(aiSdkBody, '{"id":"u","role":"user","parts":[]}', `,${aiSdkUser}]}`)],
    [
      "10,000 messages",
      () => filled(aiSdkBody, (index) => `{"id":"u${index}","role":"user","parts":[]}`, `,${aiSdkUser}]}`, 10_000),
    ],
    [
      "a message of many texts",
      () =>
        filled(
          '{"id":"{thread}","messages":[{"id":"{run}","role":"user","parts":[',
          '{"type":"text","text":"a"}',
          "]}]}",
          10_000,
        ),
    ],
    [
      "10,000 approvals",
      () =>
        filled(
          '{"id":"{thread}","messages":[{"id":"{run}","role":"assistant","parts":[',
          (index) =>
            `{"type":"tool-a","toolCallId":"c${index}","state":"approval-responded","approval":{"id":"r${index}","approved":true}}`,
          "]}]}",
          6_000,
        ),
    ],
    [
      "10,000 results and steps",
      () =>
        filled(
          '{"id":"{thread}","messages":[{"id":"{run}","role":"assistant","parts":[',
          (index) =>
            `{"type":"step-start"},{"type":"tool-a","toolCallId":"c${index}","state":"output-available","output":1}`,
          "]}]}",
          6_000,
        ),
      () => `${aiSdkBody}${aiSdkUser}]}`,
    ],
    [
      "a long text",
      () =>
        `{"id":"{thread}","messages":[{"id":"{run}","role":"user","parts":[{"type":"text","text":"${longText(9_500_000)}"}]}]}`,
    ],
    [
      "many tools",
      () =>
        filled(`${aiSdkBody}${aiSdkUser}],"tools":[`, (index) => `{"name":"t${index}","description":""}`, "]}", 10_000),
    ],
  ],
  "/ai-sdk/desk/{thread}/stop": [["a long reason", () => `{"reason":"${longText(9_500_000)}"}`]],
};

const a2aMessage = (parts: string): string =>
  `{"message":{"messageId":"{run}","role":"ROLE_USER","contextId":"{thread}","parts":[${parts}]}}`;
const a2aSend: readonly Shape[] = [
  [
    "many parts",
    () =>
      filled(
        '{"message":{"messageId":"{run}","role":"ROLE_USER","contextId":"{thread}","parts":[',
        '{"text":"a"}',
        "]}}",
      ),
  ],
  [
    "10,000 parts",
    () =>
      filled(
        '{"message":{"messageId":"{run}","role":"ROLE_USER","contextId":"{thread}","parts":[',
        '{"text":"a"}',
        "]}}",
        10_000,
      ),
  ],
  ["one long text", () => a2aMessage(`{"text":"${longText(9_500_000)}"}`)],
  ["one long file", () => a2aMessage(`{"raw":"${"QUJD".repeat(2_300_000)}","mediaType":"text/plain"}`)],
  [
    "much data",
    () =>
      filled(
        '{"message":{"messageId":"{run}","role":"ROLE_USER","contextId":"{thread}","parts":[{"data":{',
        (index) => `"k${index}":0`,
        "}}]}}",
      ),
  ],
  [
    "many decisions",
    () =>
      filled(
        '{"message":{"messageId":"{run}","role":"ROLE_USER","taskId":"{agent}.1","extensions":["urn:troupe:a2a:decisions:v1"],"parts":[',
        (index) => `{"data":{"requestId":"r${index}","verdict":"approved"}}`,
        "]}}",
      ),
  ],
];
const rpc = (method: string, params: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;

const a2a: Readonly<Record<string, readonly Shape[]>> = {
  "/a2a/desk/message:send": a2aSend,
  "/a2a/desk/message:stream": a2aSend,
  "/a2a/desk/tasks/{idle}.1:cancel": [["a long id", () => `{"id":"${longText(9_500_000)}"}`]],
  "/a2a/desk/tasks/{idle}.1/pushNotificationConfigs": [
    ["a long address", () => `{"url":"https://example.com/${"a".repeat(9_500_000)}"}`],
    ["a long token", () => `{"url":"https://example.com/","token":"${longText(9_500_000)}"}`],
    [
      "many ways to authenticate",
      () => filled('{"url":"https://example.com/","authentication":{"schemes":[', '"bearer"', "]}}"),
    ],
  ],
  "/a2a/desk": [
    ...a2aSend.map(([name, body]): Shape => [name, () => rpc("SendMessage", body())]),
    ...a2aSend.map(([name, body]): Shape => [`${name}, streamed`, () => rpc("SendStreamingMessage", body())]),
    ["a long task", () => rpc("GetTask", `{"id":"${longText(9_500_000)}"}`)],
    ["a long page token", () => rpc("ListTasks", `{"pageToken":"${"a".repeat(9_500_000)}"}`)],
  ],
};

const tealItems: readonly Shape[] = [
  ["many items", () => filled('{"items":[', '{"content_type":"text","content":"a"}', "]}")],
  ["10,000 items", () => filled('{"items":[', '{"content_type":"text","content":"a"}', "]}", 10_000)],
  ["one long item", () => `{"items":[{"content":"${longText(9_500_000)}"}]}`],
  ["much context", () => filled('{"items":[{"content":"a"}],"user_context":{', (index) => `"k${index}":"v"`, "}}")],
  [
    "an image that is none",
    () => `{"items":[{"content_type":"image","content":"data:image/${"a".repeat(9_500_000)}"}]}`,
  ],
];

const tealResumption: readonly Shape[] = [
  ["large arguments", () => filled('{"action":"approve","arguments":{', (index) => `"k${index}":0`, "}}")],
  ["a long action", () => `{"action":"${"a".repeat(9_500_000)}"}`],
];

const teal: Readonly<Record<string, readonly Shape[]>> = {
  "/desk/1.0": tealItems,
  "/desk/1.0/sse": tealItems,
  ...Object.fromEntries(
    ["/desk/1.0/tealagents", "/tealagents"].flatMap((prefix) =>
      ["", "/sse"].map((end) => [`${prefix}/v1alpha1/resume/{agent}.1${end}`, tealResumption]),
    ),
  ),
};

/** The inspector is a separate server: its paths begin with its name. */
const inspector: Readonly<Record<string, readonly Shape[]>> = {
  "inspector:/api/requests/{agent}.1:1:0:0/decision": [
    ["large arguments", () => filled('{"verdict":"edited","arguments":{', (index) => `"k${index}":0`, "}}")],
    ["a long result", () => `{"verdict":"answered","result":"${longText(9_500_000)}"}`],
  ],
  "inspector:/api/agents/{idle}/abort": [["a long reason", () => `{"reason":"${longText(9_500_000)}"}`]],
  "inspector:/api/agents/{idle}/pause": [],
  "inspector:/api/agents/{idle}/resume": [],
  "inspector:/api/agents": [["a long name", () => `{"definition":"${longText(9_500_000)}"}`]],
  "inspector:/api/agents/{agent}/turns": [["one long text", () => `{"input":"${longText(9_500_000)}"}`]],
};

const inspectorReads: readonly string[] = [
  ...["", "/requests", "/accounts", "/owners", "/export", "/search?text=fox", "/agents/{full}/machines"].map(
    (end) => `inspector:/api/runs/{full}${end}`,
  ),
  ...["/transitions", "/messages?limit=200", "/prompts"].map((end) => `inspector:/api/runs/{full}/agents/{full}${end}`),
  "inspector:/api/runs/{long}/search?text=fox",
  "inspector:/api/runs/{long}/agents/{long}/messages",
  "inspector:/api/runs/{long}/export",
  "inspector:/api/runs",
  "inspector:/api/queues",
];

/** Headers that a route requires. */
function headersOf(path: string): Readonly<Record<string, string>> {
  if (path.startsWith("/a2a/")) return { "a2a-version": "1.0" };
  if (path === "/v1/chat/completions") return { "x-troupe-conversation": "{thread}" };
  return path.endsWith("/turns") ? { prefer: "wait=60" } : {};
}

/** All requests, over all routes with a body, and over those that return stored data. */
export function* worstRequests(): Generator<WorstRequest> {
  for (const surface of [api, openai, agUi, aiSdk, a2a, teal, inspector]) {
    for (const [path, shapes] of Object.entries(surface)) {
      for (const [shape, body, before] of [...anywhere, ...shapes]) {
        yield { path, shape, body, before, headers: headersOf(path) };
      }
    }
  }
  for (const path of [...reads, ...inspectorReads]) yield { path, shape: "read", headers: {} };
}
