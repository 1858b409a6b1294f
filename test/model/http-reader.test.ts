import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AnswerReader, fieldOf } from "../../src/model/http-reader.ts";
import { amount } from "../support/full.ts";

interface Told {
  readonly status: number;
  readonly fields: readonly string[];
  readonly body: string;
  /** Whether the end came by itself (`ended`), with the end of the connection (`closed`), or not at all. */
  readonly end: "ended" | "closed" | "missing";
  readonly mayStay: boolean;
  readonly stayMs: number | undefined;
}

/** What is told of these pieces, after which the connection ends; the words of the error if they are refused. */
function toldOf(pieces: readonly Buffer[]): Told | string {
  let status = 0;
  let fields: readonly string[] = [];
  const body: Buffer[] = [];
  const reader = new AnswerReader({
    onHead: (...head) => {
      expect(status).toBe(0);
      [status, fields] = head;
    },
    onBytes: (bytes) => body.push(Buffer.from(bytes)),
  });
  try {
    for (const piece of pieces) {
      // Read into memory that is used again, as a connection does it.
      const shared = Buffer.from(piece);
      reader.read(shared);
      shared.fill(0);
      if (reader.hasEnded) break;
    }
  } catch (error) {
    return (error as Error).message;
  }
  const hadEnded = reader.hasEnded;
  const end = hadEnded ? "ended" : reader.finish() ? "closed" : "missing";
  const { mayStay, stayMs } = reader;
  return { status, fields, body: Buffer.concat(body).toString("latin1"), end, mayStay, stayMs };
}

/** Without what not all see who cut the bytes otherwise: whether something comes behind the end. */
const plain = (told: Told | string) => (typeof told === "string" ? "refused" : { ...told, mayStay: undefined });
const bytesOf = (text: string): Buffer => Buffer.from(text, "latin1");
const whole = (text: string): Told | string => toldOf([bytesOf(text)]);
const ok = "HTTP/1.1 200 OK\r\n";

const answers: readonly string[] = [
  `${ok}content-length: 5\r\n\r\nhello`,
  `${ok}Content-Length:\t5 \r\nX-A: \xe4 b \r\nx-a:\r\n\r\nhello`,
  `${ok}transfer-encoding: Chunked\r\n\r\n3;a=b\r\nhel\r\n02;c="d"\r\nlo\r\n0\r\nx-late: 1\r\nx-b: 2\r\n\r\n`,
  `${ok}\r\nhello\r\n\r\nworld`,
  "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 404 \r\ncontent-length: 0\r\n\r\n",
  "HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\nkeep-alive: timeout=7, max=9\r\ncontent-length: 1\r\n\r\nx",
  "HTTP/1.1 204 No Content\r\ncontent-length: 9\r\n\r\n",
  "HTTP/1.1 304 Not Modified\r\nconnection: a, close\r\ntransfer-encoding: chunked\r\n\r\n",
];

