import { gunzipSync } from "node:zlib";
import { createRuntime, defineAgent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { toolTextsOf } from "../support/journal-probes.ts";
import { everythingTransports, openEverything } from "./reference-servers.ts";
import { callerOf, connected } from "./served-desk.ts";

/** A call of each tool that needs no capability of the client, and the beginning of its result. */
const calls: Readonly<Record<string, readonly [args: Record<string, unknown>, result: RegExp]>> = {
  echo: [{ message: "hello" }, /^Echo: hello$/],
  "get-annotated-message": [{ messageType: "error", includeImage: true }, /^Error: Operation failed\n\[image 1\]$/],
  "get-env": [{}, /"PATH": "/],
  "get-resource-links": [
    { count: 2 },
    /^Here are 2 resource links.*\ndemo:\/\/resource\/dynamic\/blob\/1\ndemo:.*\/text\/2$/,
  ],
  "get-resource-reference": [
    { resourceType: "Text", resourceId: 3 },
    /^Returning resource reference for Resource 3:\nResource 3: This is a plaintext resource .*\nYou can access/,
  ],
  "get-structured-content": [{ location: "Chicago" }, /^{"temperature":36/],
  "get-sum": [{ a: 2, b: 3 }, /^The sum of 2 and 3 is 5\.$/],
  "get-tiny-image": [{}, /^Here's the image you requested:\n\[image 1\]\nThe image above is the MCP logo\.$/],
  "gzip-file-as-resource": [
    { name: "note.gz", data: "data:text/plain,hello", outputType: "resource" },
    /^\[file .*application\/gzip, \d+ bytes: artifact /,
  ],
  "toggle-simulated-logging": [{}, /^Started simulated, random-leveled logging/],
  "toggle-subscriber-updates": [{}, /^Started simulated resource updated notifications/],
  "trigger-long-running-operation": [{ duration: 0.1, steps: 2 }, /^Long running operation completed/],
};

describe.each(everythingTransports)("the reference server over %s", (transport) => {
  test("every tool gives its result", async () => {
    const { tools } = await connected({ name: "all", ...(await openEverything(transport)) });
    const names = Object.keys(calls);
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(names.map((name) => `all__${name}`)));
    const asked = names.map((name) => ({ name: `all__${name}`, arguments: calls[name]?.[0] ?? {} }));
    const { agent } = await callerOf(tools, asked);
    const progress: unknown[] = [];
    const turn = agent.executeTurn("go");
    turn.subscribe((event) => {
      if (event.type === "tool.progress") progress.push(event.update);
    });
    expect(await turn.result).toMatchObject({ status: "completed", toolCalls: names.length });
    const texts = await toolTextsOf(agent);
    expect(texts).toHaveLength(names.length);
    for (const [, result] of Object.values(calls)) expect(texts).toContainEqual(expect.stringMatching(result));
    expect(progress[0]).toEqual({ progress: 1, total: 2 });
    const [file] = await agent.getArtifacts();
    const zipped = await agent.getArtifact(file?.artifactId ?? "");
    expect(zipped).toMatchObject({ contentType: "application/gzip", encoding: "base64" });
    expect(gunzipSync(Buffer.from(zipped?.content ?? "", "base64")).toString()).toBe("hello");
  });
});

describe.each(["stdio", "streamableHttp"] as const)(
  "what the reference server asks of its client over %s",
  (transport) => {
    /** The result of a tool's call; its question, if it asks one, is answered with the name alone. */
    async function resultOf(name: string, args: Record<string, unknown> = {}): Promise<string> {
      const roots = [{ path: import.meta.dirname, name: "tests" }];
      const options = { elicitation: true, sampling: {}, roots };
      const { tools } = await connected({ name: "all", ...options, ...(await openEverything(transport)) });
      const model = scriptedModel(({ messages }) => {
        if (messages[0]?.role === "system") return `about ${textOf(messages.at(-1)?.content ?? "")}`;
        return messages.at(-1)?.role === "user" ? { toolCalls: [{ name: `all__${name}`, arguments: args }] } : "done";
      });
      const caller = defineAgent({ name: "caller", tools, model });
      const runtime = await createRuntime({ agents: [caller] });
      onTestFinished(() => runtime.shutdown());
      const agent = await runtime.agent("caller");
      await agent.start();
      const turn = agent.executeTurn("go");
      const rest = await turn.settled;
      if (rest.status === "waiting" && rest.reason === "request") {
        const [request] = rest.requests;
        await runtime.decide(request?.requestId ?? "", { verdict: "answered", result: { name: "Ann" } });
      }
      expect((await turn.result).status).toBe("completed");
      const [result] = await toolTextsOf(agent);
      return result ?? "";
    }

    test("its roots", async () => {
      expect(await resultOf("get-roots-list")).toContain(`1. tests\n   URI: file://${import.meta.dirname}`);
    });

    test("a call of the agent's model", async () => {
      const text = await resultOf("trigger-sampling-request", { prompt: "the sea", maxTokens: 20 });
      expect(text).toMatch(/"text": "about Resource trigger-sampling-request context: the sea"/);
    });

    test("a form, whose defaults are for the fields that the answer leaves out", async () => {
      const text = await resultOf("trigger-elicitation-request");
      expect(text).toMatch(/- Name: Ann\n- Favorite Integer: 42\n- Favorite Number: 3\.14/);
      expect(text).toMatch(/"titledMultipleSelectEnum": \[\s*"fish-1"\s*\]/);
    });

    test("a tool that runs only as a task", async () => {
      expect(await resultOf("simulate-research-query", { topic: "tides" })).toMatch(/tides/);
    });
  },
);
