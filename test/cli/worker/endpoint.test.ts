// The health and metrics of a worker over HTTP.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { type Endpoint, startEndpoint, type Told, type Verdict } from "../../../src/cli/worker/endpoint.ts";
import { InvalidInputError } from "../../../src/errors/index.ts";

const good: Verdict = { isGood: true, problems: [], details: { roundTripMs: 3 } };
let endpoint: Endpoint | undefined;
afterEach(() => endpoint?.close());

const bad = async (): Promise<Verdict> => ({ isGood: false, problems: ["the canary did not come back"] });
const failing = async () => Promise.reject(new Error("Redis does not answer"));

async function get(told: Partial<Told>, path: string, init?: RequestInit) {
  const all = { metrics: async () => "a 1\n", health: async () => good, readiness: async () => good, ...told };
  endpoint = await startEndpoint(all, { port: 0 });
  const response = await fetch(endpoint.url + path, init);
  return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
}

describe("the endpoint of a worker", () => {
  test("listens on this machine only, on a port that it names", async () => {
    const answer = await get({}, "/metrics");
    expect(endpoint?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(answer).toEqual({ status: 200, type: "text/plain; version=0.0.4; charset=utf-8", text: "a 1\n" });
  });

  test("reports its health and metrics", async () => {
    const { status, text } = await get({}, "/healthz?verbose");
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual({ status: "ok", problems: [], roundTripMs: 3 });
  });

  test.each(["/healthz", "/readyz"])("%s answers 503 with the reasons if a check fails", async (path) => {
    const { status, text } = await get({ health: bad, readiness: bad }, path);
    expect(status).toBe(503);
    expect(JSON.parse(text)).toMatchObject({ status: "unhealthy", problems: ["the canary did not come back"] });
  });

  test("a check that throws also fails", async () => {
    const { status, text } = await get({ metrics: failing }, "/metrics");
    expect(status).toBe(503);
    expect(text).toContain("Redis does not answer");
  });

  test("has no other page, and is read-only", async () => {
    expect(await get({}, "/")).toMatchObject({ status: 404, text: "Available: /metrics, /healthz and /readyz.\n" });
    await endpoint?.close();
    expect(await get({}, "/metrics", { method: "POST", body: "x" })).toMatchObject({ status: 405 });
    await endpoint?.close();
    expect(await get({}, "/metrics", { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
  });

  test("concurrent requests share one answer: no canary is sent for each", async () => {
    let [inFlight, most] = [0, 0];
    const landing = Promise.withResolvers<void>();
    const health = async () => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await landing.promise;
      inFlight -= 1;
      return good;
    };
    endpoint = await startEndpoint({ metrics: async () => "", health, readiness: health }, { port: 0 });
    const { url } = endpoint;
    const asked = [1, 2, 3, 4].map(() => fetch(`${url}/healthz`));
    await fetch(`${url}/nowhere`);
    landing.resolve();
    for (const response of await Promise.all(asked)) expect(response.status).toBe(200);
    expect(most).toBe(1);
  });

  test("a used port is named, with a hint", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const told = { metrics: async () => "", health: async () => good, readiness: async () => good };
    const failure = await startEndpoint(told, { port }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(InvalidInputError);
    expect(String(failure)).toContain(`127.0.0.1:${port}: the port is taken; give another one, or 0 for any free port`);
  });
});
