import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { repositoryRoot, runCommand } from "../../scripts/run-command.ts";
import type { OpenaiModelOptions } from "../../src/model/index.ts";
import { failureOf, neverAborted, request, streamed, userMessage } from "../support/model-calls.ts";
import {
  byClient,
  callOf,
  completion,
  goodAnswer,
  wireAnswer,
  wireModel,
  type WireRequest,
  type WireServer,
  wireServer,
} from "../support/wire-server.ts";

describe("connections", () => {
  it("are as many as concurrent calls, and kept", async () => {
    const waiting: Socket[] = [];
    const server = await wireServer((socket) => {
      if (waiting.push(socket) < 64) return;
      for (const each of waiting.splice(0)) each.write(goodAnswer);
    });
    const model = wireModel(server);
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(Array.from({ length: 64 }, () => model.generate(request, { signal: neverAborted })));
    }
    expect(server.connections()).toBe(64);
  });

  it("that the server closed while they were idle are not used", async () => {
    const server = await wireServer((socket) => socket.write(goodAnswer));
    const closing = await wireServer((socket) => socket.write(goodAnswer, () => socket.end()));
    for (let call = 0; call < 3; call += 1) {
      expect((await callOf(closing)).content).toBe("hello");
      await expect.poll(() => closing.openConnections()).toBe(0);
      // By the end of another exchange this process has received the close too.
      await callOf(server);
    }
    expect([closing.connections(), closing.requests.length]).toEqual([3, 3]);
  });

  it("that break during a request do not send it again: it may have been received", async () => {
    const server = await wireServer((socket, { index }) => {
      if (index === 1) socket.destroy();
      else socket.write(goodAnswer);
    });
    expect((await callOf(server)).content).toBe("hello");
    expect(await failureOf(callOf(server))).toMatchObject({
      retryable: true,
      mayHaveBeenSent: true,
      details: { kind: "connection", errno: "ECONNRESET" },
    });
    expect(server.requests).toHaveLength(2);
    expect((await callOf(server)).content).toBe("hello");
    expect(server.connections()).toBe(2);
  });

  it("are closed after an answer with Connection: close", async () => {
    const server = await wireServer((socket) => socket.write(wireAnswer(completion("hello"), "connection: close")));
    for (let call = 0; call < 3; call += 1) expect((await callOf(server)).content).toBe("hello");
    expect(server.connections()).toBe(3);
    await expect.poll(() => server.openConnections()).toBe(0);
  });

  it("with a keep-alive timeout from the server are closed before it expires", async () => {
    const headers = "content-type: application/json\r\nkeep-alive: timeout=";
    for (const [seconds, connections] of [
      [60, 1],
      [1, 2],
    ] as const) {
      const server = await wireServer((socket) => socket.write(wireAnswer(completion("hello"), headers + seconds)));
      for (let call = 0; call < 2; call += 1) expect((await callOf(server)).content).toBe("hello");
      expect(server.connections()).toBe(connections);
    }
  });

  it.each([
    ["closed", (socket: Socket) => socket.destroy()],
    ["wrote data without a request", (socket: Socket) => socket.write(wireAnswer(completion("forged")))],
  ])("on which the server %s, which the client has not noticed yet, are not used", async (_what, act) => {
    let latest: Socket | undefined;
    const server = await wireServer((socket) => {
      latest = socket;
      socket.write(goodAnswer);
    });
    const model = wireModel(server);
    for (let call = 0; call < 3; call += 1) {
      expect((await model.generate(request, { signal: neverAborted })).content).toBe("hello");
      if (latest !== undefined) act(latest);
      // The event loop reads nothing meanwhile.
      const until = performance.now() + 20;
      while (performance.now() < until);
    }
    expect([server.connections(), server.requests.length]).toEqual([3, 3]);
  });

  it("that receive more than the answer are not used again", async () => {
    const forged = wireAnswer(completion("forged"));
    const server = await wireServer((socket) => socket.write(Buffer.concat([wireAnswer(completion("hello")), forged])));
    for (let call = 0; call < 3; call += 1) expect((await callOf(server)).content).toBe("hello");
    expect(server.connections()).toBe(3);
  });
});

const abortedWhen = async (server: WireServer, options: OpenaiModelOptions, isTime: () => boolean, text = "hi") => {
  const controller = new AbortController();
  const prompt = { messages: [userMessage(text)] };
  const failed = failureOf(wireModel(server, options).generate(prompt, { signal: controller.signal }));
  await expect.poll(isTime).toBe(true);
  controller.abort();
  const failure = await failed;
  expect(failure).toMatchObject({ retryable: false, details: { kind: "aborted" } });
  return failure;
};

