import { describe, expect, it } from "vitest";
import { createRuntime, defineAgent, InvalidInputError, type Projections } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import {
  artifactStoreContract,
  messageStoreContract,
  stateStoreContract,
} from "../contracts/projection-stores.contract.ts";
import { OwnArtifacts, OwnMessages, OwnStates } from "../support/own-stores.ts";

// The custom stores used by the projection tests meet the contract of docs/stores.md.
describe("a custom message store", () => {
  messageStoreContract(() => new OwnMessages());
});
describe("a custom artifact store", () => {
  artifactStoreContract(() => new OwnArtifacts());
});
describe("a custom state store", () => {
  stateStoreContract(() => new OwnStates());
});

describe("createRuntime()", () => {
  it.each([
    [{ messages: { append: async () => {} } }, "projections.messages lacks compact()"],
    [{ messages: {} }, "projections.messages lacks append() and compact()"],
    [{ artifacts: { save: "yes" } }, "projections.artifacts lacks save()"],
    [{ message: new OwnMessages() }, 'projections has no option "message": did you mean messages?'],
  ])("refuses a value that is not a store and names the missing methods: %#", async (projections, words) => {
    const agents = [defineAgent({ name: "clerk", model: scriptedModel("done") })];
    const opened = createRuntime({ agents, projections: projections as unknown as Projections });
    await expect(opened).rejects.toThrow(InvalidInputError);
    await expect(opened).rejects.toThrow(words);
  });
});
