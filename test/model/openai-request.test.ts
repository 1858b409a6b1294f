// The address and the headers that are made without the client, beside those that the client makes.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { OpenAI } from "openai";
import { VERSION } from "openai/version";
import { afterEach, describe, expect, it, vi } from "vitest";
import { repositoryRoot, runCommand } from "../../scripts/run-command.ts";
import { clientVersion, plainRequestHead, type RequestHeadOptions } from "../../src/model/openai-request.ts";

afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it("knows the version of the client that is installed", () => {
  expect(clientVersion).toBe(VERSION);
});

it("knows the variables that the client reads", () => {
  const source = readFileSync(join(repositoryRoot, "node_modules/openai/client.mjs"), "utf8");
  const read = [...source.matchAll(/readEnv\('(\w+)'\)/g)].map(([, name = ""]) => name);
  expect([...new Set(read)].sort()).toEqual([
    "OPENAI_ADMIN_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_CUSTOM_HEADERS",
    "OPENAI_LOG",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "OPENAI_WEBHOOK_SECRET",
  ]);
});

interface Head {
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
}

/** What the client makes of the same options; undefined if it refuses. */
async function headOfClient({ apiKey, baseURL, organization, headers }: RequestHeadOptions): Promise<Head | undefined> {
  try {
    const client = new OpenAI({
      apiKey,
      baseURL,
      ...(organization === undefined ? {} : { organization }),
      ...(headers === undefined ? {} : { defaultHeaders: headers }),
      timeout: 600_000,
      maxRetries: 0,
    });
    const { req, url } = await client.buildRequest({ method: "post", path: "/chat/completions", body: {} });
    return { url, headers: [...req.headers] };
  } catch {
    return undefined;
  }
}

function headOf(options: RequestHeadOptions): Head | undefined {
  const head = plainRequestHead(options);
  return head && { url: head.url, headers: [...head.headers] };
}

const plain: RequestHeadOptions = { apiKey: "key", baseURL: undefined, organization: undefined, headers: undefined };

const baseURLs = [undefined, "https://one.example/v1", "HTTP://One.example:80//a/../b%20c/ü/", "http://u:p@[::1]:8080"];
const organizations = [undefined, "org-1"];
const headers: readonly RequestHeadOptions["headers"][] = [
  undefined,
  { "X-Team": "blue", "x-team": "red  and  green", accept: "*/*", "Content-Type": "text/plain" },
  { Authorization: "Basic eA==", "USER-AGENT": "mine", "openai-organization": "theirs", "x-stainless-os": "Mine" },
  { "api-key": "other", "a.b|c~d": "!", ["__proto__"]: "z", 1: "one" },
];
const accounts = [
  {},
  { OPENAI_ORG_ID: " org-2 ", OPENAI_PROJECT_ID: "proj-1\n" },
  { OPENAI_ORG_ID: " ", OPENAI_PROJECT_ID: "" },
];
const others = [
  {},
  {
    OPENAI_API_KEY: "k2",
    OPENAI_ADMIN_KEY: "admin",
    OPENAI_BASE_URL: "http://two.example/v2",
    OPENAI_WEBHOOK_SECRET: "secret",
    OPENAI_LOG: " ",
    OPENAI_CUSTOM_HEADERS: "",
  },
];
const table = baseURLs.flatMap((baseURL) =>
  organizations.flatMap((organization) =>
    headers.flatMap((own) =>
      accounts.flatMap((account) =>
        others.map((other) => ({ baseURL, organization, own, environment: { ...account, ...other } })),
      ),
    ),
  ),
);

describe("what the client makes is made without it", () => {
  it("from any options in any environment", async () => {
    for (const { baseURL = "https://api.openai.com/v1", organization, own, environment } of table) {
      for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
      const options = { ...plain, baseURL, organization, headers: own };
      expect(headOf(options), JSON.stringify({ options, environment })).toEqual(await headOfClient(options));
      vi.unstubAllEnvs();
    }
  });

  it("goes to OpenAI where no address is given", async () => {
    vi.stubEnv("OPENAI_BASE_URL", undefined);
    expect(headOf(plain)).toEqual(await headOfClient(plain));
  });

  const machines = [
    ...["x32", "x64", "arm", "arm64", "ia32", "ppc64", "riscv64", "s390x"].map((arch) => ({ arch, platform: "linux" })),
    ...["darwin", "win32", "freebsd", "android", "openbsd", "aix", "sunos"].map((platform) => ({
      arch: "x64",
      platform,
    })),
  ];

  it("on any machine", async () => {
    // The client looks at the machine once for each copy of this file of it.
    const part = pathToFileURL(join(repositoryRoot, "node_modules/openai/internal/detect-platform.mjs")).href;
    const program = `
      const told = [];
      for (const machine of ${JSON.stringify(machines)}) {
        for (const [name, value] of Object.entries(machine)) Object.defineProperty(process, name, { value });
        const { getPlatformHeaders } = await import(${JSON.stringify(part)} + "?" + told.length);
        told.push(getPlatformHeaders());
      }
      console.log(JSON.stringify(told));`;
    const { stdout, output } = await runCommand(process.execPath, ["--input-type=module", "--eval", program]);
    expect(stdout, output).toMatch(/^\[/);
    const told = JSON.parse(stdout) as Readonly<Record<string, string>>[];
    for (const [index, machine] of machines.entries()) {
      for (const [name, value] of Object.entries(machine))
        vi.spyOn(process, name as "arch", "get").mockReturnValue(value as never);
      const ours = Object.fromEntries(headOf(plain)?.headers ?? []);
      vi.restoreAllMocks();
      for (const [name, value] of Object.entries(told[index] ?? {}))
        expect(ours).toHaveProperty([name.toLowerCase()], value);
    }
  });
});

describe("the client is asked", () => {
  const cases: readonly (readonly [string, Partial<RequestHeadOptions>])[] = [
    ["for an address with a query", { baseURL: "https://one.example/v1?a=1" }],
    ["for an address that is none", { baseURL: "https://one example" }],
    ["for a key that is no header", { apiKey: "a\nb" }],
    ["for a key in other characters", { apiKey: "schlüssel" }],
    ["for an organization with space around it", { organization: " org" }],
    ["for a name that is no header", { headers: { "a b": "c" } }],
    ["for an empty value", { headers: { authorization: "" } }],
    ["for a value with a line break", { headers: { "x-a": "b\r\nx-c: d" } }],
    ["for a value in other characters", { headers: { "x-name": "Grüße" } }],
    ["for a header that may come several times", { headers: { "Set-Cookie": "a=b" } }],
  ];
  it.each(cases)("%s", (_what, options) => {
    expect(plainRequestHead({ ...plain, ...options })).toBeUndefined();
  });

  it.each([
    ["OPENAI_LOG", "debug"],
    ["OPENAI_LOG", "loud"],
    ["OPENAI_CUSTOM_HEADERS", "x-a: 1"],
    ["OPENAI_ORG_ID", "ö"],
  ])("where %s is %s", (name, value) => {
    vi.stubEnv(name, value);
    expect(plainRequestHead(plain)).toBeUndefined();
  });

  it.each(["window", "WorkerGlobalScope", "Deno", "EdgeRuntime", "Bun"])("where there is a %s", (name) => {
    vi.stubGlobal(name, {});
    expect(plainRequestHead(plain)).toBeUndefined();
  });
});
