// Requests to URLs that callers chose (row S2 of the attacks): the refused ones, and the data that a hostile receiver gets.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { systemClock } from "../../../src/base/index.ts";
import { type LookupAddresses, type Post, Receivers } from "../../../src/server/webhooks/receiver.ts";
import { createFakeClock } from "troupe/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { startReceiver } from "../../support/hook-receiver.ts";
import { startRawServer } from "../../support/raw-server.ts";

const clock = systemClock;
const post = (url: string): Post => ({
  url,
  headers: { "content-type": "application/json" },
  body: "{}",
  signal: new AbortController().signal,
});
const address = (text: string) => ({ address: text, family: text.includes(":") ? 6 : 4 });
const twoHere: LookupAddresses = () => Promise.resolve(["127.0.0.2", "127.0.0.3"].map(address));

describe("a URL is refused that is", () => {
  const receivers = new Receivers({ clock });

  it.each([
    ["not over TLS", "http://example.com/hook"],
    ["invalid", "example.com/hook"],
    ["of another protocol", "ftp://example.com/"],
    ["a file", "file:///etc/passwd"],
    ["with credentials", "https://ann:secret@example.com/"],
    ["with a line end", "https://example.com/\r\nx: y"],
    ["with a tab in its name", "https://exa\tmple.com/"],
    ["very long", `https://example.com/${"a".repeat(2_100)}`],
    ["loopback", "https://127.0.0.1/"],
    ["loopback with a trailing dot", "https://127.0.0.1./"],
    ["a short loopback", "https://127.1/"],
    ["a decimal loopback", "https://2130706433/"],
    ["an octal loopback", "https://0177.0.0.1/"],
    ["a hexadecimal loopback", "https://0x7f.0x0.0x0.0x1/"],
    ["a full-width loopback", "https://１２７．０．０．１/"],
    ["a percent-encoded loopback", "https://%31%32%37.0.0.1/"],
    ["zero", "https://0/"],
    ["localhost", "https://localhost/"],
    ["localhost in capitals", "https://LOCALHOST/"],
    ["a name below localhost", "https://hook.localhost./"],
    ["private", "https://10.1.2.3/"],
    ["also private", "https://192.168.0.1:8443/"],
    ["shared by a provider", "https://100.64.0.1/"],
    ["link-local, as of clouds", "https://169.254.169.254/latest/meta-data"],
    ["for documentation", "https://192.0.2.1/"],
    ["multicast", "https://224.0.0.1/"],
    ["broadcast", "https://255.255.255.255/"],
    ["loopback in IPv6", "https://[::1]/"],
    ["unspecified in IPv6", "https://[::]/"],
    ["unique local", "https://[fc00::1]/"],
    ["link-local in IPv6", "https://[fe80::1]/"],
    ["site-local in IPv6", "https://[fec0::1]/"],
    ["a mapped private one", "https://[::ffff:10.0.0.1]/"],
    ["a mapped loopback in hexadecimal", "https://[::ffff:7f00:1]/"],
    ["a compatible private one", "https://[::10.0.0.1]/"],
    ["translated", "https://[64:ff9b::a00:1]/"],
    ["tunnelled", "https://[2002:a00:1::]/"],
    ["unassigned", "https://[4000::1]/"],
  ])("%s", async (_, url) => {
    await expect(receivers.assertUrl(url)).rejects.toThrow(/^url /);
    await expect(receivers.post(post(url))).rejects.toThrow(/^url /);
  });

  it.each([
    "https://example.com/hook?x=1",
    "https://8.8.8.8/",
    "https://[2606:4700::1]:8443/",
    "https://EXAMPLE.com./",
  ])("not %s", async (url) => {
    expect((await receivers.assertUrl(url)).protocol).toBe("https:");
  });
});

describe("a host name", () => {
  it.each([
    ["a private address", ["10.0.0.1"]],
    ["a private address after a public one", ["8.8.8.8", "127.0.0.1"]],
    ["a private address of IPv6 next to a public one", ["8.8.8.8", "::ffff:169.254.169.254"]],
    ["no valid address", ["not an address"]],
  ])("that resolves to %s is refused at the request", async (_, found) => {
    const asked: string[] = [];
    const lookup: LookupAddresses = async (hostname) => {
      asked.push(hostname);
      return await Promise.resolve(found.map(address));
    };
    const sent = new Receivers({ clock, lookup }).post(post("https://hook.example/"));
    await expect(sent).rejects.toThrow("its host name has an address that is not public");
    expect(asked).toEqual(["hook.example"]);
  });

  it("that does not resolve is refused", async () => {
    const sent = new Receivers({ clock, lookup: () => Promise.resolve([]) }).post(post("https://hook.example/"));
    await expect(sent).rejects.toThrow("its host name has no address");
  });

  it("that was public before is checked again, with one lookup per request", async () => {
    const receiver = await startReceiver();
    const port = new URL(receiver.origin).port;
    const answers = [["127.0.0.1"], ["10.0.0.1"], ["127.0.0.1"]];
    let asked = 0;
    const lookup: LookupAddresses = async () => {
      asked += 1;
      return await Promise.resolve((answers[asked - 1] ?? []).map(address));
    };
    // Only here the first answer may be this machine. The request connects only to the checked address.
    const listed = new Receivers({ clock, lookup, origins: [`http://hook.example:${port}`] });
    expect(await listed.post(post(`http://hook.example:${port}/`))).toBe(200);
    expect([asked, receiver.calls.length]).toEqual([1, 1]);
    const judging = new Receivers({ clock, lookup });
    await expect(judging.post(post(`https://hook.example:${port}/`))).rejects.toThrow("not public");
    expect([asked, receiver.calls.length]).toEqual([2, 1]);
  });
});

