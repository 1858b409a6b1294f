import { expect, it } from "vitest";
import { AlreadyOwnedError, LeaseLostError, NotFoundError, StoreUnavailableError } from "../../src/errors/index.ts";
import { lostToOthers } from "../../src/runtime/placement/activation-ports.ts";

it.each([new AlreadyOwnedError("another process has it"), new NotFoundError("the stores have lost it")])(
  "the error that code of an earlier activation gets is LeaseLostError: $message",
  (error) => {
    expect(() => lostToOthers(error)).toThrow(LeaseLostError);
    expect(() => lostToOthers(error)).toThrow(expect.objectContaining({ message: error.message, cause: error }));
  },
);

it("a temporary error is not converted", () => {
  const error = new StoreUnavailableError("away");
  expect(() => lostToOthers(error)).toThrow(error);
});
