import { randomBytes } from "node:crypto";
import { Sealing } from "../../../src/server/webhooks/sealing.ts";
import { describe, expect, it } from "vitest";
import { webhookKey } from "../../support/hook-receiver.ts";

const place = ["acme", "desk", "a2a", "desk#1", "one", "https://example.com/"];
const secrets = { token: "token of the receiver", credentials: "pässword" };

describe("sealed data", () => {
  it("can be read with the key, in its own webhook", () => {
    const sealing = new Sealing([webhookKey()]);
    const sealed = sealing.seal(secrets, place);
    expect(sealing.open(sealed, place)).toEqual(secrets);
    expect(new Sealing([webhookKey()]).open(sealed, place)).toEqual(secrets);
    expect(Buffer.from(sealed.split(".")[2] ?? "", "base64url").toString("latin1")).not.toContain("token");
    expect(sealing.seal(secrets, place)).not.toBe(sealed);
  });

  it("stays readable when a new key comes first, and is lost without its own key", () => {
    const sealed = new Sealing([webhookKey(1)]).seal(secrets, place);
    const rotated = new Sealing([webhookKey(2), webhookKey(1)]);
    expect(rotated.open(sealed, place)).toEqual(secrets);
    const again = rotated.seal(secrets, place);
    expect(new Sealing([webhookKey(2)]).open(again, place)).toEqual(secrets);
    expect(() => new Sealing([webhookKey(2)]).open(sealed, place)).toThrow("which is missing in webhooks.keys");
  });

  it("cannot be opened for another webhook or another URL", () => {
    const sealing = new Sealing([webhookKey()]);
    const sealed = sealing.seal(secrets, place);
    for (const index of place.keys()) {
      const other = place.with(index, "https://evil.example/");
      expect(() => sealing.open(sealed, other)).toThrow("belong to another webhook");
    }
  });

  it("cannot be changed", () => {
    const sealing = new Sealing([webhookKey()]);
    const [id, nonce, text = ""] = sealing.seal(secrets, place).split(".");
    for (const other of [`A${text.slice(1)}`, `B${text.slice(1)}`].filter((one) => one !== text)) {
      expect(() => sealing.open([id, nonce, other].join("."), place)).toThrow("were changed");
    }
    expect(() => sealing.open([id, nonce, text.slice(0, -8)].join("."), place)).toThrow("were changed");
    expect(() => sealing.open("", place)).toThrow("which is missing in webhooks.keys");
  });
});

describe("a key", () => {
  it("may be in base64 or base64url", () => {
    const bytes = randomBytes(32);
    const sealed = new Sealing([bytes.toString("base64")]).seal(secrets, place);
    expect(new Sealing([bytes.toString("base64url")]).open(sealed, place)).toEqual(secrets);
  });

  it.each(["secret", randomBytes(16).toString("base64"), randomBytes(32).toString("hex"), `${webhookKey()}\n`])(
    "is not %j, and the error does not contain it",
    (text) => {
      const make = () => new Sealing([webhookKey(), text]);
      expect(make).toThrow("webhooks.keys[1] is not a valid key");
      expect(make).not.toThrow(text);
    },
  );

  it("is required", () => {
    expect(() => new Sealing([])).toThrow("give at least one key");
  });
});