describe("a receiver", () => {
  it("that is listed may be private and without TLS, and no other may", async () => {
    const [receiver, other] = [await startReceiver(), await startReceiver()];
    const receivers = new Receivers({ clock, origins: [receiver.origin] });
    expect(await receivers.post({ ...post(`${receiver.origin}/a`), headers: { "x-own": "yes" } })).toBe(200);
    expect(receiver.calls).toMatchObject([{ path: "/a", headers: { "x-own": "yes" }, body: {} }]);
    await expect(receivers.post(post(other.origin))).rejects.toThrow("https:");
    expect(other.calls).toEqual([]);
  });

  it.each(["http://a/b", "ftp://a", "a", "http://a?b", ""])("cannot be listed as %j", (origin) => {
    expect(() => new Receivers({ clock, origins: [origin] })).toThrow("is not an origin");
  });

  it("that redirects is not followed", async () => {
    const target = await startReceiver();
    const server = await startRawServer((_request, response) => {
      response.writeHead(307, { location: `${target.origin}/stolen` }).end();
    });
    onTestFinished(() => server.stop());
    const receivers = new Receivers({ clock, origins: [server.origin, target.origin] });
    expect(await receivers.post(post(server.origin))).toBe(307);
    expect(target.calls).toEqual([]);
  });

  it("that does not answer is aborted after 10 seconds", async () => {
    const receiver = await startReceiver(() => null);
    const fake = createFakeClock();
    const receivers = new Receivers({ clock: fake, origins: [receiver.origin] });
    const sent = receivers.post(post(receiver.origin));
    await receiver.until((calls) => calls.length === 1);
    fake.advance(9_999);
    fake.advance(1);
    await expect(sent).rejects.toThrow("no answer within 10 s");
    expect(fake.pendingTimers).toBe(0);
  });

  it("whose answer never ends is closed after its headers", async () => {
    const closed = Promise.withResolvers<void>();
    const server = await startRawServer((_request, response) => {
      response.on("close", closed.resolve);
      response.writeHead(200);
      const write = (): void => {
        if (!response.destroyed) response.write("x".repeat(65_536), () => setImmediate(write));
      };
      write();
    });
    onTestFinished(() => server.stop());
    const receivers = new Receivers({ clock, origins: [server.origin] });
    expect(await receivers.post(post(server.origin))).toBe(200);
    await closed.promise;
  });

  it.each([
    ["closes the connection", (socket: Socket) => void socket.destroy()],
    ["answers with another protocol", (socket: Socket) => void socket.end("SSH-2.0-OpenSSH_9.6\r\n")],
    [
      "changes the protocol",
      (socket: Socket) => void socket.end("HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    ],
    ["hints only", (socket: Socket) => void socket.end("HTTP/1.1 103 Early Hints\r\n\r\n")],
  ])("that %s has failed", async (_, answer) => {
    const server = createServer(
      (socket) => void socket.on("error", () => undefined).once("data", () => answer(socket)),
    );
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(new Receivers({ clock, origins: [origin] }).post(post(origin))).rejects.toThrow(/./);
  });

  it("without a listening server has failed, with a reason for each of its addresses", async () => {
    const receiver = await startReceiver();
    const { port } = new URL(receiver.origin);
    const origin = `http://hook.example:${port}`;
    const sent = new Receivers({ clock, lookup: twoHere, origins: [origin] }).post(post(origin));
    await expect(sent).rejects.toThrow(/ECONNREFUSED/);
  });

  it("with a huge head has failed", async () => {
    const server = await startRawServer((_request, response) => {
      response.writeHead(200, { "x-much": "x".repeat(100_000) }).end();
    });
    onTestFinished(() => server.stop());
    const receivers = new Receivers({ clock, origins: [server.origin] });
    await expect(receivers.post(post(server.origin))).rejects.toThrow(/[Hh]eader/);
  });
});