describe("a call that is aborted early leaves no connection", () => {
  it("while connecting", async () => {
    const server = await wireServer(() => undefined);
    const baseURL = `https://${server.host}/v1`;
    const failure = await abortedWhen(server, { baseURL }, () => server.openConnections() === 1);
    expect(failure.mayHaveBeenSent).toBe(false);
    await expect.poll(() => server.openConnections()).toBe(0);
    expect(server.requests).toHaveLength(0);
  });

  it("while the request is being sent", async () => {
    let paused: Socket | undefined;
    const server = await wireServer(
      () => undefined,
      (socket) => {
        paused = socket.pause();
      },
    );
    const failure = await abortedWhen(server, {}, () => paused !== undefined, "word ".repeat(4_000_000));
    expect(failure.mayHaveBeenSent).toBe(true);
    // The server notices the abort by reading on.
    paused?.resume();
    await expect.poll(() => server.openConnections()).toBe(0);
    expect(server.requests).toHaveLength(0);
  });

  it("while waiting for the answer", async () => {
    const server = await wireServer(() => undefined);
    const failure = await abortedWhen(server, {}, () => server.requests.length === 1);
    expect(failure.mayHaveBeenSent).toBe(true);
    await expect.poll(() => server.openConnections()).toBe(0);
  });

  it.each([200, 500])("inside the body of an answer of status %i", async (status) => {
    const server = await wireServer((socket) =>
      socket.write(`HTTP/1.1 ${status} Some\r\ncontent-length: 100\r\n\r\n{`),
    );
    const failure = await abortedWhen(server, {}, () => server.requests.length === 1);
    expect(failure.mayHaveBeenSent).toBe(true);
    await expect.poll(() => server.openConnections()).toBe(0);
  });

  it("by a timeout, also while connecting", async () => {
    const server = await wireServer(() => undefined);
    const silent = wireModel(server, { baseURL: `https://${server.host}/v1`, headersTimeoutMs: 30 });
    const failure = await failureOf(streamed(silent));
    expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: false, details: { kind: "timeout" } });
    await expect.poll(() => server.openConnections()).toBe(0);
  });
});

const keptOf = ({ line, headers, body }: WireRequest) => {
  const { "x-team": team, "content-type": type, authorization } = headers;
  return { line, body, team, type, authorization };
};

describe("redirects", () => {
  for (const isForeign of [false, true]) {
    const where = isForeign ? "another" : "the same";
    it.each([301, 302, 303, 307, 308])(`are followed as by fetch: %i, to ${where} server`, async (status) => {
      const target = await wireServer((socket) => socket.write(goodAnswer));
      const origin = isForeign ? `http://${target.host}` : "";
      const server = await wireServer((socket, { line }) => {
        const isMoved = line.includes("/v1/");
        socket.write(isMoved ? wireAnswer("moved", `location: ${origin}/moved?a=1`, status) : goodAnswer);
      });
      const headers = { "x-team": "blue", "api-key": "secret" };
      for (const way of [{}, byClient]) expect((await callOf(server, { headers, ...way })).content).toBe("hello");
      const seen = [...target.requests, ...server.requests].filter(({ line }) => line.includes("/moved"));
      const [ours, theirs] = seen as [WireRequest, WireRequest];
      // None of the caller's headers is sent to another server.
      expect(keptOf(ours)).toEqual({ ...keptOf(theirs), ...(isForeign ? { team: undefined } : {}) });
      expect(ours.headers["api-key"]).toBe(isForeign ? undefined : "secret");
    });
  }

  it("within a server and then to another one do not send the caller's headers to the latter", async () => {
    const target = await wireServer((socket) => socket.write(goodAnswer));
    const server = await wireServer((socket, { line }) => {
      const next = line.includes("/second") ? `http://${target.host}/third` : "/second";
      socket.write(wireAnswer("moved", `location: ${next}`, 307));
    });
    const headers = { "x-goog-api-key": "secret", "openai-organization": "mine", cookie: "a=b" };
    expect((await callOf(server, { headers })).content).toBe("hello");
    const [last] = target.requests as [WireRequest];
    expect(JSON.stringify(last)).not.toMatch(/secret|mine|a=b|uthorization/);
    expect(last.body).toContain("messages");
    expect(server.requests[1]?.headers).toMatchObject({ "x-goog-api-key": "secret", cookie: "a=b" });
  });

  it("with an unfinished body are left immediately, wherever they lead", async () => {
    for (const location of ["/good", "http://["]) {
      const closed = Promise.withResolvers<void>();
      const server = await wireServer((socket, { line }) => {
        if (line.includes("/good")) {
          socket.write(goodAnswer);
          return;
        }
        socket.once("close", () => closed.resolve());
        socket.write(`HTTP/1.1 307 Moved\r\nlocation: ${location}\r\ncontent-length: 1000000\r\n\r\nand so on`);
      });
      const outcome = await callOf(server).then(
        ({ content }) => content,
        () => "failed",
      );
      expect(outcome).toBe(location === "/good" ? "hello" : "failed");
      await closed.promise;
    }
  });

  it("in a circle or without a target are failures", async () => {
    for (const location of ["/v1/chat/completions", "ftp://127.0.0.1/", "data:application/json,{}", "http://["]) {
      const server = await wireServer((socket) => socket.write(wireAnswer("", `location: ${location}`, 307)));
      expect(await failureOf(callOf(server))).toMatchObject({ mayHaveBeenSent: true, details: { kind: "connection" } });
    }
  });
});