describe("an answer", () => {
  it.each(answers)("is the same wherever its bytes are cut: %j", (text) => {
    const bytes = bytesOf(text);
    const told = toldOf([bytes]);
    expect(told).toMatchObject({ end: text.includes("hello\r\n\r\nworld") ? "closed" : "ended" });
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(toldOf([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(told);
    }
    expect(toldOf([...bytes].map((byte) => Buffer.of(byte)))).toEqual(told);
  });

  it.each(answers)("of which the end is missing has not ended: %j", (text) => {
    const start = text.lastIndexOf("HTTP/1.");
    const headLength = text.indexOf("\r\n\r\n", start) + 4;
    for (let length = 0; length < text.length; length += 1) {
      const isUntilClose = text.includes("hello\r\n\r\nworld") && length >= headLength;
      expect(whole(text.slice(0, length))).toMatchObject({ end: isUntilClose ? "closed" : "missing" });
    }
  });

  it("is read in chunks of any size, cut anywhere", () => {
    const chunkOf = fc.record({
      body: fc.uint8Array({ minLength: 1, maxLength: 40 }),
      zeros: fc.integer({ min: 0, max: 4 }),
      isUpper: fc.boolean(),
      note: fc.constantFrom("", ";", ";a", ";a=1;b", ';a="x y"'),
    });
    const cutsOf = fc.array(fc.nat({ max: 600 }), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(chunkOf, { maxLength: 8 }), cutsOf, (chunks, cuts) => {
        const parts = chunks.flatMap(({ body, zeros, isUpper, note }) => {
          const size = "0".repeat(zeros) + body.length.toString(16);
          return [bytesOf(`${isUpper ? size.toUpperCase() : size}${note}\r\n`), Buffer.from(body), bytesOf("\r\n")];
        });
        const bytes = Buffer.concat([
          bytesOf(`${ok}transfer-encoding: chunked\r\n\r\n`),
          ...parts,
          bytesOf("0\r\n\r\n"),
        ]);
        const places = [0, ...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((place, index) => bytes.subarray(places[index], place));
        const body = Buffer.concat(chunks.map((chunk) => chunk.body)).toString("latin1");
        expect(toldOf(pieces)).toMatchObject({ status: 200, body, end: "ended", mayStay: true });
      }),
      { numRuns: amount(2_000, 200) },
    );
  });

  it("is refused or read to an end, but never both and never otherwise by other cuts, with any byte changed", () => {
    const changes = fc.record({
      text: fc.constantFrom(...answers),
      at: fc.nat({ max: 200 }),
      byte: fc.constantFrom(0, 9, 10, 13, 32, 48, 58, 59, 103, 127, 255),
      cut: fc.nat({ max: 200 }),
    });
    fc.assert(
      fc.property(changes, ({ text, at, byte, cut }) => {
        const bytes = bytesOf(text);
        bytes[at % bytes.length] = byte;
        const place = cut % bytes.length;
        const [one, two] = [toldOf([bytes]), toldOf([bytes.subarray(0, place), bytes.subarray(place)])];
        const single = toldOf([...bytes].map((each) => Buffer.of(each)));
        expect(plain(two)).toEqual(plain(one));
        expect(plain(single)).toEqual(plain(one));
      }),
      { numRuns: amount(5_000, 500) },
    );
  });

  it("gives its fields in small letters, several as one list, without blanks around them", () => {
    const told = whole(`${ok}X-A: 1\r\nx-b:\t \xa0y\xa0\t \r\nX-a:2 \r\ncontent-length: 0\r\n\r\n`) as Told;
    expect(fieldOf(told.fields, "x-a")).toBe("1, 2");
    expect(fieldOf(told.fields, "x-b")).toBe("\xa0y\xa0");
    expect(fieldOf(told.fields, "x-c")).toBeUndefined();
  });

  it.each([
    [`${ok}content-length: 0\r\n\r\n`, true],
    [`${ok}content-length: 0\r\n\r\n\r\n`, false],
    [`${ok}content-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n`, false],
    [`${ok}content-length: 0\r\nconnection: upgrade, Close\r\n\r\n`, false],
    [`${ok}content-length: 0\r\nconnection: keep-alive\r\nconnection: close\r\n\r\n`, false],
    ["HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", false],
    ["HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n0\r\n\r\n", false],
    [`${ok}\r\nuntil the end`, false],
  ])("says whether its connection may go on: %j", (text, mayStay) => {
    expect(whole(text)).toMatchObject({ mayStay });
  });

  it("has any size, as long as its head has not", () => {
    const long = "a".repeat(30_000);
    expect(whole(`${ok}x-a: ${long}\r\ncontent-length: 2\r\n\r\nok`)).toMatchObject({ body: "ok", end: "ended" });
    const piece = Buffer.alloc(1_000_000, "a");
    const endless = [bytesOf(`${ok}x-a: `), ...Array.from({ length: 100 }, () => piece)];
    expect(toldOf(endless)).toMatch(/head is longer/);
  });
});

const chunks = `${ok}transfer-encoding: chunked\r\n\r\n`;
const malformed: readonly (readonly [string, string])[] = [
  ["another protocol", "220 mail.example.org ESMTP\r\n"],
  ["another version", "HTTP/2.0 200 OK\r\n\r\n"],
  ["a blank line before it", `\r\n${ok}\r\n`],
  ["no status", "HTTP/1.1 OK\r\n\r\n"],
  ["a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"],
  ["a status of zero", "HTTP/1.1 000 OK\r\n\r\n"],
  ["two blanks before its status", "HTTP/1.1  200 OK\r\n\r\n"],
  ["another protocol from here on", "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n"],
  ["a line feed alone", "HTTP/1.1 200 OK\ncontent-length: 0\n\n"],
  ["a line feed alone between headers", `${ok}a: b\nc: d\r\n\r\n`],
  ["a carriage return alone", `${ok}a: b\rc: d\r\n\r\n`],
  ["a zero byte in a value", `${ok}a: b\0\r\n\r\n`],
  ["a header without a colon", `${ok}content-length\r\n\r\n`],
  ["a header without a name", `${ok}: 5\r\n\r\n`],
  ["a blank before the colon", `${ok}content-length : 5\r\n\r\n`],
  ["a folded header", `${ok}a: b\r\n c\r\n\r\n`],
  ["a header before it that is folded", `${ok} a: b\r\n\r\n`],
  ["a letter in a name that none may have", `${ok}a\xe4: b\r\n\r\n`],
  ["a length of words", `${ok}content-length: many\r\n\r\n`],
  ["no length in its length", `${ok}content-length:\r\n\r\n`],
  ["a negative length", `${ok}content-length: -1\r\n\r\n`],
  ["a length with a sign", `${ok}content-length: +1\r\n\r\n`],
  ["a length in hexadecimal", `${ok}content-length: 0x5\r\n\r\n`],
  ["a length that no number holds", `${ok}content-length: 9999999999999999\r\n\r\n`],
  ["two lengths", `${ok}content-length: 5\r\ncontent-length: 6\r\n\r\n`],
  ["the same length twice", `${ok}content-length: 5\r\ncontent-length: 5\r\n\r\n`],
  ["a list of lengths", `${ok}content-length: 5, 5\r\n\r\n`],
  ["a length and chunks", `${ok}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n`],
  ["chunks twice", `${ok}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n`],
  ["another coding", `${ok}transfer-encoding: gzip, chunked\r\n\r\n`],
  ["a coding that ends in chunked", `${ok}transfer-encoding: xchunked\r\n\r\n`],
  ["a chunk without a size", `${chunks}\r\n`],
  ["a chunk of words", `${chunks}zz\r\n`],
  ["a chunk of a negative size", `${chunks}-1\r\n`],
  ["a chunk in 0x", `${chunks}0x1\r\nb\r\n`],
  ["a chunk of a size that no number holds", `${chunks}ffffffffffffffff\r\n`],
  ["a blank after a size", `${chunks}1 \r\nb\r\n`],
  ["a line feed alone after a size", `${chunks}1\nb\r\n`],
  ["a carriage return in a note", `${chunks}1;\rx\r\nb\r\n`],
  ["a note without end", `${chunks}1;${"x".repeat(5_000)}`],
  ["a chunk that is longer than its size", `${chunks}1\r\nbb\r\n`],
  ["a chunk that is shorter than its size", `${chunks}3\r\nb\r\n0\r\n\r\n`],
  ["a line feed alone after a chunk", `${chunks}1\r\nb\n0\r\n\r\n`],
  ["a trailer that is none", `${chunks}0\r\nnone\r\n\r\n`],
  ["a trailer that is folded", `${chunks}0\r\na: b\r\n c\r\n\r\n`],
  ["a trailer without end", `${chunks}0\r\n${"a: b\r\n".repeat(6_000)}`],
];

describe("what is no answer", () => {
  it.each(malformed)("is refused, whole and byte by byte: %s", (_what, text) => {
    const bytes = bytesOf(text);
    expect(toldOf([bytes])).toMatch(/does not keep to HTTP/);
    expect(toldOf([...bytes].map((byte) => Buffer.of(byte)))).toMatch(/does not keep to HTTP/);
  });

  it("is refused before its end has come", () => {
    for (const text of ["SSH-2.0-x", "H\r", "HTTP/1.1 200 OK\ncontent"]) expect(whole(text)).toMatch(/HTTP/);
  });

  it("takes no longer to be refused, whatever fills it", () => {
    const started = process.cpuUsage();
    for (const filling of [" ", "\t", "a", ":", ",", "\xff"]) {
      expect(whole(`${ok}a:${filling.repeat(32_000)}\0\r\n\r\n`)).toMatch(/HTTP/);
      expect(whole(`${ok}connection: ${filling.repeat(32_000)}\r\nkeep-alive: ${filling}\r\n\r\n`)).toMatchObject({
        end: "closed",
      });
    }
    // In square time it would be seconds.
    expect(process.cpuUsage(started).user).toBeLessThan(500_000);
  });
});
