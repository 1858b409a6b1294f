import { describe, expect, test } from "vitest";
import { queueSecrets } from "../../../src/cli/job/store-location.ts";
import { InvalidInputError } from "../../../src/errors/index.ts";

const long = "0123456789abcdef";
const of = (text: string | undefined) => queueSecrets({ TROUPE_QUEUE_SECRETS: text });

describe("TROUPE_QUEUE_SECRETS", () => {
  test("jobs are not signed if the variable is unset or empty", () => {
    expect([of(undefined), of(""), of(" ")]).toEqual([undefined, undefined, undefined]);
  });

  test("keys are in order; a secret may contain colons and equals signs", () => {
    expect(of(`k2:${long}:=/+, k1:${long}`)).toEqual([
      { id: "k2", secret: `${long}:=/+` },
      { id: "k1", secret: long },
    ]);
  });

  test.each([
    [long, /key 1 is not of the form ID:SECRET/],
    [`k1:${long},`, /key 2 is not of the form/],
    [`k1:${long},k 2:${long}`, /key 2 is not of the form/],
    ["k1:hunter2", /key 1 has a secret of less than 16 characters/],
  ])("an invalid key is named by its position, and not shown", (text, why) => {
    expect(() => of(text)).toThrow(InvalidInputError);
    expect(() => of(text)).toThrow(why);
    expect(() => of(text)).not.toThrow(/hunter2|0123456789abcdef/);
  });
});