/** Calls each model in a separate process, which exits although its connections are kept. */
async function answersInProcess(bases: readonly string[], environment: Readonly<Record<string, string>>) {
  const entry = JSON.stringify(pathToFileURL(join(repositoryRoot, "src/model/index.ts")).href);
  const program = `const { openaiModel } = await import(${entry});
for (const baseURL of ${JSON.stringify(bases)}) {
  const model = openaiModel("m", { apiKey: "k", baseURL });
  const answer = await model.generate(${JSON.stringify(request)}, { signal: new AbortController().signal }).catch((error) => error);
  console.log(answer.content ?? answer.details.errno ?? answer.message);
}`;
  const result = await runCommand("node", ["--input-type=module", "--eval", program], { environment });
  expect(result.ok, result.output).toBe(true);
  return result.stdout.trim().split("\n");
}

describe("the environment of the process", () => {
  const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
  it.skipIf(!hasOpenssl).each(["TLSv1.3", "TLSv1.2"] as const)(
    "selects the trusted authorities by %s",
    async (version) => {
      const folder = mkdtempSync(join(tmpdir(), "troupe-tls-"));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
      const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", certificate];
      const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
      execFileSync("openssl", [...made, ...subject], { stdio: "ignore" });
      const resumed: boolean[] = [];
      const shown = { key: readFileSync(key), cert: readFileSync(certificate) };
      const server = createServer({ ...shown, maxVersion: version }, ({ socket }, response) => {
        resumed.push((socket as TLSSocket).isSessionReused());
        response.setHeader("content-type", "application/json").setHeader("connection", "close");
        response.end(completion("safely"));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => void server.close());
      const { port } = server.address() as AddressInfo;
      const [named, byNumber] = [`https://localhost:${port}/v1`, `https://127.0.0.1:${port}/v1`];
      expect(await answersInProcess([named], {})).toEqual(["DEPTH_ZERO_SELF_SIGNED_CERT"]);
      const trusting = { NODE_EXTRA_CA_CERTS: certificate };
      expect(await answersInProcess([named, named, byNumber], trusting)).toEqual([
        "safely",
        "safely",
        "ERR_TLS_CERT_ALTNAME_INVALID",
      ]);
      // The second connection resumes the session of the first.
      expect(resumed).toEqual([false, true]);
    },
  );

  it("configures proxies, which are used if Node is configured to, as by its own fetch", async () => {
    const asked: string[] = [];
    const near = await wireServer((socket) => socket.write(wireAnswer(completion("near"))));
    const proxy = await wireServer((socket, { line, headers }) => {
      asked.push(line.split(" ")[0] === "CONNECT" ? "tunnel" : "forward");
      expect(headers["proxy-authorization"]).toBe(`Basic ${btoa("ann:secret")}`);
      const beyond = connect(Number(near.host.split(":")[1]), "127.0.0.1", () => {
        socket.removeAllListeners("data");
        socket.write("HTTP/1.1 200 Connected\r\n\r\n");
        socket.pipe(beyond).pipe(socket);
      });
      beyond.on("error", () => socket.destroy());
    });
    const far = "http://models.example.test/v1";
    const environment = { HTTP_PROXY: `http://ann:secret@${proxy.host}`, NO_PROXY: "127.0.0.1" };
    const bases = [far, far, `http://${near.host}/v1`];
    expect(await answersInProcess(bases, { ...environment, NODE_USE_ENV_PROXY: "1" })).toEqual([
      "near",
      "near",
      "near",
    ]);
    const before = [...asked];
    expect(new Set(before)).toEqual(new Set(["tunnel"]));
    expect(near.requests.map(({ headers }) => headers["host"])).toEqual([
      "models.example.test",
      "models.example.test",
      near.host,
    ]);
    expect(await answersInProcess([`http://${near.host}/v1`, far], environment)).toEqual(["near", "ENOTFOUND"]);
    expect(asked).toEqual(before);
  });
});
