import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as budget from "../../src/budget/index.ts";
import { CorruptRecordError } from "../../src/errors/index.ts";
import { opened, rowKinds, sealed, STORED_FORM } from "../../src/stores/redis/redis-rows.ts";
import * as state from "../../src/state/index.ts";

const pair = z.object({ name: z.string(), count: z.int() });

describe("the sum at the end of a stored text", () => {
  const text = JSON.stringify({ name: "ann", count: 1 });

  test("says that it is what was written", () => {
    expect(opened(pair, sealed(text), "it")).toEqual({ name: "ann", count: 1 });
    // Its schema is not gone through.
    expect(opened(z.never(), sealed(text), "it")).toEqual({ name: "ann", count: 1 });
    expect(opened(z.literal(true), sealed("true"), "it")).toBe(true);
  });

  test("of a text that was changed lets it be checked whole", () => {
    const changed = sealed(text).replace("ann", "bob");
    expect(opened(pair, changed, "it")).toEqual({ name: "bob", count: 1 });
    expect(() => opened(pair, sealed(text).replace("1}", "x}"), "it")).toThrow(CorruptRecordError);
    expect(() => opened(pair, sealed(text).replace(":1", ':"1"'), "it")).toThrow("count");
    expect(() => opened(pair, sealed(text).slice(0, -1), "it")).toThrow(CorruptRecordError);
  });

  test("may be absent", () => {
    expect(opened(pair, text, "it")).toEqual({ name: "ann", count: 1 });
    expect(() => opened(pair, '{"name":"ann"}', "it")).toThrow("count");
    expect(() => rowKinds.timersFrom.parse("#", "it")).toThrow(CorruptRecordError);
  });

  test("counts for one form of the schemas: raise STORED_FORM in redis-rows.ts when one of them changes", () => {
    const stored = {
      accountSchema: budget.accountSchema,
      waiterSchema: budget.waiterSchema,
      agentRecordSchema: state.agentRecordSchema,
      agentRequestSchema: state.agentRequestSchema,
      artifactSchema: state.artifactSchema,
      entrySchema: state.entrySchema,
      inboxItemSchema: state.inboxItemSchema,
      messageSchema: state.messageSchema,
      timerSchema: state.timerSchema,
      treeWebhooksSchema: state.treeWebhooksSchema,
      turnRecordSchema: state.turnRecordSchema,
    };
    const forms = Object.entries(stored).map(([name, schema]) => [
      name,
      z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }),
    ]);
    const hash = createHash("sha256").update(JSON.stringify(forms)).digest("hex").slice(0, 16);
    expect([STORED_FORM, hash]).toEqual([4, "1a18cbc6d0539396"]);
  });
});
