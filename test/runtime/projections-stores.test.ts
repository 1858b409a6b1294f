import { describe, expect, it } from "vitest";
import { createRuntime, defineAgent, InvalidInputError, type Projections } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import {
  artifactStoreContract,
  messageStoreContract,
  stateStoreContract,
} from "../contracts/projection-stores.contract.ts";
import { OwnArtifacts, OwnMessages, OwnStates } from "../support/own-stores.ts";

// The stores that the tests of projections write to keep to what docs/stores.md asks of the user's.
describe("a message store of one's own", () => {
  messageStoreContract(() => new OwnMessages());
});
describe("an artifact store of one's own", () => {
  artifactStoreContract(() => new OwnArtifacts());
});
describe("a state store of one's own", () => {
  stateStoreContract(() => new OwnStates());
});

describe("createRuntime()", () => {
  it.each([
    [{ messages: { append: async () => {} } }, "projections.messages lacks compact()"],
    [{ messages: {} }, "projections.messages lacks append() and compact()"],
    [{ artifacts: { save: "yes" } }, "projections.artifacts lacks save()"],
    [{ message: new OwnMessages() }, 'projections has no option "message": did you mean messages?'],
  ])("refuses a value that is not a store, and says what is missing: %#", async (projections, words) => {
    const agents = [defineAgent({ name: "clerk", model: scriptedModel("done") })];
    const opened = createRuntime({ agents, projections: projections as unknown as Projections });
    await expect(opened).rejects.toThrow(InvalidInputError);
    await expect(opened).rejects.toThrow(words);
  });
});
