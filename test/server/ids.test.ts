import { assert, constantFrom, integer, property, string, stringMatching } from "fast-check";
import { describe, expect, it } from "vitest";
import { agentIdOfName, turnKeyOf } from "../../src/server/core/names.ts";
import { idOfUrl, openedId, sealedId, urlIdOf } from "../../src/server/core/url-ids.ts";

const agentId = stringMatching(/^[A-Za-z0-9][A-Za-z0-9._@-]{0,40}(~[0-9a-f]{16})?$/);

describe("ids in URLs", () => {
  it.each([
    ["desk-7#3", "desk-7.3"],
    ["desk-7#3:2:0:1", "desk-7.3:2:0:1"],
    ["a.1#2", "a.1.2"],
    ["a~00ff#1:1:0", "a~00ff.1:1:0"],
  ])("%s is %s", (id, text) => {
    expect([urlIdOf(id), idOfUrl(text)]).toEqual([text, id]);
  });

  it("are restored unchanged", () => {
    assert(
      property(agentId, integer({ min: 1 }), constantFrom("", ":1:0", ":2:3:1"), (agent, number, call) => {
        const id = `${agent}#${number}${call}`;
        expect(idOfUrl(urlIdOf(id))).toBe(id);
        expect(urlIdOf(id)).toBe(encodeURI(urlIdOf(id)));
      }),
    );
  });

  it.each(["desk", "desk.0", "desk.01", "desk.x", ".", "..", "", "desk-7#3"])(
    "%j is not the id of a turn, and is unchanged",
    (text) => {
      expect(idOfUrl(text)).toBe(text);
    },
  );

  it("of other protocols are sealed", () => {
    assert(
      property(string(), (id) => {
        const text = id.toWellFormed();
        expect(openedId("resp", sealedId("resp", text))).toBe(text);
      }),
    );
    for (const text of ["resp_", "other_YQ", "resp_YQ==", "resp_Y Q", "YQ"]) {
      expect([text, openedId("resp", text)]).toEqual([text, text === "resp_" ? "" : undefined]);
    }
  });
});

describe("client-chosen names", () => {
  const scope = { tenant: "t", ownerId: "o", definition: "d" };

  it("are 32 hexadecimal digits of a hash over the tenant, the owner, the definition and the name", () => {
    expect(agentIdOfName(scope, "n")).toBe("825d3d82f83144a2cf29cf714fff094f");
  });

  it("do not collide if the joined values are equal", () => {
    const ids = [
      agentIdOfName({ tenant: "a", ownerId: "b", definition: "c" }, "d"),
      agentIdOfName({ tenant: "a", ownerId: 'b","c', definition: "d" }, ""),
      agentIdOfName({ tenant: "ab", ownerId: "", definition: "c" }, "d"),
      agentIdOfName({ tenant: "a", ownerId: "b", definition: "cd" }, ""),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("a long key is hashed, and stays below the limit of a turn's key", () => {
    expect(turnKeyOf({ route: "api.startTurn", value: "k" })).toBe("api.startTurn/k");
    const long = ["x", "y"].map((end) => turnKeyOf({ route: "api.startTurn", value: "k".repeat(254) + end }));
    expect(new Set(long).size).toBe(2);
    expect(Math.max(...long.map(({ length }) => length))).toBeLessThan(256);
  });
});
